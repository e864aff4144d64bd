package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// delayed is a proxy to a PostgreSQL server that makes each round trip longer by a given time. It forwards bytes in their order, each half
// of that time after it arrived; they do not wait for earlier ones, so that requests sent together arrive together.
type delayed struct {
	listener net.Listener
	target   string // address of the server
	half     time.Duration
}

// piece is the result of one read.
type piece struct {
	due   time.Time
	bytes []byte
}

// piecesUnderWay bounds the reads that one direction may buffer: at 1 ms and 32 KB each, 2 GB/s.
const piecesUnderWay = 64

// delay starts a proxy in front of PostgreSQL that makes each round trip longer, until the context ends. It returns the proxy's DSN.
func delay(ctx context.Context, dsn string, roundTrip time.Duration) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") || u.Port() == "" {
		return "", errors.New("-latency needs a -dsn of the form postgres://USER@HOST:PORT/DATABASE")
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for -latency: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	d := &delayed{listener, u.Host, roundTrip / 2}
	go d.serve(ctx)
	u.Host = listener.Addr().String()
	return u.String(), nil
}

func (d *delayed) serve(ctx context.Context) {
	for {
		client, err := d.listener.Accept()
		if err != nil {
			return // the bench is over
		}
		server, err := (&net.Dialer{}).DialContext(ctx, "tcp", d.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		go d.pass(client, server)
		go d.pass(server, client)
	}
}

// pass forwards one direction. The end of one side closes the other.
func (d *delayed) pass(from, to net.Conn) {
	pieces := make(chan piece, piecesUnderWay)
	go func() {
		defer close(pieces)
		for {
			b := make([]byte, 32<<10)
			n, err := from.Read(b)
			if n > 0 {
				pieces <- piece{time.Now().Add(d.half), b[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			break
		}
	}
	_, _ = from.Close(), to.Close()
	for range pieces { // until the reader has noticed it
	}
}
