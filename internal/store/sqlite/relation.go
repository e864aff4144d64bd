package sqlite

import (
	"cmp"
	"slices"
	"strings"
)

// relation is a list of columns. The text of statements, the values of their parameters and the reading of their rows are derived from it,
// so that names and values always agree. Rows are written from a W and read into an R.
type relation[W, R any] []field[W, R]

// field is one column. Its put binds exactly one parameter, and its get reads exactly one column.
type field[W, R any] struct {
	name string
	put  func(*stmt, W) // nil: it is not written
	get  func(*stmt, R) // nil: it is not read
}

// names returns the names of the columns with a prefix ("l." or ""), separated by commas.
func (t relation[W, R]) names(prefix string) string {
	all := make([]string, len(t))
	for i, f := range t {
		all[i] = prefix + f.name
	}
	return strings.Join(all, ", ")
}

// sets returns the assignments of an UPDATE.
func (t relation[W, R]) sets() string {
	all := make([]string, len(t))
	for i, f := range t {
		all[i] = f.name + " = ?"
	}
	return strings.Join(all, ", ")
}

// insert returns an INSERT into a table with these columns.
func (t relation[W, R]) insert(table string) string {
	return `INSERT INTO ` + table + ` (` + t.names("") + `) VALUES (?` + strings.Repeat(", ?", len(t)-1) + `)`
}

// with returns these columns, followed by more.
func (t relation[W, R]) with(more ...field[W, R]) relation[W, R] { return slices.Concat(t, more) }

// readable returns the columns that are read.
func (t relation[W, R]) readable() relation[W, R] {
	return slices.DeleteFunc(slices.Clone(t), func(f field[W, R]) bool { return f.get == nil })
}

func (t relation[W, R]) bind(s *stmt, row W) *stmt {
	for i := range t {
		t[i].put(s, row)
	}
	return s
}

// read reads the columns of a row, in order.
func (t relation[W, R]) read(s *stmt, to R) error {
	for i := range t {
		t[i].get(s, to)
	}
	err := s.bad
	s.bad = nil
	return err
}

// rowsOf reads all rows of a statement. If a row cannot be decoded it also returns an error.
func rowsOf[W, T any](s *stmt, of relation[W, *T]) (all []T, bad error) {
	for s.next() {
		all = append(all, *new(T))
		if err := of.read(s, &all[len(all)-1]); err != nil {
			bad = err
		}
	}
	return all, cmp.Or(s.done(), bad)
}
