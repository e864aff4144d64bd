package pod

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An exec that comes before the keeper listens waits for it, for a limited time.
func TestAttachBeforeTheKeeper(t *testing.T) {
	places := Places{Shared: t.TempDir(), Keep: t.TempDir()}
	begin := time.Now()
	if conn, err := reach(places, 100*time.Millisecond); err == nil || time.Since(begin) < 100*time.Millisecond {
		t.Errorf("after %v: %v, %v", time.Since(begin), conn, err)
	}
	joined := make(chan error, 1)
	go func() {
		conn, err := reach(places, 20*time.Second)
		if err == nil {
			err = conn.Close()
		}
		joined <- err
	}()
	b := keep(t, places, time.Minute)
	if err := <-joined; err != nil {
		t.Error(err)
	}
	b.ends <- unix.SIGTERM
}

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

// A signal to the process, as Go's runtime sends to its threads, does not abort connect.
func TestConnectInterrupted(t *testing.T) {
	silent, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(silent)
		err = errors.Join(unix.Bind(silent, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(silent, 0))
	}
	if err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(silent)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", at.(*unix.SockaddrInet4).Port)
	for range 4 { // its queue of connections is full: further ones are not answered
		conn, err := net.DialTimeout("tcp", address, 200*time.Millisecond)
		if err == nil {
			defer conn.Close()
		}
	}
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				_ = unix.Kill(unix.Getpid(), unix.SIGURG)
			}
		}
	}()
	begin := time.Now()
	err = connect(address)
	close(over)
	<-stopped
	if took := time.Since(begin); err != unix.ETIMEDOUT || took < 900*time.Millisecond {
		t.Errorf("after %v: %v", took, err)
	}
}
