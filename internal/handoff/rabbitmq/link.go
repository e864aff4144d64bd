package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

// link is a connection that is opened again whenever it is lost.
type link struct {
	f         *Broker
	publishes bool
	name      string        // shown in the broker's list of connections
	over      chan struct{} // closed when the transport is closed, and with it the connection

	mu      sync.Mutex
	now     *connection   // nil: there is none
	changed chan struct{} // closed when there is a connection
	why     error         // why there is no connection
}

type connection struct {
	*amqp.Connection
	l       *link
	raw     net.Conn
	gone    chan struct{} // closed when the connection is lost
	why     error         // set when gone is closed
	blocked atomic.Bool   // the broker accepts no messages on it
	turn    chan struct{} // capacity 1: full while a publication is being written
	// publishers are used while turn is full: one for each queue of hasPublisher, and "" for the others.
	publishers map[string]*publisher
}

const (
	// dialWithin is how long connecting may take.
	dialWithin = 5 * time.Second
	// writeWithin is how long a write may wait for the broker to read.
	writeWithin = 10 * time.Second
	// waitForLink is how long a call waits for a lost connection, since most are replaced at once.
	waitForLink = time.Second
	// mostRest is the longest pause between two attempts to connect.
	mostRest = 2 * time.Second
)

// open connects for the first time, and keeps the connection from then on.
func (f *Broker) open(ctx context.Context, publishes bool, name string) (*link, error) {
	l := &link{f: f, publishes: publishes, name: name, over: make(chan struct{}), changed: make(chan struct{})}
	c, err := l.connect(ctx)
	if err != nil {
		return nil, err
	}
	l.set(c, nil)
	go l.keep(c)
	return l, nil
}

func (l *link) set(c *connection, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why = why; l.now != nil {
		l.changed = make(chan struct{})
	}
	if l.now = c; c != nil {
		close(l.changed)
	}
}

// at returns the connection. Without one it waits a moment.
func (l *link) at(ctx context.Context) (*connection, error) {
	l.mu.Lock()
	c, changed := l.now, l.changed
	l.mu.Unlock()
	if c == nil {
		select {
		case <-changed:
		case <-time.After(waitForLink):
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-l.f.ctx.Done():
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if c = l.now; c == nil {
			return nil, fmt.Errorf("%w: there is no connection: %w", brokerrpc.ErrUnavailable, l.why)
		}
	}
	return c, nil
}

// keep connects again whenever the connection is lost. The pauses are random, so that workers that were cut off together do not
// all return at once.
func (l *link) keep(c *connection) {
	defer close(l.over)
	for {
		select {
		case <-c.gone:
		case <-l.f.ctx.Done():
			c.end()
			return
		}
		l.set(nil, c.why)
		for failures := 0; ; failures++ {
			brokerrpc.Pause(l.f.ctx, rand.N(min(mostRest, 100*time.Millisecond<<min(failures, 10))))
			if l.f.ctx.Err() != nil {
				return
			}
			next, err := l.connect(l.f.ctx)
			if err == nil {
				c = next
				break
			}
			if l.set(nil, err); failures == 3 && l.f.ctx.Err() == nil {
				l.f.log.Warn("the broker does not answer; trying again until it does", "err", err)
			}
		}
		l.set(c, nil)
	}
}

// connect connects to the first node that answers. It tries several nodes from a random one on, so that workers that have lost
// a node do not all go to the same other one.
func (l *link) connect(ctx context.Context) (c *connection, err error) {
	var failures []error
	for i, from := 0, rand.IntN(len(l.f.urls)); i < len(l.f.urls); i++ {
		if c, err = l.connectTo(ctx, l.f.urls[(from+i)%len(l.f.urls)]); err == nil || ctx.Err() != nil {
			return c, err
		}
		failures = append(failures, err)
	}
	for _, other := range failures[:len(failures)-1] {
		err = fmt.Errorf("%w; %w", err, other)
	}
	return nil, err
}

func (l *link) connectTo(ctx context.Context, url string) (*connection, error) {
	c := &connection{l: l, gone: make(chan struct{}), turn: make(chan struct{}, 1), publishers: map[string]*publisher{}}
	config := amqp.Config{
		Heartbeat: heartbeat, Locale: "en_US", Properties: amqp.Table{"product": "pawl", "connection_name": l.name},
		Dial: func(network, addr string) (net.Conn, error) {
			raw, err := (&net.Dialer{Timeout: dialWithin, KeepAlive: heartbeat}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			c.raw = raw
			return &limited{raw}, raw.SetDeadline(time.Now().Add(dialWithin)) // until the connection is open
		},
	}
	conn, err := amqp.DialConfig(url, config)
	if err != nil {
		if c.raw != nil {
			_ = c.raw.Close() // in most cases the library has closed it
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", brokerrpc.ErrUnavailable, refused(err))
	}
	c.Connection = conn
	closed, blocked := conn.NotifyClose(make(chan *amqp.Error, 1)), conn.NotifyBlocked(make(chan amqp.Blocking, 8))
	go func() {
		for b := range blocked { // the channel is closed with the connection
			c.blocked.Store(b.Active)
			if b.Active {
				l.f.log.Warn("the broker accepts no messages", "why", b.Reason)
			} else {
				l.f.log.Info("the broker accepts messages again")
			}
		}
		if c.why = fmt.Errorf("the connection was closed"); len(closed) > 0 {
			c.why = fmt.Errorf("the connection was lost: %w", <-closed)
		}
		close(c.gone)
	}()
	if err = checkVersion(conn.Properties); err == nil && l.publishes {
		c.publishers[""], err = newPublisher(ctx, c, false)
	}
	if err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// drop closes a connection on which the broker does not answer. Calls wait for the next connection.
func (c *connection) drop() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.l.now == c {
		c.l.now, c.l.why, c.l.changed = nil, errNoAnswer, make(chan struct{})
	}
	_ = c.raw.Close()
}

// end closes a connection in good order, or drops it if the broker takes long.
func (c *connection) end() {
	defer time.AfterFunc(time.Second, c.drop).Stop()
	_ = c.CloseDeadline(time.Now().Add(time.Second)) // it may be closed already
	c.drop()
	<-c.gone
}

// errNoAnswer means that the broker has not answered a command in time.
var errNoAnswer = errors.New("it does not answer")

// do runs a call of the library that has no context, and waits for the broker's answer.
func (c *connection) do(ctx context.Context, what string, call func() error) error {
	return c.doWithin(ctx, answerWithin, what, call)
}

func (c *connection) doWithin(ctx context.Context, limit time.Duration, what string, call func() error) error {
	var late atomic.Bool
	defer time.AfterFunc(limit, func() {
		late.Store(true)
		c.drop()
	}).Stop()
	err := call()
	if err != nil && late.Load() {
		err = fmt.Errorf("%w within %s", errNoAnswer, limit)
	}
	if err != nil {
		return failed(ctx, what, err)
	}
	return nil
}

// shut closes a channel. After a refusal, or on a lost connection, the channel is closed already.
func (c *connection) shut(ch *amqp.Channel) {
	_ = c.do(context.Background(), "close a channel", ch.Close)
}

func (c *connection) channel(ctx context.Context) (ch *amqp.Channel, err error) {
	err = c.do(ctx, "open a channel", func() (err error) {
		ch, err = c.Channel()
		return err
	})
	return ch, err
}

// limited is a connection on which every write has a time limit, since a publication has none of its own.
type limited struct{ net.Conn }

func (l *limited) Write(b []byte) (int, error) {
	if err := l.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return 0, err
	}
	return l.Conn.Write(b)
}
