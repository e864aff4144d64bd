package counted

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// commitTakes is the minimum time of a COMMIT on both stores, as on a disk that takes so long to store it. With it the batches of
// concurrent clients depend more on the batcher's rules than on the machine: tests run on servers without fsync, beside others.
const commitTakes = time.Millisecond

// notifyEvery is the least time between two notifications of a store.
const notifyEvery = 5 * time.Millisecond

// wire counts the messages on connections to PostgreSQL. It forwards whole messages of clients, and answers as they come.
type wire struct {
	to         string // the server's address
	commits    atomic.Int64
	statements atomic.Int64
	trips      atomic.Int64

	mu       sync.Mutex
	notified int64
	latest   time.Time     // when the last one was sent
	closest  time.Duration // least time between two notifications; 0 before the second
}

// listen returns the address of the wire, which works until the test ends.
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

// class is the kind of statement under which a count goes.
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

// client is the client's side of one connection.
type client struct {
	*wire
	named map[string]class // prepared statements
	bound class            // of the statement that the next Execute runs
	last  class            // of the statement that ran last
	slow  bool             // a COMMIT is on its way
}

// carry forwards messages. In protocol 3 the first message has a length and a text, and all others have a letter before these.
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
		_, _ = out.Write(body) // Flush returns the writer's error
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

// ran counts a statement. Notifications have a count of their own.
func (c *client) ran(as class) {
	if c.last = as; as == notify {
		c.mu.Lock()
		defer c.mu.Unlock()
		now := time.Now()
		if apart := now.Sub(c.latest); c.notified > 0 && (c.notified == 1 || apart < c.closest) {
			c.closest = apart
		}
		c.notified, c.latest = c.notified+1, now
		return
	}
	c.statements.Add(1)
	if as == commit {
		c.commits.Add(1)
		c.slow = true
	}
}

// paced returns an error unless the connections have notified at least once, at most once for each commit, and never within notifyEvery of
// the previous notification. The number of notifications per execution is not in the table: the commits of 5 ms share one, so a machine
// with ten times the work of its processors sends twice as many. The pace holds on each machine, because the store waits after the server's
// answer, which comes after the time noted here.
func (w *wire) paced() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.commits.Load(); w.notified == 0 || w.notified > n {
		return fmt.Errorf("%d notifications of %d commits, want at least one, and at most one for each commit", w.notified, n)
	}
	if w.notified > 1 && w.closest < notifyEvery {
		return fmt.Errorf("two of %d notifications are %v apart, want at least %v", w.notified, w.closest, notifyEvery)
	}
	return nil
}

// synced counts a round trip.
func (c *client) synced() {
	if c.last != notify {
		c.trips.Add(1)
	}
}
