package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// Cancel ends an execution: at once when no worker holds it. Otherwise it stores an order for the owner, and the
// execution ends when the owner reports the end, or when recovery takes the attempt back. It returns the execution as
// it stands after that. An execution that a cancel has ended before is returned as well: a caller whose answer was lost
// asks again. One that has ended otherwise gives flow.ErrFinished. A second cancel ends the clean-up of a workflow, and the grace of a
// program.
func (e *Engine) Cancel(ctx context.Context, id flow.ID, reason string) (*flow.Execution, error) {
	return e.end(ctx, id, reason, false)
}

// Kill is Cancel without clean-up, and without a grace for the program of a task.
func (e *Engine) Kill(ctx context.Context, id flow.ID, reason string) (*flow.Execution, error) {
	return e.end(ctx, id, reason, true)
}

func (e *Engine) end(ctx context.Context, id flow.ID, reason string, kill bool) (*flow.Execution, error) {
	if reason == "" {
		reason = "cancelled by request"
	}
	if err := fault.CheckText("reason", reason, fault.ReasonLimit, "shorten it, or remove the byte"); err != nil {
		return nil, err
	}
	again := false
	verdict, err := inBatch(ctx, e, []flow.ID{id}, func(_ context.Context, t *transaction) (verdict, err error) {
		d := t.draft(id)
		if d == nil {
			return fmt.Errorf("%w: execution %s", store.ErrNotFound, id), nil
		}
		again = d.EndsForGood()
		switch err := d.Cancel(flow.Cancelled, flow.CodeCancelled, reason, t.now); {
		case errors.Is(err, flow.ErrFinished):
			return err, nil
		case err != nil:
			return nil, err
		}
		if kill || again {
			d.EndAtOnce()
		}
		t.cancelled(d)
		return nil, nil
	})
	if err == nil && errors.Is(verdict, store.ErrNotFound) {
		err = verdict
	}
	if err != nil {
		return nil, err
	}
	x, err := e.opts.Store.Get(ctx, id)
	if err == nil && verdict != nil && !endedByCancel(x) {
		return nil, errFinished(x)
	}
	if err == nil && again && x.Kind == flow.KindWorkflow && !x.Stage.Terminal() {
		err = e.endCleanups(ctx, x, reason)
	}
	return x, err
}

// endCleanups ends the clean-ups of the sub-workflows that a workflow waits for. Of those that a crash leaves out the end is the
// moment that bounds the clean-up of the workflow itself.
func (e *Engine) endCleanups(ctx context.Context, x *flow.Execution, reason string) error {
	const page = 1000
	for task, index := "", -1; ; {
		children, err := e.opts.Store.Children(ctx, store.WorkflowAttempt{ID: x.ID, Attempt: x.Attempt}, task, index, page)
		if err != nil {
			return fmt.Errorf("list tasks: %w", err)
		}
		for i := range children {
			c := &children[i]
			if task, index = c.Task, c.Index; c.Stage.Terminal() {
				continue
			}
			sub, err := e.opts.Store.Get(ctx, c.Execution)
			if err == nil && sub.Kind == flow.KindWorkflow {
				_, err = e.Kill(ctx, sub.ID, reason)
			}
			if err != nil && !errors.Is(err, flow.ErrFinished) && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		if len(children) < page {
			return nil
		}
	}
}

// errFinished is flow.ErrFinished for an execution that has ended.
func errFinished(x *flow.Execution) error {
	return fmt.Errorf("%w: %s is %s", flow.ErrFinished, x.ID, x.Stage)
}

// endedByCancel reports whether an execution ended as a cancel orders it. One that was superseded, or found its key full, did
// not.
func endedByCancel(x *flow.Execution) bool {
	if x.Stage != flow.Cancelled {
		return false
	}
	return x.Outcome == nil || x.Outcome.Error == nil || x.Outcome.Error.Code == flow.CodeCancelled
}

// cancelled notes what follows from a cancelled draft: a workflow passes the order on to its tasks.
func (t *transaction) cancelled(d *flow.Draft) {
	t.changed(d)
	if d.Kind == flow.KindWorkflow && d.State.Cancel != nil {
		t.workflows.due[d.ID] = true
	}
}
