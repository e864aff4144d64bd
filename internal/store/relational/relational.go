// Package relational has the nouns that both databases of the store keep alike: their columns, their statements, and the methods of the
// port. A statement is written once, in PostgreSQL's words, with fragments where the databases differ (dialect.go). The stores run it: on
// PostgreSQL a statement takes all rows of its input at once, as one array for each column; SQLite runs it once for each row.
//
// Executions, wait lists of keys, workflows and logs are not here. Their tables differ, and their statements are tuned for each database.
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

// Querier runs statements, in a transaction or each Run in a snapshot of its own. The calls of one Run are one round trip. An error says
// store.ErrConflict if a row that a call writes exists already.
type Querier interface {
	Run(ctx context.Context, calls ...Call) error
}

// Writer is the Querier of a transaction.
type Writer interface {
	Querier
	// Queue is Run for calls whose answers no decision needs: the store may run them with the next Run or with the commit, and only then
	// does an error of theirs show.
	Queue(ctx context.Context, calls ...Call) error
}

// Tx implements methods of store.Tx, and writes what Apply is given.
type Tx struct{ Writer }

// Reader implements methods of store.Reader.
type Reader struct{ Querier }

// Call is one statement with its parameters, and what reads its rows.
type Call struct {
	Statement *Statement
	Rows      *Rows // input of a statement that takes rows, and is not run without any; nil: it takes none
	Args      []any // parameters behind the columns of the input, of the types that bind knows
	// Read is called for each row of the answer; nil: there are none. Its first error is returned when the answer has been read. After
	// ErrEnough it is not called again.
	Read func(Row) error
}

// ErrEnough ends the reading of rows, and is no error.
var ErrEnough = errors.New("enough rows")

// Bind gives a call's parameters to a.
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
		panic(fmt.Sprintf("a parameter is a %T", v)) // a mistake in this package
	}
}

// Args takes the values of parameters, one after the other.
type Args interface {
	Null()
	Int(int64)
	Bool(bool)
	Text(string)
	Bytes([]byte)
}

// Row is one row of an answer. Its columns are read one after the other. Null is the zero value.
type Row interface {
	Int() int64
	Bool() bool
	// Peek returns bytes that live until the next row.
	Peek() []byte
}

// textOf reads a text.
func textOf(r Row) string { return string(r.Peek()) }

// idOf reads an id.
func idOf(r Row) (id flow.ID) {
	copy(id[:], r.Peek())
	return id
}

// bytesOf reads a copy; empty is nil.
func bytesOf(r Row) []byte { return append([]byte(nil), r.Peek()...) }

// list reads all rows of a call. The format what names the rows in an error: "ticks of schedule %q".
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

// write runs a statement that takes rows, if there are any: nearly every transaction has none, and allocates nothing for them. The format
// what names their number in an error.
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

// due reads up to n rows that are due, and when the next of the others is.
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

// filter are conditions that a list is asked for with.
type filter struct {
	conditions []string
	args       []any
}

// and adds a condition, in which "?" stands for the next of its values.
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
