package programtest

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// A port belongs to one test until its end, refuses connections while no program listens, and programs can listen on it again and again.
func TestFreePort(t *testing.T) {
	t.Parallel()
	var address string
	var port int
	t.Run("held", func(t *testing.T) {
		free := FreePort(t)
		address = net.JoinHostPort("127.0.0.1", free)
		port, _ = strconv.Atoi(free)
		for range 2 {
			if hold(t, port) {
				t.Error("another test gets the port")
			}
			if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("connect without a listener: %v", err)
			}
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			if hold(t, port) {
				t.Error("another test gets the port of a program")
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	if !hold(t, port) {
		t.Error("no other test gets the port after the end of the first")
	}
}
