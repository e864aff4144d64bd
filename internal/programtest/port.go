package programtest

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// FreePort is a port of 127.0.0.1 without a listener. It is below 32768, the start of the ports that the kernel assigns to outgoing
// connections and to listeners without a fixed port, so none of these takes it before the test's program listens, or while that
// program is restarted. On Linux no other call of FreePort returns it before the test has ended.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 50 {
		if port := 20000 + rand.IntN(12000); hold(t, port) {
			return strconv.Itoa(port)
		}
	}
	t.Fatal("found no free port from 20000 to 31999 in 50 attempts")
	return ""
}
