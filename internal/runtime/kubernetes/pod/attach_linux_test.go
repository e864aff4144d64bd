package pod

import (
	"net"
	"strings"
	"testing"
)

func TestConnect(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		open, err := net.Listen("tcp", host+":0")
		if err != nil {
			t.Logf("%s is not tried: %v", host, err) // a host without IPv6
			continue
		}
		if err := connect(open.Addr().String()); err != nil {
			t.Errorf("%s: %v", host, err)
		}
		_ = open.Close()
		if said := Reach(open.Addr().String()); !strings.HasSuffix(said, "connection refused") {
			t.Errorf("%s: %s", host, said)
		}
	}
	if said := Reach("name:1"); !strings.Contains(said, "name") {
		t.Error(said)
	}
}
