package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
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
	meetingsAtOnce = 200         // waits, and signals, of one round
	openAtOnce     = 500         // waits that one look at those that are open reads
	signalsAtLook  = 100         // signals of one page of a look
	fittingAtMost  = 50          // signals of which a wait takes the first that is not taken
	meetAgain      = time.Second // after a round that failed
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

// wroteWait drops the wait of an execution that waited before, or in this transaction, and does not any more, unless it has taken a signal.
func (t *transaction) wroteWait(d *flow.Draft) {
	if d.Place == flow.Held {
		return
	}
	k := &t.waits
	w, here := k.put[d.ID]
	if w.Signal != 0 || !here && d.Before.Place != flow.Held {
		return
	}
	delete(k.put, d.ID)
	k.drop = append(k.drop, d.ID)
}

// writeWaits adds what was decided about waits to what is written.
func (t *transaction) writeWaits(context.Context) error {
	k := &t.waits
	if len(k.put)+len(k.drop)+len(k.unmet)+len(k.met) == 0 {
		return nil
	}
	if len(k.put)+len(k.drop) > 0 {
		t.effects.addFailpoint(failpoint.WaitKept)
	}
	rows := t.changes.add()
	rows.Waits, rows.DroppedWaits, rows.Unmet, rows.Met = slices.Collect(maps.Values(k.put)), k.drop, k.unmet, k.met
	return nil
}

// tellMeetings wakes what brings waits and signals together where a committed transaction has some for it.
func (e *Engine) tellMeetings(t *transaction) {
	if t.waits.begun || len(t.waits.unmet) > 0 {
		loop.Wake(e.meetings)
	}
}

// noteUnmet notes that open waits are to be asked about a signal that is kept, if executions can wait for its trigger.
func (t *transaction) noteUnmet(s *flow.Signal) {
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
		return t.failInvalid(d, err)
	}
	w := flow.Wait{Execution: d.ID, Workflow: d.ID, Trigger: p.Signal, Since: t.now,
		WaitDetail: flow.WaitDetail{If: p.If, Vars: p.Vars, Null: p.Null, Timeout: time.Duration(p.Timeout)}}
	began := d.CreatedAt
	if !d.Parent.IsZero() {
		w.Workflow, w.Attempt = d.Parent, d.ParentAttempt
		if err := t.load(ctx, []flow.ID{d.Parent}); err != nil {
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
	d.WakeAgainAt(due)
	t.waits.begun = true
	t.waits.write(w)
	return nil
}

// checkAwaited says what is wrong with a wait before it is stored; paths in it begin with root.
func (e *Engine) checkAwaited(ctx context.Context, payload json.RawMessage, root string) error {
	p, err := e.awaited.Read(payload)
	if err != nil {
		return requests.ProblemsBeneath(root, err)
	}
	if _, err := e.rulesInForce(ctx); err != nil {
		return err
	}
	if err := e.canAwait(p.Signal); err != nil {
		return fault.New(root+".signal", p.Signal, err.Error(), "")
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

// endWait ends an execution whose time to wait is over.
func (t *transaction) endWait(ctx context.Context, d *flow.Draft) error {
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

// EmitTo emits a signal about an execution that has not ended: waits of its tasks without a subject of their own are
// for such. The errors are those of Emit, store.ErrNotFound and flow.ErrFinished.
func (e *Engine) EmitTo(ctx context.Context, id flow.ID, m Emission) (Emitted, error) {
	x, err := e.opts.Store.Get(ctx, id)
	if err != nil {
		return Emitted{}, err
	}
	if x.Stage.Terminal() {
		return Emitted{}, errFinished(x)
	}
	m.Subject = id.String()
	out, err := e.Emit(ctx, []Emission{m})
	if err != nil {
		return Emitted{}, err
	}
	return out[0], out[0].Err
}
