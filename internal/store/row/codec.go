// Package row has the compact encodings of columns that hold several fields: rarely used fields of a request and of a state, errors, and
// histories. A field that is empty in most executions costs one bit. The functions are pure; a backend decides which column holds the
// result.
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

// Micros returns the stored form of a time; the zero time is 0.
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

type writer struct{ b []byte }

func (w *writer) uint(v uint64)    { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) int(v int64)      { w.b = binary.AppendVarint(w.b, v) }
func (w *writer) text(s string)    { w.uint(uint64(len(s))); w.b = append(w.b, s...) }
func (w *writer) bytes(p []byte)   { w.uint(uint64(len(p))); w.b = append(w.b, p...) }
func (w *writer) id(id flow.ID)    { w.b = append(w.b, id[:]...) }
func (w *writer) since(t, c int64) { w.int(t - c) }
func (w *writer) float(v float64)  { w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(v)) }

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

func (r *reader) float() float64 {
	p := r.take(8)
	if len(p) < 8 {
		return 0
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(p))
}

// codec writes, or reads, the fields of a value whose bits are in has, so that one list of fields serves both.
type codec struct {
	has     uint64
	reading bool
	writer
	reader
}

// set sets the bit of a field to write.
func (c *codec) set(bit uint64, is bool) {
	if is {
		c.has |= bit
	}
}

func number[T ~int | ~int32 | ~int64](c *codec, bit uint64, v *T) {
	switch {
	case c.has&bit == 0:
	case c.reading:
		*v = T(c.reader.int())
	default:
		c.writer.int(int64(*v))
	}
}

// unsigned codes a number that is never negative.
func unsigned[T ~uint8 | ~int | ~int32 | ~int64 | ~uint64](c *codec, bit uint64, v *T) {
	switch {
	case c.has&bit == 0:
	case c.reading:
		*v = T(c.reader.uint())
	default:
		c.writer.uint(uint64(*v))
	}
}

func text[T ~string](c *codec, bit uint64, v *T) {
	switch {
	case c.has&bit == 0:
	case c.reading:
		*v = T(c.reader.text())
	default:
		c.writer.text(string(*v))
	}
}

func (c *codec) bytes(bit uint64, v *[]byte) {
	switch {
	case c.has&bit == 0:
	case c.reading:
		*v = c.reader.bytes()
	default:
		c.writer.bytes(*v)
	}
}

func (c *codec) sum(bit uint64, v *[32]byte) {
	switch {
	case c.has&bit == 0:
	case c.reading:
		copy(v[:], c.take(c.reader.uint()))
	default:
		c.writer.bytes(v[:])
	}
}

func (c *codec) id(bit uint64, v *flow.ID) {
	switch {
	case c.has&bit == 0:
	case c.reading:
		*v = c.reader.id()
	default:
		c.writer.id(*v)
	}
}

// part is an optional part of a value, made when it is read; nil: there is none.
func part[T any](c *codec, bit uint64, v **T) *T {
	if c.reading && c.has&bit != 0 {
		*v = new(T)
	}
	return *v
}

// time codes a time that may be zero.
func (c *codec) time(bit uint64, v *time.Time) {
	micros := Micros(*v)
	number(c, bit, &micros)
	if c.reading {
		*v = FromMicros(micros)
	}
}

// span codes a duration, in microseconds.
func (c *codec) span(bit uint64, v *time.Duration) {
	micros := v.Microseconds()
	unsigned(c, bit, &micros)
	if c.reading {
		*v = time.Duration(micros) * time.Microsecond
	}
}

// moment encodes or decodes a time by its distance from another.
func (c *codec) moment(bit uint64, v *time.Time, from int64) {
	switch {
	case c.has&bit == 0:
	case c.reading:
		*v = c.reader.since(from)
	default:
		c.writer.since(Micros(*v), from)
	}
}

func (c *codec) float(bit uint64, v *float64) {
	switch {
	case c.has&bit == 0:
	case c.reading:
		*v = c.reader.float()
	default:
		c.writer.float(*v)
	}
}

// each encodes or decodes a list, element by element.
func each[T any](c *codec, bit uint64, all *[]T, element func(*T)) {
	if c.has&bit == 0 {
		return
	}
	if !c.reading {
		c.writer.uint(uint64(len(*all)))
		for i := range *all {
			element(&(*all)[i])
		}
		return
	}
	for n := c.reader.uint(); n > 0 && c.err == nil; n-- {
		*all = append(*all, *new(T))
		element(&(*all)[len(*all)-1])
	}
}

func (c *codec) texts(bit uint64, all *[]string) {
	each(c, bit, all, func(s *string) { text(c, bit, s) })
}

func (c *codec) labels(bit uint64, all *map[string]string) {
	if c.has&bit == 0 {
		return
	}
	if !c.reading {
		c.writer.uint(uint64(len(*all)))
		for k, v := range *all {
			c.writer.text(k)
			c.writer.text(v)
		}
		return
	}
	n := c.reader.uint()
	*all = make(map[string]string, min(n, 64))
	for ; n > 0 && c.err == nil; n-- {
		k := c.reader.text()
		(*all)[k] = c.reader.text()
	}
}
