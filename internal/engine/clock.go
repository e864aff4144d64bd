package engine

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// clocks compares the database's clock with this process's own, which is monotonic. If the database's clock is set, or its machine sleeps,
// the leases of all workers expire at once or last for hours. Only the comparison shows that.
type clocks struct {
	most time.Duration // the clocks may drift apart by this much between two readings

	restarting sync.Mutex // held while leases are restarted: the recovery and a renewal can notice one jump together

	mu    sync.Mutex
	known bool         // there was a reading
	last  clockReading // the latest
	jumps int          // how many were noticed
	// invalidUntil is when durations are valid again, by this process's clock: one lease after the leases were restarted for a jump. Until
	// then, a time that the database has written may be from before the jump, so a difference to it is no valid duration.
	invalidUntil time.Duration
}

// clockReading is a reading of the database's clock. At that moment the process's own clock was between from and to: the answer may have
// been delayed.
type clockReading struct {
	database time.Time
	from, to time.Duration
}

// jumped reports whether the database's clock has jumped since the last reading: it has moved by over most more, or
// over most less, than this process's own clock can have moved.
func (c *clocks) jumped(l clockReading) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jumpedLocked(l)
}

func (c *clocks) jumpedLocked(l clockReading) bool {
	passed := l.database.Sub(c.last.database)
	return c.known && (passed > l.to-c.last.from+c.most || passed < l.from-c.last.to-c.most)
}

// keep remembers a reading, unless a later one is known: one from before a jump would show the same jump again.
func (c *clocks) keep(l clockReading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepLocked(l)
}

func (c *clocks) keepLocked(l clockReading) {
	if !c.known || l.from >= c.last.from {
		c.known, c.last = true, l
	}
}

// leasesRestarted notes that all leases were restarted after the jump that a reading showed. durationsValid is false
// for one lease from then on.
func (c *clocks) leasesRestarted(l clockReading, lease time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepLocked(l)
	c.invalidUntil = max(c.invalidUntil, l.to+lease)
	c.jumps++
}

// noticed is how many jumps were noticed so far.
func (c *clocks) noticed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jumps
}

// handled reports whether a jump in a reading needs no more action: the leases were restarted since, or a later reading
// is known.
func (c *clocks) handled(l clockReading) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.from < c.last.from || !c.jumpedLocked(l)
}

// durationsValid reports whether the difference between a reading and a time written by the database is a duration. It
// is not if the reading shows a jump, or if the time may be from before a jump.
func (c *clocks) durationsValid(l clockReading) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.from >= c.invalidUntil && !c.jumpedLocked(l)
}

// readClock reads the database's clock within the transaction. It is called after the statements whose answers depend on that clock, so
// that a jump before one of them shows.
func (t *transaction) readClock(ctx context.Context) (clockReading, error) {
	from := t.e.opts.Uptime()
	now, err := t.tx.Now(ctx)
	if err != nil {
		return clockReading{}, fmt.Errorf("read the database's clock: %w", err)
	}
	return clockReading{now, from, t.e.opts.Uptime()}, nil
}

// restartLeases gives every session one more lease after a reading has shown a jump of the database's clock. Workers do not notice the
// jump, and nearly all of them are alive; the executions of the others are recovered one lease later. It runs once for each jump: from then
// on the clocks are compared with that reading.
func (e *Engine) restartLeases(ctx context.Context, l clockReading) error {
	e.clocks.restarting.Lock()
	defer e.clocks.restarting.Unlock()
	if e.clocks.handled(l) {
		return nil
	}
	e.opts.Log.Warn("the database's clock has jumped: every worker session gets one more lease before any is recovered")
	if err := e.opts.Store.RestartLeases(ctx, e.opts.Lease); err != nil {
		return fmt.Errorf("restart leases after a jump of the database's clock: %w", err)
	}
	e.clocks.leasesRestarted(l, e.opts.Lease)
	return nil
}
