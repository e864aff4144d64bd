package engine

import (
	"slices"
	"sync"
	"time"
)

// contention knows the keys for whose locks a transaction has waited lately. A transaction waits for a key until its holder commits, and so
// does the whole batch. With five clients that submitted to the same 100 keys, in batches of 64 executions that needed 47 of them, each
// committer waited for the next: a plain request in such a batch was answered after 1.7 s. While a key is contended, requests that need it
// have their own batches, one at a time, and a wait list whose slot another request has freed is served in a follow-up. Plain requests use
// the other committers.
type contention struct {
	mu    sync.Mutex
	until map[string]time.Time // until when each key counts as contended
	last  time.Time            // until when any key does
	found int                  // how often an uncontended key was found to be contended
}

const (
	// Keys count as contended for contendedFor if their locks took a transaction contendedFrom or longer (decision 40). A free lock takes 1
	// ms; beside the five clients above it took 400 to 1,100 ms. contendedFor is chosen, not measured: every 5 s one batch finds out anew that
	// its keys are contended.
	contendedFrom = 50 * time.Millisecond
	contendedFor  = 5 * time.Second
	// contendedMost is how many keys are remembered at most. Requests for further keys go with plain ones.
	contendedMost = 10_000
)

// waited records how long one call of LockKeys took for keys. From contendedFrom on, they count as contended for contendedFor.
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

// newSince returns how often a key was found to be contended, and whether that is more than the caller knows.
func (c *contention) newSince(known int) (found int, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.found, c.found > known
}

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

// locker is an op that locks keys before its decision.
type locker interface{ locks() []string }

// needed reports whether a request needs a contended key.
func (c *contention) needed(ops []op, now time.Time) bool {
	return c.some(now) && slices.ContainsFunc(ops, func(o op) bool {
		l, ok := o.(locker)
		return ok && c.has(now, l.locks()...)
	})
}
