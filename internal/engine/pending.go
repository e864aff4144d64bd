package engine

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// A loop that processes the results of commits is woken by the commits of its own replica. The work of another replica, or of an earlier
// process, is found by one read of the store for all loops together: separate reads, each at its own time, woke an idle process ten times a
// second, and waking it costs more than the read.

const (
	// pendingEvery is the time between two reads, unless a sixth of a lease is shorter.
	pendingEvery = 5 * time.Second
	// pausesRounds and waitListsRounds are how many reads lie between two checks of paused actions, and of the wait lists of keys.
	pausesRounds    = 3
	waitListsRounds = 2
)

type found struct {
	store.Pending
	asked   time.Time    // when the look began
	at      clockReading // the reading of the database's clock
	unknown bool         // the read failed: each loop must read for itself
}

// watchPending wakes the loops that have work which no commit of this replica has announced.
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

// lookForPending waits for the store no longer than until the next read: slow readers must not delay the recovery of leases.
func (e *Engine) lookForPending(ctx context.Context) (f found, err error) {
	ctx, cancel := context.WithTimeout(ctx, pendingEvery)
	defer cancel()
	f.asked = time.Now()
	from := e.opts.Uptime()
	f.Pending, err = e.opts.Store.Pending(ctx, f.asked)
	f.at = clockReading{f.Now, from, e.opts.Uptime()}
	return f, err
}

// wakeLoops wakes the loops that have work before the next read.
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
	case <-e.found: // replaces an older result: sweepSessions is still busy with an earlier one
	default:
	}
	e.found <- *f
	if round%waitListsRounds == 0 {
		loop.Wake(e.waitLists)
	}
	if round%pausesRounds == 0 {
		// A millisecond after dueAt above. At the same instant the sweep and watchPauses would each send a request to the committer, in an order
		// that the scheduler decides: the simulation, which must repeat, took another course in every third run of seed 14.
		e.pauses.over.announce(time.Now().Add(time.Millisecond))
	}
	if e.notified.Load() && f.asked.Sub(e.hintsClearedAt) >= heardPoll*e.opts.Poll {
		e.hintsClearedAt = f.asked
		e.forgetQueues()
	}
}
