package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/pgpool"
	"github.com/pawl-run/pawl/internal/store/row"
)

// query is a statement's text with its index in the store's list of rendered statements.
type query struct {
	text string
	slot int
}

var queries []*query

// sql declares a statement; {s} stands for the schema. It is called only for package variables, so the list is complete before a store is
// opened.
func sql(text string) *query {
	q := &query{text: text, slot: len(queries)}
	queries = append(queries, q)
	return q
}

// is returns an equality for looking up the rows that a statement writes, one for each row of its input, by the first column of an index.
// If two equalities had this form, one could become a filter, so further columns have plain equalities, or conditions for which there is no
// index. PostgreSQL may plan a statement while a table is empty; then it prefers a merge join that reads the whole table in the order of an
// index, and keeps that plan when the table has grown. With this form of equality it can use the index for look-ups, but not for an order.
// Rows that are only read are looked up by LATERAL … OFFSET 0 or by a scalar subquery, because the planner could turn EXISTS into a hash
// of the whole table.
func is(column, value string) string { return column + ` = ANY (ARRAY[` + value + `])` }

// statement is a query rendered for one store.
type statement struct{ name, text string }

// render fills in the schema, which is already quoted.
func render(schema string) []statement {
	all := make([]statement, len(queries))
	for i, q := range queries {
		all[i] = statement{fmt.Sprintf("pawl_%d", i), strings.ReplaceAll(q.text, "{s}", schema)}
	}
	return all
}

// conn speaks PostgreSQL's protocol on one connection. It writes binary parameters into one buffer, reads results from the connection's own
// buffer, and sends any number of statements in one round trip. A decision writes whole columns of values; converting each value to an
// interface costs more processor time than PostgreSQL needs to store it.
type conn struct {
	lent       *pgpool.Conn
	pg         *pgconn.PgConn
	statements []statement
	// prepared has an element for each statement: whether it is prepared on the server. It is nil behind a transaction pooler, where the next
	// transaction may run on another connection, so no statement can be prepared.
	prepared []bool
}

var binaryFormat = []int16{1}

// call is one statement to run, with its parameters and the function that reads its rows.
type call struct {
	q      *query // nil: the statement is in once
	params [][]byte
	read   func(*rows) error // called for each row; nil discards the rows
	once   string            // text of a statement that is not in the list and is used once
}

// within runs calls. If the answers do not arrive within d, it gives up the connection.
func (c *conn) within(ctx context.Context, d time.Duration, calls []call) (done int, err error) {
	err = c.lent.Within(ctx, d, func(ctx context.Context) (err error) {
		done, err = c.run(ctx, calls)
		return err
	})
	return done, err
}

// run sends calls in one round trip and reads their answers in order. The server ignores all calls after a failed one; done is how many
// succeeded before it. An error of a call's read function does not stop the calls.
func (c *conn) run(ctx context.Context, calls []call) (done int, err error) {
	p := c.pg.StartPipeline(ctx)
	sent := make([]bool, len(calls)) // statements that were not prepared yet: their Parse message goes before the call
	for i, k := range calls {
		if k.q == nil {
			p.SendQueryParams(k.once, k.params, nil, binaryFormat, binaryFormat)
			continue
		}
		s := &c.statements[k.q.slot]
		switch {
		case c.prepared == nil:
			p.SendQueryParams(s.text, k.params, nil, binaryFormat, binaryFormat)
			continue
		case !c.prepared[k.q.slot]:
			p.SendPrepare(s.name, s.text, nil)
			sent[i], c.prepared[k.q.slot] = true, true
		}
		p.SendQueryPrepared(s.name, k.params, binaryFormat, binaryFormat)
	}
	if err := p.Sync(); err != nil {
		return 0, err
	}
	var bad error
	var r rows // used for every answer, because a row is read before the next one comes
	for i, k := range calls {
		if sent[i] {
			if _, err = p.GetResults(); err != nil {
				break
			}
			sent[i] = false
		}
		var result any
		if result, err = p.GetResults(); err != nil {
			break
		}
		rr, ok := result.(*pgconn.ResultReader)
		if !ok {
			err = fmt.Errorf("the server answered %T to a statement", result)
			break
		}
		for rr.NextRow() {
			if k.read == nil || bad != nil {
				continue
			}
			r = rows{values: rr.Values()}
			if err := k.read(&r); err != nil {
				bad = damaged{err}
			}
		}
		if _, err = rr.Close(); err != nil {
			break
		}
		done++
	}
	if err != nil {
		for i, k := range calls { // calls after the failed one were not prepared
			if sent[i] {
				c.prepared[k.q.slot] = false
			}
		}
	}
	if e := p.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = bad
	}
	return done, err
}

// args builds binary parameters one after another.
type args struct {
	b      []byte
	params [][]byte
}

func (a *args) put(from int) *args {
	p := a.b[from:len(a.b):len(a.b)]
	if p == nil {
		p = []byte{} // a nil slice is an empty value; only null() writes null
	}
	a.params = append(a.params, p)
	return a
}

func (a *args) int(v int64) *args {
	n := len(a.b)
	a.b = binary.BigEndian.AppendUint64(a.b, uint64(v))
	return a.put(n)
}

func (a *args) bool(v bool) *args {
	n := len(a.b)
	a.b = append(a.b, bit(v))
	return a.put(n)
}

func bit(v bool) byte {
	if v {
		return 1
	}
	return 0
}

func (a *args) textOrNull(v string) *args {
	if v == "" {
		return a.null()
	}
	return a.text(v)
}

func (a *args) text(v string) *args {
	n := len(a.b)
	a.b = append(a.b, v...)
	return a.put(n)
}

func (a *args) bytes(v []byte) *args {
	n := len(a.b)
	a.b = append(a.b, v...)
	return a.put(n)
}

func (a *args) id(v flow.ID) *args { return a.bytes(v[:]) }

// null adds a null, of any type.
func (a *args) null() *args {
	a.params = append(a.params, nil)
	return a
}

func (a *args) ids(all []flow.ID) *args {
	n := len(a.b)
	a.array(oidUUID, len(all))
	for i := range all {
		a.b = append(append(a.b, 0, 0, 0, 16), all[i][:]...)
	}
	return a.put(n)
}

func (a *args) texts(all []string) *args {
	n := len(a.b)
	a.array(oidText, len(all))
	for _, s := range all {
		a.b = binary.BigEndian.AppendUint32(a.b, uint32(len(s)))
		a.b = append(a.b, s...)
	}
	return a.put(n)
}

// sqlType is a type of PostgreSQL, by its OID. Only types that the store uses are listed.
type sqlType uint32

const (
	oidBool  sqlType = 16
	oidBytes sqlType = 17
	oidInt8  sqlType = 20
	oidInt2  sqlType = 21
	oidInt4  sqlType = 23
	oidText  sqlType = 25
	oidJSON  sqlType = 114 // its binary form is its text
	oidUUID  sqlType = 2950
)

// String returns the type's name in SQL.
func (t sqlType) String() string {
	switch t {
	case oidBool:
		return "boolean"
	case oidBytes:
		return "bytea"
	case oidInt8:
		return "bigint"
	case oidInt2:
		return "smallint"
	case oidInt4:
		return "integer"
	case oidText:
		return "text"
	case oidJSON:
		return "json"
	case oidUUID:
		return "uuid"
	}
	panic(fmt.Sprintf("type %d has no name", uint32(t)))
}

// noElement is the length of a null in an array.
const noElement = 0xffffffff

// array writes the head of a one-dimensional array of n elements that may be null.
func (a *args) array(of sqlType, n int) {
	if n == 0 {
		a.b = binary.BigEndian.AppendUint32(a.b, 0)
		a.b = binary.BigEndian.AppendUint32(a.b, 0)
		a.b = binary.BigEndian.AppendUint32(a.b, uint32(of))
		return
	}
	for _, v := range [...]uint32{1, 1, uint32(of), uint32(n), 1} {
		a.b = binary.BigEndian.AppendUint32(a.b, v)
	}
}

// rows reads one row, column after column. Values are valid until the next row.
type rows struct {
	values [][]byte
	i      int
	bad    error // the first column whose value could not be decoded
}

// failed keeps the first error of a column; nil changes nothing.
func (r *rows) failed(err error) {
	if r.bad == nil {
		r.bad = err
	}
}

func (r *rows) next() []byte {
	v := r.values[r.i]
	r.i++
	return v
}

// null reports whether the next column is null. If so, it skips the column.
func (r *rows) null() bool {
	if r.values[r.i] != nil {
		return false
	}
	r.i++
	return true
}

// int reads an integer of any width; null is 0.
func (r *rows) int() int64 {
	switch v := r.next(); len(v) {
	case 8:
		return int64(binary.BigEndian.Uint64(v))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(v)))
	case 2:
		return int64(int16(binary.BigEndian.Uint16(v)))
	}
	return 0
}

func (r *rows) bool() bool {
	v := r.next()
	return len(v) == 1 && v[0] == 1
}

func (r *rows) text() string { return string(r.next()) }

// peek returns bytes that are valid until the next row.
func (r *rows) peek() []byte { return r.next() }

// bytes returns a copy; null and an empty value are nil.
func (r *rows) bytes() []byte {
	v := r.next()
	if len(v) == 0 {
		return nil
	}
	return append(make([]byte, 0, len(v)), v...)
}

// id reads an id; null is the zero id.
func (r *rows) id() (id flow.ID) {
	copy(id[:], r.next())
	return id
}

func (r *rows) time() time.Time { return row.FromMicros(r.int()) }

func (r *rows) texts() []string {
	v := r.next()
	if len(v) < 20 {
		return nil
	}
	n := binary.BigEndian.Uint32(v[12:])
	all := make([]string, 0, n)
	for v = v[20:]; n > 0 && len(v) >= 4; n-- {
		size := binary.BigEndian.Uint32(v)
		v = v[4:]
		if size == noElement {
			continue
		}
		all = append(all, string(v[:size]))
		v = v[size:]
	}
	return all
}
