package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// executable is the file that the zygote executes: this program, however it was started and even if its file has since been replaced.
type executable struct {
	path string
	copy int // descriptor of a copy in memory, or -1
}

const (
	ownBinary = "/proc/self/exe"
	// aboveInherited is higher than every descriptor that the zygote inherits.
	aboveInherited = 200
)

// findExecutable copies the binary into sealed memory if the programs' user may change it: a program that is a link to /proc/self/exe, or
// a script that names it as its interpreter, makes its sandbox execute this binary, and could keep a writable handle until the binary is
// no longer being executed. If Pawl runs as root, programs have their own user, which may not write to the binary.
func findExecutable(privileged bool) (executable, error) {
	var st unix.Stat_t
	if err := unix.Stat(ownBinary, &st); err != nil {
		return executable{}, fmt.Errorf("find this program's binary: %w", err)
	}
	if privileged || int(st.Uid) != os.Geteuid() && unix.Access(ownBinary, unix.W_OK) != nil {
		return executable{ownBinary, -1}, nil
	}
	low, err := executableMemory()
	if err != nil {
		return executable{ownBinary, -1}, nil // the kernel does not execute files in memory; the binary's user is as trusted as Pawl
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

// fill copies the binary and closes the writable descriptor: a file that is open for writing, by this process or by a
// child forked meanwhile, cannot be executed.
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
	if err := seal(x.copy); err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	readOnly, err := os.Open(x.path)
	if err != nil {
		return err
	}
	defer readOnly.Close()
	return unix.Dup3(int(readOnly.Fd()), x.copy, unix.O_CLOEXEC)
}

// executableMemory creates an executable file in memory, even where such files are not executable by default.
func executableMemory() (int, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("pawl-init", flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		return unix.MemfdCreate("pawl-init", flags)
	}
	return fd, err
}

// seal makes the content unchangeable, even for its owner, and its permissions, too, where the kernel supports that.
func seal(fd int) error {
	const content = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, content|unix.F_SEAL_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, content)
	}
	return err
}

func (x *executable) close() {
	if x.copy >= 0 {
		unix.Close(x.copy)
	}
}
