package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// Cancel ends an execution: at once when no worker holds it. Otherwise it stores an order for the owner, and the execution ends when the
// owner reports the end, or when recovery takes the attempt back. It returns the execution in its new state, also if an earlier cancel has
// ended it: a caller whose answer was lost asks again. If the execution ended otherwise, the error is flow.ErrFinished. A second cancel
// ends the clean-up of a workflow, and the grace of a program.
func (e *Engine) Cancel(ctx context.Context, id flow.ID, reason string) (*flow.Execution, error) {
	return e.end(ctx, id, reason, "", false)
}

// CancelOnce is Cancel with an idempotency key: a request with the same key is a repetition of the first one, for example because a proxy
// gave up on the answer, and not a second cancel.
func (e *Engine) CancelOnce(ctx context.Context, id flow.ID, reason, key string) (*flow.Execution, error) {
	return e.end(ctx, id, reason, key, false)
}

// Kill is Cancel without clean-up, and without a grace for the program of a task.
func (e *Engine) Kill(ctx context.Context, id flow.ID, reason string) (*flow.Execution, error) {
	return e.end(ctx, id, reason, "", true)
}

func (e *Engine) end(ctx context.Context, id flow.ID, reason, key string, kill bool) (*flow.Execution, error) {
	reason = cmp.Or(reason, "cancelled by request")
	if err := fault.CheckText("reason", reason, fault.ReasonLimit, "shorten it, or remove the byte"); err != nil {
		return nil, err
	}
	if err := fault.CheckText("Idempotency-Key", key, fault.KeyLimit, "shorten it, or remove the byte"); err != nil {
		return nil, err
	}
	again := false
	verdict, err := inBatch(ctx, e, []flow.ID{id}, func(_ context.Context, t *transaction) (verdict, err error) {
		d := t.Draft(id)
		if d == nil {
			return fmt.Errorf("%w: execution %s", store.ErrNotFound, id), nil
		}
		ends := d.EndsForGood()
		again = ends && (key == "" || d.State.Cancel.Key != key)
		switch err := d.Cancel(flow.Cancelled, flow.CodeCancelled, reason, t.now); {
		case errors.Is(err, flow.ErrFinished):
			return err, nil
		case err != nil:
			return nil, err
		}
		if kill || again {
			d.EndAtOnce()
		} else if !ends {
			d.KeyOrder(key)
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
	if err == nil && (kill || again) && x.Kind == flow.KindWorkflow && !x.Stage.Terminal() {
		err = e.hurryChildren(ctx, x)
	}
	return x, err
}

// hurryChildren ends the clean-ups and graces of a killed workflow's children that were ordered to end before the kill. The workflow's
// steps kill its other children. Only running children can be in a clean-up or grace, so it does not read the waiting ones of 10,000.
// Children that it misses in a crash end when their clean-up or grace is over.
func (e *Engine) hurryChildren(ctx context.Context, w *flow.Execution) error {
	run := []flow.Stage{flow.Provisioning, flow.Running}
	for f := (store.Filter{Workflow: w.ID, Stages: run, Oldest: true, Limit: endsAtOnce}); ; {
		found, err := e.opts.Store.Search(ctx, f)
		if err != nil {
			return fmt.Errorf("list tasks: %w", err)
		}
		var ids []flow.ID
		for _, x := range found.Executions {
			if f.After = x.ID; x.State.Cancel != nil && !x.State.Cancel.Kill {
				ids = append(ids, x.ID)
			}
		}
		if err := e.hurry(ctx, ids); err != nil {
			return err
		}
		for _, x := range found.Executions {
			if x.Kind == flow.KindWorkflow {
				if err := e.hurryChildren(ctx, x); err != nil {
					return err
				}
			}
		}
		switch {
		case !found.Searched.IsZero():
			f.After = found.Searched
		case len(found.Executions) == 0:
			return nil
		}
	}
}

// hurry makes executions that were ordered to end do so at once.
func (e *Engine) hurry(ctx context.Context, ids []flow.ID) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := inBatch(ctx, e, ids, func(_ context.Context, t *transaction) (struct{}, error) {
		for _, id := range ids {
			if d := t.Draft(id); d != nil && !d.Stage.Terminal() && d.State.Cancel != nil {
				d.EndAtOnce()
				t.cancelled(d)
			}
		}
		return struct{}{}, nil
	})
	return err
}

func errFinished(x *flow.Execution) error {
	return fmt.Errorf("%w: %s is %s", flow.ErrFinished, x.ID, x.Stage)
}

// endedByCancel reports whether a cancel ended an execution. Superseded executions, and those that found their key full, do not count.
func endedByCancel(x *flow.Execution) bool {
	if x.Stage != flow.Cancelled {
		return false
	}
	return x.Outcome == nil || x.Outcome.Error == nil || x.Outcome.Error.Code == flow.CodeCancelled
}

// cancelled notes the follow-ups of a cancelled draft: a workflow passes the order on to its tasks.
func (t *transaction) cancelled(d *flow.Draft) {
	t.Changed(d)
	if d.Kind == flow.KindWorkflow && d.State.Cancel != nil {
		t.workflows.due[d.ID] = true
	}
}
