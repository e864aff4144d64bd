//go:build unix

package process

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	basePrefix = "pawl-process-"
	lockName   = "lock"
)

// base is the directory that contains the working directories of a runtime's runs. It is locked while its owner lives, so that the next
// process can recognize what a dead one left: the kernel releases the lock however the owner died and whichever pid namespace it was in.
type base struct {
	dir  string
	lock *os.File
}

// makeBase removes what dead processes left and makes a directory in parent; empty means the system's temporary directory.
func makeBase(parent string) (*base, error) {
	parent = cmp.Or(parent, os.TempDir())
	sweep(parent)
	// The directory gets its final name once it is locked: a sweep could remove it in between.
	unnamed, err := os.MkdirTemp(parent, ".pawl-new-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for runs: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(unnamed, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	dir := filepath.Join(parent, basePrefix+strings.TrimPrefix(filepath.Base(unnamed), ".pawl-new-"))
	if err == nil {
		err = os.Rename(unnamed, dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a directory for runs: %w", err), os.RemoveAll(unnamed))
	}
	return &base{dir, lock}, nil
}

// close removes the directory and then releases the lock.
func (b *base) close() error {
	return errors.Join(removeAll(b.dir), b.lock.Close())
}

// sweep removes the directories of dead owners. It ignores failures: a directory may belong to another user.
func sweep(parent string) {
	found, _ := filepath.Glob(filepath.Join(parent, basePrefix+"*", lockName))
	for _, name := range found {
		lock, err := os.OpenFile(name, os.O_RDWR|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = removeAll(filepath.Dir(name))
		}
		lock.Close()
	}
}
