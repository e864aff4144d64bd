package server

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/api"
)

const (
	// stalledAfter is how long a client may take to read 64 KB of an answer while other calls need what this call holds.
	stalledAfter = time.Second
	// clearedWithin is how long a call waits for another call, which was cut off, to release what it holds.
	clearedWithin = 2 * time.Second
)

// holders are the calls that hold a shared place or memory until their client has read the answer. A client that reads slowly would keep it
// for a long time, so its call is cut off when another call needs it.
type holders struct {
	mu  sync.Mutex
	all map[*holder]struct{}
}

type holder struct {
	call *call
	left chan struct{} // closed after the release
}

// join records that a call holds something; the caller calls leave when it has released it.
func (h *holders) join(c *call) (leave func()) {
	one := &holder{call: c, left: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[*holder]struct{}{}
	}
	h.all[one] = struct{}{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.all, one)
		close(one.left)
	}
}

// cutOff ends the call that has waited longest for its client, if that is longer than stalledAfter, and waits until it has released what it
// holds. It reports whether there was such a call.
func (h *holders) cutOff() bool {
	h.mu.Lock()
	var slowest *holder
	since := time.Now().Add(-stalledAfter).UnixNano()
	for one := range h.all {
		if began := one.call.waits.Load(); began != 0 && began < since {
			slowest, since = one, began
		}
	}
	if slowest != nil {
		slowest.call.cutShort.Store(true)
		rc := http.NewResponseController(slowest.call.w) // under the lock: leave has not returned, so the handler of that call still runs
		_ = rc.SetWriteDeadline(time.Now())
	}
	h.mu.Unlock()
	if slowest == nil {
		return false
	}
	select {
	case <-slowest.left:
	case <-time.After(clearedWithin):
	}
	return true
}

// atOnce limits how many calls may do a kind of work at once.
type atOnce struct {
	free    chan struct{}
	holders holders
}

func newPlaces(n int) *atOnce { return &atOnce{free: make(chan struct{}, n)} }

func (p *atOnce) take() bool {
	select {
	case p.free <- struct{}{}:
		return true
	default:
		return false
	}
}

// occupy reserves a place for a call. done frees it. If none is free and none of the holders waits for its client, it refuses.
func (p *atOnce) occupy(c *call, what string) (done func(), err error) {
	if !p.take() && (!p.holders.cutOff() || !p.take()) {
		return nil, refusal(http.StatusTooManyRequests, api.ProblemOverloaded,
			fmt.Sprintf("%d %s already: try again later", cap(p.free), what))
	}
	leave := p.holders.join(c)
	return sync.OnceFunc(func() {
		<-p.free
		leave()
	}), nil
}

const (
	// answersInFlight limits the memory of large answers: the rows that they are made from and, once encoded, the texts that clients read. A
	// request beyond that gets 503 and Retry-After.
	answersInFlight = 64 << 20
	// smallAnswer is the size up to which an answer is not counted: about as much as a connection's buffers hold anyway.
	smallAnswer = 64 << 10
)

// answers counts the bytes of large answers.
type answers struct {
	used    atomic.Int64
	holders holders
}

// grow changes the bytes that a call holds. An answer may exceed the budget if no other one is held.
func (a *answers) grow(from, to int64) bool {
	if used := a.used.Add(to - from); used > answersInFlight && used > to && to > from {
		a.used.Add(from - to)
		return false
	}
	return true
}

// hold counts the memory of a call's answer, in place of the bytes that it held so far. A change cannot be taken back, so the answer to a
// request that changed something waits for memory before it is refused.
func (c *call) hold(size int) error {
	n := int64(size)
	if n <= smallAnswer {
		n = 0
	}
	fits := c.answers.grow(c.memory, n) || c.answers.holders.cutOff() && c.answers.grow(c.memory, n)
	if !fits && c.r.Method != http.MethodGet {
		tick := time.Tick(stalledAfter / 4)
		for last := time.Now().Add(c.Patience); !fits && time.Now().Before(last) && c.ctx().Err() == nil; <-tick {
			c.answers.holders.cutOff()
			fits = c.answers.grow(c.memory, n)
		}
	}
	if !fits {
		return refusal(http.StatusServiceUnavailable, api.ProblemOverloaded,
			"the large answers that clients are reading take all of the memory set aside for them: try again in a moment")
	}
	if c.memory == 0 && n > 0 {
		c.leave = c.answers.holders.join(c)
	}
	c.memory = n
	return nil
}

func (c *call) release() {
	if c.leave != nil {
		c.answers.used.Add(-c.memory)
		c.memory = 0
		c.leave()
		c.leave = nil
	}
}

// writeWithin writes b with a deadline for each piece, none of them later than last unless that is zero. A slow client may take as long as
// it needs for the whole answer; a client that does not read is dropped after the first piece.
func (c *call) writeWithin(rc *http.ResponseController, b []byte, last time.Time) error {
	defer c.waits.Store(0)
	for len(b) > 0 {
		now := time.Now()
		until := now.Add(c.Patience)
		if !last.IsZero() && last.Before(until) {
			until = last
		}
		c.waits.Store(now.UnixNano())
		err := rc.SetWriteDeadline(until)
		if c.cutShort.Load() { // after the deadline was set: cutOff does it in the other order
			return errGone
		}
		n := 0
		if err == nil || errors.Is(err, http.ErrNotSupported) {
			n, err = c.w.Write(b[:min(len(b), pieceSize)])
		}
		if err != nil {
			return errGone
		}
		b = b[n:]
	}
	return nil
}
