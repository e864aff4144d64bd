// Package pgpooltest puts a proxy between a client and PostgreSQL that breaks connections as networks do.
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

// Silence is a way in which a connection can stop answering without an end.
type Silence string

const (
	// Swallowed is what a load balancer does whose backend is gone: it takes everything and passes on nothing.
	Swallowed Silence = "swallowed"
	// Stalled connections take only what fits into the buffers of the kernel.
	Stalled Silence = "stalled"
	// Unacknowledged is what a dead host does: no packet has an answer, not even TCP's own. Linux only.
	Unacknowledged Silence = "unacknowledged"
)

// Silences are the ways that this system can play.
func Silences() []Silence {
	if canDrop {
		return []Silence{Swallowed, Stalled, Unacknowledged}
	}
	return []Silence{Swallowed, Stalled}
}

// Proxy carries connections to a server.
type Proxy struct {
	listener net.Listener
	to       string
	deaf     atomic.Bool

	mu      sync.Mutex
	refuses bool
	links   []*link
}

// link is one connection and its continuation to the server.
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

// New puts a proxy before the server that a DSN names, and returns the DSN by which clients go through the proxy.
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

// carry passes on what one end sends, until the other end is closed or the link falls silent.
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

// Silence makes the connections of this moment silent, as when a server's host dies and another takes over: the server ends
// their transactions, their clients are not told, and new connections work.
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

// Cut ends the connections of this moment.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.end()
	}
	p.links = nil
}

// Refuse ends connections as soon as they are opened, or lets them through again.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = refuse
}

// LoseAnswers ends a connection instead of passing on the server's next answer, or lets answers through again.
func (p *Proxy) LoseAnswers(lose bool) { p.deaf.Store(lose) }
