// Package file stores blobs as files under one directory.
package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
)

// Store implements blob.Store. The blob "a/b" is the file blobs/a/b~: no name contains "~", so a blob may have the name of another blob's
// directory.
type Store struct {
	root *os.Root
	puts atomic.Int64
}

var (
	_ blob.Store   = (*Store)(nil)
	_ blob.Sweeper = (*Store)(nil)
)

const (
	blobs  = "blobs"
	temps  = "tmp"
	suffix = "~"
	// abandoned is the age at which an unfinished file belongs to a process that does not exist any more.
	abandoned = 24 * time.Hour
)

// Open stores blobs in the directory, which it creates if it does not exist. Symbolic links in it cannot lead outside.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	s := &Store{root: root}
	if err := errors.Join(root.MkdirAll(blobs, 0o700), root.MkdirAll(temps, 0o700), s.Sweep(context.Background())); err != nil {
		return nil, errors.Join(fmt.Errorf("open blobs: %w", err), root.Close())
	}
	return s, nil
}

func (s *Store) Close() error { return s.root.Close() }

// Sweep implements blob.Sweeper: it removes files that were being written when a process died.
func (s *Store) Sweep(ctx context.Context) error {
	left, err := fs.ReadDir(s.root.FS(), temps)
	if err != nil {
		return err
	}
	for _, f := range left {
		if err := ctx.Err(); err != nil {
			return err
		}
		fi, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if time.Since(fi.ModTime()) < abandoned {
			continue
		}
		if err := s.root.Remove(path.Join(temps, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Put implements blob.Store. The bytes are on disk when it returns.
func (s *Store) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	if err := blob.CheckName(name); err != nil {
		return 0, fmt.Errorf("put blob: %w", err)
	}
	temp := path.Join(temps, strconv.Itoa(os.Getpid())+"-"+strconv.FormatInt(time.Now().UnixNano(), 36)+"-"+
		strconv.FormatInt(s.puts.Add(1), 36))
	n, err := s.write(ctx, temp, r)
	if err == nil {
		err = s.place(temp, path.Join(blobs, name+suffix))
	}
	if err != nil {
		if e := s.root.Remove(temp); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) { // the operator may free space
			err = fmt.Errorf("%w: %w", blob.ErrUnavailable, err)
		}
		return 0, fmt.Errorf("put blob %s: %w", name, err)
	}
	return n, nil
}

func (s *Store) write(ctx context.Context, temp string, r io.Reader) (n int64, err error) {
	f, err := s.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if n, err = io.Copy(f, stoppable{ctx, r}); err != nil {
		return 0, err
	}
	return n, f.Sync()
}

// place moves a finished file to its name, durably.
func (s *Store) place(temp, to string) error {
	dir := path.Dir(to)
	var err error
	for range 10 { // a Remove may delete the directory in between
		if err = s.root.MkdirAll(dir, 0o700); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err = s.root.Rename(temp, to); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return err
	}
	// Each directory on the path may be new, and is durable only after the one above it was synced.
	for ; dir != "."; dir = path.Dir(dir) {
		if err := s.sync(dir); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) sync(dir string) error {
	d, err := s.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // already removed, and the blob with it
	}
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// stoppable is a reader that fails when ctx ends.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}

// Get implements blob.Store. An open blob can be read unchanged even if it is replaced or removed. An offset after the end reads nothing.
func (s *Store) Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	if err := blob.CheckName(name); err != nil {
		return nil, fmt.Errorf("get blob: %w", err)
	}
	if offset < 0 {
		return nil, fmt.Errorf("get blob %s: offset %d is negative", name, offset)
	}
	f, err := s.root.Open(path.Join(blobs, name+suffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("get blob %s: %w", name, blob.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("get blob %s: %w", name, err)
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(fmt.Errorf("get blob %s: %w", name, err), f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{stoppable{ctx, f}, f}, nil
}

func (s *Store) Remove(ctx context.Context, prefixes ...string) error {
	if err := blob.CheckName(prefixes...); err != nil {
		return fmt.Errorf("remove blobs: %w", err)
	}
	for _, prefix := range prefixes {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("remove blobs %s: %w", prefix, err)
		}
		at := path.Join(blobs, prefix)
		err := s.root.Remove(at + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err := errors.Join(err, s.root.RemoveAll(at)); err != nil {
			return fmt.Errorf("remove blobs %s: %w", prefix, err)
		}
	}
	return nil
}
