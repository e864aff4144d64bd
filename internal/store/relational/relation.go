package relational

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store/row"
)

// Relation has the columns of a table, or of a statement's input rows. The text of statements, the types and values of their parameters,
// and the reading of rows are all derived from it, so that names, types and values always agree:
//
//	meters := Relation[meter]{
//		text("key", func(m *meter) *string { return &m.key }),
//		moment("tat", func(m *meter) *time.Time { return &m.tat }),
//	}
type Relation[T any] []Column[T]

// Column is one column. Its put sets exactly one parameter, and its get reads exactly one column.
type Column[T any] struct {
	name string
	of   Type
	put  func(Args, *T)
	get  func(Row, *T) error
}

// Type is the type of a column in PostgreSQL.
type Type string

// The types. Columns of type Int4 and Int2 are narrower; SQLite has one type for all three.
const (
	Int8  Type = "bigint"
	Int4  Type = "integer"
	Int2  Type = "smallint"
	Bool  Type = "boolean"
	Text  Type = "text"
	JSON  Type = "json"
	UUID  Type = "uuid"
	Bytes Type = "bytea"
)

// plain is a column with a value in each row.
func plain[T, V any](name string, of Type, at func(*T) *V, put func(Args, V), get func(Row) V) Column[T] {
	return Column[T]{name, of, func(a Args, x *T) { put(a, *at(x)) }, func(r Row, x *T) error {
		*at(x) = get(r)
		return nil
	}}
}

func text[T any, V ~string](name string, at func(*T) *V) Column[T] {
	return plain(name, Text, at, func(a Args, v V) { a.Text(string(v)) }, func(r Row) V { return V(textOf(r)) })
}

func id[T any](name string, at func(*T) *flow.ID) Column[T] {
	return plain(name, UUID, at, func(a Args, v flow.ID) { a.Bytes(v[:]) }, idOf)
}

func idOrNull[T any](name string, at func(*T) *flow.ID) Column[T] {
	return orNull(id(name, at), func(x *T) bool { return at(x).IsZero() })
}

func textOrNull[T any](name string, at func(*T) *string) Column[T] {
	return orNull(text(name, at), func(x *T) bool { return *at(x) == "" })
}

// number is a column with one of the integer types.
func number[T any, V ~int | ~int64 | ~uint8](name string, of Type, at func(*T) *V) Column[T] {
	return plain(name, of, at, func(a Args, v V) { a.Int(int64(v)) }, func(r Row) V { return V(r.Int()) })
}

func truth[T any](name string, at func(*T) *bool) Column[T] {
	return plain(name, Bool, at, Args.Bool, Row.Bool)
}

// moment is a time in microseconds since 1970.
func moment[T any](name string, at func(*T) *time.Time) Column[T] {
	return plain(name, Int8, at, func(a Args, v time.Time) { a.Int(row.Micros(v)) },
		func(r Row) time.Time { return row.FromMicros(r.Int()) })
}

// momentOrNull is a moment; the zero time is null.
func momentOrNull[T any](name string, at func(*T) *time.Time) Column[T] {
	return orNull(moment(name, at), func(x *T) bool { return at(x).IsZero() })
}

// sum is a SHA-256.
func sum[T any](name string, at func(*T) *[32]byte) Column[T] {
	return plain(name, Bytes, at, func(a Args, v [32]byte) { a.Bytes(v[:]) }, func(r Row) (v [32]byte) {
		copy(v[:], r.Peek())
		return v
	})
}

// blob is a column of bytes; empty is null.
func blob[T any, V ~[]byte](name string, of Type, at func(*T) *V) Column[T] {
	c := plain(name, of, at, func(a Args, v V) { a.Bytes(v) }, func(r Row) V { return bytesOf(r) })
	return orNull(c, func(x *T) bool { return len(*at(x)) == 0 })
}

// orNull makes a column null if empty returns true.
func orNull[T any](c Column[T], empty func(*T) bool) Column[T] {
	put := c.put
	c.put = func(a Args, x *T) {
		if empty(x) {
			a.Null()
		} else {
			put(a, x)
		}
	}
	return c
}

// names returns the names of the columns with a prefix ("i." or ""), separated by commas.
func (t Relation[T]) names(prefix string) string {
	return t.each(func(_ int, c Column[T]) string { return prefix + c.name })
}

func (t Relation[T]) each(as func(i int, c Column[T]) string) string {
	all := make([]string, len(t))
	for i, c := range t {
		all[i] = as(i, c)
	}
	return strings.Join(all, ", ")
}

// rows returns a subquery with the rows of the input. On PostgreSQL, the functions of one SELECT list advance together, so the rows have
// the order of the arrays. FROM unnest($1, $2, …) gives the same rows, but fills a tuplestore for each column.
func (t Relation[T]) rows(d dialect) string {
	return "(SELECT " + t.each(func(i int, c Column[T]) string {
		if d == postgres {
			return fmt.Sprintf("unnest($%d::%s[]) AS %s", i+1, c.of, c.name)
		}
		return fmt.Sprintf("?%d AS %s", i+1, c.name)
	}) + ")"
}

// Inserted has the columns that statements insert, by table, with their types. A test compares them with the schema.
var Inserted map[string]map[string]Type

// insert returns an INSERT of the input into a table with these columns. Rows are inserted one after the other, in the given order.
func (t Relation[T]) insert(d dialect, table string) string {
	name, _, _ := strings.Cut(table, " ")
	if Inserted == nil { // statements are declared while the package's variables are initialised
		Inserted = map[string]map[string]Type{}
	}
	Inserted[name] = map[string]Type{}
	for _, c := range t {
		Inserted[name][c.name] = c.of
	}
	into := `INSERT INTO {s}.` + table + ` (` + t.names("") + `) `
	if d == postgres {
		return into + `SELECT * FROM ` + t.rows(d) + ` AS v`
	}
	return into + `VALUES (` + t.each(func(i int, _ Column[T]) string { return fmt.Sprintf("?%d", i+1) }) + `)`
}

// insertOf is an insert into a table whose first column is the execution of a row: its id, or its number on SQLite, where an unknown
// execution has no number and the row is refused.
func (t Relation[T]) insertOf(d dialect, table string) string {
	insert := t.insert(d, table)
	if d == sqlite {
		insert = strings.Replace(insert, "("+t[0].name+",", "(n,", 1)
		insert = strings.Replace(insert, "(?1,", "("+d.execution("?1")+",", 1)
	}
	return insert
}

// upsert is an insert that overwrites the row with the same key.
func (t Relation[T]) upsert(d dialect, table string, key ...string) string {
	rest := slices.DeleteFunc(slices.Clone(t), func(c Column[T]) bool { return slices.Contains(key, c.name) })
	return t.insert(d, table) + ` ON CONFLICT (` + strings.Join(key, ", ") + `) DO UPDATE SET ` +
		rest.each(func(_ int, c Column[T]) string { return c.name + " = excluded." + c.name })
}

// read reads the columns of a row, in order. It always reads all of them, and returns the first error.
func (t Relation[T]) read(r Row, to *T) (err error) {
	for i := range t {
		if bad := t[i].get(r, to); err == nil {
			err = bad
		}
	}
	return err
}

// Rows are the input rows of a statement, with typed columns.
type Rows struct {
	N     int
	Types []Type
	// Put passes the value of one column of one row to a.
	Put func(row, column int, a Args)
}

// input returns rows as the input of a statement. It does not copy them.
func (t Relation[T]) input(all []T) *Rows {
	types := make([]Type, len(t))
	for i, c := range t {
		types[i] = c.of
	}
	return &Rows{len(all), types, func(i, column int, a Args) { t[column].put(a, &all[i]) }}
}
