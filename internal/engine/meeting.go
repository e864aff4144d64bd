package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// meetWaits brings signals and waits together: those that this replica has committed at once, and those that others have left.
func (e *Engine) meetWaits(ctx context.Context) {
	for {
		more, err := e.meet(ctx)
		pause := idleAtMost
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = meetAgain
			e.opts.Log.Error("looking for waits that new signals fit failed; it will be tried again", telemetry.Err, err)
		case more:
			continue
		}
		if !sleep(ctx, pause, e.meetings) {
			return
		}
	}
}

// meet lets some waits look, and some signals meet open waits, and reports whether there may be more of either. What is refused, or cannot
// be read, is put aside.
func (e *Engine) meet(ctx context.Context) (more bool, err error) {
	now := time.Now()
	unlooked, err := e.opts.Store.UnlookedWaits(ctx, now, meetingsAtOnce)
	if err != nil {
		return false, err
	}
	if _, err := e.lookAll(ctx, unlooked); err != nil {
		return false, err
	}
	unmet, err := e.opts.Store.UnmetSignals(ctx, now, meetingsAtOnce)
	if err != nil {
		return false, err
	}
	var met []int64
	for i := range unmet {
		s := &unmet[i]
		if s.Damage != "" {
			err = damaged(s.Damage)
		} else {
			err = e.meetSignal(ctx, s)
		}
		switch {
		case err == nil:
			met = append(met, s.Number)
		case !willFailAgain(err):
			return false, err
		default:
			if _, err := e.leaveAside(ctx, store.AsideMeeting, s.ID, err); err != nil {
				return false, err
			}
		}
	}
	if len(met) == 0 {
		return len(unlooked) == meetingsAtOnce, nil
	}
	err = e.do(ctx, nil, func(_ context.Context, t *transaction) error {
		t.waits.met = append(t.waits.met, met...)
		return nil
	})
	return err == nil, err
}

// meetSignal lets every open wait that a signal fits look again: it takes the oldest that fits, which may be another one. Where one of them
// was put aside the error says why, so that the signal is put aside as well: a wait that has looked before is found by its signals alone.
func (e *Engine) meetSignal(ctx context.Context, s *flow.Signal) (err error) {
	defer fault.Recovered(&err)
	var after flow.ID
	var aside error
	for {
		open, err := e.opts.Store.OpenWaits(ctx, s.Trigger, s.Subject, after, openAtOnce)
		if err != nil {
			return err
		}
		fitting := slices.DeleteFunc(slices.Clone(open), func(w flow.Wait) bool {
			fits, err := e.awaited.Fits(&w, s)
			return w.Damage == "" && (err != nil || !fits)
		})
		why, err := e.lookAll(ctx, fitting)
		if err != nil {
			return err
		}
		if aside = cmp.Or(aside, why); len(open) < openAtOnce {
			return aside
		}
		after = open[len(open)-1].Execution
	}
}

// waitResult is what a look at the signals has found for a wait.
type waitResult struct {
	wait    flow.Wait
	fitting []flow.Signal // the oldest first
	last    store.SignalPlace
	more    bool // there may be more behind last
}

// lookAll lets waits look at the signals that there are, and carries out what they have found. Those that are refused, or cannot be read,
// are put aside; aside is why the last of them was.
func (e *Engine) lookAll(ctx context.Context, all []flow.Wait) (aside, err error) {
	found := make([]*waitResult, 0, len(all))
	leave := func(w *flow.Wait, why error) error {
		aside = fmt.Errorf("the wait of %s: %w", w.Execution, why)
		_, err := e.leaveAside(ctx, store.AsideLooking, w.Execution, why)
		return err
	}
	for _, w := range all {
		l := &waitResult{wait: w, last: store.SignalPlace{At: w.Since}}
		err := damaged(w.Damage)
		if w.Damage == "" {
			err = e.findFitting(ctx, l)
		}
		if err != nil && willFailAgain(err) {
			if err := leave(&w, err); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		if !l.wait.Looked || len(l.fitting) > 0 {
			found = append(found, l)
		}
	}
	if len(found) == 0 {
		return aside, nil
	}
	if err := e.giveSignals(ctx, found); err == nil || !willFailAgain(err) {
		return aside, err
	}
	for _, l := range found {
		if err := e.giveSignals(ctx, []*waitResult{l}); err != nil && willFailAgain(err) {
			if err := leave(&l.wait, err); err != nil {
				return nil, err
			}
		} else if err != nil {
			return nil, err
		}
	}
	return aside, nil
}

// findFitting reads signals on until some fit, or there are no more.
func (e *Engine) findFitting(ctx context.Context, l *waitResult) (err error) {
	defer fault.Recovered(&err)
	for l.fitting = nil; ; {
		page, err := e.opts.Store.SignalsAbout(ctx, l.wait.Trigger, l.wait.Subject, l.last, signalsAtLook)
		if err != nil {
			return err
		}
		l.more = len(page) > 0
		for i := range page {
			l.last = store.PlaceOf(&page[i])
			if fits, err := e.awaited.Fits(&l.wait, &page[i]); err == nil && fits && page[i].Damage == "" {
				l.fitting = append(l.fitting, page[i])
				if len(l.fitting) == fittingAtMost {
					return nil
				}
			}
		}
		if !l.more || len(l.fitting) > 0 {
			return nil
		}
	}
}

// giveSignals gives each wait the oldest signal that fits it and that no other wait of its workflow's attempt has
// taken. A wait for which no signal fits is noted as looked; one for which all that fit were taken looks at the signals
// behind them.
func (e *Engine) giveSignals(ctx context.Context, all []*waitResult) error {
	ids := make([]flow.ID, len(all))
	for i, l := range all {
		ids[i] = l.wait.Execution
	}
	on, err := inBatch(ctx, e, ids, func(ctx context.Context, t *transaction) (on []*waitResult, err error) {
		stored, err := t.tx.WaitsOf(ctx, ids)
		if err != nil {
			return nil, err
		}
		as := make(map[flow.ID]flow.Wait, len(stored))
		for _, w := range stored {
			as[w.Execution] = w
		}
		for _, l := range all {
			d := t.draft(l.wait.Execution)
			w, there := as[l.wait.Execution]
			if changed, is := t.waits.put[l.wait.Execution]; is {
				w = changed
			}
			if d == nil || d.Place != flow.Held || !there || w.Signal != 0 || w.Damage != "" || w.Attempt != l.wait.Attempt || !w.Since.Equal(l.wait.Since) {
				continue
			}
			took, err := t.takeSignal(ctx, d, w, l)
			switch {
			case err != nil:
				return nil, err
			case !took && len(l.fitting) > 0 && l.more:
				on = append(on, l)
			case !took && !w.Looked:
				w.Looked = true
				t.waits.write(w)
			}
		}
		return on, nil
	})
	if err != nil {
		return err
	}
	for _, l := range on {
		if err := e.findFitting(ctx, l); err != nil {
			return err
		}
	}
	if len(on) > 0 {
		return e.giveSignals(ctx, on)
	}
	return nil
}

// takeSignal ends a wait with the first of the fitting signals that is not taken, and reports whether there was one.
func (t *transaction) takeSignal(ctx context.Context, d *flow.Draft, w flow.Wait, l *waitResult) (bool, error) {
	if len(l.fitting) == 0 {
		return false, nil
	}
	of := store.WorkflowAttempt{ID: w.Workflow, Attempt: w.Attempt}
	numbers := make([]int64, len(l.fitting))
	for i := range l.fitting {
		numbers[i] = l.fitting[i].Number
	}
	taken, err := t.tx.Taken(ctx, of, numbers)
	if err != nil {
		return false, err
	}
	for i := range l.fitting {
		s := &l.fitting[i]
		key := takenSignal{of, s.Number}
		if t.waits.taken[key] || slices.Contains(taken, s.Number) {
			continue
		}
		output, err := definition.SignalValue(s)
		if err != nil {
			continue // it has no value that could be taken
		}
		if err := d.Finish(flow.Completed, flow.Outcome{Output: output}, t.now, 0); err != nil {
			return false, err
		}
		if t.waits.taken == nil {
			t.waits.taken = map[takenSignal]bool{}
		}
		t.waits.taken[key] = true
		w.Signal, w.Looked = s.Number, true
		t.waits.write(w)
		t.changed(d)
		return true, nil
	}
	return false, nil
}
