package brokerrpctest

import (
	"net"
	"testing"
)

// Changed is the address of a proxy to a broker. A function changes the broker's answers, piece by piece as they are read, for example to
// show another version.
func Changed(t *testing.T, addr string, change func(piece []byte)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			broker, err := net.Dial("tcp", addr)
			if err != nil {
				_ = client.Close()
				return
			}
			go carry(broker, client, func([]byte) {})
			go carry(client, broker, change)
		}
	}()
	return l.Addr().String()
}

// carry copies the bytes of one connection to another until either closes.
func carry(to, from net.Conn, change func([]byte)) {
	defer to.Close()
	for piece := make([]byte, 64<<10); ; {
		n, err := from.Read(piece)
		change(piece[:n])
		if _, failed := to.Write(piece[:n]); err != nil || failed != nil {
			return
		}
	}
}
