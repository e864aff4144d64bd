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
	most time.Duration // that the two may move apart between two looks

	restarting sync.Mutex // held while leases are begun anew: the recovery and a renewal can notice one jump together

	mu     sync.Mutex
	known  bool          // there was a look
	last   look          // the latest
	jumps  int           // how many were noticed
	unsure time.Duration // until when, by the own clock, the database has times that it wrote before a jump
}

// look is a reading of the database's clock. The process's own clock was between from and to at that moment: an answer may
// have been long under way.
type look struct {
	database time.Time
	from, to time.Duration
}

// jumped reports whether the database's clock has moved further since the last look than this process's own can have moved,
// or less far: by more than most.
func (c *clocks) jumped(l look) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jumpedLocked(l)
}

func (c *clocks) jumpedLocked(l look) bool {
	passed := l.database.Sub(c.last.database)
	return c.known && (passed > l.to-c.last.from+c.most || passed < l.from-c.last.to-c.most)
}

// keep remembers a look, unless a later one is known: one from before a jump would show the same jump again.
func (c *clocks) keep(l look) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepLocked(l)
}

func (c *clocks) keepLocked(l look) {
	if !c.known || l.from >= c.last.from {
		c.known, c.last = true, l
	}
}

// settled notes that all leases were begun anew after a jump: the database's times are no durations for one lease.
func (c *clocks) settled(l look, lease time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepLocked(l)
	c.unsure = max(c.unsure, l.to+lease)
	c.jumps++
}

// noticed is how many jumps were noticed so far.
func (c *clocks) noticed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jumps
}

// handled reports whether the leases were begun anew since a look that showed a jump, or a later look has taken its place.
func (c *clocks) handled(l look) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.from < c.last.from || !c.jumpedLocked(l)
}

// agree reports whether the differences between the database's clock and the times that it has written are durations.
func (c *clocks) agree(l look) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.from >= c.unsure && !c.jumpedLocked(l)
}

// look reads the database's clock within the transaction. It comes after the statements whose answers depend on that
// clock, so that a jump before one of them shows.
func (t *transaction) look(ctx context.Context) (look, error) {
	from := t.e.opts.Uptime()
	now, err := t.tx.Now(ctx)
	if err != nil {
		return look{}, fmt.Errorf("read the database's clock: %w", err)
	}
	return look{now, from, t.e.opts.Uptime()}, nil
}

// restartLeases gives every session one more lease after a jump of the database's clock, which a look has shown. Workers do
// not notice the jump, and nearly all of them are alive; the executions of the others are recovered one lease later. It
// happens once for each jump: from then on the clocks are compared with their readings at that look.
func (e *Engine) restartLeases(ctx context.Context, l look) error {
	e.clocks.restarting.Lock()
	defer e.clocks.restarting.Unlock()
	if e.clocks.handled(l) {
		return nil
	}
	e.opts.Log.Warn("the database's clock has jumped: every worker session gets one more lease before any is recovered")
	if err := e.opts.Store.RestartLeases(ctx, e.opts.Lease); err != nil {
		return fmt.Errorf("restart leases after a jump of the database's clock: %w", err)
	}
	e.clocks.settled(l, e.opts.Lease)
	return nil
}
