//go:build unix && !linux

package collect

import (
	"os"

	"golang.org/x/sys/unix"
)

// openBeneath opens an entry of dir, which is a single name, without following it if it is a link.
func openBeneath(dir *os.File, name string, flags uint64) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, int(flags)|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
