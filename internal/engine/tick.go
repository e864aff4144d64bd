package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/schedule"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	schedulesAtOnce = 2000 // that are read together
	schedulesInPart = 500  // schedules in one transaction
	partsAtOnce     = 2    // the documents of one part are read and planned while the other is carried out
	startsAtOnce    = 1000
	schedulesAgain  = time.Second      // after a failed look
	scheduleAgain   = time.Minute      // until a schedule whose decision was refused is due again
	restAgain       = 10 * time.Second // until other servers look at a schedule whose late ticks one server is starting
)

// tickClock is about how far the database's clock is ahead of the process's.
type tickClock struct {
	ahead time.Duration
	until time.Time // by the process's clock; after it the database is asked
}

// sweepSchedules fires the due schedules. Every server does so: the key of a tick keeps two servers from firing a nominal time twice. The
// server that changes a schedule looks at once, the others when watchPending wakes them.
func (e *Engine) sweepSchedules(ctx context.Context) {
	var clock tickClock
	loop.Repeat(ctx, e.opts.Log, "firing schedules", schedulesAgain, e.schedules.wake, func(ctx context.Context) (time.Duration, error) {
		pause, err := e.fireDue(ctx, &clock)
		return min(max(pause, time.Millisecond), loop.IdleAtMost), err
	})
}

// fireDue decides about the due schedules, and returns the time until the next one is due. If nothing is due soon, it reads the index once.
func (e *Engine) fireDue(ctx context.Context, clock *tickClock) (time.Duration, error) {
	for {
		_, next, err := e.opts.Store.DueSchedules(ctx, time.Time{}, 1)
		if err != nil || next.IsZero() && e.schedules.turns.Len() == 0 {
			return loop.IdleAtMost, err
		}
		if about := time.Now().Add(clock.ahead); time.Now().Before(clock.until) && about.Before(next) && e.schedules.turns.Len() == 0 {
			return next.Sub(about), nil
		}
		now, err := e.now(ctx)
		if err != nil {
			return loop.IdleAtMost, err
		}
		clock.ahead, clock.until = time.Until(now), time.Now().Add(dueAtMost)
		due, _, err := e.opts.Store.DueSchedules(ctx, now, schedulesAtOnce+e.schedules.turns.Len())
		if err != nil {
			return loop.IdleAtMost, err
		}
		fresh := slices.DeleteFunc(slices.Clone(due), func(k store.Schedule) bool { return e.schedules.turns.Has(k.Name) })
		all, err := e.fireParts(ctx, fresh, now)
		turned := false
		if err == nil {
			turned, err = e.fireTurn(ctx, now)
		}
		if err != nil || !all && !turned {
			return 50 * time.Millisecond, err // another server is deciding about them
		}
	}
}

// fireTurn starts ticks of the schedule whose turn it is, as many as one transaction takes. It reports whether a schedule had a turn. Other
// servers ignore a schedule with ticks left for restAgain. After that, or after the end of this server, they count its late ticks anew.
func (e *Engine) fireTurn(ctx context.Context, now time.Time) (bool, error) {
	name, f, waits := e.schedules.turns.Take()
	if !waits {
		return false, nil
	}
	f, err := e.planTurn(ctx, name, f, now)
	if err != nil || f == nil {
		e.schedules.turns.Drop(name)
		return true, err
	}
	if _, err := e.fire(ctx, []*firing{f}); err != nil {
		e.schedules.turns.Drop(name)
		return true, err
	}
	e.schedules.goOn(f)
	return true, nil
}

// goOn moves a plan with remaining ticks behind all others. The remaining ticks of a refused plan wait for the time to which its schedule
// is put off.
func (s *schedules) goOn(f *firing) {
	if f.done && f.bad == nil && len(f.rest) > 0 {
		s.turns.Turned(f.was.Name, f)
	} else {
		s.turns.Drop(f.was.Name)
	}
}

// planTurn plans a turn of a schedule, or continues its plan; nil: it is not due any more.
func (e *Engine) planTurn(ctx context.Context, name string, f *firing, now time.Time) (_ *firing, err error) {
	defer fault.Recovered(&err)
	if f != nil {
		return f, e.nextStarts(ctx, f, true)
	}
	k, err := e.opts.Store.Schedule(ctx, name)
	if errors.Is(err, store.ErrNotFound) || err == nil && (k.Due.IsZero() || k.Due.After(now)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return e.plan(ctx, k, nil, now, true)
}

// fireParts decides about due schedules, part by part. all: each planned one was decided about.
func (e *Engine) fireParts(ctx context.Context, due []store.Schedule, now time.Time) (all bool, err error) {
	var wg sync.WaitGroup
	var elsewhere atomic.Bool
	room, failed := make(chan struct{}, partsAtOnce), make(chan error, len(due))
	for part := range slices.Chunk(due, schedulesInPart) {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			all, err := e.firePart(ctx, part, now)
			if failed <- err; !all {
				elsewhere.Store(true)
			}
		})
	}
	wg.Wait()
	close(failed)
	for each := range failed {
		err = errors.Join(err, each)
	}
	return !elsewhere.Load(), err
}

// firePart is fireParts for one part. Schedules that do not fit into its transactions stay due.
func (e *Engine) firePart(ctx context.Context, due []store.Schedule, now time.Time) (whole bool, err error) {
	defer fault.Recovered(&err)
	documents, err := e.scheduleDocuments(ctx, due)
	if err != nil {
		return false, err
	}
	all := make([]*firing, 0, len(due))
	for i, budget := 0, e.budget.WithRows(startsAtOnce); i < len(due) && !budget.Spent(); i++ {
		f, err := e.plan(ctx, due[i], documents[due[i].Name], now, false)
		if errors.Is(err, errCostly) {
			e.schedules.turns.Add(due[i].Name, nil)
			continue
		}
		if err != nil {
			return false, err
		}
		budget.Spend(len(f.starts), f.bytes())
		budget.Compute(f.work)
		all = append(all, f)
	}
	if len(all) == 0 {
		return true, nil
	}
	decided, err := e.fire(ctx, all)
	for _, f := range all { // ticks that did not fit into the transaction of their plan take turns
		if err == nil {
			e.schedules.goOn(f)
		}
	}
	return decided == len(all), err
}

// fire executes plans in one transaction, and returns how many. It skips schedules that have changed since, or that another transaction is
// deciding about. A refused plan does not affect the others.
func (e *Engine) fire(ctx context.Context, all []*firing) (decided int, err error) {
	for _, f := range all {
		f.done = false
	}
	n, err := inBatch(ctx, e, lastOf(all), func(ctx context.Context, t *transaction) (n fired, err error) {
		names := make([]string, len(all))
		for i, f := range all {
			names[i] = f.was.Name
		}
		locked, err := t.tx.LockSchedules(ctx, names, true)
		if err != nil {
			return n, err
		}
		lockedByName := make(map[string]store.Schedule, len(locked))
		for _, k := range locked {
			lockedByName[k.Name] = k
		}
		var changed []store.Schedule
		var ticks []store.Tick
		for _, f := range all {
			if k, there := lockedByName[f.was.Name]; !there || k != f.was {
				continue
			}
			k, firings, err := t.fire(ctx, f)
			if err != nil {
				return n, err
			}
			changed, ticks = append(changed, k), append(ticks, firings...)
			t.putSchedule(k)
		}
		t.putTicks(ticks...)
		n.count(all, changed, ticks)
		n.changed = changed
		t.effects.addFailpoint(failpoint.TickKept)
		return n, nil
	})
	switch {
	case err == nil:
		n.mark(all)
		e.noteFired(&n)
		return n.schedules, nil
	case !fault.Lasting(err):
		return 0, err
	case len(all) == 1 && all[0].bad == nil:
		all[0].bad = err
		return e.fire(ctx, all)
	case len(all) == 1:
		return 0, err
	}
	decided = 0
	var failed []error
	for _, f := range all {
		n, err := e.fire(ctx, []*firing{f})
		if err != nil && !fault.Lasting(err) {
			return decided, err
		}
		decided, failed = decided+n, append(failed, err)
	}
	return decided, errors.Join(failed...)
}

// noteFired counts and logs the decisions of a committed transaction about schedules.
func (e *Engine) noteFired(n *fired) {
	e.counters.submitted.Add(int64(n.ticks))
	e.counters.ticksFired.Add(int64(n.ticks))
	for why, missed := range n.missed {
		e.counters.ticksMissed[why].Add(int64(missed))
	}
	for _, lag := range n.lags {
		e.distributions.lag.Observe(max(0, lag).Seconds())
	}
	for _, name := range n.paused {
		e.opts.Log.Warn("a schedule has paused itself, because its executions failed: pawl why schedule:NAME says more", telemetry.Schedule, name)
	}
	if n.late() > 0 {
		e.opts.Log.Warn("ticks of schedules were late or refused, and missed: pawl schedules ticks NAME lists them", telemetry.Missed, n.late())
	}
}

// missedWhys are the reasons by which missed ticks are counted; other reasons belong to paused or edited schedules.
var missedWhys = [...]string{schedule.MissedLate, schedule.MissedBusy, schedule.MissedFault}

type fired struct {
	schedules int                  // that were decided about
	ticks     int                  // that started an execution
	missed    [len(missedWhys)]int // nominal times that did not, by reason
	lags      []time.Duration      // from the due times of ticks to the transaction
	paused    []string             // schedules that have paused themselves
	changed   []store.Schedule
}

// mark records which plans were executed.
func (n *fired) mark(all []*firing) {
	for _, f := range all {
		if i := slices.IndexFunc(n.changed, func(k store.Schedule) bool { return k.Name == f.was.Name }); i >= 0 {
			f.done, f.was = true, n.changed[i]
		}
	}
}

// late is how many nominal times were missed for a reason other than a running execution.
func (n *fired) late() (sum int) {
	for i, why := range missedWhys {
		if why != schedule.MissedBusy {
			sum += n.missed[i]
		}
	}
	return sum
}

func (n *fired) count(all []*firing, changed []store.Schedule, ticks []store.Tick) {
	n.schedules = len(changed)
	firings := make(map[string]*firing, len(all))
	for _, f := range all {
		firings[f.was.Name] = f
	}
	for i := range changed {
		if firings[changed[i].Name].pause != "" {
			n.paused = append(n.paused, changed[i].Name)
		}
	}
	for i := range ticks {
		k := &ticks[i]
		switch {
		case !k.Execution.IsZero():
			n.ticks++
			n.lags = append(n.lags, k.At.Sub(firings[k.Schedule].d.Schedule.Due(k.Schedule, k.Nominal)))
		default:
			n.missed[slices.Index(missedWhys[:], k.Why)] += k.Count
		}
	}
}

// lastOf are the executions that must end before the next ones of their schedules start.
func lastOf(all []*firing) (ids []flow.ID) {
	for _, f := range all {
		if f.bad == nil && f.d.Schedule.Overlap == schedule.OverlapSkip && !f.was.Execution.IsZero() {
			ids = append(ids, f.was.Execution)
		}
	}
	return ids
}

// fire executes one plan, except for the rows of the schedule and of its ticks, which it returns.
func (t *transaction) fire(ctx context.Context, f *firing) (k store.Schedule, ticks []store.Tick, err error) {
	k = f.was
	if f.bad != nil {
		t.e.opts.Log.Error("a schedule cannot be decided about; it is tried again later", telemetry.Schedule, k.Name, telemetry.Err, f.bad)
		k.Due = t.now.Add(scheduleAgain)
		return k, nil, nil
	}
	if f.pause != "" {
		k.PausedAt, k.Reason, k.Due = t.now, f.pause, time.Time{}
		return k, nil, nil
	}
	ticks = missedTicks(k.Name, f.missed(), t.now)
	for _, s := range f.starts {
		tick := store.Tick{Schedule: k.Name, Nominal: s.fire.Nominal, Last: s.fire.Nominal, Count: 1, At: t.now, Why: s.fire.Why}
		busy, refusal, err := t.whyNotStarted(ctx, f.d, &k, s)
		if err != nil {
			return k, nil, err
		}
		switch {
		case refusal != nil:
			tick.Why, tick.Message = schedule.MissedFault, shortMessage(refusal)
		case busy != "":
			tick.Why, tick.Message = schedule.MissedBusy, busy
		default:
			if err := t.submitPlanned(ctx, s); err != nil {
				return k, nil, err
			}
			tick.Execution = s.id
			if err := t.recordTick(ctx, f.d, &tick, k.Last); err != nil {
				return k, nil, err
			}
			k.Execution, k.Last = s.id, s.fire.Nominal
		}
		ticks = append(ticks, tick)
	}
	if len(f.rest) > 0 {
		k.Next, k.Due = f.rest[0].Nominal, t.now.Add(restAgain)
		return k, ticks, nil
	}
	k.Next = f.plan.Next
	k.Due = dueOf(f.d, &k)
	return k, ticks, nil
}

// missed are the missed times that are not decided about yet, up to the first remaining tick.
func (f *firing) missed() (all []schedule.Missed) {
	for _, m := range f.plan.Missed {
		if !m.First.Before(f.was.Next) && (len(f.rest) == 0 || m.First.Before(f.rest[0].Nominal)) {
			all = append(all, m)
		}
	}
	return all
}

// whyNotStarted is why a tick starts no execution: an earlier one of the schedule has not ended (busy), or the new one
// is refused. Both are empty if the tick starts it.
func (t *transaction) whyNotStarted(ctx context.Context, d *definition.Definition, k *store.Schedule, s *plannedStart) (busy string, refusal, err error) {
	if s.err != nil {
		return "", s.err, nil
	}
	switch d.Schedule.Overlap {
	case schedule.OverlapSkip:
		if before := t.Draft(k.Execution); before != nil && !before.Stage.Terminal() {
			return fmt.Sprintf("%s has not ended", before.ID), nil, nil
		}
	case schedule.OverlapQueueOne:
		if err := t.lockKeys(ctx, []string{s.request.Key}); err != nil {
			return "", nil, err
		}
		if use := t.keys.of(s.request.Key).use; use.Holders > 0 && use.Waiting > 0 {
			return "one execution runs and one waits", nil, nil
		}
	}
	refusal, err = t.missingUploads(ctx, s)
	return "", refusal, err
}

// messageLimit bounds, in bytes, the stored reason of a missed tick.
const messageLimit = 1000

func shortMessage(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), messageLimit)], "")
}
