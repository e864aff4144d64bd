package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	dueBatch  = 500
	dueAtMost = 15 * time.Second // after a failed look
	dueAgain  = time.Second      // after a look at which something was put aside
)

// moments wakes a loop at the earliest announced moment.
type moments chan time.Time // capacity 1

func newMoments() moments { return make(moments, 1) }

// announce makes the loop look again no later than at t.
func (m moments) announce(t time.Time) {
	for {
		select {
		case m <- t:
			return
		case old := <-m:
			if old.Before(t) {
				t = old
			}
		}
	}
}

// dueAt makes the sweep look no later than at t.
func (e *Engine) dueAt(t time.Time) { e.nextDue.announce(t) }

// sweepDue decides about due executions: waits that are over, deadlines that have passed, gaps that did not close. It is level-triggered:
// what one look misses, the next one finds. watchPending announces what other replicas have made due.
func (e *Engine) sweepDue(ctx context.Context) {
	for {
		pause, err := e.decideDue(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			e.opts.Log.Error("looking for due executions failed; it will be tried again", telemetry.Err, err)
		}
		if !e.nextDue.sleepUntil(ctx, time.Now().Add(min(pause, loop.IdleAtMost))) {
			return
		}
	}
}

// sleepUntil waits until the earlier of at and the announced moments; false means that ctx has ended.
func (m moments) sleepUntil(ctx context.Context, at time.Time) bool {
	select {
	case t := <-m: // announced during the last look; read first, because it would otherwise cause an extra look later
		if t.Before(at) {
			at = t
		}
	default:
	}
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case t := <-m:
			if t.Before(at) {
				at = t
				timer.Reset(time.Until(at))
			}
		case <-ctx.Done():
			return false
		}
	}
}

// decideDue decides about all due executions and returns the time, by the database's clock, until the next one is due.
func (e *Engine) decideDue(ctx context.Context) (time.Duration, error) {
	for {
		next, err := inBatch(ctx, e, nil, func(ctx context.Context, t *transaction) (time.Duration, error) {
			xs, later, err := t.tx.Due(ctx, t.now, dueBatch)
			if err != nil {
				return 0, fmt.Errorf("find due executions: %w", err)
			}
			next := loop.IdleAtMost
			switch {
			case len(xs) == dueBatch:
				next = 0
			case !later.IsZero():
				next = later.Sub(t.now)
			}
			return next, t.decideAllDue(ctx, t.adopt(xs))
		})
		if err != nil && fault.Lasting(err) {
			return e.decideDueEach(ctx)
		}
		if err != nil {
			return dueAtMost, err
		}
		if next > 0 {
			return next, nil
		}
	}
}

// decideDueEach decides about due executions one at a time, after all of them together were refused. It puts aside those that are refused
// alone, so that the next look does not find them first.
func (e *Engine) decideDueEach(ctx context.Context) (time.Duration, error) {
	ids, err := inBatch(ctx, e, nil, func(ctx context.Context, t *transaction) (ids []flow.ID, err error) {
		xs, _, err := t.tx.Due(ctx, t.now, dueBatch)
		for _, x := range xs {
			ids = append(ids, x.ID)
		}
		return ids, err
	})
	if err != nil {
		return dueAtMost, fmt.Errorf("find due executions: %w", err)
	}
	for _, id := range ids {
		err := e.do(ctx, []flow.ID{id}, func(ctx context.Context, t *transaction) error {
			if d := t.Draft(id); d != nil {
				return t.decideAllDue(ctx, []*flow.Draft{d})
			}
			return nil
		})
		if err != nil && fault.Lasting(err) {
			err = e.setAside(ctx, id, err)
		}
		if err != nil {
			return dueAtMost, err
		}
	}
	return dueAgain, nil
}

// setAside puts an execution aside. If that is refused too, the execution is skipped.
func (e *Engine) setAside(ctx context.Context, id flow.ID, why error) error {
	err := e.do(ctx, []flow.ID{id}, func(_ context.Context, t *transaction) error {
		if d := t.Draft(id); d != nil && !d.Stage.Terminal() {
			t.putAside(d, why)
		}
		return nil
	})
	if err != nil && fault.Lasting(err) {
		e.passOver(id, "an execution can neither be decided about nor be put aside", err)
		return nil
	}
	return err
}

// decideAllDue decides about executions whose Wake has come.
func (t *transaction) decideAllDue(ctx context.Context, due []*flow.Draft) error {
	var starting []*flow.Draft
	for _, d := range due {
		err := t.tried(d, func() error {
			started, err := t.decideDueOne(ctx, d)
			if started {
				starting = append(starting, d)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return t.admit(ctx, starting)
}

// decideDueOne decides about one execution whose Wake has come, and reports whether it must be admitted now.
func (t *transaction) decideDueOne(ctx context.Context, d *flow.Draft) (bool, error) {
	passed := func(deadline time.Time) bool { return !deadline.IsZero() && !deadline.After(t.now) }
	var err error
	if d.Stage.Terminal() || d.Aside != nil && !passed(d.Aside.Until) {
		return false, nil
	}
	if d.Kind == flow.KindWorkflow && d.Place == flow.Held {
		if d.Aside != nil || passed(d.WakeAt) {
			t.workflows.due[d.ID] = true // its step decides whether it is still aside or postponed
		}
	} else if d.Aside != nil {
		d.ClearAside()
		t.Changed(d)
	}
	if d.StandsStill() && (d.Kind != flow.KindWorkflow || d.Place != flow.Held) {
		if passed(d.State.Pause.Until) {
			t.Changed(d)
			return false, d.Resume("", "", t.now) // its timers continue, and are checked when they are due
		}
		return d.WaitsForSlot() && passed(d.WakeAt), nil
	}
	switch {
	case d.Place == flow.Held && d.Kind.ByEngine() && d.Kind != flow.KindWorkflow && passed(d.WakeAt) && !passedBefore(d, d.WakeAt):
		err = t.e.engineKind(d.Kind).Wake(ctx, t, d)
	case passed(d.TotalDeadline()) && !d.EndsForGood():
		err = d.Cancel(flow.TimedOut, flow.CodeTotalTimeout, fmt.Sprintf("not finished within total_timeout %s", d.TotalTimeout), t.now)
	case passed(d.EngineDeadline()) && d.State.Cancel == nil:
		err = d.Cancel(flow.TimedOut, flow.CodeTimeout, fmt.Sprintf("not finished within timeout %s", d.Timeout), t.now)
	case passed(d.CleanupDeadline()):
		d.EndCleanup()
	case passed(d.QueueDeadline()) && d.Place < flow.Held:
		err = d.Finish(flow.TimedOut, flow.Outcome{Error: &flow.Error{Code: flow.CodeQueueTimeout,
			Message: fmt.Sprintf("no worker took it within queue_timeout %s", d.QueueTimeout)}}, t.now, 0)
	case !d.GapSince.IsZero() && passed(d.GapSince.Add(flow.GapTimeout)):
		t.effects.gaps++
		err = d.Lose(fmt.Sprintf("event %d never came", d.NextSeq), t.now, t.e.opts.Random())
	case d.Place == flow.Delayed && passed(d.WakeAt):
		return true, nil
	default:
		return false, nil // another request of this transaction has decided it
	}
	if errors.Is(err, flow.ErrFinished) {
		return false, nil
	}
	t.cancelled(d)
	return false, err
}

// passedBefore reports whether a deadline of an execution that the engine runs came before a moment.
func passedBefore(d *flow.Draft, at time.Time) bool {
	before := func(deadline time.Time) bool { return !deadline.IsZero() && deadline.Before(at) }
	return before(d.TotalDeadline()) || before(d.EngineDeadline())
}

// sweepBlobs makes the blob store remove, from time to time, the remains of broken uploads.
func (e *Engine) sweepBlobs(ctx context.Context) {
	sweeper, ok := e.opts.Blobs.(blob.Sweeper)
	if !ok || !loop.Sleep(ctx, e.jittered(purgeEvery), nil) {
		return
	}
	loop.Repeat(ctx, e.opts.Log, "sweeping blobs", purgeEvery, nil, func(ctx context.Context) (time.Duration, error) {
		return e.jittered(purgeEvery), sweeper.Sweep(ctx)
	})
}

// now reads the database's clock.
func (e *Engine) now(ctx context.Context) (time.Time, error) {
	return inBatch(ctx, e, nil, func(_ context.Context, t *transaction) (time.Time, error) { return t.now, nil })
}

// jittered spreads periodic work over replicas: between 80% and 100% of d.
func (e *Engine) jittered(d time.Duration) time.Duration {
	return d - time.Duration(float64(d)*e.opts.Random()/5)
}
