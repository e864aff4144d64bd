package sqlite

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	sqlite3 "modernc.org/sqlite/lib"
)

// checkpointer moves the write-ahead log into the database file, concurrently with the writer and not within its commits. The log can be
// written from its start again only after it was moved completely; otherwise it grows forever. When it has become long all the same, the
// checkpointer blocks the writer while it moves the last pages.
type checkpointer struct {
	c          *conn
	writeToken chan struct{} // full while the writer may take the token
	pages      atomic.Int32  // length of the log
	commits    atomic.Int64
	resting    atomic.Bool // the log is empty and not being watched: the next commit must report that it is not empty any more
	wake       chan struct{}
	quit       chan struct{}
	stopped    sync.WaitGroup
}

const (
	// walSoft is the length in pages from which the log is checkpointed concurrently with the writer. From walHard on, the writer is slowed
	// down by a millisecond for each walSlower pages above it, and by slowest at most. It is blocked when at most walFew pages are left to
	// move, or walRest from walHard on: moving 1,000 pages of 4 KB takes some 20 ms. Without walFew the log of one client that submits one
	// execution after the other was seldom moved completely, and each of its commits was followed by a checkpoint with two fsyncs.
	walSoft   = 2000
	walHard   = 8000
	walSlower = 100
	walFew    = 100
	walRest   = 1000
	slowest   = 50 * time.Millisecond
	// checkpointTries is how often the store checkpoints its log while the writer continues. After that it blocks the writer for the rest of
	// the log, however long that is.
	checkpointTries = 20
	// idle is the interval at which a log that is not empty is checked. If nothing was written in between, it is moved completely and emptied.
	idle = time.Second
)

// startCheckpoints watches the log of a database. Its writers take the token in the channel.
func startCheckpoints(path string, writeToken chan struct{}) (*checkpointer, error) {
	c, err := openWriter(path, "FULL")
	if err != nil {
		return nil, err
	}
	c.neverWait() // for readers: the writer would wait as well
	k := &checkpointer{c: c, writeToken: writeToken, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	k.stopped.Go(k.run)
	return k, nil
}

// wrote must be called after every commit, with the length of the log in pages.
func (k *checkpointer) wrote(pages int32) {
	k.pages.Store(pages)
	k.commits.Add(1)
	if rested := k.resting.Load() && k.resting.CompareAndSwap(true, false); pages < walSoft && !rested {
		return
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
	if over := pages - walHard; over > 0 {
		time.Sleep(min(time.Duration(over/walSlower)*time.Millisecond, slowest))
	}
}

func (k *checkpointer) run() {
	tick := time.NewTicker(idle)
	defer tick.Stop()
	var seen, emptied int64
	for {
		var err error
		select {
		case <-k.quit:
			return
		case <-k.wake:
			tick.Reset(idle)
			seen = k.commits.Load()
			if k.pages.Load() >= walSoft {
				err = k.checkpoint()
			}
		case <-tick.C:
			last := seen
			if seen = k.commits.Load(); seen != last {
				break
			}
			if seen != emptied {
				emptied = seen
				err = k.checkpointAlone(sqlite3.SQLITE_CHECKPOINT_TRUNCATE)
			}
			k.resting.Store(true)
			if k.commits.Load() == seen || !k.resting.CompareAndSwap(true, false) {
				tick.Stop() // from here on a commit starts the timer again
			}
		}
		if err != nil {
			// The remaining pages stay in the log, and a later commit tries again.
			slog.Warn("moving the write-ahead log into the database file failed; it will be tried again", "error", err)
		}
	}
}

func (k *checkpointer) checkpoint() error {
	for range checkpointTries {
		moved, err := k.c.checkpoint(sqlite3.SQLITE_CHECKPOINT_PASSIVE)
		if err != nil {
			return err
		}
		pages := k.pages.Load()
		left := pages - moved
		if pages >= walSoft && left <= walFew || pages >= walHard && left <= walRest {
			break
		}
		if pages < walHard {
			return nil
		}
	}
	return k.checkpointAlone(sqlite3.SQLITE_CHECKPOINT_PASSIVE)
}

// checkpointAlone moves the log into the file while no transaction writes.
func (k *checkpointer) checkpointAlone(mode int32) error {
	select {
	case <-k.quit:
		return nil
	case <-k.writeToken:
	}
	defer func() { k.writeToken <- struct{}{} }()
	_, err := k.c.checkpoint(mode)
	return err
}

// stop ends the checkpoints. The rest of the log is moved when the last connection closes.
func (k *checkpointer) stop() error {
	close(k.quit)
	k.stopped.Wait()
	return k.c.close()
}

// checkpoint moves the pages of the log that no reader needs, and returns how many pages of the log are moved.
func (c *conn) checkpoint(mode int32) (moved int32, err error) {
	p := libc.Xmalloc(c.tls, types.Size_t(unsafe.Sizeof(moved)))
	if p == 0 {
		return 0, errors.New("checkpoint: out of memory")
	}
	defer libc.Xfree(c.tls, p)
	rc := sqlite3.Xsqlite3_wal_checkpoint_v2(c.tls, c.db, 0, mode, 0, p)
	if rc != sqlite3.SQLITE_OK && rc&0xff != sqlite3.SQLITE_BUSY {
		return 0, c.failure(rc)
	}
	return *(*int32)(at(p)), nil
}

// watchLog makes the connection record the length of the log at each of its commits.
func (c *conn) watchLog() error {
	c.logPages = libc.Xmalloc(c.tls, types.Size_t(unsafe.Sizeof(int32(0))))
	if c.logPages == 0 {
		return errors.New("watch log: out of memory")
	}
	*(*int32)(at(c.logPages)) = 0
	sqlite3.Xsqlite3_wal_hook(c.tls, c.db, *(*uintptr)(unsafe.Pointer(noteLog)), c.logPages)
	return nil
}

// noteLog is called by SQLite at a commit. The library takes the function value itself for a C function.
var noteLog = &struct {
	f func(tls *libc.TLS, arg, db, name uintptr, pages int32) int32
}{func(_ *libc.TLS, arg, _, _ uintptr, pages int32) int32 {
	*(*int32)(at(arg)) = pages
	return sqlite3.SQLITE_OK
}}

// logLength returns the length of the log in pages after the connection's last commit.
func (c *conn) logLength() int32 { return *(*int32)(at(c.logPages)) }
