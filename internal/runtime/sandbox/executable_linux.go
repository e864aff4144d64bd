package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// executable is what an init executes: this very program, however it was started and even if it has since been replaced.
type executable struct {
	path string
	copy int // descriptor of a copy in memory, or -1
}

const (
	ownBinary = "/proc/self/exe"
	// aboveInherited is beyond every descriptor that an init is born with.
	aboveInherited = 200
)

// findExecutable copies the binary into memory when the user that it is to run as may not execute it: root under a strict
// umask builds such ones.
func findExecutable(privileged bool) (executable, error) {
	info, err := os.Stat(ownBinary)
	if err != nil {
		return executable{}, fmt.Errorf("find this program's binary: %w", err)
	}
	if !privileged || info.Mode().Perm()&0o005 == 0o005 {
		return executable{ownBinary, -1}, nil
	}
	low, err := unix.MemfdCreate("pawl-init", unix.MFD_CLOEXEC)
	if err != nil {
		return executable{}, fmt.Errorf("copy this program's binary: %w", err)
	}
	fd, err := unix.FcntlInt(uintptr(low), unix.F_DUPFD_CLOEXEC, aboveInherited)
	unix.Close(low)
	if err != nil {
		return executable{}, fmt.Errorf("copy this program's binary: %w", err)
	}
	x := executable{fmt.Sprintf("/proc/self/fd/%d", fd), fd}
	if err := x.fill(); err != nil {
		x.close()
		return executable{}, fmt.Errorf("copy this program's binary: %w", err)
	}
	return x, nil
}

// fill copies the binary and closes the way to write to it: a file that is open for writing, by us or by a child that
// was forked meanwhile, cannot be executed.
func (x *executable) fill() error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	in, err := os.Open(ownBinary)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(x.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Chmod(0o755), out.Close()); err != nil {
		return err
	}
	readOnly, err := os.Open(x.path)
	if err != nil {
		return err
	}
	defer readOnly.Close()
	return unix.Dup3(int(readOnly.Fd()), x.copy, unix.O_CLOEXEC)
}

func (x *executable) close() {
	if x.copy >= 0 {
		unix.Close(x.copy)
	}
}
