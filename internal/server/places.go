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
	// stalledAfter is how long a client may take to read 64 KB of an answer while others need what the call holds.
	stalledAfter = time.Second
	// clearedWithin is how long a call that needs something waits for a call that was cut off to give it back.
	clearedWithin = 2 * time.Second
)

// holders are the calls that hold what others need as well, a place or memory, until their client has read the answer. A client
// that does not would keep it for as long as that may take: its call is cut off when another call needs what it holds.
type holders struct {
	mu  sync.Mutex
	all map[*holder]struct{}
}

// holder is a call that holds something.
type holder struct {
	call *call
	left chan struct{} // closed when it has given back what it holds
}

// join notes that a call holds something; leave is called when it has given it back.
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

// cutOff ends the call that has waited longest for its client, if that is longer than stalledAfter, and waits until it has given back what
// it holds. It reports whether there was one.
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
		rc := http.NewResponseController(slowest.call.w) // under the lock: leave has not returned, so its handler runs
		_ = rc.SetWriteDeadline(time.Now())
	}
	h.mu.Unlock()
	if slowest == nil {
		return false
	}
	late := time.NewTimer(clearedWithin)
	defer late.Stop()
	select {
	case <-slowest.left:
	case <-late.C:
	}
	return true
}

// atOnce has places for work of which only some may be done at once.
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

// occupy takes a place for a call. done frees it. If none is free, and no call that has one waits for its client, it refuses.
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
	// answersInFlight is how many bytes of large answers may be in memory at once: of the rows that they are made from and, once they are
	// encoded, of the texts that clients read. A request beyond that is answered with 503 and Retry-After.
	answersInFlight = 64 << 20
	// smallAnswer is the size up to which an answer is not counted: about as much as lies in the buffers of a connection anyway.
	smallAnswer = 64 << 10
)

// answers counts the bytes of large answers.
type answers struct {
	used    atomic.Int64
	holders holders
}

// grow changes what a call holds from so many bytes to others. An answer that is alone may be larger than the budget.
func (a *answers) grow(from, to int64) bool {
	if used := a.used.Add(to - from); used > answersInFlight && used > to && to > from {
		a.used.Add(from - to)
		return false
	}
	return true
}

// hold counts the memory of a call's answer, which replaces what it has held so far. What a request has changed cannot be taken back: its
// answer waits for memory before it is refused.
func (c *call) hold(size int) error {
	n := int64(size)
	if n <= smallAnswer {
		n = 0
	}
	fits := c.answers.grow(c.memory, n) || c.answers.holders.cutOff() && c.answers.grow(c.memory, n)
	if !fits && c.r.Method != http.MethodGet {
		tick := time.NewTicker(stalledAfter / 4)
		defer tick.Stop()
		for last := time.Now().Add(c.Patience); !fits && time.Now().Before(last) && c.ctx().Err() == nil; <-tick.C {
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

// release gives back what the answer has held.
func (c *call) release() {
	if c.leave != nil {
		c.answers.used.Add(-c.memory)
		c.memory = 0
		c.leave()
		c.leave = nil
	}
}

// writeWithin writes b with a deadline for each piece, none of which is later than last, unless that is zero. A slow client may take as
// long as it needs for the whole, and one that reads nothing is dropped after the first piece.
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
		if c.cutShort.Load() { // after the deadline was set: what cuts the call off does it in the other order
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
