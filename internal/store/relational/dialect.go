package relational

import (
	"errors"
	"regexp"
	"strings"

	"github.com/pawl-run/pawl/internal/store"
)

// dialect selects the SQL of one of the databases.
type dialect int

const (
	postgres dialect = iota
	sqlite
)

// Statement is a statement with its text for each database.
type Statement struct {
	// Postgres has {s}, which stands for the schema, before each table: {s}.meters.
	Postgres, SQLite string
	Slot             int  // index in Statements; -1 for a statement that is used once
	Whole            bool // it reads a whole table, or a whole index

	// Each means that each row of the input changes exactly one row: otherwise the call fails with Lacks, and with Each as the reason.
	// PostgreSQL checks it by itself. Empty: any number of rows.
	Each  string
	Lacks error
}

// Statements are all statements. The list is complete before a store is opened, because sql is called only for package variables.
var Statements []*Statement

var parameter = regexp.MustCompile(`\$(\d+)(::[a-z]+)?`)

// sql declares a statement. Parameters are written as "$1::bigint", with a type if PostgreSQL would infer a narrower one. If a statement
// takes rows, their columns are its first parameters.
func sql(text func(d dialect) string) *Statement {
	s := once(text)
	s.Slot = len(Statements)
	Statements = append(Statements, s)
	return s
}

// once returns a statement whose text depends on its arguments, and which is not kept.
func once(text func(d dialect) string) *Statement {
	return &Statement{Postgres: text(postgres), SQLite: ForSQLite(text(sqlite)), Slot: -1}
}

// ForSQLite converts a text that uses SQL of both databases, by removing what only PostgreSQL needs.
func ForSQLite(text string) string {
	return parameter.ReplaceAllString(strings.ReplaceAll(text, "{s}.", ""), "?$1")
}

// same declares a statement with the same text for both databases.
func same(text string) *Statement { return sql(func(dialect) string { return text }) }

// whole marks a statement that may read a whole table.
func (s *Statement) whole() *Statement {
	s.Whole = true
	return s
}

// exactly declares that each row of the input changes exactly one row; otherwise the call fails with the error lacks, and with why as the
// reason.
func (s *Statement) exactly(lacks error, why string) *Statement {
	s.Each, s.Lacks = why, lacks
	code := "PW409"
	if errors.Is(lacks, store.ErrNotFound) {
		code = "PW410"
	}
	s.Postgres = `WITH done AS (` + s.Postgres + ` RETURNING 1) SELECT {s}.expect((SELECT count(*) FROM done), cardinality($1),
		'` + code + `', '` + why + `')`
	return s
}

// from is an equality for rows that are only read and are sorted by this column first: only an index that begins with it has that order.
// With a plain equality, while a table is empty, PostgreSQL's planner may choose an index that has the column second, and read it
// completely.
func (d dialect) from(column, value string) string {
	if d == postgres {
		return column + ` >= ` + value + ` AND ` + column + ` <= ` + value
	}
	return column + ` = ` + value
}

// not is the condition that a column is false, in the form that indexes have.
func (d dialect) not(column string) string {
	if d == sqlite {
		return column + ` = 0`
	}
	return `NOT ` + column
}

// greatest is the greater of two numbers.
func (d dialect) greatest(a, b string) string {
	if d == sqlite {
		return `max(` + a + `, ` + b + `)`
	}
	return `greatest(` + a + `, ` + b + `)`
}

// execution is the value that identifies the execution with an id in its rows: the id, or its number on SQLite.
func (d dialect) execution(id string) string {
	if d == sqlite {
		return `(SELECT n FROM ids WHERE id = ` + id + `)`
	}
	return id
}

// of is the condition that a row belongs to the execution with an id.
func (d dialect) of(id string) string {
	if d == sqlite {
		return `n = ` + d.execution(id)
	}
	return `id = ` + id
}

// skipLocked locks the rows that are read, and skips rows that another transaction has locked. SQLite has one transaction at a time.
func (d dialect) skipLocked() string {
	if d == sqlite {
		return ""
	}
	return ` FOR UPDATE SKIP LOCKED`
}

// forUpdate locks the rows that are read, and waits for other transactions that have locked them.
func (d dialect) forUpdate() string {
	if d == sqlite {
		return ""
	}
	return ` FOR UPDATE`
}

// lookUp joins a table to the rows v of the input by a condition for which there is an index. PostgreSQL could execute a plain join as a
// hash join over the whole table.
func (d dialect) lookUp(table, alias, condition string) string {
	if d == postgres {
		return ` CROSS JOIN LATERAL (SELECT * FROM {s}.` + table + ` ` + alias + ` WHERE ` + condition + ` OFFSET 0) ` + alias
	}
	return ` CROSS JOIN ` + table + ` ` + alias + ` ON ` + condition
}

// in is the condition that a column has a value of the input, which has one column of the given type.
func (d dialect) in(column string, of Type) string {
	if d == postgres {
		return column + ` = ANY ($1::` + string(of) + `[])`
	}
	return column + ` = ?1`
}

// is is an equality for looking up the rows that a statement writes, one for each row of its input, by the first column of an index. If two
// equalities had this form, one could become a filter, so further columns have plain equalities, or conditions for which there is no index.
// PostgreSQL may plan a statement while a table is empty; then it prefers a merge join that reads the whole table in the order of an index,
// and keeps that plan when the table has grown. With this form of equality it can use the index for look-ups, but not for an order.
func (d dialect) is(column, value string) string {
	if d == postgres {
		return column + ` = ANY (ARRAY[` + value + `])`
	}
	return column + ` = ` + value
}

// dropOldest deletes the first rows of a table, with the alias o, that match a condition, in an order, and returns a row for each. The
// condition has the first parameters; the last one is the largest number of rows. Rows that another transaction has locked are skipped.
func (d dialect) dropOldest(table string, key []string, where, order, limit string) string {
	oldest := `SELECT ` + strings.Join(key, ", ") + ` FROM {s}.` + table + ` o ` + where + ` ORDER BY ` + order + ` LIMIT ` + limit
	if d == sqlite {
		return `DELETE FROM ` + table + ` WHERE (` + strings.Join(key, ", ") + `) IN (` + oldest + `) RETURNING 1`
	}
	same := []string{d.is("d."+key[0], "v."+key[0])}
	for _, k := range key[1:] {
		same = append(same, "d."+k+" = v."+k)
	}
	return `DELETE FROM {s}.` + table + ` d USING (` + oldest + d.skipLocked() + `) AS v
		WHERE ` + strings.Join(same, " AND ") + ` RETURNING 1`
}
