package programtest

import (
	"os"
	"syscall"
	"testing"
)

// hold binds a socket to a port of 127.0.0.1 until the end of the test, and reports false if another socket is bound to it. The socket does
// not listen: connections are refused. A program can listen on the port if it sets SO_REUSEADDR, as Go, PostgreSQL and Redis do.
func hold(t testing.TB, port int) bool {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(os.NewSyscallError("socket", err))
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		_ = syscall.Close(fd)
		return false
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	// Only now: with SO_REUSEADDR before it, bind would succeed beside the socket of another test.
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(os.NewSyscallError("setsockopt", err))
	}
	return true
}
