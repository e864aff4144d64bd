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

// checkpointer folds the write-ahead log into the file, beside the writer and not in its commits. A log that is never
// folded to its end can never be written from the start again and grows for ever; so when it has grown far in spite of
// that, the writer is held for the last few pages.
type checkpointer struct {
	c       *conn
	turn    chan struct{} // the writer's
	pages   atomic.Int32  // in the log
	commits atomic.Int64
	resting atomic.Bool // the log is empty and not looked at: the next commit says that it no longer is
	wake    chan struct{}
	quit    chan struct{}
	stopped sync.WaitGroup
}

const (
	// walSoft is how many pages of log are folded beside the writer. From walHard on the writer is slowed down, by a
	// millisecond for each walSlower pages beyond it and by slowest at the most, and is held for the rest once that is
	// walRest pages or fewer: to fold 1,000 pages of 4 KB takes some 20 ms.
	walSoft   = 2000
	walHard   = 8000
	walSlower = 100
	walRest   = 1000
	slowest   = 50 * time.Millisecond
	// foldTries is how often the log is folded beside a writer that goes on before it is held whatever is left.
	foldTries = 20
	// idle is how often the log is looked at while it is not empty; when nothing was written in between it is folded to its end and emptied.
	idle = time.Second
)

// startCheckpoints watches the log of a database whose writers take turns with the channel.
func startCheckpoints(path string, turn chan struct{}) (*checkpointer, error) {
	c, err := openWriter(path, "FULL")
	if err != nil {
		return nil, err
	}
	c.neverWait() // for readers: the writer would wait with it
	k := &checkpointer{c: c, turn: turn, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	k.stopped.Go(k.run)
	return k, nil
}

// wrote is called after every commit with the length of the log in pages.
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
				err = k.fold()
			}
		case <-tick.C:
			last := seen
			if seen = k.commits.Load(); seen != last {
				break
			}
			if seen != emptied {
				emptied = seen
				err = k.alone(sqlite3.SQLITE_CHECKPOINT_TRUNCATE)
			}
			k.resting.Store(true)
			if k.commits.Load() == seen || !k.resting.CompareAndSwap(true, false) {
				tick.Stop() // a commit from now on resets it
			}
		}
		if err != nil {
			// The log keeps what was not folded, and a later commit asks again.
			slog.Warn("moving the write-ahead log into the database file failed; it will be tried again", "error", err)
		}
	}
}

func (k *checkpointer) fold() error {
	for range foldTries {
		folded, err := k.c.checkpoint(sqlite3.SQLITE_CHECKPOINT_PASSIVE)
		if err != nil {
			return err
		}
		pages := k.pages.Load()
		if pages < walHard {
			return nil
		}
		if pages-folded <= walRest {
			break
		}
	}
	return k.alone(sqlite3.SQLITE_CHECKPOINT_PASSIVE)
}

// alone moves the log into the file while no transaction writes.
func (k *checkpointer) alone(mode int32) error {
	select {
	case <-k.quit:
		return nil
	case <-k.turn:
	}
	defer func() { k.turn <- struct{}{} }()
	_, err := k.c.checkpoint(mode)
	return err
}

// stop ends the folding; what is left of the log is folded when the last connection closes.
func (k *checkpointer) stop() error {
	close(k.quit)
	k.stopped.Wait()
	return k.c.close()
}

// checkpoint folds as much of the log as no reader needs, and returns how many of its pages have been folded.
func (c *conn) checkpoint(mode int32) (folded int32, err error) {
	p := libc.Xmalloc(c.tls, types.Size_t(unsafe.Sizeof(folded)))
	if p == 0 {
		return 0, errors.New("fold the log: out of memory")
	}
	defer libc.Xfree(c.tls, p)
	rc := sqlite3.Xsqlite3_wal_checkpoint_v2(c.tls, c.db, 0, mode, 0, p)
	if rc != sqlite3.SQLITE_OK && rc&0xff != sqlite3.SQLITE_BUSY {
		return 0, c.failure(rc)
	}
	return *(*int32)(at(p)), nil
}

// watchLog makes the connection note the length of the log at every commit of its own.
func (c *conn) watchLog() error {
	c.logPages = libc.Xmalloc(c.tls, types.Size_t(unsafe.Sizeof(int32(0))))
	if c.logPages == 0 {
		return errors.New("watch log: out of memory")
	}
	*(*int32)(at(c.logPages)) = 0
	sqlite3.Xsqlite3_wal_hook(c.tls, c.db, *(*uintptr)(unsafe.Pointer(noteLog)), c.logPages)
	return nil
}

// noteLog is what SQLite calls at a commit: the function value itself is what the library takes for a C function.
var noteLog = &struct {
	f func(tls *libc.TLS, arg, db, name uintptr, pages int32) int32
}{func(_ *libc.TLS, arg, _, _ uintptr, pages int32) int32 {
	*(*int32)(at(arg)) = pages
	return sqlite3.SQLITE_OK
}}

// logLength is the length of the log in pages after the connection's last commit.
func (c *conn) logLength() int32 { return *(*int32)(at(c.logPages)) }
