package programtest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePort is a port of 127.0.0.1 at which nothing listens. It is below 32768, from where on the kernel gives ports to outgoing
// connections and to listeners without a port of their own, so none of these takes it before the program of the test listens, or while
// that program is started again.
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
