package remote

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/handoff"
)

// A blob is sent in pieces: the length in four bytes, most significant first, and then the bytes. A piece of length 0 is the last, and the
// SHA-256 of all bytes follows it. The hash tells both sides that the whole blob has arrived, even through a proxy that cuts connections.
const mostPiece = 256 << 10

// sendPieces writes the bytes of r until EOF as pieces. It calls moved after each one.
func sendPieces(w io.Writer, r io.Reader, moved func()) error {
	buf := make([]byte, 4+mostPiece)
	sum := sha256.New()
	for {
		n, err := blob.ReadFull(r, buf[4:])
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n > 0 {
			sum.Write(buf[4 : 4+n])
			binary.BigEndian.PutUint32(buf, uint32(n))
			if _, err := w.Write(buf[:4+n]); err != nil {
				return err
			}
			moved()
		}
		if err != nil {
			_, err = w.Write(sum.Sum(make([]byte, 4, 4+sha256.Size)))
			return err
		}
	}
}

// pieces reads the output of sendPieces. It returns EOF only if all bytes have arrived unchanged, and otherwise ErrUnavailable: the blob
// must be sent again.
type pieces struct {
	from  io.Reader
	moved func() // called before each wait
	left  int    // of the current piece
	sum   hash.Hash
	over  error
}

func readPieces(from io.Reader, moved func()) *pieces {
	return &pieces{from: from, moved: moved, sum: sha256.New()}
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.over == nil && p.left == 0 {
		p.over = p.next()
	}
	if p.over != nil {
		return 0, p.over
	}
	p.moved()
	n, err := p.from.Read(b[:min(len(b), p.left)])
	p.sum.Write(b[:n])
	p.left -= n
	if err != nil && p.left > 0 {
		p.over = broken(err)
		return n, p.over
	}
	return n, nil
}

func (p *pieces) next() error {
	p.moved()
	var head [4]byte
	if _, err := io.ReadFull(p.from, head[:]); err != nil {
		return broken(err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > mostPiece {
		return fmt.Errorf("%w: a piece of a blob has %d bytes: at most %d", handoff.ErrUnavailable, n, mostPiece)
	}
	if p.left = int(n); n > 0 {
		return nil
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(p.from, want); err != nil {
		return broken(err)
	}
	if !bytes.Equal(want, p.sum.Sum(nil)) {
		return fmt.Errorf("%w: the blob's checksum is wrong: it was changed on its way", handoff.ErrUnavailable)
	}
	return io.EOF
}

func broken(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: the blob broke off: %w", handoff.ErrUnavailable, err)
}
