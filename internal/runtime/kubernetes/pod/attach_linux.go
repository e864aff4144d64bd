package pod

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// attachWithin is how long an exec waits for a keeper that is not listening yet. A container that the kubelet reports as running may
// still be executing its program: for seconds on a node that starts 20 pods at once, and there each exec that failed at once was followed
// by another. It is shorter than the time after which the worker gives up a silent stream.
const attachWithin = 10 * time.Second

// Attach joins this process's streams to the keeper; a worker executes it in the keeper's container. The keeper ends the
// stream when the worker is silent, which an exec with a cut connection may not notice.
func Attach(places Places) error {
	conn, err := reach(places, attachWithin)
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		_ = conn.Close()
	}()
	_, err = io.Copy(os.Stdout, conn)
	return err
}

// reach connects to the keeper, and waits for it to listen.
func reach(places Places, within time.Duration) (*os.File, error) {
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		conn, err := dial(places.in(wire.Attach))
		if err == nil || time.Since(begin) > within {
			return conn, err
		}
	}
}

// reachFor is how long Reach tries: some networks enforce their policies only a few seconds after a pod has started.
const reachFor = 5 * time.Second

// Reach reports whether an address stays reachable.
func Reach(address string) string {
	for begin := time.Now(); ; time.Sleep(250 * time.Millisecond) {
		if err := connect(address); err != nil {
			return fmt.Sprintf("after %v: %v", time.Since(begin).Round(time.Millisecond), err)
		}
		if time.Since(begin) > reachFor {
			return "reached"
		}
	}
}

// connect opens a TCP connection to an IP address within a second, and closes it. The code of package net would make the helper a
// tenth larger.
func connect(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	family, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()})
	if at.Addr().Is4() {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, to); err != unix.EINPROGRESS {
		return err
	}
	// Go's runtime interrupts waits with its own signals: an interrupted wait continues for the rest of the second.
	for until := time.Now().Add(time.Second); ; {
		left := time.Until(until).Milliseconds()
		if left <= 0 {
			return unix.ETIMEDOUT
		}
		switch n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, int(left)); {
		case err != nil && err != unix.EINTR:
			return err
		case n > 0:
			code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
			if err != nil || code == 0 {
				return err
			}
			return syscall.Errno(code)
		}
	}
}

// Installed reports whether the helper is installed for the program's container, which the kubelet starts after this command has
// succeeded.
func Installed(places Places) bool { return unix.Access(places.in(wire.Program), unix.X_OK) == nil }
