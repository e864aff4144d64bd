package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// Cancel ends an execution: at once when nobody holds it, else by an order to its owner that Finished confirms later.
// It returns the execution as it stands after that. What has finished gives flow.ErrFinished.
func (e *Engine) Cancel(ctx context.Context, id flow.ID, reason string) (*flow.Execution, error) {
	if reason == "" {
		reason = "cancelled by request"
	}
	var refused error
	err := e.ask(ctx, []flow.ID{id}, func(ctx context.Context, t *turn) error {
		refused = nil
		d := t.drafts[id]
		if d == nil {
			refused = fmt.Errorf("%w: execution %s", store.ErrNotFound, id)
			return nil
		}
		err := d.Cancel(flow.Cancelled, flow.CodeCancelled, reason, t.now)
		if errors.Is(err, flow.ErrFinished) {
			refused = fmt.Errorf("%w: %s is %s", err, id, d.Stage)
			return nil
		}
		if err != nil {
			return err
		}
		t.cancelled(d)
		return nil
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return nil, err
	}
	return e.opts.Store.Get(ctx, id)
}

// cancelled notes what follows from a cancelled draft: a workflow passes the order on to its tasks.
func (t *turn) cancelled(d *flow.Draft) {
	t.changed(d)
	if d.Kind == flow.KindWorkflow && d.State.Cancel != nil {
		t.folds[d.ID] = true
	}
}

// Retry submits what a finished execution had asked for once more, as a new execution; the old one never changes.
func (e *Engine) Retry(ctx context.Context, id flow.ID) (flow.ID, error) {
	x, err := e.opts.Store.Get(ctx, id)
	if err != nil {
		return flow.ID{}, err
	}
	if !x.Stage.Terminal() {
		return flow.ID{}, invalid("id", id.String(), fmt.Sprintf("the execution is still %s", x.Stage), "wait for it, or cancel it first")
	}
	r := x.Request
	r.Parent, r.ParentAttempt, r.Task, r.Index, r.Depth = flow.ID{}, 0, "", 0, 0
	r.IdempotencyKey, r.NotBefore = "", r.CreatedAt
	if err := e.place(ctx, &r); err != nil {
		return flow.ID{}, err
	}
	var out Submitted
	o := &submitOp{id: e.opts.NewID(), request: r, out: &out, group: newGroup(1)}
	if err := e.enqueue(o); err != nil {
		return flow.ID{}, err
	}
	if err := o.group.wait(ctx); err != nil {
		return flow.ID{}, err
	}
	e.counters.submitted.Add(1)
	return out.Execution, out.Err
}
