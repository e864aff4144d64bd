package counted

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// commitTakes is how long a COMMIT takes at least on both stores, as on a disk that takes so long to store it. With it
// the batches of clients that submit at the same time depend on the rules of the batcher more than on the machine:
// tests run on servers without fsync, beside others.
const commitTakes = time.Millisecond

// wire counts what connections to PostgreSQL say. It passes on whole messages of clients, and answers as they come.
type wire struct {
	to         string // the server's address
	commits    atomic.Int64
	statements atomic.Int64
	trips      atomic.Int64
	notified   atomic.Int64
}

// listen returns the address at which the wire is to be reached until the test ends.
func (w *wire) listen(tb testing.TB) string {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", w.to)
			if err != nil {
				_ = near.Close()
				continue
			}
			go func() {
				_, _ = io.CopyBuffer(struct{ io.Writer }{near}, struct{ io.Reader }{far}, make([]byte, 64<<10))
				_ = near.Close()
			}()
			go func() {
				c := client{wire: w, named: map[string]class{}}
				_ = c.carry(near, far) // it ends with either connection
				_ = far.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// class says what a statement counts as.
type class uint8

const (
	other class = iota
	commit
	notify
)

func classOf(text string) class {
	switch {
	case strings.HasPrefix(text, "COMMIT"):
		return commit
	case strings.Contains(text, "pg_notify"):
		return notify
	}
	return other
}

// client is one connection's side that asks.
type client struct {
	*wire
	named map[string]class // prepared statements
	bound class            // of the statement that the next Execute runs
	last  class            // of the statement that ran last
	slow  bool             // a COMMIT is on its way
}

// carry passes on messages. Protocol 3: the first has a length and a text, all others have a letter before these.
func (c *client) carry(from io.Reader, to io.Writer) error {
	in, out := bufio.NewReaderSize(from, 64<<10), bufio.NewWriterSize(to, 64<<10)
	head, body := make([]byte, 5), []byte(nil)
	for first := true; ; first = false {
		h := head
		if first {
			h = head[1:]
		}
		if _, err := io.ReadFull(in, h); err != nil {
			return err
		}
		size := int(binary.BigEndian.Uint32(head[1:])) - 4
		if cap(body) < size {
			body = make([]byte, size)
		}
		body = body[:size]
		if _, err := io.ReadFull(in, body); err != nil {
			return err
		}
		if !first {
			c.count(head[0], body)
		}
		_, _ = out.Write(h)
		_, _ = out.Write(body) // an error of the writer comes with Flush
		if in.Buffered() > 0 {
			continue
		}
		if c.slow {
			c.slow = false
			time.Sleep(commitTakes)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
}

func (c *client) count(kind byte, body []byte) {
	switch kind {
	case 'P': // Parse: name, text
		name, rest, _ := strings.Cut(string(body), "\x00")
		c.named[name] = classOf(rest)
	case 'B': // Bind: portal, name of the statement
		_, rest, _ := bytes.Cut(body, zero)
		name, _, _ := bytes.Cut(rest, zero)
		c.bound = c.named[string(name)]
	case 'E': // Execute
		c.ran(c.bound)
	case 'Q': // Query
		c.ran(classOf(string(body)))
		c.synced()
	case 'S': // Sync
		c.synced()
	}
}

// zero ends a text of the protocol.
var zero = []byte{0}

// ran counts a statement. How many notifications there are depends on how fast the machine is, for they are at least 5
// ms apart: they are counted by themselves.
func (c *client) ran(as class) {
	if c.last = as; as == notify {
		c.notified.Add(1)
		return
	}
	c.statements.Add(1)
	if as == commit {
		c.commits.Add(1)
		c.slow = true
	}
}

// synced counts a round trip.
func (c *client) synced() {
	if c.last != notify {
		c.trips.Add(1)
	}
}
