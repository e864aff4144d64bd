// Package sqlite is the store in one SQLite file, for one process at a time. One connection writes; several others read, each call in its
// own short snapshot, and never wait for the writer. Logs are in a second file next to it, with their own writer, so that a lot of output
// never delays a decision.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/relational"
	"github.com/pawl-run/pawl/internal/store/row"
)

// Options tune a store. The zero value is for production.
type Options struct {
	// Now is the database's clock; nil means time.Now.
	Now func() time.Time
	// Uptime is the clock of leases: the time since some moment. Nil means the process's monotonic clock, which runs evenly when the wall
	// clock is set, and stands still while the machine is suspended.
	Uptime func() time.Duration
	// Readers is how many connections serve reads; 0 means 4.
	Readers int
	// AsIs leaves the files unchanged: a missing store or missing logs are not created, and a store with an outdated schema is refused.
	AsIs bool
}

const (
	defaultReaders = 4
	// busyTimeout is how long a write waits for another program that has locked the file (a backup, a shell).
	busyTimeout = 5 * time.Second
	// InMemory is the path of a store that is deleted when it is closed.
	InMemory = ":memory:"
)

// Store implements store.Store, which describes its exported methods.
type Store struct {
	relational.Reader

	path, logsPath string
	now            func() time.Time
	leaseNow       func() int64 // the clock of leases, in microseconds
	lock           *fileLock
	scratch        string // directory to remove at Close

	writeToken chan struct{} // holds a token while no transaction writes
	w          *conn
	tx         tx
	unreadable store.Unreadable[int64] // by number
	executions counter
	tickets    counter

	readers chan *conn
	logs    *logs
	wal     *checkpointer

	closing sync.Once
	closed  chan struct{}
	closeBy error
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Prober = (*Store)(nil)
)

func (s *Store) Unreadable() int { return s.unreadable.Count() }

// Open opens the store in the file, creates it if it does not exist, and brings its schema up to date. The directory must exist. Only one
// process at a time can have a store open. The path InMemory opens a private store without durability.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	s, err := start(ctx, path, o)
	return store.Result(s, err, "open sqlite store %s", path)
}

// leaseClock returns the clock of leases: the wall clock when the store was opened, plus the uptime since then. Workers of this process do
// not notice when the wall clock is set or the machine was suspended, so their leases must not either: otherwise an NTP step of a minute
// would end every running attempt. The clock starts at the wall clock because leases of workers in other processes outlive this process.
func leaseClock(wall time.Time, uptime func() time.Duration) func() int64 {
	began := uptime()
	return func() int64 { return row.Micros(wall) + (uptime() - began).Microseconds() }
}

func start(ctx context.Context, path string, o Options) (_ *Store, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := o.Now
	if now == nil {
		now = time.Now
	}
	if o.Uptime == nil {
		began := time.Now()
		o.Uptime = func() time.Duration { return time.Since(began) }
	}
	s := &Store{path: path, writeToken: make(chan struct{}, 1), closed: make(chan struct{}),
		now:        func() time.Time { return now().UTC().Truncate(time.Microsecond) },
		leaseNow:   leaseClock(now(), o.Uptime),
		executions: counter{name: "execution"}, tickets: counter{name: "ticket"}}
	s.Reader = relational.Reader{Querier: s}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	sync := "FULL"
	if o.AsIs {
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
	}
	if path == InMemory {
		if s.scratch, err = scratch(); err != nil {
			return nil, err
		}
		s.path, sync = filepath.Join(s.scratch, "pawl.db"), "OFF"
	} else if s.lock, err = lockFile(path + ".lock"); err != nil {
		return nil, err
	}
	s.logsPath = logsOf(s.path)
	if s.w, err = openWriter(s.path, sync); err != nil {
		return nil, err
	}
	if err := syncDirectory(filepath.Dir(s.path)); err != nil {
		return nil, err
	}
	if err := mainSchema.prepare(s.w, s.now, o.AsIs); err != nil {
		return nil, err
	}
	if err := errors.Join(s.executions.load(s.w), s.tickets.load(s.w)); err != nil {
		return nil, err
	}
	if err := s.w.watchLog(); err != nil {
		return nil, err
	}
	s.tx = tx{Tx: relational.Tx{Writer: &s.tx}, s: s, c: s.w, numbers: make(map[flow.ID]int64), met: make(map[flow.ID]struct{})}
	if o.Readers <= 0 {
		o.Readers = defaultReaders
	}
	s.readers = make(chan *conn, o.Readers)
	for range o.Readers {
		c, err := openReader(s.path)
		if err != nil {
			return nil, err
		}
		s.readers <- c
	}
	inMemory := path == InMemory
	if _, err := os.Stat(s.logsPath); o.AsIs && errors.Is(err, os.ErrNotExist) {
		// A store may be opened without its logs. Then they are read from an empty database elsewhere, and no file is created.
		if s.scratch, err = scratch(); err != nil {
			return nil, err
		}
		s.logsPath, inMemory, o.AsIs = logsOf(filepath.Join(s.scratch, "pawl.db")), true, false
	}
	if s.logs, err = openLogs(s.logsPath, s.now, inMemory, o.AsIs); err != nil {
		return nil, err
	}
	if s.wal, err = startCheckpoints(s.path, s.writeToken); err != nil {
		return nil, err
	}
	s.writeToken <- struct{}{}
	return s, nil
}

// scratch creates the directory of a store without durability, in memory if the system has a file system for that. SQLite's own memory
// databases cannot be read while they are written.
func scratch() (string, error) {
	dir, err := os.MkdirTemp("/dev/shm", "pawl-")
	if err != nil {
		dir, err = os.MkdirTemp("", "pawl-")
	}
	return store.Result(dir, err, "make a place for it")
}

// syncDirectory makes the names of new files durable: SQLite syncs the files themselves.
func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return store.Failed(errors.Join(d.Sync(), d.Close()), "sync directory %s", path)
}

// private creates a database's file, if it does not exist, so that only its user can read it. SQLite gives the files next to it the same
// mode. An existing file keeps its mode, which an operator may have chosen for backups.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil // SQLite reports errors of the path
	}
	return f.Close()
}

// openWriter opens a database for writing. Its error explains what is wrong with the file.
func openWriter(path, synchronous string) (*conn, error) {
	if err := private(path); err != nil {
		return nil, err
	}
	c, err := open(path, sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_CREATE)
	if err != nil {
		return nil, explain(path, err)
	}
	err = c.exec(`PRAGMA journal_mode = WAL;
		PRAGMA synchronous = ` + synchronous + `;
		PRAGMA wal_autocheckpoint = 0;
		PRAGMA journal_size_limit = 67108864;
		PRAGMA cache_size = -65536;
		PRAGMA temp_store = MEMORY;
		PRAGMA foreign_keys = OFF`)
	if err == nil && c.readOnly() {
		err = fmt.Errorf("%w: %s cannot be written: give this user write permission to it", store.ErrUnavailable, path)
	}
	if err != nil {
		return nil, errors.Join(explain(path, err), c.close())
	}
	return c, nil
}

func openReader(path string) (*conn, error) {
	c, err := open(path, sqlite3.SQLITE_OPEN_READONLY)
	if err != nil {
		return nil, explain(path, err)
	}
	if err := c.exec(`PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY; PRAGMA query_only = ON`); err != nil {
		return nil, errors.Join(explain(path, err), c.close())
	}
	return c, nil
}

// Update implements store.Store. Transactions run one after another. Waiting for the token ends with ctx; a transaction that has
// begun is not interrupted.
func (s *Store) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	if err := errors.Join(store.Outside(ctx), ctx.Err()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	select {
	case <-s.writeToken:
	case <-ctx.Done():
		return fmt.Errorf("wait to write: %w", ctx.Err())
	case <-s.closed:
		return errClosed
	}
	defer func() { s.writeToken <- struct{}{} }()
	return s.write(func() error {
		clear(s.tx.numbers)
		return decide(store.Nested(ctx), &s.tx)
	})
}

var errClosed = fmt.Errorf("%w: the store is closed", store.ErrUnavailable)

// write runs one transaction. The caller has taken the token.
func (s *Store) write(decide func() error) error {
	committed := false
	defer func() {
		s.executions.settled(committed)
		s.tickets.settled(committed)
	}()
	if err := s.w.transact(decide); err != nil {
		return err
	}
	committed = true
	s.wal.wrote(s.w.logLength())
	return nil
}

var qAnswers = sql(`SELECT 1 FROM definitions LIMIT 1`)

// Ready implements store.Store. A full disk is found when a write fails; Probe reports when there is space again.
func (s *Store) Ready(ctx context.Context) error {
	err := s.read(ctx, func(c *conn) error {
		q := c.use(qAnswers)
		q.next()
		return q.done()
	})
	return store.Failed(err, "read the database")
}

// Probe implements store.Prober: it writes a page to the write-ahead log, with a setting that is not used.
func (s *Store) Probe(ctx context.Context) error {
	return s.Update(ctx, func(context.Context, store.Tx) error { return s.w.exec("PRAGMA user_version = 0") })
}

var (
	qBeginWrite = sql(`BEGIN IMMEDIATE`)
	qBeginRead  = sql(`BEGIN`)
	qCommit     = sql(`COMMIT`)
	qRollback   = sql(`ROLLBACK`)
)

// transact runs one read-write transaction, which is committed as a whole or not at all.
func (c *conn) transact(work func() error) (err error) {
	if err := c.use(qBeginWrite).run(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() {
		if c.inTransaction() { // work failed or panicked, or the commit failed
			c.abandon()
			err = errors.Join(err, c.use(qRollback).run())
		}
	}()
	if err := work(); err != nil {
		return err
	}
	// A COMMIT whose fsync failed is rolled back here, and the next commit overwrites its frames in the WAL. Only if the process ends before
	// that can SQLite find them when it opens the file, and keep the transaction although the answer was ErrUnavailable. A repeated submission
	// is then found by its idempotency key; without a key it is made twice.
	if err := c.use(qCommit).run(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// read runs a query in its own snapshot.
func (s *Store) read(ctx context.Context, query func(*conn) error) error {
	if err := errors.Join(store.Outside(ctx), ctx.Err()); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	var c *conn
	select {
	case c = <-s.readers:
	case <-ctx.Done():
		return fmt.Errorf("wait to read: %w", ctx.Err())
	case <-s.closed:
		return errClosed
	}
	defer func() { s.readers <- c }()
	err := c.snapshot(func(c *conn) error {
		defer c.interruptOn(ctx)() // the statements that begin and end the snapshot must not be interrupted
		return query(c)
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("read: %w", ctx.Err())
	}
	return err
}

// snapshot runs several statements in one snapshot of the database.
func (c *conn) snapshot(query func(*conn) error) (err error) {
	if err := c.use(qBeginRead).run(); err != nil {
		return fmt.Errorf("begin to read: %w", err)
	}
	defer func() {
		if c.inTransaction() {
			c.abandon()
			err = errors.Join(err, c.use(qRollback).run())
		}
	}()
	return query(c)
}

// Close waits for the running transaction and the running reads, and unlocks the file.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.closed)
		<-s.writeToken // never returned, so that no transaction begins any more
		s.closeBy = s.release()
	})
	return s.closeBy
}

func (s *Store) release() error {
	var all []error
	if s.wal != nil {
		all = append(all, s.wal.stop())
	}
	if s.logs != nil {
		all = append(all, s.logs.close())
	}
	for range cap(s.readers) {
		select {
		case c := <-s.readers:
			all = append(all, c.close())
		case <-s.closed:
			all = append(all, (<-s.readers).close())
		default:
		}
	}
	if s.w != nil {
		all = append(all, s.w.close())
	}
	if s.lock != nil {
		all = append(all, s.lock.release())
	}
	if s.scratch != "" {
		all = append(all, os.RemoveAll(s.scratch))
	}
	return errors.Join(all...)
}

// Size implements store.Reader: the bytes of both files and of their write-ahead logs.
func (s *Store) Size(context.Context) (int64, error) {
	var total int64
	for _, p := range []string{s.path, s.path + "-wal", s.logsPath, s.logsPath + "-wal"} {
		fi, err := os.Stat(p)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("measure the store: %w", err)
		}
		total += fi.Size()
	}
	return total, nil
}
