// Package row has the compact encodings for columns that several fields share: rarely used fields of a request, the rarely used
// part of a state, errors, histories. A field that most executions leave empty costs one bit. The functions are pure; a backend
// decides which column holds the result.
package row

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Micros is a time in the form in which it is stored; the zero time is 0.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// FromMicros is the inverse of Micros.
func FromMicros(v int64) time.Time {
	if v == 0 {
		return time.Time{}
	}
	return time.UnixMicro(v).UTC()
}

// writer appends to a buffer.
type writer struct{ b []byte }

func (w *writer) uint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) int(v int64)   { w.b = binary.AppendVarint(w.b, v) }
func (w *writer) text(s string) { w.uint(uint64(len(s))); w.b = append(w.b, s...) }
func (w *writer) texts(all []string) {
	w.uint(uint64(len(all)))
	for _, s := range all {
		w.text(s)
	}
}
func (w *writer) bytes(p []byte)   { w.uint(uint64(len(p))); w.b = append(w.b, p...) }
func (w *writer) id(id flow.ID)    { w.b = append(w.b, id[:]...) }
func (w *writer) since(t, c int64) { w.int(t - c) }
func (w *writer) duration(d dur)   { w.int(int64(d)) }
func (w *writer) float(v float64)  { w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(v)) }

type dur = time.Duration

// ErrDamaged means that a row's bytes cannot be decoded.
var ErrDamaged = errors.New("stored row cannot be decoded")

var errShort = fmt.Errorf("%w: it is cut short or of another layout", ErrDamaged)

// reader reads from a buffer. After the first error it returns zero values.
type reader struct {
	b   []byte
	err error
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.err, r.b = errShort, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.err, r.b = errShort, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// take returns the next n bytes, not copied.
func (r *reader) take(n uint64) []byte {
	if uint64(len(r.b)) < n {
		r.err, r.b = errShort, nil
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) text() string { return string(r.take(r.uint())) }

func (r *reader) bytes() []byte {
	p := r.take(r.uint())
	if len(p) == 0 {
		return nil
	}
	return slices.Clone(p)
}

func (r *reader) id() (id flow.ID) {
	copy(id[:], r.take(uint64(len(id))))
	return id
}

func (r *reader) since(c int64) time.Time { return time.UnixMicro(c + r.int()).UTC() }
func (r *reader) duration() time.Duration { return time.Duration(r.int()) }

func (r *reader) float() float64 {
	p := r.take(8)
	if len(p) < 8 {
		return 0
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(p))
}
