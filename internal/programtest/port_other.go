//go:build !linux

package programtest

import (
	"net"
	"strconv"
	"testing"
)

// hold reports whether a port of 127.0.0.1 has no listener.
func hold(_ testing.TB, port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err == nil {
		_ = l.Close()
	}
	return err == nil
}
