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

// attachWithin is how long an exec waits for a keeper that does not listen yet. A container that runs for the kubelet
// may still be executing its program: on a node that starts 20 pods at once for seconds, in which each exec that ended
// at once was followed by another. It is less than the time after which the worker gives up a stream that says nothing.
const attachWithin = 10 * time.Second

// Attach joins this process's streams to the keeper: it is what a worker executes in the keeper's container. The keeper ends
// it when the worker is silent, which an exec whose connection was cut off may not notice.
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

// reach connects to the keeper, for which it waits.
func reach(places Places, within time.Duration) (*os.File, error) {
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		conn, err := dial(places.in(wire.Attach))
		if err == nil || time.Since(begin) > within {
			return conn, err
		}
	}
}

// reachFor is for how long Reach tries: some networks enforce their policies a few seconds after a pod has started.
const reachFor = 5 * time.Second

// Reach says whether an address goes on to be reached.
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

// connect makes a TCP connection to an IP address within a second, and ends it. Package net's own would make the helper a tenth larger.
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
	// Go's runtime interrupts waits by signals of its own: a wait that was interrupted goes on for what is left of the second.
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

// Installed says whether the helper is there for the program's container; the kubelet starts that when this has succeeded.
func Installed(places Places) bool { return unix.Access(places.in(wire.Program), unix.X_OK) == nil }
