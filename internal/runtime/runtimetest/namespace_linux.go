package runtimetest

import (
	"os"
	"strconv"
	"syscall"
	"testing"
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
