package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"

	"github.com/pawl-run/pawl/internal/wirejson"
)

// Writer writes an archive. It holds one part of the rows.
type Writer struct {
	to     io.Writer
	sum    hash.Hash // of everything that was written
	tar    *tar.Writer
	rows   []byte
	parts  int
	lists  int
	checks []string // checksums of members that were not written yet
}

func NewWriter(to io.Writer, m Manifest) (*Writer, error) {
	w := &Writer{sum: sha256.New()}
	w.to = io.MultiWriter(to, w.sum)
	w.tar = tar.NewWriter(w.to)
	m.Format, m.Version = Format, Version
	var text bytes.Buffer
	if err := wirejson.AppendIndented(&text, m); err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return w, w.member(manifestName, text.Bytes())
}

func (w *Writer) Row(r *Row) (err error) {
	if w.rows, err = r.Appended(w.rows); err != nil {
		return err
	}
	if len(w.rows) < partSize {
		return nil
	}
	return w.flush()
}

// Definition adds the document of a definition, with the name of its member. It must precede the executions that refer to it.
func (w *Writer) Definition(name string, document []byte) error { return w.member(name, document) }

// Blob adds a content of size bytes; the caller adds its row after it.
func (w *Writer) Blob(name string, size int64, content io.Reader) (row *Blob, err error) {
	if err := w.tar.WriteHeader(header(name, size)); err != nil {
		return nil, fmt.Errorf("write member %s: %w", name, err)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w.tar, sum), io.LimitReader(content, size))
	if err == nil {
		var more int64
		more, err = io.Copy(io.Discard, content)
		n += more
	}
	if err == nil && n != size {
		err = fmt.Errorf("it has %d bytes and should have %d", n, size)
	}
	if err != nil {
		return nil, fmt.Errorf("write member %s: %w", name, err)
	}
	row = &Blob{Name: name, Size: size, SHA256: fmt.Sprintf("%x", sum.Sum(nil))}
	return row, w.checked([sha256.Size]byte(sum.Sum(nil)), name)
}

// Close ends the archive. Without it, the archive is refused.
func (w *Writer) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.list(); err != nil {
		return err
	}
	if err := w.tar.Flush(); err != nil {
		return fmt.Errorf("end the archive: %w", err)
	}
	end, err := sealed(w.sum.Sum(nil))
	if err == nil {
		_, err = w.to.Write(end)
	}
	if err != nil {
		return fmt.Errorf("seal the archive: %w", err)
	}
	return nil
}

func (w *Writer) flush() error {
	if len(w.rows) == 0 {
		return nil
	}
	w.parts++
	err := w.member(fmt.Sprintf("%s%06d.jsonl", rowsUnder, w.parts), w.rows)
	if w.rows = w.rows[:0]; cap(w.rows) > 4*partSize {
		w.rows = nil // do not keep the memory of a large row
	}
	return err
}

func (w *Writer) member(name string, content []byte) error {
	if err := w.put(name, content); err != nil {
		return err
	}
	return w.checked(sha256.Sum256(content), name)
}

func (w *Writer) put(name string, content []byte) error {
	err := w.tar.WriteHeader(header(name, int64(len(content))))
	if err == nil {
		_, err = w.tar.Write(content)
	}
	if err != nil {
		return fmt.Errorf("write member %s: %w", name, err)
	}
	return nil
}

func (w *Writer) checked(sum [sha256.Size]byte, name string) error {
	if w.checks = append(w.checks, checksum(sum, name)); len(w.checks) < checkedAtOnce {
		return nil
	}
	return w.list()
}

// list writes the checksums of the members since the last list.
func (w *Writer) list() error {
	var text []byte
	for _, line := range w.checks {
		text = append(text, line...)
	}
	w.checks = w.checks[:0]
	w.lists++
	return w.put(fmt.Sprintf("%s%06d", checksumsUnder, w.lists), text)
}
