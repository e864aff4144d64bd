package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/store"
)

// relation has the columns of a table, or of a statement's input rows. The text of statements, the types and values of their parameters,
// and the reading of rows are all derived from it, so that names, types and values always agree:
//
//	uploads := relation[*store.Upload, *store.Upload]{
//		{"id", oidUUID, func(c *column, u *store.Upload) { c.id(u.ID) }, func(r *rows, u *store.Upload) { u.ID = r.id() }},
//		…
//	}
//
// Rows are written from a W and read into an R. A relation that is only written has no get; one that is only read has no put.
type relation[W, R any] []field[W, R]

// field is one column. Its put adds exactly one element, and its get reads exactly one value.
type field[W, R any] struct {
	name string
	of   sqlType
	put  func(*column, W)
	get  func(*rows, R)
}

// none is W or R of a relation that is not written or not read.
type none = struct{}

// names returns the names of the columns with a prefix ("l." or ""), separated by commas.
func (t relation[W, R]) names(prefix string) string {
	all := make([]string, len(t))
	for i, f := range t {
		all[i] = prefix + f.name
	}
	return strings.Join(all, ", ")
}

// sets returns the assignments of an UPDATE that takes every column from v.
func (t relation[W, R]) sets() string {
	all := make([]string, len(t))
	for i, f := range t {
		all[i] = f.name + " = v." + f.name
	}
	return strings.Join(all, ", ")
}

// rows returns a subquery with the rows that were added. The functions of one SELECT list advance together, so the rows have the order of
// the arrays. FROM unnest($1, $2, …) gives the same rows, but fills a tuplestore for each column.
func (t relation[W, R]) rows() string {
	all := make([]string, len(t))
	for i, f := range t {
		all[i] = fmt.Sprintf("unnest($%d::%s[]) AS %s", i+1, f.of, f.name)
	}
	return "(SELECT " + strings.Join(all, ", ") + ")"
}

// insert returns an INSERT of the added rows into a table with these columns.
func (t relation[W, R]) insert(table string) string {
	return `INSERT INTO {s}.` + table + ` (` + t.names("") + `) SELECT * FROM ` + t.rows() + ` AS v`
}

// has reports whether there is a column with that name.
func (t relation[W, R]) has(name string) bool {
	return slices.ContainsFunc(t, func(f field[W, R]) bool { return f.name == name })
}

// only returns some of the columns, in the given order. It panics if a name does not exist.
func (t relation[W, R]) only(names ...string) relation[W, R] {
	part := make(relation[W, R], len(names))
	for i, name := range names {
		at := slices.IndexFunc(t, func(f field[W, R]) bool { return f.name == name })
		if at < 0 {
			panic("there is no column " + name)
		}
		part[i] = t[at]
	}
	return part
}

// with returns these columns, followed by more.
func (t relation[W, R]) with(more ...field[W, R]) relation[W, R] { return slices.Concat(t, more) }

// readable returns the columns that are read.
func (t relation[W, R]) readable() relation[W, R] {
	return slices.DeleteFunc(slices.Clone(t), func(f field[W, R]) bool { return f.get == nil })
}

// begin empties the columns and sets their types. Columns without rows have both: a transaction writes into a few of its 13 tables.
func (t relation[W, R]) begin(c *columns) {
	switch {
	case c.all == nil:
		c.all = make([]column, len(t))
	case c.rows() == 0:
		return
	}
	for i := range c.all {
		c.all[i].begin(t[i].of)
	}
}

// add adds a row; begin must have been called before.
func (t relation[W, R]) add(c *columns, row W) {
	for i := range t {
		t[i].put(&c.all[i], row)
	}
}

func (t relation[W, R]) columns(rows ...W) *columns {
	c := new(columns)
	t.begin(c)
	for _, row := range rows {
		t.add(c, row)
	}
	return c
}

// read reads the columns of a row, in order.
func (t relation[W, R]) read(r *rows, to R) error {
	for i := range t {
		t[i].get(r, to)
	}
	err := r.bad
	r.bad = nil
	return err
}

// readInto returns a reader that adds each row to all.
func readInto[W, T any](all *[]T, t relation[W, *T]) func(*rows) error {
	return func(r *rows) error {
		*all = append(*all, *new(T))
		return t.read(r, &(*all)[len(*all)-1])
	}
}

// readTo returns a reader that stores the column of the last row in to.
func readTo[T any](to *T, column func(*rows) T) func(*rows) error {
	return func(r *rows) error {
		*to = column(r)
		return nil
	}
}

// readAll returns a reader that appends the column of each row to all.
func readAll[T any](all *[]T, column func(*rows) T) func(*rows) error {
	return func(r *rows) error {
		*all = append(*all, column(r))
		return nil
	}
}

// list reads the rows of a statement whose columns are those of a relation. The format what describes the rows in errors: "ticks of
// schedule %q".
func list[W, T any](ctx context.Context, s *Store, q *query, a *args, of relation[W, *T], what string, in ...any) (all []T, err error) {
	err = s.read(ctx, call{q: q, params: a.params, read: readInto(&all, of)})
	return store.Result(all, err, what, in...)
}
