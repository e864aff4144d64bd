package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// fileLock keeps a second process from opening the same file. The operating system releases it when the process ends, even after kill -9.
type fileLock struct{ f *os.File }

// errServed means that another process has the store open.
var errServed = errors.New("another process has it open")

func lockFile(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the lock file: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		who := "a process that has not written its number yet"
		if b, err := io.ReadAll(io.LimitReader(f, 32)); err == nil && len(strings.TrimSpace(string(b))) > 0 {
			who = "process " + strings.TrimSpace(string(b))
		}
		return nil, fmt.Errorf("%w: %s holds %s; stop it, or talk to its server instead", errServed, who, path)
	}
	// The content of the file is for people; only the lock counts.
	if err := errors.Join(f.Truncate(0), writeAt(f, strconv.Itoa(os.Getpid())+"\n")); err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), f.Close())
	}
	return &fileLock{f}, nil
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

// release releases the lock. The file stays: if it were removed, two processes could lock two files with the same name. Closing the file is
// not enough: a child process that is being started has a copy of the descriptor, and with it the lock, until it executes its program.
func (l *fileLock) release() error {
	return errors.Join(unix.Flock(int(l.f.Fd()), unix.LOCK_UN), l.f.Close())
}
