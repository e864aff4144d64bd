package postgres

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
)

// column is an array parameter that is built element by element, beside others of the same length.
type column struct {
	oid uint32
	n   int
	b   []byte
}

// begin empties the column for elements of a type.
func (c *column) begin(oid uint32) {
	c.oid, c.n = oid, 0
	if cap(c.b) > 1<<20 {
		c.b = nil // one large payload must not stay for ever
	}
	c.b = c.b[:0]
}

func (c *column) null() {
	c.n++
	c.b = append(c.b, 0xff, 0xff, 0xff, 0xff)
}

func (c *column) int(v int64) {
	c.n++
	switch c.oid {
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

// bytes adds bytes; nil is null.
func (c *column) bytes(v []byte) {
	if v == nil {
		c.null()
		return
	}
	c.n++
	c.b = binary.BigEndian.AppendUint32(c.b, uint32(len(v)))
	c.b = append(c.b, v...)
}

// encode adds what an encoder appends; nothing is null when orNull says so.
func (c *column) encode(orNull bool, appendTo func([]byte) []byte) {
	at := len(c.b)
	c.b = append(c.b, 0, 0, 0, 0)
	c.b = appendTo(c.b)
	size := len(c.b) - at - 4
	if size == 0 && orNull {
		c.b = c.b[:at]
		c.null()
		return
	}
	c.n++
	binary.BigEndian.PutUint32(c.b[at:], uint32(size))
}

func (c *column) id(v flow.ID) {
	c.n++
	c.b = append(append(c.b, 0, 0, 0, 16), v[:]...)
}

// idOrNull adds an id; the zero one is null.
func (c *column) idOrNull(v flow.ID) {
	if v.IsZero() {
		c.null()
		return
	}
	c.id(v)
}

// columns are the parameters of a statement that writes many rows.
type columns struct{ all []column }

// begin empties the columns and gives each its type.
func (t *columns) begin(oids ...uint32) []column {
	if t.all == nil {
		t.all = make([]column, len(oids))
	}
	for i := range t.all {
		t.all[i].begin(oids[i])
	}
	return t.all
}

// rowsOf is the SQL of a subquery whose rows are the elements of the parameters $1, $2, …, which are arrays of one length;
// each column is given as its name and the type of its elements. The functions of one SELECT list advance side by side, so
// the rows come in the arrays' order. FROM unnest($1, $2, …) says the same, and fills a tuplestore for each of its columns.
func rowsOf(columns string) string {
	var b strings.Builder
	b.WriteString("(SELECT ")
	for i, c := range strings.Split(columns, ", ") {
		name, of, _ := strings.Cut(c, " ")
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "unnest($%d::%s[]) AS %s", i+1, of, name)
	}
	b.WriteString(")")
	return b.String()
}

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
		a.array(c.oid, c.n)
		a.b = append(a.b, c.b...)
		a.put(n)
	}
	return a
}
