package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	dueBatch     = 500
	dueAtMost    = 15 * time.Second // between two looks, whatever is known to be due: other replicas make things due, too
	purgeBatch   = 200
	purgeEvery   = time.Minute
	purgeBreathe = 50 * time.Millisecond // between two batches, for fresh work
)

// dueAt lets the sweep look at the clock again no later than at t.
func (e *Engine) dueAt(t time.Time) {
	for {
		select {
		case e.nextDue <- t:
			return
		case old := <-e.nextDue:
			if old.Before(t) {
				t = old
			}
		}
	}
}

// sweepDue decides about executions whose time has come: waits that are over, deadlines that have passed, gaps that did
// not close. It is level-triggered: what one look misses, the next one finds.
func (e *Engine) sweepDue(ctx context.Context) {
	for {
		pause, err := e.decideDue(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			e.opts.Log.Error("looking for due executions failed; it will be tried again", telemetry.Err, err)
		}
		if !e.sleepUntil(ctx, time.Now().Add(min(pause, e.jittered(dueAtMost)))) {
			return
		}
	}
}

// sleepUntil waits until the earlier of at and what dueAt announces meanwhile; false means that ctx has ended.
func (e *Engine) sleepUntil(ctx context.Context, at time.Time) bool {
	select {
	case t := <-e.nextDue: // announced during the last look: heard first, or it would cause another one after the next
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
		case t := <-e.nextDue:
			if t.Before(at) {
				at = t
				timer.Reset(time.Until(at))
			}
		case <-ctx.Done():
			return false
		}
	}
}

// decideDue decides about all that is due and returns how long it is, by the database's clock, until the next thing will be.
func (e *Engine) decideDue(ctx context.Context) (time.Duration, error) {
	for {
		next := time.Duration(dueAtMost)
		full := false
		err := e.ask(ctx, nil, func(ctx context.Context, t *turn) error {
			if err := t.flush(ctx); err != nil {
				return err
			}
			xs, later, err := t.tx.Due(ctx, t.now, dueBatch)
			if err != nil {
				return fmt.Errorf("find due executions: %w", err)
			}
			if full = len(xs) == dueBatch; !later.IsZero() {
				next = later.Sub(t.now)
			}
			var starting []*flow.Draft
			for _, d := range t.adopt(xs) {
				started, err := t.decideDue(d)
				if err != nil {
					return err
				}
				if started {
					starting = append(starting, d)
				}
			}
			if err := t.loadPayloads(ctx, starting); err != nil {
				return err
			}
			return t.admit(ctx, starting)
		})
		if err != nil {
			return dueAtMost, err
		}
		if !full {
			return next, nil
		}
	}
}

// decideDue decides about one execution whose Wake has come, and reports whether it is now to be admitted.
func (t *turn) decideDue(d *flow.Draft) (bool, error) {
	passed := func(deadline time.Time) bool { return !deadline.IsZero() && !deadline.After(t.now) }
	var err error
	switch {
	case d.Stage.Terminal():
		return false, nil
	case passed(d.TotalDeadline()) && d.State.Cancel == nil:
		err = d.Cancel(flow.TimedOut, flow.CodeTotalTimeout, fmt.Sprintf("not finished within total_timeout %s", d.TotalTimeout), t.now)
	case passed(d.EngineDeadline()) && d.State.Cancel == nil:
		err = d.Cancel(flow.TimedOut, flow.CodeTimeout, fmt.Sprintf("not finished within timeout %s", d.Timeout), t.now)
	case passed(d.QueueDeadline()) && d.Place < flow.Held:
		err = d.Finish(flow.TimedOut, flow.Outcome{Error: &flow.Error{Code: flow.CodeQueueTimeout,
			Message: fmt.Sprintf("no worker took it within queue_timeout %s", d.QueueTimeout)}}, t.now, 0)
	case !d.GapSince.IsZero() && passed(d.GapSince.Add(flow.GapTimeout)):
		t.e.counters.gaps.Add(1)
		err = d.Lose(fmt.Sprintf("event %d never came", d.NextSeq), t.now, t.e.opts.Random())
	case d.Place == flow.Held && d.Kind == flow.KindSleep && passed(d.WakeAt):
		err = d.Finish(flow.Completed, flow.Outcome{}, t.now, 0)
	case d.Place == flow.Delayed && passed(d.WakeAt):
		return true, nil
	default:
		return false, nil // decided in this turn already
	}
	if errors.Is(err, flow.ErrFinished) {
		return false, nil
	}
	t.cancelled(d)
	return false, err
}

// sweepFinished removes what has been finished for longer than the retention, in small batches.
func (e *Engine) sweepFinished(ctx context.Context) {
	if e.opts.Retention <= 0 {
		return
	}
	for {
		pause := e.jittered(purgeEvery)
		n, err := e.purge(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			e.opts.Log.Error("removing old executions failed; it will be tried again", telemetry.Err, err)
		case n > 0:
			e.counters.purged.Add(int64(n))
			pause = purgeBreathe
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// sweepBlobs has the blob store remove, now and then, what broken uploads have left behind.
func (e *Engine) sweepBlobs(ctx context.Context, sweeper blob.Sweeper) {
	for {
		select {
		case <-time.After(e.jittered(purgeEvery)):
		case <-ctx.Done():
			return
		}
		if err := sweeper.Sweep(ctx); err != nil && ctx.Err() == nil {
			e.opts.Log.Warn("sweeping blobs failed; it will be tried again", telemetry.Err, err)
		}
	}
}

func (e *Engine) purge(ctx context.Context) (int, error) {
	now, err := e.now(ctx)
	if err != nil {
		return 0, err
	}
	ids, err := e.opts.Store.FinishedBefore(ctx, now.Add(-e.opts.Retention), purgeBatch)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	// Blobs first: a row without its blob is removed the next time, a blob without its row would stay for ever.
	if e.opts.Blobs != nil {
		var prefixes []string
		for _, id := range ids {
			prefixes = append(prefixes, blobPrefixes(id)...)
		}
		if err := e.opts.Blobs.Remove(ctx, prefixes...); err != nil {
			return 0, fmt.Errorf("remove blobs of %s and %d others: %w", ids[0], len(ids)-1, err)
		}
	}
	return len(ids), e.ask(ctx, nil, func(ctx context.Context, t *turn) error { return t.tx.Remove(ctx, ids) })
}

// now asks the database's clock.
func (e *Engine) now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := e.ask(ctx, nil, func(_ context.Context, t *turn) error {
		now = t.now
		return nil
	})
	if err != nil {
		return time.Time{}, err
	}
	return now, nil
}

// jittered spreads periodic work over replicas: between 80% and 100% of d.
func (e *Engine) jittered(d time.Duration) time.Duration {
	return d - time.Duration(float64(d)*e.opts.Random()/5)
}
