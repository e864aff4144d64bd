package counted

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// traced counts what all SQLite connections of this process run. SQLite calls trace for each statement.
type traced struct {
	commits    atomic.Int64
	statements atomic.Int64
	pages      atomic.Int64 // written to logs by transactions before the latest one of each connection
}

// walFrame is the size of a page in the log: 4,096 bytes, and 24 of its header.
const walFrame = 4096 + 24

var (
	sqlite traced
	tracer = sync.OnceValue(func() bool {
		tls := libc.NewTLS()
		defer tls.Close()
		return sqlite3.Xsqlite3_auto_extension(tls, *(*uintptr)(unsafe.Pointer(onOpen))) == sqlite3.SQLITE_OK
	})
)

// trace begins to count, on connections that are opened later.
func trace(tb testing.TB) *traced {
	tb.Helper()
	if !tracer() {
		tb.Fatal("SQLite calls nothing when a connection is opened")
	}
	return &sqlite
}

// The library takes the function values themselves as C functions.
var (
	onOpen = &struct {
		f func(tls *libc.TLS, db, message, api uintptr) int32
	}{func(tls *libc.TLS, db, _, _ uintptr) int32 {
		return sqlite3.Xsqlite3_trace_v2(tls, db, sqlite3.SQLITE_TRACE_STMT, *(*uintptr)(unsafe.Pointer(onStatement)), db)
	}}
	onStatement = &struct {
		f func(tls *libc.TLS, event uint32, db, statement, text uintptr) int32
	}{func(tls *libc.TLS, _ uint32, db, _, text uintptr) int32 {
		sqlite.ran(tls, db, beginning(text))
		return 0
	}}
)

// beginning returns as much of an SQLite text as is needed to classify the statement. A copy of all of it would be most of the allocations.
func beginning(text uintptr) string {
	b := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&text))), len("COMMIT"))
	n := 0
	for n < len(b) && b[n] != 0 {
		n++
	}
	return unsafe.String(&b[0], n)
}

func (t *traced) ran(tls *libc.TLS, db uintptr, text string) {
	if strings.HasPrefix(text, "--") {
		return // a statement within a trigger
	}
	t.statements.Add(1)
	switch {
	case strings.HasPrefix(text, "BEGIN"): // here, because SQLite calls nothing after a COMMIT
		values := tls.Alloc(8)
		defer tls.Free(8)
		if sqlite3.Xsqlite3_db_status(tls, db, sqlite3.SQLITE_DBSTATUS_CACHE_WRITE, values, values+4, 1) == sqlite3.SQLITE_OK {
			t.pages.Add(int64(*(*int32)(*(*unsafe.Pointer)(unsafe.Pointer(&values)))))
		}
	case strings.HasPrefix(text, "COMMIT"):
		t.commits.Add(1)
		time.Sleep(commitTakes)
	}
}
