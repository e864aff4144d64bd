package main

import (
	"io"
	"net"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

// Bytes keep their order, and each direction takes half of the round trip; in a synctest bubble, whose clock advances only while
// all wait.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &delayed{half: time.Millisecond / 2}
		client, near := net.Pipe()
		far, server := net.Pipe()
		go d.pass(near, far)
		go d.pass(far, near)
		go func() {
			b := make([]byte, 1)
			for {
				if _, err := io.ReadFull(server, b); err != nil {
					return
				}
				_, _ = server.Write([]byte{b[0] + 1})
			}
		}()
		for i := range byte(3) {
			began := time.Now()
			b := []byte{i}
			_, _ = client.Write(b)
			if _, err := io.ReadFull(client, b); err != nil || b[0] != i+1 || time.Since(began) != time.Millisecond {
				t.Errorf("%d after %d, %v: %v", b[0], i, time.Since(began), err)
			}
		}
		_, _ = client.Close(), server.Close()
	})
}

func TestDelayWantsAnAddress(t *testing.T) {
	for _, dsn := range []string{"host=127.0.0.1", "postgres:///bench", "postgres://pawl@127.0.0.1/bench"} {
		if got, err := delay(t.Context(), dsn, time.Millisecond); err == nil {
			t.Errorf("%s: %s", dsn, got)
		}
	}
	got, err := delay(t.Context(), "postgres://pawl@127.0.0.1:5432/bench?sslmode=disable", time.Millisecond)
	u, _ := url.Parse(got)
	if err != nil || u.Path != "/bench" || u.Port() == "5432" || u.RawQuery != "sslmode=disable" {
		t.Errorf("%s, %v", got, err)
	}
}
