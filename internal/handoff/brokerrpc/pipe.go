package brokerrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/handoff"
)

// A body that is too large for a message goes as a transfer between two reply queues, in numbered pieces. A few of them are under
// way before the receiver has acknowledged them. The receiver begins with an acknowledgement that expects piece 0 and names its
// reply queue.
const (
	mostPiece = 128 << 10
	window    = 8
	// resendPiece is the time without progress after which unacknowledged pieces, or the acknowledgement, are sent again.
	resendPiece = 2 * time.Second
	// stallAfter is the time without progress after which a transfer ends with an error.
	stallAfter = 30 * time.Second
	// unheardAfter is the time after which a sender gives up if it has never heard of the receiver, which sends an
	// acknowledgement every two seconds.
	unheardAfter = 6 * time.Second
	// stopWithin bounds the message with which a receiver ends a transfer early.
	stopWithin = time.Second
)

var errStopped = fmt.Errorf("%w: the receiver has ended the transfer", handoff.ErrUnavailable)

// errTwice means that the transfer is being read already, because the message that announces it came twice.
var errTwice = fmt.Errorf("%w: the transfer is read already", handoff.ErrUnavailable)

var errStalled = fmt.Errorf("%w: a transfer through the broker makes no progress", handoff.ErrUnavailable)

// awaitAcks collects the acknowledgements of a transfer, until forget. It is called before the message is sent that announces the transfer:
// a first acknowledgement for which no goroutine waits is repeated only after resendPiece.
func (d *correlator) awaitAcks(pipe string, key []byte, from string) *waiter {
	return d.await(pipe, 4*window, func(f *frame) bool { return f.Kind == kindAck && f.by(key, from) })
}

// transmit sends the bytes of r until EOF as a transfer whose acknowledgements w gets, and returns when all of them are acknowledged.
func (d *correlator) transmit(ctx context.Context, w *waiter, pipe string, key []byte, by string, r io.Reader) error {
	var (
		to     string
		sent   [][]byte // unacknowledged pieces; the first has the number acked
		acked  int64
		ending bool
		buf    = make([]byte, mostPiece)
	)
	put := func(piece []byte) error {
		if err := d.transport.Put(ctx, to, piece); err != nil && !errors.Is(err, ErrUnavailable) {
			return fmt.Errorf("%w: send a piece: %w", handoff.ErrUnavailable, err)
		}
		return ctx.Err() // pieces that could not be sent are sent again
	}
	moved := time.Now()
	for {
		for to != "" && !ending && len(sent) < window {
			n, err := blob.ReadFull(r, buf)
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			ending = err != nil
			piece := pack(head{ID: pipe, Kind: kindPiece, Seq: acked + int64(len(sent)), Last: ending}, buf[:n], key, by)
			sent = append(sent, piece)
			if err := put(piece); err != nil {
				return err
			}
		}
		if ending && len(sent) == 0 {
			return nil
		}
		select {
		case f := <-w.frames:
			if f.Seq < acked {
				continue // late, or from a second receiver of the same call, which cannot get all pieces any more
			}
			if f.Last {
				return errStopped
			}
			if to == "" || f.Seq > acked {
				moved = time.Now()
			}
			to = f.To
			if n := f.Seq - acked; n > 0 && n <= int64(len(sent)) {
				sent, acked = sent[n:], f.Seq
			}
		case <-time.After(resendPiece):
			if d := time.Since(moved); d >= stallAfter || to == "" && d >= unheardAfter {
				return errStalled
			}
			for _, piece := range sent {
				if err := put(piece); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

type receiver struct {
	d         *correlator
	ctx       context.Context
	pipe      string
	peer      string // the reply queue of the sender
	key       []byte
	by        string // who signs the frames of this side
	w         *waiter
	next      int64
	early     map[int64]*frame // pieces that came before the next one
	left      []byte
	last      bool
	over      error
	stopAfter func()
}

// receive begins to read a transfer. The caller must close the reader.
func (d *correlator) receive(ctx context.Context, pipe, peer string, key []byte, by, from string) *receiver {
	p := &receiver{d: d, ctx: ctx, pipe: pipe, peer: peer, key: key, by: by, early: map[int64]*frame{}, stopAfter: func() {}}
	if d.awaits(pipe) {
		p.over = errTwice
		return p
	}
	p.w = d.await(pipe, 4*window, func(f *frame) bool { return f.Kind == kindPiece && f.by(key, from) })
	p.acknowledge()
	return p
}

// acknowledge sends the number of the piece expected next. It is repeated while no piece comes.
func (p *receiver) acknowledge() {
	m, err := p.d.at(p.ctx)
	if err != nil {
		return
	}
	_ = p.d.transport.Put(p.ctx, p.peer, pack(head{ID: p.pipe, Kind: kindAck, Seq: p.next, To: m.Name()}, nil, p.key, p.by))
}

// Read implements io.Reader. If the transfer breaks off it returns ErrUnavailable.
func (p *receiver) Read(b []byte) (int, error) {
	for moved := time.Now(); len(p.left) == 0; {
		if p.last {
			p.over = io.EOF
		}
		if p.over != nil {
			return 0, p.over
		}
		select {
		case f := <-p.w.frames:
			if f.Seq >= p.next && f.Seq < p.next+window {
				p.early[f.Seq] = f
			}
			if f = p.early[p.next]; f != nil {
				moved = time.Now()
			}
			for ; f != nil; f = p.early[p.next] {
				p.left, p.last = append(p.left, f.body...), f.Last
				delete(p.early, p.next)
				p.next++
			}
			p.acknowledge()
		case <-time.After(resendPiece):
			if time.Since(moved) >= stallAfter {
				p.over = errStalled
			}
			p.acknowledge()
		case <-p.ctx.Done():
			p.over = p.ctx.Err()
		}
	}
	n := copy(b, p.left)
	p.left = p.left[n:]
	return n, nil
}

// Close implements io.Closer. It tells a sender that has not finished to stop, because the sender would wait for
// acknowledgements.
func (p *receiver) Close() error {
	if errors.Is(p.over, errTwice) {
		return nil
	}
	p.d.forget(p.pipe)
	if !p.last {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), stopWithin)
		defer cancel()
		// If this message is lost the sender gives up by itself, later.
		_ = p.d.transport.Put(ctx, p.peer, pack(head{ID: p.pipe, Kind: kindAck, Seq: p.next, Last: true}, nil, p.key, p.by))
	}
	p.stopAfter()
	return nil
}
