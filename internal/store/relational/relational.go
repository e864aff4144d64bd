// Package relational has the tables that both databases of the store have in common: their columns, their statements, and the methods of
// the port. A statement is written once, in PostgreSQL's SQL, with fragments where the databases differ (dialect.go). The stores run it:
// PostgreSQL gets all input rows at once, as one array for each column; SQLite runs the statement once for each row.
//
// Executions, wait lists of keys, workflows and logs are not part of it. Their tables differ, and their statements are tuned for each
// database.
package relational

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// Querier runs statements, in a transaction or with one snapshot for each Run. The calls of one Run take one round trip. The error is
// store.ErrConflict if a row that a call inserts already exists.
type Querier interface {
	Run(ctx context.Context, calls ...Call) error
}

// Writer is the Querier of a transaction.
type Writer interface {
	Querier
	// Queue is Run for calls whose answers no decision needs: the store may run them with the next Run or with the commit, and their errors
	// may appear only then.
	Queue(ctx context.Context, calls ...Call) error
}

// Tx implements methods of store.Tx, and writes parts of Apply.
type Tx struct{ Writer }

// Reader implements methods of store.Reader.
type Reader struct{ Querier }

// Call is one statement with its parameters and the function that reads its rows.
type Call struct {
	Statement *Statement
	Rows      *Rows // input rows; a statement with input is not run if there are none; nil: it takes no rows
	Args      []any // parameters after the columns of the input, of the types that bind accepts
	// Read is called for each row of the answer. It is nil if the answer has no rows. Its first error is returned after the answer was read.
	// After ErrEnough it is not called again.
	Read func(Row) error
}

// ErrEnough ends the reading of rows without an error.
var ErrEnough = errors.New("enough rows")

// Bind passes a call's parameters to a.
func (c *Call) Bind(a Args) {
	for _, v := range c.Args {
		bind(a, v)
	}
}

func bind(a Args, v any) {
	switch v := v.(type) {
	case nil:
		a.Null()
	case int:
		a.Int(int64(v))
	case int64:
		a.Int(v)
	case string:
		a.Text(v)
	case []byte:
		a.Bytes(v)
	case flow.ID:
		a.Bytes(v[:])
	case time.Time:
		a.Int(row.Micros(v))
	default:
		panic(fmt.Sprintf("a parameter is a %T", v)) // an error in this package
	}
}

// Args receives the values of parameters, one after the other.
type Args interface {
	Null()
	Int(int64)
	Bool(bool)
	Text(string)
	Bytes([]byte)
}

// Row is one row of an answer. Its columns are read one after the other. Null is read as the zero value.
type Row interface {
	Int() int64
	Bool() bool
	// Peek returns bytes that are valid until the next row.
	Peek() []byte
}

func textOf(r Row) string { return string(r.Peek()) }

func idOf(r Row) (id flow.ID) {
	copy(id[:], r.Peek())
	return id
}

// bytesOf reads a copy; empty is nil.
func bytesOf(r Row) []byte { return append([]byte(nil), r.Peek()...) }

// list reads all rows of a call. The format what describes the rows in errors: "ticks of schedule %q".
func list[T any](ctx context.Context, q Querier, c Call, of Relation[T], what string, in ...any) (all []T, err error) {
	c.Read = into(&all, of)
	err = q.Run(ctx, c)
	return store.Result(all, err, what, in...)
}

// one reads one row in the same way. If there is none it returns store.ErrNotFound.
func one[T any](ctx context.Context, q Querier, c Call, of Relation[T], what string, in ...any) (found T, err error) {
	all, err := list(ctx, q, c, of, what, in...)
	if err == nil && len(all) == 0 {
		err = store.Failed(store.ErrNotFound, what, in...)
	}
	if err != nil {
		return found, err
	}
	return all[0], nil
}

// into reads each row as one more element of all.
func into[T any](all *[]T, of Relation[T]) func(Row) error {
	return func(r Row) error {
		*all = append(*all, *new(T))
		return of.read(r, &(*all)[len(*all)-1])
	}
}

// readInt reads the first column of the last row.
func readInt(to *int64) func(Row) error {
	return func(r Row) error {
		*to = r.Int()
		return nil
	}
}

// write runs a statement that takes rows, if there are any: nearly every transaction has none, and must not allocate for them. The format
// what contains their number, for errors.
func write[T any](ctx context.Context, t Tx, s *Statement, of Relation[T], all []T, what string) error {
	if len(all) == 0 {
		return nil
	}
	return store.Failed(t.Run(ctx, Call{Statement: s, Rows: of.input(all)}), what, len(all))
}

// queue is write for a statement that the store may run later.
func queue[T any](ctx context.Context, t Tx, s *Statement, of Relation[T], all []T, what string) error {
	if len(all) == 0 {
		return nil
	}
	return store.Failed(t.Queue(ctx, Call{Statement: s, Rows: of.input(all)}), what, len(all))
}

// due reads up to n due rows, and the time at which the next one is due.
func due[T any](
	ctx context.Context, q Querier, now, later *Statement, of Relation[T], at time.Time, n int, what string,
) (all []T, next time.Time, err error) {
	first := Call{Statement: now, Args: []any{at, n}, Read: into(&all, of)}
	err = q.Run(ctx, first, Call{Statement: later, Args: []any{at}, Read: func(r Row) error {
		next = row.FromMicros(r.Int())
		return nil
	}})
	return all, next, store.Failed(err, "%s", what)
}

// filter has the conditions of a list.
type filter struct {
	conditions []string
	args       []any
}

// and adds a condition, in which each "?" stands for the next of its values.
func (f *filter) and(condition string, values ...any) {
	for _, v := range values {
		f.args = append(f.args, v)
		condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(f.args)), 1)
	}
	f.conditions = append(f.conditions, condition)
}

func (f *filter) where() string {
	if len(f.conditions) == 0 {
		return ""
	}
	return ` WHERE ` + strings.Join(f.conditions, ` AND `)
}
