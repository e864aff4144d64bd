package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawl-run/pawl/internal/store/row"
)

// conn is one connection to SQLite. It calls the library directly and not through database/sql: binding a value copies it into the
// statement's memory, reading a value copies it out, and no value is converted to an interface. A decision runs a dozen small statements
// for an execution, and database/sql would need more time for them than SQLite itself.
//
// A conn is for one goroutine at a time. Only interrupt may be called from another goroutine.
type conn struct {
	tls   *libc.TLS
	db    uintptr
	stmts []*stmt // by query.slot
	enc   encoder

	logPages uintptr // see watchLog
}

// query is a statement's text with its index in every connection's list of prepared statements.
type query struct {
	text string
	slot int
}

var queries int

// sql declares a statement. It is called only for package variables, so the slots are fixed before a connection exists.
func sql(text string) *query {
	queries++
	return &query{text: text, slot: queries - 1}
}

// open opens a connection. flags are SQLITE_OPEN_…; the path is taken literally.
func open(path string, flags int32) (*conn, error) {
	name, err := libc.CString(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	c := &conn{tls: libc.NewTLS()}
	defer libc.Xfree(c.tls, name)
	pp := libc.Xmalloc(c.tls, types.Size_t(unsafe.Sizeof(uintptr(0))))
	if pp == 0 {
		c.tls.Close()
		return nil, fmt.Errorf("open %s: out of memory", path)
	}
	rc := sqlite3.Xsqlite3_open_v2(c.tls, name, pp, flags|sqlite3.SQLITE_OPEN_NOMUTEX, 0)
	c.db = *(*uintptr)(at(pp))
	libc.Xfree(c.tls, pp)
	if rc != sqlite3.SQLITE_OK {
		err := c.failure(rc)
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), c.close())
	}
	sqlite3.Xsqlite3_extended_result_codes(c.tls, c.db, 1)
	sqlite3.Xsqlite3_busy_timeout(c.tls, c.db, int32(busyTimeout.Milliseconds()))
	if err := c.keepPlans(); err != nil {
		return nil, errors.Join(err, c.close())
	}
	c.stmts = make([]*stmt, queries)
	return c, nil
}

// keepPlans makes statements keep the plan with which they were prepared. Otherwise SQLite prepares a statement again whenever a parameter
// is bound that the planner has used, such as that of LIMIT: a sixth of the time of a busy engine.
func (c *conn) keepPlans() error {
	args := libc.Xmalloc(c.tls, 2*8) // libc passes each argument in 8 bytes
	if args == 0 {
		return errors.New("out of memory")
	}
	defer libc.Xfree(c.tls, args)
	if rc := sqlite3.Xsqlite3_db_config(c.tls, c.db, sqlite3.SQLITE_DBCONFIG_ENABLE_QPSG, libc.VaList(args, int32(1), uintptr(0))); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("keep the plans of statements: %w", c.failure(rc))
	}
	return nil
}

// neverWait makes a lock of another connection fail at once.
func (c *conn) neverWait() { sqlite3.Xsqlite3_busy_timeout(c.tls, c.db, 0) }

// close finalizes every statement and closes the connection.
func (c *conn) close() error {
	for _, s := range c.stmts {
		if s != nil {
			s.free()
		}
	}
	c.stmts = nil
	var err error
	if c.db != 0 {
		if rc := sqlite3.Xsqlite3_close_v2(c.tls, c.db); rc != sqlite3.SQLITE_OK {
			err = c.failure(rc)
		}
		c.db = 0
	}
	if c.logPages != 0 {
		libc.Xfree(c.tls, c.logPages)
	}
	c.tls.Close()
	return err
}

// at converts an address of SQLite into a pointer. The memory is not Go's, so the collector neither moves nor frees it.
func at(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// exec runs a script without parameters and results.
func (c *conn) exec(script string) error {
	text, err := libc.CString(script)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, text)
	if rc := sqlite3.Xsqlite3_exec(c.tls, c.db, text, 0, 0, 0); rc != sqlite3.SQLITE_OK {
		return c.failure(rc)
	}
	return nil
}

// changes returns the number of rows that the last statement changed.
func (c *conn) changes() int { return int(sqlite3.Xsqlite3_changes(c.tls, c.db)) }

// readOnly reports whether the file could only be opened for reading.
func (c *conn) readOnly() bool { return sqlite3.Xsqlite3_db_readonly(c.tls, c.db, 0) == 1 }

func (c *conn) inTransaction() bool { return sqlite3.Xsqlite3_get_autocommit(c.tls, c.db) == 0 }

// interruptOn makes the running statement fail when ctx ends. After undo, no statement is interrupted any more.
func (c *conn) interruptOn(ctx context.Context) (undo func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		// The interrupt needs its own thread-local storage, because the connection's is in use.
		tls := libc.NewTLS()
		defer tls.Close()
		sqlite3.Xsqlite3_interrupt(tls, c.db)
	})
	return func() {
		if !stop() {
			<-interrupted
		}
	}
}

// stmt is a prepared statement. Parameters are bound and columns are read in order. An error is kept until done.
type stmt struct {
	c      *conn
	p      uintptr
	params []buffer
	bound  int32 // parameters bound so far
	column int32 // columns read so far
	err    error
	bad    error // error of a column that cannot be decoded; the statement continues
}

// buffer is memory outside Go's heap that holds one parameter while the statement runs.
type buffer struct {
	p    uintptr
	size int
}

// keepBuffer is the largest size of a parameter's buffer that is kept between uses.
const keepBuffer = 64 << 10

// use returns the statement of a query, ready for binding.
func (c *conn) use(q *query) *stmt {
	if s := c.stmts[q.slot]; s != nil {
		return s
	}
	s := c.prepare(q.text)
	if s.p != 0 {
		c.stmts[q.slot] = s
	}
	return s
}

// prepare compiles a statement that the caller must free, unless use does it.
func (c *conn) prepare(text string) *stmt {
	s := &stmt{c: c}
	t, err := libc.CString(text)
	if err != nil {
		s.err = err
		return s
	}
	defer libc.Xfree(c.tls, t)
	pp := libc.Xmalloc(c.tls, types.Size_t(unsafe.Sizeof(uintptr(0))))
	if pp == 0 {
		s.err = errors.New("prepare statement: out of memory")
		return s
	}
	defer libc.Xfree(c.tls, pp)
	if rc := sqlite3.Xsqlite3_prepare_v3(c.tls, c.db, t, -1, sqlite3.SQLITE_PREPARE_PERSISTENT, pp, 0); rc != sqlite3.SQLITE_OK {
		s.err = fmt.Errorf("prepare %.60q: %w", text, c.failure(rc))
		return s
	}
	s.p = *(*uintptr)(at(pp))
	s.params = make([]buffer, sqlite3.Xsqlite3_bind_parameter_count(c.tls, s.p))
	return s
}

func (s *stmt) free() {
	sqlite3.Xsqlite3_finalize(s.c.tls, s.p)
	for _, b := range s.params {
		if b.p != 0 {
			libc.Xfree(s.c.tls, b.p)
		}
	}
	s.p, s.params = 0, nil
}

// int binds the next parameter.
func (s *stmt) int(v int64) *stmt {
	s.bound++
	if s.err == nil {
		s.check(sqlite3.Xsqlite3_bind_int64(s.c.tls, s.p, s.bound, v))
	}
	return s
}

// intOrNull binds the next parameter: NULL for zero.
func (s *stmt) intOrNull(v int64) *stmt {
	if v == 0 {
		return s.null()
	}
	return s.int(v)
}

func (s *stmt) time(t time.Time) *stmt { return s.int(row.Micros(t)) }

// timeOrNull binds the next parameter: NULL for the zero time.
func (s *stmt) timeOrNull(t time.Time) *stmt { return s.intOrNull(row.Micros(t)) }

// null binds the next parameter.
func (s *stmt) null() *stmt {
	s.bound++
	if s.err == nil {
		s.check(sqlite3.Xsqlite3_bind_null(s.c.tls, s.p, s.bound))
	}
	return s
}

// blob binds the next parameter; nil and empty are NULL.
func (s *stmt) blob(b []byte) *stmt {
	if len(b) == 0 {
		return s.null()
	}
	p := s.copyIn(unsafe.SliceData(b), len(b))
	if s.err == nil {
		s.check(sqlite3.Xsqlite3_bind_blob(s.c.tls, s.p, s.bound, p, int32(len(b)), 0))
	}
	return s
}

// text binds the next parameter; it may be empty.
func (s *stmt) text(v string) *stmt {
	p := s.copyIn(unsafe.StringData(v), len(v))
	if s.err == nil {
		s.check(sqlite3.Xsqlite3_bind_text(s.c.tls, s.p, s.bound, p, int32(len(v)), 0))
	}
	return s
}

// textOrNull binds the next parameter: NULL for the empty string.
func (s *stmt) textOrNull(v string) *stmt {
	if v == "" {
		return s.null()
	}
	return s.text(v)
}

// id binds the next parameter; the zero id is NULL.
func (s *stmt) id(id [16]byte) *stmt {
	if id == [16]byte{} {
		return s.null()
	}
	return s.blob(id[:])
}

// errTooBig is the error of a value above SQLite's own limit.
var errTooBig = errors.New("a value is larger than 1 GB")

func (s *stmt) copyIn(from *byte, n int) uintptr {
	s.bound++
	if s.err != nil {
		return 0
	}
	if int(s.bound) > len(s.params) {
		s.err = fmt.Errorf("bind parameter %d of %d", s.bound, len(s.params))
		return 0
	}
	if n > 1_000_000_000 {
		s.err = errTooBig
		return 0
	}
	b := &s.params[s.bound-1]
	if b.p == 0 || n > b.size || (b.size > keepBuffer && n < keepBuffer) {
		if b.p != 0 {
			libc.Xfree(s.c.tls, b.p)
		}
		b.size = max(64, n)
		if b.p = libc.Xmalloc(s.c.tls, types.Size_t(b.size)); b.p == 0 {
			b.size = 0
			s.err = errors.New("bind parameter: out of memory")
			return 0
		}
	}
	copy(unsafe.Slice((*byte)(at(b.p)), n), unsafe.Slice(from, n))
	return b.p
}

func (s *stmt) check(rc int32) {
	if rc != sqlite3.SQLITE_OK {
		s.err = s.c.failure(rc)
	}
}

// next moves to the next row. It returns false at the end and after an error; done returns the error.
func (s *stmt) next() bool {
	s.column = -1
	if s.err != nil {
		return false
	}
	switch rc := sqlite3.Xsqlite3_step(s.c.tls, s.p); rc {
	case sqlite3.SQLITE_ROW:
		return true
	case sqlite3.SQLITE_DONE:
		return false
	default:
		s.err = s.c.failure(rc)
		return false
	}
}

// done ends the use of the statement and returns its error.
func (s *stmt) done() error {
	err := s.err
	s.bound, s.column, s.err, s.bad = 0, 0, nil, nil
	if s.p != 0 {
		sqlite3.Xsqlite3_reset(s.c.tls, s.p)
	}
	return err
}

// abandon ends the use of every statement. It is called after an error, which may have left a statement within its rows.
func (c *conn) abandon() {
	for _, s := range c.stmts {
		if s != nil && (s.bound != 0 || s.column != 0) {
			_ = s.done() // the error was already returned, or there is a panic
		}
	}
}

// run executes a statement that returns no rows.
func (s *stmt) run() error {
	s.next()
	return s.done()
}

// getInt reads the next column; NULL is zero.
func (s *stmt) getInt() int64 {
	s.column++
	return sqlite3.Xsqlite3_column_int64(s.c.tls, s.p, s.column)
}

// getTime reads the next column; NULL is the zero time.
func (s *stmt) getTime() time.Time { return row.FromMicros(s.getInt()) }

// getBlob reads a copy of the next column; NULL is nil.
func (s *stmt) getBlob() []byte {
	b := s.peekBlob()
	if len(b) == 0 {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}

// peekBlob reads the next column without a copy, which is valid until the next step.
func (s *stmt) peekBlob() []byte {
	s.column++
	p := sqlite3.Xsqlite3_column_blob(s.c.tls, s.p, s.column)
	if p == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(at(p)), sqlite3.Xsqlite3_column_bytes(s.c.tls, s.p, s.column))
}

// getText reads the next column; NULL is "".
func (s *stmt) getText() string { return string(s.peekBlob()) }

// getID reads the next column; NULL is the zero id.
func (s *stmt) getID() (id [16]byte) {
	copy(id[:], s.peekBlob())
	return id
}

// fail ends the use of the statement before it runs.
func (s *stmt) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// failed keeps the first error of a column that cannot be decoded.
func (s *stmt) failed(err error) {
	if s.bad == nil {
		s.bad = err
	}
}

// skip passes over n columns.
func (s *stmt) skip(n int32) { s.column += n }
