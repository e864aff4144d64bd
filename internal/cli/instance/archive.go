package instance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/blob/file"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/server"
	"github.com/pawl-run/pawl/internal/store/sqlite"
)

// archiveDir is the prefix of the directories of opened archives, in the directory for temporary files.
const archiveDir = "pawl-open-"

// Archive is an opened archive: its own store and blobs in a temporary directory, and a read-only server. No setting can make it use the
// database of an installation. Nothing runs: there is no worker, and the engine neither decides nor deletes anything.
type Archive struct {
	Shown api.Archive

	dir    string
	lock   *os.File // while it is held, no other process removes dir
	store  *sqlite.Store
	blobs  *file.Store
	server *server.Server
	parts  *Parts
	stop   func()
}

// ArchiveOptions say how an archive is shown.
type ArchiveOptions struct {
	Log     *slog.Logger
	Version string       // of this program
	Page    http.Handler // the web page; may be nil
}

// OpenArchive unpacks an archive. It removes the directories of processes that were killed while they served one.
func OpenArchive(ctx context.Context, from io.Reader, o ArchiveOptions) (_ *Archive, err error) {
	sweepArchives(o.Log)
	a := &Archive{parts: NewParts(o.Log), stop: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	if a.dir, a.lock, err = makeArchiveDir(); err != nil {
		return nil, err
	}
	if a.store, err = sqlite.Open(ctx, filepath.Join(a.dir, "pawl.db"), sqlite.Options{}); err != nil {
		return nil, err
	}
	if a.blobs, err = file.Open(filepath.Join(a.dir, "blobs")); err != nil {
		return nil, err
	}
	e, err := engine.New(engine.Options{Store: a.store, Blobs: a.blobs, Log: o.Log})
	if err != nil {
		return nil, err
	}
	u, err := e.Archives().Unpack(ctx, from)
	if err != nil {
		return nil, err
	}
	a.Shown = api.Archive{From: u.From, At: u.At, Version: u.Pawl, Executions: u.Trees, Tasks: u.Executions - u.Trees, LeftOut: u.LeftOut}
	a.server, err = server.New(server.Options{Engine: e, Log: o.Log, Version: o.Version, Page: o.Page, Archive: &a.Shown})
	return a, err
}

// Serve answers requests on l until the archive is closed.
func (a *Archive) Serve(l net.Listener) {
	a.stop = a.parts.Start("the listener on "+l.Addr().String(), func(ctx context.Context) error { return a.server.Serve(ctx, l) })
}

// Within returns a context that also ends when the server fails before the archive is closed.
func (a *Archive) Within(ctx context.Context) (context.Context, func()) { return a.parts.Within(ctx) }

// Close stops the server, and removes the directory.
func (a *Archive) Close() error {
	if a.server != nil {
		a.server.Drain()
	}
	a.stop()
	var all error
	if a.store != nil {
		all = a.store.Close()
	}
	if a.blobs != nil {
		all = errors.Join(all, a.blobs.Close())
	}
	if a.lock != nil {
		all = errors.Join(all, os.RemoveAll(a.dir), a.lock.Close())
	}
	return all
}

// makeArchiveDir makes a directory and locks it. Before the lock is taken another process may take the directory for one of a
// killed process, and remove it: then makeArchiveDir makes another.
func makeArchiveDir() (dir string, lock *os.File, err error) {
	for range 10 {
		if dir, err = os.MkdirTemp("", archiveDir); err != nil {
			return "", nil, fmt.Errorf("make a directory for the archive: %w", err)
		}
		if lock, err = LockState(dir); errors.Is(err, ErrHeld) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		held, err := lock.Stat()
		if there, gone := os.Stat(lock.Name()); err == nil && gone == nil && os.SameFile(held, there) {
			return dir, lock, nil
		}
		_ = lock.Close()
	}
	return "", nil, fmt.Errorf("other processes remove the directories that are made for the archive, such as %s: name another place with TMPDIR", dir)
}

// sweepArchives removes the directories of opened archives whose process was killed: their locks are free. It leaves those of other
// users alone, because all users share the directory for temporary files.
func sweepArchives(log *slog.Logger) {
	all, err := filepath.Glob(filepath.Join(os.TempDir(), archiveDir+"*"))
	if err != nil {
		return // TMPDIR contains pattern characters
	}
	for _, dir := range all {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() {
			continue
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() {
			continue
		}
		lock, err := LockState(dir)
		if err != nil {
			continue // it is being served, or is gone
		}
		if err := errors.Join(os.RemoveAll(dir), lock.Close()); err != nil {
			log.Warn("an archive that was opened before is still there", "dir", dir, "err", err)
		}
	}
}
