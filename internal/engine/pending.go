package engine

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// A loop that carries out what commits have made is woken by the commits of its own replica. What another replica has left, or an earlier
// life of this one, is found by one look at the store for all loops together: looks of their own, each at a time of its own, woke an idle
// process ten times a second, and waking it costs more than the look.

const (
	// pendingEvery is the time between two looks, unless a sixth of a lease is shorter.
	pendingEvery = 5 * time.Second
	// pausesRounds and waitListsRounds are how many looks go by until paused actions, and the wait lists of keys, are looked through.
	pausesRounds    = 3
	waitListsRounds = 2
)

// found is what a look at the store has found.
type found struct {
	store.Pending
	asked   time.Time    // when the look began
	at      clockReading // the reading of the database's clock
	unknown bool         // the look failed: each loop is to look for itself
}

// watchPending wakes the loops that have something to do which no commit of this replica has told them of.
func (e *Engine) watchPending(ctx context.Context) {
	for round := 1; ; round++ {
		f, err := e.lookForPending(ctx)
		if ctx.Err() != nil {
			return
		}
		if f.unknown = err != nil; f.unknown {
			e.opts.Log.Warn("looking for what is to be done failed: each loop looks for itself", telemetry.Err, err)
		}
		e.wakeLoops(&f, round)
		if !loop.Sleep(ctx, e.jittered(min(pendingEvery, e.opts.Lease/6)), nil) {
			return
		}
	}
}

// lookForPending waits for the store no longer than until the next look: what readers keep busy must not keep leases from being recovered.
func (e *Engine) lookForPending(ctx context.Context) (f found, err error) {
	ctx, cancel := context.WithTimeout(ctx, pendingEvery)
	defer cancel()
	f.asked = time.Now()
	from := e.opts.Uptime()
	f.Pending, err = e.opts.Store.Pending(ctx, f.asked)
	f.at = clockReading{f.Now, from, e.opts.Uptime()}
	return f, err
}

// wakeLoops wakes those loops for which a look has found something to do before the next look.
func (e *Engine) wakeLoops(f *found, round int) {
	soon := func(at time.Time) bool { return f.unknown || !at.IsZero() && at.Before(f.Now.Add(pendingEvery)) }
	if f.unknown || f.Signals {
		e.rules.wakeMatching()
	}
	if f.unknown || f.Correlations {
		e.waits.Wake()
	}
	if soon(f.Window) {
		loop.Wake(e.rules.windowOpened)
	}
	if soon(f.Schedule) {
		e.schedules.changed()
	}
	if soon(f.Wake) {
		e.dueAt(time.Now().Add(f.Wake.Sub(f.Now)))
	}
	if !e.rules.knownAt(f) {
		loop.Wake(e.rules.reread)
	}
	select {
	case <-e.found: // takes an older result out: sweepSessions is still busy with one before it
	default:
	}
	e.found <- *f
	if round%waitListsRounds == 0 {
		loop.Wake(e.waitLists)
	}
	if round%pausesRounds == 0 {
		// A millisecond after dueAt of above. At the same instant the sweep and watchPauses would each hand a request to the committer, in an
		// order that the scheduler decides: the simulation, which must repeat, took another course in every third run of seed 14.
		e.pauses.over.announce(time.Now().Add(time.Millisecond))
	}
	if e.notified.Load() && f.asked.Sub(e.hintsClearedAt) >= heardPoll*e.opts.Poll {
		e.hintsClearedAt = f.asked
		e.forgetQueues()
	}
}
