package programtest

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// hold binds a socket to a port of 127.0.0.1 until the end of the test, and reports false if another socket is bound to it. The socket does
// not listen: connections are refused. A program can listen on the port if it sets SO_REUSEADDR, as Go, PostgreSQL and Redis do.
func hold(t testing.TB, port int) bool {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(os.NewSyscallError("socket", err))
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		_ = unix.Close(fd)
		return false
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	// Only now: with SO_REUSEADDR before it, bind would succeed beside the socket of another test.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		t.Fatal(os.NewSyscallError("setsockopt", err))
	}
	return true
}
