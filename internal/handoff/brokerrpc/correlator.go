package brokerrpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// correlator owns the reply queue of a process, and gives each message to the call that waits for it, by its id. A reply queue that is
// gone, or that has been silent for too long, is replaced by one with a new name. With the old name a broker that was restarted
// empty would number its messages from the beginning, and a reader could wait for ever for numbers that it has not seen.
type correlator struct {
	transport Transport
	ctx       context.Context // ends when the correlator is stopped
	stop      context.CancelFunc
	stray     func(*frame) // takes answers for which no call waits; nil: such answers are dropped

	opening chan struct{} // capacity 1: full while a reply queue is being made

	mu          sync.Mutex
	replyQueue  *openReplyQueue // nil: there is none
	waiting     map[string]*waiter
	replyQueues int64 // reply queues made so far
}

// openReplyQueue is a reply queue that the correlator reads. A reply queue that is given up is replaced.
type openReplyQueue struct {
	ReplyQueue
	dead  chan struct{} // closed when it is given up
	heard atomic.Int64  // when the last message came, in nanoseconds since 1970

	mu      sync.Mutex
	failing error // why it could not be read the last time; nil: it could
}

// failed records how reading the reply queue has ended.
func (m *openReplyQueue) failed(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failing = err
}

// with adds to an error the reason why the reply queue cannot be read, if it cannot.
func (m *openReplyQueue) with(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failing == nil {
		return err
	}
	return fmt.Errorf("%w: the reply queue of this process cannot be read: %w", err, m.failing)
}

// waiter waits for the frames of one id. It gets only those whose signature is right.
type waiter struct {
	frames  chan *frame
	genuine func(*frame) bool
}

func newCorrelator(transport Transport, stray func(*frame)) *correlator {
	ctx, stop := context.WithCancel(context.Background())
	return &correlator{transport: transport, ctx: ctx, stop: stop, stray: stray, opening: make(chan struct{}, 1),
		waiting: map[string]*waiter{}}
}

// at returns the reply queue, and makes one if there is none.
func (d *correlator) at(ctx context.Context) (*openReplyQueue, error) {
	for {
		if m := d.current(); m != nil {
			return m, nil
		}
		select {
		case d.opening <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		m, err := d.open(ctx)
		<-d.opening
		if m != nil || err != nil {
			return m, err
		}
	}
}

func (d *correlator) made() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(1, d.replyQueues)
}

func (d *correlator) current() *openReplyQueue {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.replyQueue
}

func (d *correlator) open(ctx context.Context) (*openReplyQueue, error) {
	if m := d.current(); m != nil {
		return m, nil
	}
	replyQueue, err := d.transport.ReplyQueue(ctx)
	if err != nil {
		return nil, fmt.Errorf("make a reply queue: %w", err)
	}
	m := &openReplyQueue{ReplyQueue: replyQueue, dead: make(chan struct{})}
	m.heard.Store(time.Now().UnixNano())
	d.mu.Lock()
	d.replyQueue = m
	d.replyQueues++
	d.mu.Unlock()
	go d.read(m)
	return m, nil
}

// readAgain is the pause after reading a reply queue has failed.
const readAgain = 100 * time.Millisecond

// read delivers the messages of a reply queue until the reply queue is given up.
func (d *correlator) read(m *openReplyQueue) {
	defer m.Close()
	reading, stop := context.WithCancel(d.ctx)
	defer stop()
	go func() {
		select {
		case <-m.dead:
			stop()
		case <-reading.Done():
		}
	}()
	for {
		raw, err := m.Next(reading)
		m.failed(err)
		if errors.Is(err, ErrUnavailable) && reading.Err() == nil { // the reply queue and its messages may still exist
			Pause(reading, readAgain)
			continue
		}
		if err != nil {
			d.giveUp(m)
			return
		}
		m.heard.Store(time.Now().UnixNano())
		if f, err := unpack(raw); err == nil {
			d.deliver(f)
		}
	}
}

func (d *correlator) deliver(f *frame) {
	d.mu.Lock()
	w := d.waiting[f.ID]
	d.mu.Unlock()
	if w != nil {
		if !w.genuine(f) {
			return
		}
		select {
		case w.frames <- f:
			return
		default: // it has as many frames as it expects
		}
	}
	if d.stray != nil && f.Kind == kindAnswer {
		d.stray(f)
	}
}

// giveUp ends the use of a reply queue; the next call makes a new one.
func (d *correlator) giveUp(m *openReplyQueue) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.replyQueue == m {
		d.replyQueue = nil
	}
	select {
	case <-m.dead:
	default:
		close(m.dead)
	}
}

// silent gives up a reply queue into which nothing has come for the time after which an answer is overdue.
func (d *correlator) silent(m *openReplyQueue, overdue time.Duration) {
	if time.Since(time.Unix(0, m.heard.Load())) >= overdue {
		d.giveUp(m)
	}
}

// await collects the frames of an id, at most room of them, until forget.
func (d *correlator) await(id string, room int, genuine func(*frame) bool) *waiter {
	w := &waiter{make(chan *frame, room), genuine}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[id] = w
	return w
}

// awaits reports whether frames of an id are collected.
func (d *correlator) awaits(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waiting[id] != nil
}

func (d *correlator) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, id)
}
