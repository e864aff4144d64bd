package chaos

import (
	"net"
	"sync"
	"testing"
	"time"
)

// proxy carries TCP connections to a target and can cut, delay or silence them. With several targets it is a load balancer:
// each connection goes to the next target that answers.
type proxy struct {
	l       net.Listener
	targets []string

	mu    sync.Mutex
	next  int
	cut   bool
	delay time.Duration
	open  map[net.Conn]bool
	mute  chan struct{} // closed when the current connections fall silent
}

func newProxy(t *testing.T, targets ...string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, targets: targets, open: map[net.Conn]bool{}, mute: make(chan struct{})}
	go p.accept()
	t.Cleanup(func() {
		_ = l.Close()
		p.setCut(true)
	})
	return p
}

func (p *proxy) address() string { return p.l.Addr().String() }

// setCut breaks every connection and refuses new ones, or lets them through again.
func (p *proxy) setCut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	if cut {
		for c := range p.open {
			_ = c.Close()
		}
		clear(p.open)
	}
}

// silence makes the current connections behave as when a database's host dies and its standby is promoted: the targets' sides are closed,
// the clients' sides stay open without an answer, and new connections work.
func (p *proxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.mute)
	p.mute = make(chan struct{})
}

// setDelay delays all data.
func (p *proxy) setDelay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

func (p *proxy) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		go p.carry(c)
	}
}

func (p *proxy) carry(from net.Conn) {
	defer from.Close()
	p.mu.Lock()
	tries := len(p.targets)
	p.mu.Unlock()
	for range tries {
		p.mu.Lock()
		target := p.targets[p.next%len(p.targets)]
		p.next++
		cut := p.cut
		p.mu.Unlock()
		if cut {
			return
		}
		to, err := net.DialTimeout("tcp", target, time.Second)
		if err != nil {
			continue
		}
		mute := p.keep(from, to)
		if mute == nil {
			return
		}
		done, over := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			p.pump(from, to, mute)
			_ = to.Close()
		}()
		go func() { // ends the target's side; the client's pump then discards
			select {
			case <-mute:
				_ = to.Close()
			case <-over:
			}
		}()
		p.pump(to, from, mute)
		if !closed(mute) {
			_ = from.Close()
		}
		<-done
		close(over)
		p.drop(from, to)
		return
	}
}

// keep notes a connection and returns a channel that is closed when it falls silent, or nil when connections are refused.
func (p *proxy) keep(a, b net.Conn) (mute <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		_ = b.Close()
		return nil
	}
	p.open[a], p.open[b] = true, true
	return p.mute
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (p *proxy) drop(a, b net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, a)
	delete(p.open, b)
}

// pump copies one direction until either end is closed. It discards the data of a client whose connection has fallen silent.
func (p *proxy) pump(from, to net.Conn, mute <-chan struct{}) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !closed(mute) {
			p.mu.Lock()
			d := p.delay
			p.mu.Unlock()
			if d > 0 {
				<-time.After(d)
			}
			if _, e := to.Write(buf[:n]); e != nil && !closed(mute) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
