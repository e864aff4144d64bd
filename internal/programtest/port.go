package programtest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePort is a port of 127.0.0.1 without a listener. It is below 32768, the start of the ports that the kernel assigns to outgoing
// connections and to listeners without a fixed port, so none of these takes it before the test's program listens, or while that
// program is restarted.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 50 {
		port := strconv.Itoa(20000 + rand.IntN(12000))
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("found no free port from 20000 to 31999 in 50 attempts")
	return ""
}
