package waits

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
)

// await makes an execution wait for a signal.
func (k *Waits) await(ctx context.Context, t txn.Tx, d *flow.Draft) error {
	to, err := k.Awaited.Read(d.Payload())
	if err == nil {
		err = k.canAwait(to.Signal)
	}
	if err != nil {
		return txn.FailInvalid(t, d, err)
	}
	w := flow.Wait{Execution: d.ID, Workflow: d.ID, Trigger: to.Signal, Since: t.Now(),
		WaitDetail: flow.WaitDetail{If: to.If, Vars: to.Vars, Null: to.Null, Timeout: time.Duration(to.Timeout)}}
	began := d.CreatedAt
	if !d.Parent.IsZero() {
		w.Workflow, w.Attempt = d.Parent, d.ParentAttempt
		if err := t.Load(ctx, []flow.ID{d.Parent}); err != nil {
			return err
		}
		if above := t.Draft(d.Parent); above != nil {
			began = above.CreatedAt
		}
	}
	if !to.Now {
		w.Since = began.Add(-to.From)
	}
	w.Subject = cmp.Or(to.Subject, w.Workflow.String())
	var due time.Time
	if w.Timeout > 0 {
		due = t.Now().Add(w.Timeout)
	}
	d.WakeAgainAt(due)
	p := txn.Part[part](t)
	p.begun = true
	p.write(w)
	return nil
}

// check returns what is wrong with a wait before it is stored; paths in it begin with root.
func (k *Waits) check(ctx context.Context, payload json.RawMessage, root string) error {
	p, err := k.Awaited.Read(payload)
	if err != nil {
		return requests.ProblemsBeneath(root, err)
	}
	if _, err := k.FreshRules(ctx); err != nil {
		return err
	}
	if err := k.canAwait(p.Signal); err != nil {
		return fault.New(root+".signal", p.Signal, err.Error(), "")
	}
	return nil
}

// canAwait returns why signals of a trigger cannot be waited for.
func (k *Waits) canAwait(trigger string) error {
	set := k.Rules()
	if set == nil {
		return nil // nothing is known yet
	}
	switch on := set.Triggers[trigger]; {
	case on == nil:
		return fmt.Errorf("signal: nothing can wait for %q: apply a document with kind: trigger, name: %s and waits: true", trigger, trigger)
	case !on.Waits:
		return fmt.Errorf("signal: nothing can wait for %q: its trigger does not say waits: true", trigger)
	}
	return nil
}

// end ends an execution whose wait has timed out.
func (k *Waits) end(ctx context.Context, t txn.Tx, d *flow.Draft) error {
	found, err := t.Store().WaitsOf(ctx, []flow.ID{d.ID})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("%s waits for a signal, and has no wait", d.ID)
	}
	w := &found[0]
	if w.Null {
		return d.Finish(flow.Completed, flow.Outcome{Output: []byte("null")}, t.Now(), 0)
	}
	return d.Finish(flow.TimedOut, flow.Outcome{Error: &flow.Error{Code: flow.CodeTimeout,
		Message: fmt.Sprintf("no signal %s about %q came within %s", w.Trigger, w.Subject, w.Timeout)}}, t.Now(), k.Random())
}
