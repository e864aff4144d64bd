package sqlite

import (
	"fmt"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawl-run/pawl/internal/store"
)

// sqliteError is an error of SQLite.
type sqliteError struct {
	code int32 // extended result code
	say  string
}

func (e *sqliteError) Error() string { return fmt.Sprintf("sqlite: %s (%d)", e.say, e.code) }

func (e *sqliteError) primary() int32 { return e.code & 0xff }

// Unwrap distinguishes an error of the database from one of the data. After ErrUnavailable a caller tries again later; after any other
// error it searches for the row that caused it.
func (e *sqliteError) Unwrap() error {
	switch e.primary() {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE,
		sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISUSE:
		return nil
	case sqlite3.SQLITE_OK, sqlite3.SQLITE_ROW, sqlite3.SQLITE_DONE:
		return nil
	}
	return store.ErrUnavailable
}

func (c *conn) failure(rc int32) error {
	if c.db == 0 {
		return &sqliteError{code: rc, say: libc.GoString(sqlite3.Xsqlite3_errstr(c.tls, rc))}
	}
	e := &sqliteError{code: rc, say: libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db))}
	if e.primary() == sqlite3.SQLITE_FULL {
		e.say += ": free some space on the disk of " + libc.GoString(sqlite3.Xsqlite3_db_filename(c.tls, c.db, 0))
	}
	return e
}
