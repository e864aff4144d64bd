package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
)

// Contents has the functions that are called while an archive is read. They must not have lasting effects before Read has returned without
// an error: an error may be at the end. An error of a function ends the reading.
type Contents struct {
	Manifest   func(*Manifest) error
	Definition func(name string, document []byte) error
	// Blob gets a content of size bytes; it need not read all of it.
	Blob func(name string, size int64, content io.Reader) error
	// Row gets a row and its line, which is overwritten afterwards.
	Row func(r *Row, line []byte) error
}

// mostPending is how many blobs may precede their rows.
const mostPending = 100_000

// Read reads an archive, and returns ErrBroken if it is truncated, was changed, or has another format. Any other error is from the reader
// or from c.
func Read(from io.Reader, c Contents) error {
	r := &reader{from: &lagging{from: bufio.NewReaderSize(from, 16<<10), sum: sha256.New()}, c: c, blobs: map[string]Blob{}}
	r.tar = tar.NewReader(r.from)
	for !r.over {
		if err := r.member(); err != nil {
			return err
		}
	}
	return nil
}

type reader struct {
	from   *lagging
	tar    *tar.Reader
	c      Contents
	began  bool // the manifest has been read
	over   bool
	parts  int
	lists  int
	checks []string        // checksums of members that were not compared yet
	blobs  map[string]Blob // not named by a row yet
	tree   flow.ID         // the tree that is being read
	count  int             // executions of the tree so far
}

// reading separates errors of the archive from errors of its transfer.
func (r *reader) reading(err error, name string) error {
	switch {
	case r.from.err != nil && !errors.Is(r.from.err, io.EOF):
		return fmt.Errorf("read the archive: %w", r.from.err)
	case !r.began:
		return broken("it is not an archive of pawl export, which is a tar, as it is or compressed by gzip: %v", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return broken("it ends within or before %s: it was cut off", name)
	}
	return broken("%s: %v", name, err)
}

func (r *reader) member() error {
	h, err := r.tar.Next()
	if err != nil {
		return r.reading(err, "its last member")
	}
	if len(h.Name) > mostName {
		return broken("member %.100q… has a name of %d bytes: at most %d", h.Name, len(h.Name), mostName)
	}
	if h.Typeflag != tar.TypeReg || h.Size < 0 {
		return broken("member %.100q is not a file", h.Name)
	}
	for key := range h.PAXRecords {
		if key != "path" && key != "size" { // a sparse member would be read as exabytes of zeros
			return broken("member %.100q has the record %.100q: no member of an archive has more than a name and a size", h.Name, key)
		}
	}
	if !r.began {
		return r.manifest(h)
	}
	switch {
	case h.Name == sealName:
		return r.seal()
	case under(h.Name, checksumsUnder):
		return r.list(h)
	case under(h.Name, rowsUnder):
		return r.rows(h)
	case under(h.Name, definitionsUnder):
		document, err := r.whole(h, mostDefinition)
		if err != nil || r.c.Definition == nil {
			return err
		}
		return r.c.Definition(h.Name, document)
	case isBlob(h.Name):
		return r.blob(h)
	}
	return broken("member %.100q does not belong into an archive of version %d", h.Name, Version)
}

func (r *reader) manifest(h *tar.Header) error {
	if h.Name != manifestName {
		return broken("it begins with %.100q, and not with %s: it is not an archive of pawl export", h.Name, manifestName)
	}
	text, err := r.whole(h, 64<<10)
	if err != nil {
		return err
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil || m.Format != Format {
		return broken("%s does not say that it is a %s", manifestName, Format)
	}
	if m.Version != Version {
		return broken("it has version %d of the format, and this program reads %d: use the pawl that wrote it (%.40s), or a later one", m.Version, Version, m.Pawl)
	}
	r.began = true
	if r.c.Manifest == nil {
		return nil
	}
	return r.c.Manifest(&m)
}

// whole reads a small member completely.
func (r *reader) whole(h *tar.Header, most int64) ([]byte, error) {
	if h.Size > most {
		return nil, broken("member %.100q has %d bytes: at most %d", h.Name, h.Size, most)
	}
	text, err := io.ReadAll(r.tar)
	if err != nil {
		return nil, r.reading(err, h.Name)
	}
	return text, r.checked(sha256.Sum256(text), h.Name)
}

// checked records a member for the list of checksums.
func (r *reader) checked(sum [sha256.Size]byte, name string) error {
	if r.checks = append(r.checks, checksum(sum, name)); len(r.checks) > checkedAtOnce {
		return broken("no checksums follow %d members", len(r.checks))
	}
	return nil
}

func (r *reader) list(h *tar.Header) error {
	r.lists++
	want := strings.Join(r.checks, "")
	if h.Name != fmt.Sprintf("%s%06d", checksumsUnder, r.lists) || h.Size != int64(len(want)) {
		return broken("%.100q has not the checksums of the members before it", h.Name)
	}
	got, err := io.ReadAll(r.tar)
	if err != nil {
		return r.reading(err, h.Name)
	}
	if string(got) != want {
		at := 0
		for i, line := range r.checks {
			if string(got[at:at+len(line)]) != line {
				_, name, _ := strings.Cut(strings.TrimSpace(r.checks[i]), "  ")
				return broken("member %.100q has not the checksum that %s says", name, h.Name)
			}
			at += len(line)
		}
	}
	r.checks = r.checks[:0]
	return nil
}

func (r *reader) blob(h *tar.Header) error {
	if len(r.blobs) == mostPending {
		return broken("%d blobs come before their rows", mostPending)
	}
	sum := sha256.New()
	content := io.TeeReader(r.tar, sum)
	if r.c.Blob != nil {
		if err := r.c.Blob(h.Name, h.Size, content); err != nil {
			if r.from.err != nil {
				return r.reading(r.from.err, h.Name)
			}
			return err
		}
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return r.reading(err, h.Name)
	}
	r.blobs[h.Name] = Blob{Name: h.Name, Size: h.Size, SHA256: hex.EncodeToString(sum.Sum(nil))}
	return r.checked([sha256.Size]byte(sum.Sum(nil)), h.Name)
}

func (r *reader) rows(h *tar.Header) error {
	if r.parts++; h.Name != fmt.Sprintf("%s%06d.jsonl", rowsUnder, r.parts) {
		return broken("%.100q comes where part %d of the rows should", h.Name, r.parts)
	}
	sum := sha256.New()
	lines := bufio.NewReaderSize(io.TeeReader(r.tar, sum), 16<<10)
	var line []byte
	for {
		piece, err := lines.ReadSlice('\n')
		if len(line)+len(piece) > mostRow {
			return broken("%s: a row has more than %d MB", h.Name, mostRow>>20)
		}
		line = append(line, piece...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) == 0:
			return r.checked([sha256.Size]byte(sum.Sum(nil)), h.Name)
		case errors.Is(err, io.EOF):
			return broken("%s: its last row is cut off", h.Name)
		case err != nil:
			return r.reading(err, h.Name)
		}
		if err := r.row(h.Name, line); err != nil {
			return err
		}
		line = line[:0]
	}
}

// row reads one line, and compares it with the previous ones.
func (r *reader) row(part string, line []byte) error {
	row, err := ParseRow(line)
	if err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	if row.fields() != 1 {
		return broken("%s: row %.60q says not one thing", part, line)
	}
	inTree := !r.tree.IsZero()
	switch {
	case !row.Tree.IsZero() || row.LeftOut != nil:
		if inTree {
			return broken("%s: the tree of %s has no end", part, r.tree)
		}
		r.tree, r.count = row.Tree, 0
	case !inTree:
		return broken("%s: row %.60q is in no tree", part, line)
	case row.Execution != nil:
		if r.count++; (r.count == 1) != (row.Execution.ID == r.tree) {
			return broken("%s: the tree of %s begins with %s", part, r.tree, row.Execution.ID)
		}
	case r.count == 0 && row.End == nil:
		return broken("%s: the tree of %s begins with row %.60q, and not with its execution", part, r.tree, line)
	case row.Blob != nil && !row.Blob.Missing:
		if r.blobs[row.Blob.Name] != *row.Blob {
			return broken("%s: there is no member %.100q with the checksum and size of its row", part, row.Blob.Name)
		}
		delete(r.blobs, row.Blob.Name)
	case row.End != nil:
		if row.End.Executions != r.count || r.count == 0 {
			return broken("%s: the tree of %s has %d executions and should have %d", part, r.tree, r.count, row.End.Executions)
		}
		r.tree = flow.ID{}
	}
	if r.c.Row == nil {
		return nil
	}
	return r.c.Row(row, line)
}

// fields returns how many fields of a row are set.
func (r *Row) fields() (n int) {
	for _, set := range []bool{!r.Tree.IsZero(), r.Execution != nil, len(r.Events) > 0, r.Mark != nil, r.Input != nil, r.Log != nil, r.Blob != nil, r.End != nil, r.LeftOut != nil} {
		if set {
			n++
		}
	}
	return n
}

// seal compares the end of the archive with the content before it.
func (r *reader) seal() error {
	switch {
	case len(r.checks) > 0:
		return broken("the last %d members have no checksums", len(r.checks))
	case !r.tree.IsZero():
		return broken("the tree of %s has no end", r.tree)
	case len(r.blobs) > 0:
		return broken("%d blobs have no rows", len(r.blobs))
	}
	want, err := sealed(r.from.sum.Sum(nil))
	if err != nil {
		return err
	}
	if r.from.at != block || !bytes.Equal(r.from.last[:], want[:block]) {
		return broken("its seal is not a seal")
	}
	rest := make([]byte, len(want)-block+1)
	n, err := io.ReadFull(r.from.from, rest)
	switch {
	case err == nil:
		return broken("something follows its end")
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("read the archive: %w", err)
	case n < len(want)-block && bytes.HasPrefix(want[block:], rest[:n]):
		return broken("it ends within its seal: it was cut off")
	case !bytes.Equal(rest[:n], want[block:]):
		return broken("its bytes have not the checksum that its seal says")
	}
	if _, err := r.from.from.Read(rest); errors.Is(err, io.ErrUnexpectedEOF) { // gzip has a checksum behind the last byte
		return broken("it ends within the end of its compression: it was cut off")
	} else if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the archive: %w", err)
	}
	r.over = true
	return nil
}

// lagging computes the sum of everything that was read except the latest block: when the header of the seal has been read, the sum is that
// of the content before it.
type lagging struct {
	from io.Reader
	sum  hash.Hash
	last [block]byte
	at   int // bytes in last
	err  error
}

func (l *lagging) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	for b := p[:n]; len(b) > 0; {
		if l.at == block {
			l.sum.Write(l.last[:])
			l.at = 0
		}
		c := copy(l.last[l.at:], b)
		l.at += c
		b = b[c:]
	}
	if err != nil {
		l.err = err
	}
	return n, err
}
