// Package brokerrpctest is the conformance suite of brokers, and a broker in memory with every fault that brokers may have.
package brokerrpctest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

// Fate is the fate of a confirmed message to a line or to a reply queue.
type Fate struct {
	Lost   bool
	Copies int           // beside itself
	Delay  time.Duration // different delays change the order
}

// Model is a broker in memory. Its zero value works without faults.
type Model struct {
	// Fate decides the fate of each message to a line, and to a reply queue ("box"); nil: all arrive once, at once and in order.
	Fate func(to string) Fate
	// MaxMessages is how many messages a line holds; 0: 10,000.
	MaxMessages int

	mu          sync.Mutex
	changed     chan struct{} // closed when a line or the whole has changed
	lines       map[brokerrpc.Line][]*modelMessage
	replyQueues map[string]*modelReplyQueue
	dead        []*modelMessage
	number      int
	down        bool
}

type modelMessage struct {
	id     string
	line   brokerrpc.Line
	body   []byte
	sent   time.Time
	tries  int
	held   bool // by a server
	reason string
	deadAt time.Time
}

type modelReplyQueue struct {
	m        *Model
	name     string
	changed  chan struct{} // closed when it has got a message, or the whole has changed
	messages [][]byte
}

func (m *Model) lock() {
	m.mu.Lock()
	if m.changed == nil {
		m.changed, m.lines, m.replyQueues = make(chan struct{}), map[brokerrpc.Line][]*modelMessage{}, map[string]*modelReplyQueue{}
	}
}

// tell wakes those waiting for messages. The caller holds the lock.
func (m *Model) tell() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// tell wakes the reader of a reply queue. The caller holds the lock.
func (b *modelReplyQueue) tell() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// tellAll wakes everyone. The caller holds the lock.
func (m *Model) tellAll() {
	m.tell()
	for _, b := range m.replyQueues {
		b.tell()
	}
}

// Down makes the broker stop answering, or answer again.
func (m *Model) Down(down bool) {
	m.lock()
	defer m.mu.Unlock()
	m.down = down
	m.tellAll()
}

// Flush deletes everything: messages, including those in hand, and reply queues.
func (m *Model) Flush() {
	m.lock()
	defer m.mu.Unlock()
	m.tellAll()
	m.lines, m.replyQueues, m.dead = map[brokerrpc.Line][]*modelMessage{}, map[string]*modelReplyQueue{}, nil
}

// fated applies a fate to an arrival; put, called with the lock held, makes it arrive.
func (m *Model) fated(to string, put func()) {
	fate := Fate{}
	if m.Fate != nil {
		fate = m.Fate(to)
	}
	if fate.Lost {
		return
	}
	for range 1 + fate.Copies {
		if fate.Delay == 0 {
			put()
			continue
		}
		time.AfterFunc(fate.Delay, func() {
			m.lock()
			defer m.mu.Unlock()
			put()
		})
		fate.Delay *= 2
	}
}

// Send implements brokerrpc.Transport.
func (m *Model) Send(ctx context.Context, line brokerrpc.Line, body []byte, _ time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	m.lock()
	defer m.mu.Unlock()
	if m.down {
		return brokerrpc.ErrUnavailable
	}
	most := cmp.Or(m.MaxMessages, 10_000)
	if len(m.lines[line]) >= most {
		return fmt.Errorf("%w: %w", brokerrpc.ErrUnavailable, brokerrpc.ErrBusy)
	}
	body = slices.Clone(body)
	sent := time.Now()
	m.fated(string(line), func() {
		m.number++
		m.lines[line] = append(m.lines[line], &modelMessage{id: fmt.Sprint(m.number), line: line, body: body, sent: sent})
		m.tell()
	})
	return nil
}

// Serve implements brokerrpc.Transport.
func (m *Model) Serve(ctx context.Context, line brokerrpc.Line, most int, take func(context.Context, brokerrpc.Message) error) {
	var hands sync.WaitGroup
	defer hands.Wait()
	room := make(chan struct{}, most)
	for {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		l := m.next(ctx, line)
		if l == nil {
			return
		}
		message := brokerrpc.Message{ID: l.id, Body: l.body, Tries: l.tries, Age: max(1, time.Since(l.sent))}
		hands.Go(func() {
			defer func() { <-room }()
			m.settle(l, take(ctx, message))
		})
	}
}

// next waits for the next message of a line; nil if ctx has ended.
func (m *Model) next(ctx context.Context, line brokerrpc.Line) *modelMessage {
	for ctx.Err() == nil {
		m.lock()
		changed := m.changed
		for i, l := range m.lines[line] {
			if m.down || l.held {
				continue
			}
			l.tries++
			if l.held = true; line == brokerrpc.Asks {
				m.lines[line] = slices.Delete(m.lines[line], i, i+1)
			} else if l.tries > brokerrpc.MostTries {
				m.deadLetter(l, fmt.Sprintf("delivered %d times and never settled", brokerrpc.MostTries))
				continue
			}
			m.mu.Unlock()
			return l
		}
		m.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil
}

func (m *Model) settle(l *modelMessage, err error) {
	m.lock()
	defer m.mu.Unlock()
	l.held = false
	switch unreadable, ok := errors.AsType[*brokerrpc.Unreadable](err); {
	case ok:
		m.deadLetter(l, unreadable.Reason)
	case err == nil:
		m.remove(l)
	}
	m.tell()
}

func (m *Model) remove(l *modelMessage) bool {
	i := slices.Index(m.lines[l.line], l)
	if i >= 0 {
		m.lines[l.line] = slices.Delete(slices.Clone(m.lines[l.line]), i, i+1)
	}
	return i >= 0
}

func (m *Model) deadLetter(l *modelMessage, reason string) {
	if !m.remove(l) && l.line != brokerrpc.Asks {
		return // lost meanwhile
	}
	l.reason, l.deadAt = reason, time.Now()
	m.dead = append(m.dead, l)
}

// ReplyQueue implements brokerrpc.Transport.
func (m *Model) ReplyQueue(ctx context.Context) (brokerrpc.ReplyQueue, error) {
	m.lock()
	defer m.mu.Unlock()
	if m.down {
		return nil, brokerrpc.ErrUnavailable
	}
	name := make([]byte, 8)
	rand.Read(name) // never fails on the systems that Go supports
	b := &modelReplyQueue{m: m, name: hex.EncodeToString(name), changed: make(chan struct{})}
	m.replyQueues[b.name] = b
	return b, nil
}

// Put implements brokerrpc.Transport.
func (m *Model) Put(ctx context.Context, replyQueue string, message []byte) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	m.lock()
	defer m.mu.Unlock()
	if m.down {
		return brokerrpc.ErrUnavailable
	}
	b := m.replyQueues[replyQueue]
	if b == nil {
		return brokerrpc.ErrNoReplyQueue
	}
	message = slices.Clone(message)
	m.fated("box", func() {
		b.messages = append(b.messages, message)
		b.tell()
	})
	return nil
}

func (b *modelReplyQueue) Name() string { return b.name }

func (b *modelReplyQueue) Next(ctx context.Context) ([]byte, error) {
	for {
		b.m.lock()
		changed, mine := b.changed, b.m.replyQueues[b.name] == b
		if mine && !b.m.down && len(b.messages) > 0 {
			message := b.messages[0]
			b.messages = b.messages[1:]
			b.m.mu.Unlock()
			return message, nil
		}
		b.m.mu.Unlock()
		if !mine {
			return nil, brokerrpc.ErrNoReplyQueue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (b *modelReplyQueue) Close() {
	b.m.lock()
	defer b.m.mu.Unlock()
	delete(b.m.replyQueues, b.name)
	b.tell()
}

// ReplyQueues is how many reply queues there are.
func (m *Model) ReplyQueues() int {
	m.lock()
	defer m.mu.Unlock()
	return len(m.replyQueues)
}

// Backlog implements brokerrpc.Transport.
func (m *Model) Backlog(context.Context) (map[brokerrpc.Line]brokerrpc.Depth, error) {
	m.lock()
	defer m.mu.Unlock()
	if m.down {
		return nil, brokerrpc.ErrUnavailable
	}
	all := map[brokerrpc.Line]brokerrpc.Depth{}
	for _, line := range brokerrpc.Lines() {
		var d brokerrpc.Depth
		for _, l := range m.lines[line] {
			d.Messages++
			d.Bytes += int64(len(l.body))
			d.Oldest = max(d.Oldest, time.Since(l.sent))
			if !l.held {
				d.Unread++
			}
		}
		all[line] = d
	}
	return all, nil
}

// Dead implements brokerrpc.Transport.
func (m *Model) Dead(_ context.Context, do brokerrpc.DeadAction) (all []brokerrpc.DeadLetter, err error) {
	m.lock()
	defer m.mu.Unlock()
	if m.down {
		return nil, brokerrpc.ErrUnavailable
	}
	for _, l := range m.dead {
		all = append(all, brokerrpc.DeadLetter{ID: l.id, Line: l.line, Reason: l.reason, Tries: l.tries, Age: time.Since(l.deadAt),
			Size: len(l.body)})
		if do == brokerrpc.RedriveDead && l.line != brokerrpc.Asks {
			m.lines[l.line] = append(m.lines[l.line], &modelMessage{id: l.id, line: l.line, body: l.body, sent: time.Now()})
		}
	}
	if do != brokerrpc.ListDead {
		m.dead = nil
	}
	m.tell()
	return all, nil
}
