// Package pgpooltest puts a proxy between a client and PostgreSQL that breaks connections in the ways in which networks do.
package pgpooltest

import (
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// Silence is a way in which a connection can stop responding without being closed.
type Silence string

const (
	// Swallowed is like a load balancer without its backend: it accepts everything and passes nothing on.
	Swallowed Silence = "swallowed"
	// Stalled connections accept only what fits into the kernel's buffers.
	Stalled Silence = "stalled"
	// Unacknowledged is like a dead host: no packet is answered, not even by TCP. Linux only.
	Unacknowledged Silence = "unacknowledged"
)

// Silences returns the ways that this system can simulate.
func Silences() []Silence {
	if canDrop {
		return []Silence{Swallowed, Stalled, Unacknowledged}
	}
	return []Silence{Swallowed, Stalled}
}

// Proxy passes connections on to a server.
type Proxy struct {
	listener net.Listener
	to       string
	deaf     atomic.Bool

	mu      sync.Mutex
	refuses bool
	links   []*link
}

// link is one connection with its continuation to the server.
type link struct {
	near, far net.Conn
	silence   atomic.Pointer[Silence]
	over      chan struct{}
	once      sync.Once
}

func (l *link) end() {
	l.once.Do(func() {
		close(l.over)
		_ = l.near.Close()
		_ = l.far.Close()
	})
}

// New puts a proxy in front of the server of a DSN, and returns the DSN for clients of the proxy.
func New(tb testing.TB, dsn string) (p *Proxy, through string) {
	tb.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	p = &Proxy{to: u.Host}
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		tb.Fatal(err)
	}
	var accepting sync.WaitGroup
	accepting.Go(p.accept)
	tb.Cleanup(func() {
		_ = p.listener.Close()
		accepting.Wait()
		p.Cut()
	})
	u.Host = p.listener.Addr().String()
	return p, u.String()
}

func (p *Proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		l := &link{near: near, far: far, over: make(chan struct{})}
		p.mu.Lock()
		refused := p.refuses
		if !refused {
			p.links = append(p.links, l)
		}
		p.mu.Unlock()
		if refused {
			l.end()
			continue
		}
		go p.carry(l, far, near, false)
		go p.carry(l, near, far, true)
	}
}

// carry passes on the bytes of one end, until the other end is closed or the link becomes silent.
func (p *Proxy) carry(l *link, to io.Writer, from io.Reader, answers bool) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if s := l.silence.Load(); s != nil {
			if *s == Swallowed && err == nil {
				continue
			}
			<-l.over
			return
		}
		if answers && p.deaf.Load() {
			l.end()
			return
		}
		if n > 0 {
			if _, e := to.Write(b[:n]); err == nil {
				err = e
			}
		}
		if err != nil {
			l.end()
			return
		}
	}
}

// Silence makes the current connections silent, as when a server's host dies and another takes over: the server ends their transactions,
// their clients are not notified, and new connections work.
func (p *Proxy) Silence(tb testing.TB, how Silence) {
	tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.silence.Store(&how)
		_ = l.far.Close()
		if how != Unacknowledged {
			continue
		}
		if err := drop(l.near); err != nil && !errors.Is(err, net.ErrClosed) {
			tb.Fatalf("drop what comes: %v", err)
		}
	}
}

// Cut closes the current connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.end()
	}
	p.links = nil
}

// Refuse closes new connections at once, or accepts them again.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = refuse
}

// LoseAnswers closes a connection instead of passing on the server's next answer, or passes answers on again.
func (p *Proxy) LoseAnswers(lose bool) { p.deaf.Store(lose) }
