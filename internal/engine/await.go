package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// A signal that comes before a wait, while it begins, or after it reaches it, whatever crashes:
//
//	the wait      1. is committed, unlooked       2. then looks at the signals that are there, and is noted as looked
//	the signal    1. is committed, as unmet       2. then meets the waits that are open, and is no longer unmet
//
// Where the wait was committed first, the meeting finds it; otherwise the look finds the signal. Where both find each other the end
// of the wait happens once, since it is conditional on its execution. A process that dies in between leaves the wait unlooked or the
// signal unmet, and every replica goes on with these.

const (
	meetingsAtOnce = 200             // waits, and signals, of one round
	openAtOnce     = 500             // waits that one look at those that are open reads
	signalsAtLook  = 100             // signals of one page of a look
	fittingAtMost  = 50              // signals of which a wait takes the first that is not taken
	meetEvery      = 5 * time.Second // between two rounds without news: what other replicas have left
	meetAgain      = time.Second     // after a round that failed
)

// waits are those that a transaction decides about. They are written once, at its end.
type waits struct {
	put   map[flow.ID]flow.Wait
	drop  []flow.ID
	unmet []int64 // signals that waits are to be asked about
	met   []int64
	begun bool                 // a wait began
	taken map[takenSignal]bool // by waits in this transaction
}

// takenSignal is a signal that a wait of an attempt of a workflow has taken.
type takenSignal struct {
	of     store.WorkflowAttempt
	signal int64
}

func (k *waits) write(w flow.Wait) {
	if k.put == nil {
		k.put = map[flow.ID]flow.Wait{}
	}
	k.put[w.Execution] = w
}

// leaves notes an execution that has been written, and waited before or in this transaction: unless it has taken a signal its wait goes.
func (k *waits) leaves(d *flow.Draft) {
	if d.Kind != flow.KindWait || d.Place == flow.Held {
		return
	}
	w, here := k.put[d.ID]
	if w.Signal != 0 || !here && d.Before.Place != flow.Held {
		return
	}
	delete(k.put, d.ID)
	k.drop = append(k.drop, d.ID)
}

// writeWaits writes what was decided about waits.
func (t *transaction) writeWaits(ctx context.Context) error {
	k := &t.waits
	if len(k.put)+len(k.drop) > 0 {
		all := make([]flow.Wait, 0, len(k.put))
		for _, w := range k.put {
			all = append(all, w)
		}
		if err := t.tx.PutWaits(ctx, all, k.drop); err != nil {
			return err
		}
	}
	if len(k.unmet) > 0 {
		if err := t.tx.PutUnmet(ctx, k.unmet); err != nil {
			return err
		}
	}
	if len(k.met) > 0 {
		return t.tx.DropUnmet(ctx, k.met)
	}
	return nil
}

// signalled notes a signal that is kept, for the waits that are open.
func (t *transaction) signalled(s *flow.Signal) {
	if set := t.e.rules.current.Load(); s.Subject == "" || s.Replayed || set == nil || set.Triggers[s.Trigger] == nil || !set.Triggers[s.Trigger].Waits {
		return
	}
	t.waits.unmet = append(t.waits.unmet, s.Number)
}

// await lets an execution wait for a signal.
func (t *transaction) await(ctx context.Context, d *flow.Draft) error {
	p, err := t.e.awaited.Read(d.Payload())
	if err == nil {
		err = t.e.canAwait(p.Signal)
	}
	if err != nil {
		return t.cannotAsk(d, err)
	}
	w := flow.Wait{Execution: d.ID, Workflow: d.ID, Trigger: p.Signal, Since: t.now,
		WaitDetail: flow.WaitDetail{If: p.If, Vars: p.Vars, Null: p.Null, Timeout: time.Duration(p.Timeout)}}
	began := d.CreatedAt
	if !d.Parent.IsZero() {
		w.Workflow, w.Attempt = d.Parent, d.ParentAttempt
		if err := t.load(ctx, []flow.ID{d.Parent}, store.WithoutPayload); err != nil {
			return err
		}
		if above := t.draft(d.Parent); above != nil {
			began = above.CreatedAt
		}
	}
	if !p.Now {
		w.Since = began.Add(-p.From)
	}
	w.Subject = cmp.Or(p.Subject, w.Workflow.String())
	var due time.Time
	if w.Timeout > 0 {
		due = t.now.Add(w.Timeout)
	}
	d.Sleep(due)
	t.waits.begun = true
	t.waits.write(w)
	return nil
}

// checkAwaited says what is wrong with a wait before it is stored; paths in it begin with root.
func (e *Engine) checkAwaited(ctx context.Context, payload []byte, root string) error {
	p, err := e.awaited.Read(payload)
	if err != nil {
		return beneath(root, err)
	}
	if _, err := e.rulesInForce(ctx); err != nil {
		return err
	}
	if err := e.canAwait(p.Signal); err != nil {
		return invalid(root+".signal", p.Signal, err.Error(), "")
	}
	return nil
}

// canAwait says why signals of a trigger cannot be waited for.
func (e *Engine) canAwait(trigger string) error {
	set := e.rules.current.Load()
	if set == nil {
		return nil // nothing is known yet
	}
	switch k := set.Triggers[trigger]; {
	case k == nil:
		return fmt.Errorf("signal: nothing can wait for %q: apply a document with kind: trigger, name: %s and waits: true", trigger, trigger)
	case !k.Waits:
		return fmt.Errorf("signal: nothing can wait for %q: its trigger does not say waits: true", trigger)
	}
	return nil
}

// waitIsOver ends an execution whose time to wait is over.
func (t *transaction) waitIsOver(ctx context.Context, d *flow.Draft) error {
	found, err := t.tx.WaitsOf(ctx, []flow.ID{d.ID})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("%s waits for a signal, and has no wait", d.ID)
	}
	w := &found[0]
	if w.Null {
		return d.Finish(flow.Completed, flow.Outcome{Output: []byte("null")}, t.now, 0)
	}
	return d.Finish(flow.TimedOut, flow.Outcome{Error: &flow.Error{Code: flow.CodeTimeout,
		Message: fmt.Sprintf("no signal %s about %q came within %s", w.Trigger, w.Subject, w.Timeout)}}, t.now, t.e.opts.Random())
}

// meetWaits brings signals and waits together: those that this replica has committed at once, and those that others have left.
func (e *Engine) meetWaits(ctx context.Context) {
	for {
		more, err := e.meet(ctx)
		pause := e.jittered(meetEvery)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = meetAgain
			e.opts.Log.Error("bringing signals to those who wait for them failed; it will be tried again", telemetry.Err, err)
		case more:
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-e.meetings:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
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
		case !refused(err):
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
func (e *Engine) meetSignal(ctx context.Context, s *flow.Signal) error {
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

// looked is what a wait has found.
type looked struct {
	wait    flow.Wait
	fitting []flow.Signal // the oldest first
	last    store.SignalPlace
	more    bool // there may be more behind last
}

// lookAll lets waits look at the signals that there are, and carries out what they have found. Those that are refused, or cannot be read,
// are put aside; aside is why the last of them was.
func (e *Engine) lookAll(ctx context.Context, all []flow.Wait) (aside, err error) {
	found := make([]*looked, 0, len(all))
	leave := func(w *flow.Wait, why error) error {
		aside = fmt.Errorf("the wait of %s: %w", w.Execution, why)
		_, err := e.leaveAside(ctx, store.AsideLooking, w.Execution, why)
		return err
	}
	for _, w := range all {
		l := &looked{wait: w, last: store.SignalPlace{At: w.Since}}
		err := damaged(w.Damage)
		if w.Damage == "" {
			err = e.look(ctx, l)
		}
		if err != nil && refused(err) {
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
	if err := e.settleWaits(ctx, found); err == nil || !refused(err) {
		return aside, err
	}
	for _, l := range found {
		if err := e.settleWaits(ctx, []*looked{l}); err != nil && refused(err) {
			if err := leave(&l.wait, err); err != nil {
				return nil, err
			}
		} else if err != nil {
			return nil, err
		}
	}
	return aside, nil
}

// look reads signals on until some fit, or there are no more.
func (e *Engine) look(ctx context.Context, l *looked) error {
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

// settleWaits gives waits the oldest of the signals that fit which no other wait of their workflow's attempt has taken, and notes those
// that have found none as looked. Those that have found only what is taken look on.
func (e *Engine) settleWaits(ctx context.Context, all []*looked) error {
	ids := make([]flow.ID, len(all))
	for i, l := range all {
		ids[i] = l.wait.Execution
	}
	on, err := ask(ctx, e, ids, func(ctx context.Context, t *transaction) (on []*looked, err error) {
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
		if err := e.look(ctx, l); err != nil {
			return err
		}
	}
	if len(on) > 0 {
		return e.settleWaits(ctx, on)
	}
	return nil
}

// takeSignal ends a wait with the first signal of those that fit which is not taken, and reports whether there was one.
func (t *transaction) takeSignal(ctx context.Context, d *flow.Draft, w flow.Wait, l *looked) (bool, error) {
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

// EmitTo emits a signal about an execution that has not ended: waits of its tasks without a subject of their own are for such. The errors are
// those of Emit, store.ErrNotFound and flow.ErrFinished.
func (e *Engine) EmitTo(ctx context.Context, id flow.ID, m Emission) (Emitted, error) {
	x, err := e.opts.Store.Get(ctx, id)
	if err != nil {
		return Emitted{}, err
	}
	if x.Stage.Terminal() {
		return Emitted{}, fmt.Errorf("%w: %s is %s", flow.ErrFinished, id, x.Stage)
	}
	m.Subject = id.String()
	out, err := e.Emit(ctx, []Emission{m})
	if err != nil {
		return Emitted{}, err
	}
	return out[0], out[0].Err
}

// whyAwaiting says which signal an execution waits for, and how near the last one was.
func (e *Engine) whyAwaiting(ctx context.Context, x *flow.Execution, w *Why) error {
	w.Waiting, w.Until = "signal", x.WakeAt
	k, err := e.opts.Store.Wait(ctx, x.ID)
	if errors.Is(err, store.ErrNotFound) {
		w.Summary = "waiting for a signal: it has ended meanwhile"
		return nil
	}
	if err != nil {
		return err
	}
	aside, err := e.asideNow(ctx, store.AsideLooking, x.ID)
	if err != nil {
		return err
	}
	if aside != nil {
		w.Facts = append(w.Facts, fmt.Sprintf("the engine could not look for its signal (%s): it is put aside until %s", aside.Reason, clock(aside.Until)))
	}
	w.Summary = fmt.Sprintf("waits for a signal %s about %s", k.Trigger, k.Subject)
	if !x.WakeAt.IsZero() {
		w.Summary += ", until " + clock(x.WakeAt)
	}
	seen, err := e.opts.Store.SignalsAbout(ctx, k.Trigger, k.Subject, store.SignalPlace{At: k.Since}, countedSignals)
	if err != nil {
		return err
	}
	switch n := len(seen); {
	case n == 0:
		w.Facts = append(w.Facts, fmt.Sprintf("none has come since %s", clock(k.Since)))
	default:
		say := fmt.Sprintf("%d since %s", n, clock(k.Since))
		if n == countedSignals {
			say = fmt.Sprintf("%d or more since %s", n, clock(k.Since))
		}
		w.Facts = append(w.Facts, fmt.Sprintf("%s; of these the last, %s at %s, %s", say, seen[n-1].ID.Text(flow.SignalPrefix), clock(seen[n-1].At), e.awaited.Differs(&k, &seen[n-1])))
	}
	emit := fmt.Sprintf("pawl emit %s --subject %s", k.Trigger, k.Subject)
	if k.Subject == k.Workflow.String() {
		emit = fmt.Sprintf("pawl emit %s --to %s", k.Trigger, k.Subject)
	}
	w.Unblock = append(w.Unblock, "the signal is emitted: "+emit)
	if !x.WakeAt.IsZero() && k.Null {
		w.Facts = append(w.Facts, fmt.Sprintf("at %s it completes with null", clock(x.WakeAt)))
	}
	return nil
}

// countedSignals is up to how many signals Why counts.
const countedSignals = 100
