package engine

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// clocks compares the database's clock with this process's own, which is monotonic. When the database's is set, or its
// machine sleeps, the leases of all workers run out at once, or last for hours, and only the comparison tells.
type clocks struct {
	most time.Duration // that the two may move apart between two readings

	restarting sync.Mutex // held while leases are begun anew: the recovery and a renewal can notice one jump together

	mu    sync.Mutex
	known bool         // there was a reading
	last  clockReading // the latest
	jumps int          // how many were noticed
	// invalidUntil is when durations are valid again, by this process's clock: one lease after the leases were restarted
	// for a jump. Until then a time that the database has written may be from before the jump, so that now less that time
	// is no duration.
	invalidUntil time.Duration
}

// clockReading is a reading of the database's clock. The process's own clock was between from and to at that moment: an answer may
// have been long under way.
type clockReading struct {
	database time.Time
	from, to time.Duration
}

// jumped reports whether the database's clock has jumped since the last reading: it has moved by over most more, or
// over most less, than this process's own clock can have moved in between.
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

// leasesRestarted notes that all leases were begun anew after a jump, which a reading showed. durationsValid is false
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

// handled reports whether a jump that a reading has shown needs nothing more: the leases were begun anew since, or a
// later reading is known.
func (c *clocks) handled(l clockReading) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.from < c.last.from || !c.jumpedLocked(l)
}

// durationsValid reports whether a reading less a time that the database has written is how long ago that was. It is
// not where the reading shows a jump, or the written time may be from before one.
func (c *clocks) durationsValid(l clockReading) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.from >= c.invalidUntil && !c.jumpedLocked(l)
}

// readClock reads the database's clock within the transaction. It comes after the statements whose answers depend on that
// clock, so that a jump before one of them shows.
func (t *transaction) readClock(ctx context.Context) (clockReading, error) {
	from := t.e.opts.Uptime()
	now, err := t.tx.Now(ctx)
	if err != nil {
		return clockReading{}, fmt.Errorf("read the database's clock: %w", err)
	}
	return clockReading{now, from, t.e.opts.Uptime()}, nil
}

// restartLeases gives every session one more lease after a jump of the database's clock, which a reading has shown. Workers do
// not notice the jump, and nearly all of them are alive; the executions of the others are recovered one lease later. It
// happens once for each jump: from then on the clocks are compared with that reading.
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
