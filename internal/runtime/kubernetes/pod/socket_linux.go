package pod

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Unix sockets are handled as files here, because package net is large. Go's runtime polls them as it polls that
// package's connections: deadlines work, and closing a socket ends the calls that wait for it.

// socket creates a socket, and passes its descriptor to set before it becomes a file.
func socket(path, doing string, set func(fd int, at *unix.SockaddrUnix) error) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := set(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		_ = unix.Close(fd)
		return nil, &os.PathError{Op: doing, Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func dial(path string) (*os.File, error) {
	return socket(path, "connect", func(fd int, at *unix.SockaddrUnix) error { return unix.Connect(fd, at) })
}

func listen(path string) (*os.File, error) {
	return socket(path, "listen", func(fd int, at *unix.SockaddrUnix) error {
		if err := unix.Bind(fd, at); err != nil {
			return err
		}
		return unix.Listen(fd, unix.SOMAXCONN)
	})
}

// accept waits for a connection.
func accept(listener *os.File) (conn *os.File, err error) {
	err = receive(listener, func(fd int) error {
		fd, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if err == nil {
			conn = os.NewFile(uintptr(fd), listener.Name())
		}
		return err
	})
	return conn, err
}

// receive makes a call on a socket, and repeats it when the socket becomes readable. The error is os.ErrClosed
// where the socket was closed.
func receive(from *os.File, call func(fd int) error) error {
	raw, err := from.SyscallConn()
	if err != nil {
		return err
	}
	if raw.Read(func(fd uintptr) bool {
		err = call(int(fd))
		return !errors.Is(err, unix.EAGAIN)
	}) != nil {
		return os.ErrClosed
	}
	return err
}
