package postgres

import (
	"encoding/binary"

	"github.com/pawl-run/pawl/internal/flow"
)

// column is an array parameter that is built element by element, together with others of the same length.
type column struct {
	of sqlType
	n  int
	b  []byte
}

// begin empties the column for elements of a type.
func (c *column) begin(of sqlType) {
	c.of, c.n = of, 0
	if cap(c.b) > 1<<20 {
		c.b = nil // drop a large buffer, so that one large payload does not occupy memory permanently
	}
	c.b = c.b[:0]
}

func (c *column) null() {
	c.n++
	c.b = append(c.b, 0xff, 0xff, 0xff, 0xff)
}

func (c *column) int(v int64) {
	c.n++
	switch c.of {
	case oidInt8:
		c.b = binary.BigEndian.AppendUint64(append(c.b, 0, 0, 0, 8), uint64(v))
	case oidInt4:
		c.b = binary.BigEndian.AppendUint32(append(c.b, 0, 0, 0, 4), uint32(v))
	case oidInt2:
		c.b = binary.BigEndian.AppendUint16(append(c.b, 0, 0, 0, 2), uint16(v))
	}
}

func (c *column) intOrNull(v int64) {
	if v == 0 {
		c.null()
		return
	}
	c.int(v)
}

func (c *column) bool(v bool) {
	c.n++
	c.b = append(c.b, 0, 0, 0, 1, bit(v))
}

func (c *column) text(v string) {
	c.n++
	c.b = binary.BigEndian.AppendUint32(c.b, uint32(len(v)))
	c.b = append(c.b, v...)
}

func (c *column) textOrNull(v string) {
	if v == "" {
		c.null()
		return
	}
	c.text(v)
}

func (c *column) bytes(v []byte) {
	c.n++
	c.b = binary.BigEndian.AppendUint32(c.b, uint32(len(v)))
	c.b = append(c.b, v...)
}

// bytesOrNull adds bytes; nil becomes null.
func (c *column) bytesOrNull(v []byte) {
	if v == nil {
		c.null()
		return
	}
	c.bytes(v)
}

// encode adds the bytes that appendTo appends.
func (c *column) encode(appendTo func([]byte) []byte) {
	at := len(c.b)
	c.n++
	c.b = appendTo(append(c.b, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(c.b[at:], uint32(len(c.b)-at-4))
}

func (c *column) id(v flow.ID) {
	c.n++
	c.b = append(append(c.b, 0, 0, 0, 16), v[:]...)
}

// idOrNull adds an id; the zero id becomes null.
func (c *column) idOrNull(v flow.ID) {
	if v.IsZero() {
		c.null()
		return
	}
	c.id(v)
}

// columns are the parameters of a statement that writes many rows, filled by a relation.
type columns struct{ all []column }

// rows is how many rows have been added.
func (t *columns) rows() int {
	if len(t.all) == 0 {
		return 0
	}
	return t.all[0].n
}

// columns adds the columns as parameters.
func (a *args) columns(t *columns) *args {
	for i := range t.all {
		c := &t.all[i]
		n := len(a.b)
		a.array(c.of, c.n)
		a.b = append(a.b, c.b...)
		a.put(n)
	}
	return a
}
