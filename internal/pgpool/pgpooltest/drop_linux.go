package pgpooltest

import (
	"net"

	"golang.org/x/sys/unix"
)

const canDrop = true

// drop makes the kernel drop every packet that arrives for a connection before TCP sees it.
func drop(c net.Conn) error {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]})
	})
	if err == nil {
		err = set
	}
	return err
}
