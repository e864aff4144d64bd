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
// asks again. One that has ended otherwise gives flow.ErrFinished.
func (e *Engine) Cancel(ctx context.Context, id flow.ID, reason string) (*flow.Execution, error) {
	if reason == "" {
		reason = "cancelled by request"
	}
	if err := fault.CheckText("reason", reason, fault.ReasonLimit, "shorten it, or remove the byte"); err != nil {
		return nil, err
	}
	verdict, err := inBatch(ctx, e, []flow.ID{id}, func(_ context.Context, t *transaction) (verdict, err error) {
		d := t.draft(id)
		if d == nil {
			return fmt.Errorf("%w: execution %s", store.ErrNotFound, id), nil
		}
		switch err := d.Cancel(flow.Cancelled, flow.CodeCancelled, reason, t.now); {
		case errors.Is(err, flow.ErrFinished):
			return err, nil
		case err != nil:
			return nil, err
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
	return x, err
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
