// Package posttest is the conformance suite of brokers, and a broker in memory that can misbehave in every way in which brokers do.
package posttest

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

	"github.com/pawl-run/pawl/internal/handoff/post"
)

// Fate is what becomes of a letter, or of a message to a mailbox, that the broker has confirmed.
type Fate struct {
	Lost   bool
	Copies int           // beside itself
	Delay  time.Duration // different delays change the order
}

// Model is a broker in memory. Its zero value works without faults.
type Model struct {
	// Fate decides what becomes of each letter (to a line) and message (to "box"); nil: all arrive once, at once and in order.
	Fate func(to string) Fate
	// MostLetters is how many letters a line holds; 0: 10,000.
	MostLetters int

	mu      sync.Mutex
	changed chan struct{} // closed when a line or the whole has changed
	lines   map[post.Line][]*modelLetter
	boxes   map[string]*modelBox
	dead    []*modelLetter
	number  int
	down    bool
}

type modelLetter struct {
	id     string
	line   post.Line
	body   []byte
	sent   time.Time
	tries  int
	held   bool // by a server
	reason string
	buried time.Time
}

type modelBox struct {
	m        *Model
	name     string
	changed  chan struct{} // closed when it has got a message, or the whole has changed
	messages [][]byte
}

func (m *Model) lock() {
	m.mu.Lock()
	if m.changed == nil {
		m.changed, m.lines, m.boxes = make(chan struct{}), map[post.Line][]*modelLetter{}, map[string]*modelBox{}
	}
}

// tell wakes those who wait for letters. The caller holds the lock.
func (m *Model) tell() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// tell wakes the reader of a mailbox. The caller holds the lock.
func (b *modelBox) tell() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// tellAll wakes everyone. The caller holds the lock.
func (m *Model) tellAll() {
	m.tell()
	for _, b := range m.boxes {
		b.tell()
	}
}

// Down makes the broker answer nothing, or answer again.
func (m *Model) Down(down bool) {
	m.lock()
	defer m.mu.Unlock()
	m.down = down
	m.tellAll()
}

// Flush loses everything: letters, also those in hand, and mailboxes.
func (m *Model) Flush() {
	m.lock()
	defer m.mu.Unlock()
	m.tellAll()
	m.lines, m.boxes, m.dead = map[post.Line][]*modelLetter{}, map[string]*modelBox{}, nil
}

// fated carries out what becomes of something that arrives by put, which is called with the lock held.
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

// Send implements post.Office.
func (m *Model) Send(ctx context.Context, line post.Line, body []byte, _ time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	m.lock()
	defer m.mu.Unlock()
	if m.down {
		return post.ErrUnavailable
	}
	most := cmp.Or(m.MostLetters, 10_000)
	if len(m.lines[line]) >= most {
		return fmt.Errorf("%w: %w", post.ErrUnavailable, post.ErrBusy)
	}
	body = slices.Clone(body)
	sent := time.Now()
	m.fated(string(line), func() {
		m.number++
		m.lines[line] = append(m.lines[line], &modelLetter{id: fmt.Sprint(m.number), line: line, body: body, sent: sent})
		m.tell()
	})
	return nil
}

// Serve implements post.Office.
func (m *Model) Serve(ctx context.Context, line post.Line, most int, take func(context.Context, post.Letter) error) {
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
		letter := post.Letter{ID: l.id, Body: l.body, Tries: l.tries, Age: max(1, time.Since(l.sent))}
		hands.Go(func() {
			defer func() { <-room }()
			m.settle(l, take(ctx, letter))
		})
	}
}

// next waits for the next letter of a line; nil when ctx has ended.
func (m *Model) next(ctx context.Context, line post.Line) *modelLetter {
	for ctx.Err() == nil {
		m.lock()
		changed := m.changed
		for i, l := range m.lines[line] {
			if m.down || l.held {
				continue
			}
			l.tries++
			if l.held = true; line == post.Asks {
				m.lines[line] = slices.Delete(m.lines[line], i, i+1)
			} else if l.tries > post.MostTries {
				m.bury(l, fmt.Sprintf("delivered %d times and never settled", post.MostTries))
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

func (m *Model) settle(l *modelLetter, err error) {
	m.lock()
	defer m.mu.Unlock()
	l.held = false
	switch buried, ok := errors.AsType[*post.Buried](err); {
	case ok:
		m.bury(l, buried.Reason)
	case err == nil:
		m.remove(l)
	}
	m.tell()
}

func (m *Model) remove(l *modelLetter) bool {
	i := slices.Index(m.lines[l.line], l)
	if i >= 0 {
		m.lines[l.line] = slices.Delete(slices.Clone(m.lines[l.line]), i, i+1)
	}
	return i >= 0
}

func (m *Model) bury(l *modelLetter, reason string) {
	if !m.remove(l) && l.line != post.Asks {
		return // lost meanwhile
	}
	l.reason, l.buried = reason, time.Now()
	m.dead = append(m.dead, l)
}

// Box implements post.Office.
func (m *Model) Box(ctx context.Context) (post.Box, error) {
	m.lock()
	defer m.mu.Unlock()
	if m.down {
		return nil, post.ErrUnavailable
	}
	name := make([]byte, 8)
	rand.Read(name) // never fails on the systems that Go supports
	b := &modelBox{m: m, name: hex.EncodeToString(name), changed: make(chan struct{})}
	m.boxes[b.name] = b
	return b, nil
}

// Put implements post.Office.
func (m *Model) Put(ctx context.Context, box string, message []byte) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	m.lock()
	defer m.mu.Unlock()
	if m.down {
		return post.ErrUnavailable
	}
	b := m.boxes[box]
	if b == nil {
		return post.ErrNoBox
	}
	message = slices.Clone(message)
	m.fated("box", func() {
		b.messages = append(b.messages, message)
		b.tell()
	})
	return nil
}

func (b *modelBox) Name() string { return b.name }

func (b *modelBox) Next(ctx context.Context) ([]byte, error) {
	for {
		b.m.lock()
		changed, mine := b.changed, b.m.boxes[b.name] == b
		if mine && !b.m.down && len(b.messages) > 0 {
			message := b.messages[0]
			b.messages = b.messages[1:]
			b.m.mu.Unlock()
			return message, nil
		}
		b.m.mu.Unlock()
		if !mine {
			return nil, post.ErrNoBox
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (b *modelBox) Close() {
	b.m.lock()
	defer b.m.mu.Unlock()
	delete(b.m.boxes, b.name)
	b.tell()
}

// Boxes is how many mailboxes there are.
func (m *Model) Boxes() int {
	m.lock()
	defer m.mu.Unlock()
	return len(m.boxes)
}

// Backlog implements post.Office.
func (m *Model) Backlog(context.Context) (map[post.Line]post.Depth, error) {
	m.lock()
	defer m.mu.Unlock()
	if m.down {
		return nil, post.ErrUnavailable
	}
	all := map[post.Line]post.Depth{}
	for _, line := range post.Lines() {
		var d post.Depth
		for _, l := range m.lines[line] {
			d.Letters++
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

// Dead implements post.Office.
func (m *Model) Dead(_ context.Context, do post.DeadAction) (all []post.DeadLetter, err error) {
	m.lock()
	defer m.mu.Unlock()
	if m.down {
		return nil, post.ErrUnavailable
	}
	for _, l := range m.dead {
		all = append(all, post.DeadLetter{ID: l.id, Line: l.line, Reason: l.reason, Tries: l.tries, Age: time.Since(l.buried), Size: len(l.body)})
		if do == post.RedriveDead && l.line != post.Asks {
			m.lines[l.line] = append(m.lines[l.line], &modelLetter{id: l.id, line: l.line, body: l.body, sent: time.Now()})
		}
	}
	if do != post.ListDead {
		m.dead = nil
	}
	m.tell()
	return all, nil
}
