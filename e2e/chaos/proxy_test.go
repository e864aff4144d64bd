package chaos

import (
	"net"
	"sync"
	"testing"
	"time"
)

// proxy carries TCP connections to a target and can cut or delay them. With several targets it is a load balancer: each
// connection goes to the next target that answers.
type proxy struct {
	l       net.Listener
	targets []string

	mu    sync.Mutex
	next  int
	cut   bool
	delay time.Duration
	open  map[net.Conn]bool
}

func newProxy(t *testing.T, targets ...string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, targets: targets, open: map[net.Conn]bool{}}
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

// setDelay makes everything that is sent arrive later.
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
		if !p.keep(from, to) {
			return
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.pump(from, to)
		}()
		p.pump(to, from)
		<-done
		p.drop(from, to)
		return
	}
}

func (p *proxy) keep(a, b net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		_ = b.Close()
		return false
	}
	p.open[a], p.open[b] = true, true
	return true
}

func (p *proxy) drop(a, b net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, a)
	delete(p.open, b)
}

// pump copies one direction until either end is closed, and then closes both.
func (p *proxy) pump(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			p.mu.Lock()
			d := p.delay
			p.mu.Unlock()
			if d > 0 {
				<-time.After(d)
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
