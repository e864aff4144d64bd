package operate

import (
	"net"
	"testing"
)

func TestPageURL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:7411": "http://127.0.0.1:7411/ui/",
		"[::1]:7411":     "http://[::1]:7411/ui/",
		"[::]:80":        "http://localhost:80/ui/",
		"0.0.0.0:80":     "http://localhost:80/ui/",
	} {
		a, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if got := pageURL(a); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
