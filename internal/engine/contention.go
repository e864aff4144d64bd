package engine

import (
	"slices"
	"sync"
	"time"
)

// contention knows the keys for whose locks a transaction has waited lately. A transaction waits for a key until the one that has it is
// committed, and so does everything in its batch. With five clients that submit to the same 100 keys, and batches of 64 executions that
// need 47 of them, each committer waited for the next: a plain request that shared a batch with them was answered after 1.7 s.
// While a key is contended, requests that need it have batches of their own, one at a time, and a wait list whose slot another request has
// freed goes on in a follow-up: plain requests find the other committers.
type contention struct {
	mu    sync.Mutex
	until map[string]time.Time // until when each key counts as contended
	last  time.Time            // until when any key does
	found int                  // how many times a key was found to be contended that was not before
}

const (
	// Keys whose locks took a transaction contendedFrom or longer count as contended for contendedFor (decision 40). A lock that no other
	// transaction has takes 1 ms; beside the five clients above it took 400 to 1,100 ms. contendedFor is chosen, not measured: every 5 s
	// one batch finds out anew that its keys are contended.
	contendedFrom = 50 * time.Millisecond
	contendedFor  = 5 * time.Second
	// contendedMost is how many keys are remembered at most. Requests for others go with plain ones.
	contendedMost = 10_000
)

// waited takes in how long one call of LockKeys took for keys. From contendedFrom on they count as contended for contendedFor.
func (c *contention) waited(keys []string, d time.Duration, now time.Time) {
	if d < contendedFrom {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == nil {
		c.until = map[string]time.Time{}
	}
	for key, until := range c.until {
		if !until.After(now) {
			delete(c.until, key)
		}
	}
	for _, key := range keys {
		_, known := c.until[key]
		if !known && len(c.until) == contendedMost {
			continue
		}
		c.until[key], c.last = now.Add(contendedFor), now.Add(contendedFor)
		if !known {
			c.found++
		}
	}
}

// newSince returns how many times a key was found to be contended, and whether that is more than the caller knows.
func (c *contention) newSince(known int) (found int, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.found, c.found > known
}

// has reports whether one of the keys is contended.
func (c *contention) has(now time.Time, keys ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(keys, func(key string) bool { return c.until[key].After(now) })
}

// some reports whether any key is contended.
func (c *contention) some(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.After(now)
}

// locker is an op that locks keys before it is decided.
type locker interface{ locks() []string }

// needed reports whether one of the requests needs a contended key.
func (c *contention) needed(ops []op, now time.Time) bool {
	return c.some(now) && slices.ContainsFunc(ops, func(o op) bool {
		l, ok := o.(locker)
		return ok && c.has(now, l.locks()...)
	})
}
