package pod

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// Attach joins this process's streams to the keeper: it is what a worker executes in the keeper's container. The keeper ends
// it when the worker is silent, which an exec whose connection was cut off may not notice.
func Attach(places Places) error {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: places.in(wire.Attach), Net: "unix"})
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

// reachFor is for how long Reach tries: some networks enforce their policies a few seconds after a pod has started.
const reachFor = 5 * time.Second

// Reach says whether an address goes on to be reached.
func Reach(address string) string {
	for begin := time.Now(); ; time.Sleep(250 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return fmt.Sprintf("after %v: %v", time.Since(begin).Round(time.Millisecond), err)
		}
		_ = conn.Close()
		if time.Since(begin) > reachFor {
			return "reached"
		}
	}
}

// Installed says whether the helper is there for the program's container; the kubelet starts that when this has succeeded.
func Installed(places Places) bool { return unix.Access(places.in(wire.Program), unix.X_OK) == nil }
