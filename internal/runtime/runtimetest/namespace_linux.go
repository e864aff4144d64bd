package runtimetest

import (
	"os"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// pidNamespace is the inode number of the namespace that hostile programs must not be in.
func pidNamespace(t testing.TB) string {
	t.Helper()
	info, err := os.Stat("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	return strconv.FormatUint(info.Sys().(*syscall.Stat_t).Ino, 10)
}

// makeDevice creates a harmless device node, the same as /dev/zero, if this process may.
func makeDevice(path string) bool {
	return unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))) == nil && os.Chmod(path, 0o666) == nil
}
