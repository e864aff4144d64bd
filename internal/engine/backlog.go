package engine

import (
	"slices"
	"time"
)

// backlog holds the requests of callers until they go into a transaction.
//
// A small call goes before a large one that came earlier: behind 1,000 executions with 64 long labels each, which came in five calls, a
// no-op was accepted after 2 s. Small calls get at most half of a transaction, and the calls in the order in which they came the rest. The
// first large call is the first in every second transaction at the latest, so neither kind waits for all of the other. The requests of
// one call stay in their order, unless they meet a conflict.
type backlog struct {
	calls    []call // in the order in which they came
	requests int    // of all calls
	bytes    int    // that these hold
	owed     bool   // the last batch had none of the first large call
}

// call is the part of a caller's requests that is in no batch yet.
type call struct {
	ops   []op
	bytes int // that ops hold
	at    time.Time
	// passed is set if this is the first large call and the last batch had none of its requests.
	passed bool
}

const (
	batchLimit = 1000 // requests in one transaction: a few tens of milliseconds at the most
	// batchBytes bounds the bytes of the requests in one transaction; a request with more goes alone. 6.5 MB took 35 ms alone, and 1 s beside
	// four clients like it.
	batchBytes = 2 << 20

	// A call is small if it holds at most 1/smallPart of what fits into a transaction. Chosen, not measured.
	smallPart = 8
)

func (c *call) small() bool {
	return len(c.ops) <= batchLimit/smallPart && c.bytes <= batchBytes/smallPart
}

func (l *backlog) add(c call) {
	l.calls = append(l.calls, c)
	l.requests, l.bytes = l.requests+len(c.ops), l.bytes+c.bytes
}

// takeOut removes the calls that match, and returns them.
func (l *backlog) takeOut(match func(call) bool) (taken []call) {
	stay := backlog{owed: l.owed}
	for _, c := range l.calls {
		if match(c) {
			taken = append(taken, c)
		} else {
			stay.add(c)
		}
	}
	*l = stay
	return taken
}

// fill moves as many requests into a batch as fit.
func (l *backlog) fill(x *batch) {
	room := batchBytes
	room -= l.moveOwed(x, room)
	if l.requests > batchLimit-len(x.ops) || l.bytes > room {
		room -= l.moveSmall(x, room-batchBytes/2)
	}
	for i := 0; i < len(l.calls) && len(x.ops) < batchLimit; i++ {
		room -= l.move(&l.calls[i], x, batchLimit, room)
	}
	l.owed = slices.ContainsFunc(l.calls, func(c call) bool { return c.passed })
	l.forget()
}

// moveOwed moves the first large call if the batch before had none of it. In any case it marks that call as passed; move clears the mark
// when it moves a request of the call into this batch. It returns how many bytes were moved.
func (l *backlog) moveOwed(x *batch, room int) int {
	i := slices.IndexFunc(l.calls, func(c call) bool { return !c.small() })
	if i < 0 {
		return 0
	}
	l.calls[i].passed = true
	if !l.owed {
		return 0
	}
	return l.move(&l.calls[i], x, batchLimit, room)
}

// moveSmall moves small calls, up to half of a batch.
func (l *backlog) moveSmall(x *batch, room int) (moved int) {
	for i := range l.calls {
		if l.calls[i].small() {
			moved += l.move(&l.calls[i], x, batchLimit/2, room-moved)
		}
	}
	return moved
}

// move puts requests of a call into a batch, up to most and up to room bytes. A larger request goes alone, except for
// requests of sessions before it: an output of 16 MB took 1 s beside four clients like it. It returns how many bytes
// were moved.
func (l *backlog) move(c *call, to *batch, most, room int) (moved int) {
	n := 0
	for n < len(c.ops) && len(to.ops) < most {
		size := c.ops[n].size()
		if moved+size > room && len(to.ops) > to.sessionOps {
			break
		}
		moved += size
		to.ops = append(to.ops, c.ops[n])
		n++
	}
	if n > 0 {
		c.passed = false
	}
	if c.ops, c.bytes = c.ops[n:], c.bytes-moved; n > 0 && len(c.ops) == 0 {
		to.callers++
	}
	l.requests, l.bytes = l.requests-n, l.bytes-moved
	return moved
}

// forget drops the calls whose requests are all in batches.
func (l *backlog) forget() {
	stay := l.calls[:0]
	for _, c := range l.calls {
		if len(c.ops) > 0 {
			stay = append(stay, c)
		}
	}
	clear(l.calls[len(stay):]) // frees their memory
	if l.calls = stay; len(stay) == 0 {
		l.calls = nil
	}
}

// age is how long the oldest request has waited; 0 if there is none.
func (l *backlog) age(now time.Time) time.Duration {
	if len(l.calls) == 0 {
		return 0
	}
	return now.Sub(l.calls[0].at)
}
