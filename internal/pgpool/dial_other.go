//go:build !linux

package pgpool

import (
	"syscall"
	"time"
)

// control sets nothing: deadlines and keep-alive find silent connections on this system.
func control(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
