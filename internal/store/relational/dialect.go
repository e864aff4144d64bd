package relational

import (
	"errors"
	"regexp"
	"strings"

	"github.com/pawl-run/pawl/internal/store"
)

// dialect is the SQL of a database.
type dialect int

const (
	postgres dialect = iota
	sqlite
)

// Statement is the text of a statement for each database.
type Statement struct {
	// Postgres names tables behind {s}, which stands for the schema: {s}.meters.
	Postgres, SQLite string
	Slot             int  // place in Statements; -1 of one that is used once
	Whole            bool // it reads a whole table, or an index from end to end

	// Each says that each row of the input changes exactly one row: otherwise the call fails with Lacks, and Each says why. PostgreSQL checks
	// it itself. Empty: any number.
	Each  string
	Lacks error
}

// Statements are all statements. The list is complete before a store is opened, as sql is called for package variables only.
var Statements []*Statement

var parameter = regexp.MustCompile(`\$(\d+)(::[a-z]+)?`)

// sql declares a statement. Parameters are written as "$1::bigint", with a type where PostgreSQL would take a narrower one than what it is
// given; a statement that takes rows has their columns first.
func sql(text func(d dialect) string) *Statement {
	s := once(text)
	s.Slot = len(Statements)
	Statements = append(Statements, s)
	return s
}

// once is a statement whose text depends on what is asked for, and which is not kept.
func once(text func(d dialect) string) *Statement {
	return &Statement{Postgres: text(postgres), SQLite: ForSQLite(text(sqlite)), Slot: -1}
}

// ForSQLite is a text in words that both databases know, without what only PostgreSQL needs.
func ForSQLite(text string) string {
	return parameter.ReplaceAllString(strings.ReplaceAll(text, "{s}.", ""), "?$1")
}

// same declares a statement that has one text for both databases.
func same(text string) *Statement { return sql(func(dialect) string { return text }) }

// whole says that a statement may read a whole table.
func (s *Statement) whole() *Statement {
	s.Whole = true
	return s
}

// exactly says that each row of the input changes exactly one row; otherwise the call fails with the error, and says why.
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

// from is an equality for rows that are only read and are sorted by the same column first: only an index that begins with it has that
// order. For a plain equality the planner of PostgreSQL may take, while a table is empty, an index of which the column is the second, and
// read it from end to end.
func (d dialect) from(column, value string) string {
	if d == postgres {
		return column + ` >= ` + value + ` AND ` + column + ` <= ` + value
	}
	return column + ` = ` + value
}

// not is the condition that a column is false, as indexes have it.
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

// execution is what names the execution with an id in the rows that belong to it: the id, or its number on SQLite.
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

// skipLocked locks the rows that are read, and skips those that another transaction has locked. SQLite has one transaction at a time.
func (d dialect) skipLocked() string {
	if d == sqlite {
		return ""
	}
	return ` FOR UPDATE SKIP LOCKED`
}

// forUpdate locks the rows that are read, and waits for a transaction that has locked them.
func (d dialect) forUpdate() string {
	if d == sqlite {
		return ""
	}
	return ` FOR UPDATE`
}

// lookUp joins a table to the rows v of the input by a condition that an index has. PostgreSQL could turn a plain join into a hash of the
// whole table.
func (d dialect) lookUp(table, alias, condition string) string {
	if d == postgres {
		return ` CROSS JOIN LATERAL (SELECT * FROM {s}.` + table + ` ` + alias + ` WHERE ` + condition + ` OFFSET 0) ` + alias
	}
	return ` CROSS JOIN ` + table + ` ` + alias + ` ON ` + condition
}

// in is the condition that a column has a value of the input, which is one column of a type.
func (d dialect) in(column string, of Type) string {
	if d == postgres {
		return column + ` = ANY ($1::` + string(of) + `[])`
	}
	return column + ` = ?1`
}

// is is an equality to look up the rows that a statement writes, one for each row of its input, by the first column of an index: of two of
// this form one may become a filter, so further columns have plain equalities, or none that an index fits. PostgreSQL may plan a statement
// while a table is empty; it then prefers to read the whole table in the order of an index and to merge, and keeps that plan when the table
// has become full. For this form of the equality it can use the index for a look-up, but not for an order.
func (d dialect) is(column, value string) string {
	if d == postgres {
		return column + ` = ANY (ARRAY[` + value + `])`
	}
	return column + ` = ` + value
}

// dropOldest deletes the first rows of a table alias o that a condition holds for, in an order, and returns a row for each. The condition
// has the first parameters; the last one is how many at most. Rows that another transaction has locked are skipped.
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
