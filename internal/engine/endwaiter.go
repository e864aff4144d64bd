package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// endPoll is how often a caller that waits for an end reads the store. Hints make it faster; nothing depends on them.
const endPoll = time.Second

// EndWaiter is a wait for the end of one execution. It is used by one goroutine, which must call Close.
type EndWaiter struct {
	view *View
	w    *watcher
	// If the execution was submitted together with the wait, no event was missed, and the fields that the commit of the end omits are known.
	submitted   bool
	input, with json.RawMessage
	watchers    *watchers
}

// WaitForEnd begins to wait for an execution's end.
func (e *Engine) WaitForEnd(id flow.ID) *EndWaiter {
	return &EndWaiter{view: e.View(id), w: e.watch.add(id, true), watchers: e.watch}
}

// SubmitOne is Submit for one execution and a wait for its end: if this replica ends it, Wait returns the committed
// execution without asking the store. There is an EndWaiter exactly if the submission was accepted.
func (e *Engine) SubmitOne(ctx context.Context, s Submission) (Submitted, *EndWaiter, error) {
	o := &submitOp{hash: s.hash()}
	if err := e.prepare(ctx, &s, o); err != nil {
		return Submitted{Err: err}, nil, nil
	}
	n := e.WaitForEnd(o.id) // before it can end
	if err := e.submit(ctx, o); err != nil {
		n.Close()
		return Submitted{}, nil, err
	}
	switch out := o.verdict; {
	case out.Err != nil:
		n.Close()
		return out, nil, nil
	case out.Existing:
		n.Close()
		return out, e.WaitForEnd(out.Execution), nil
	}
	n.submitted, n.input, n.with = true, o.request.Input, o.request.With
	return o.verdict, n, nil
}

// ID names the execution.
func (n *EndWaiter) ID() flow.ID { return n.view.id }

// Close ends the wait.
func (n *EndWaiter) Close() { n.watchers.remove(n.view.id, n.w) }

// Wait returns the execution, as Reader's Get does, once it has ended.
func (n *EndWaiter) Wait(ctx context.Context) (*flow.Execution, error) {
	tick := time.NewTicker(endPoll)
	defer tick.Stop()
	for look := !n.submitted; ; look = true {
		if look {
			if x, err := n.view.Look(ctx); err != nil || x.Stage.Terminal() {
				return x, err
			}
		}
		select {
		case <-n.w.changed:
			if over := n.watchers.over(n.w); over != nil && n.submitted {
				x := *over
				x.Input, x.With = n.input, n.with
				return &x, nil
			}
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// View keeps a copy of one execution up to date, and does not load its payload again while nothing changes. It is used by one goroutine.
type View struct {
	e    *Engine
	id   flow.ID
	last *flow.Execution
}

// View makes a View of an execution.
func (e *Engine) View(id flow.ID) *View { return &View{e: e, id: id} }

// Look returns the current state of the execution.
func (v *View) Look(ctx context.Context) (*flow.Execution, error) {
	if v.last != nil {
		news, err := v.e.opts.Store.Events(ctx, v.id, v.last.NextSeq-1, 1)
		if err != nil {
			return nil, fmt.Errorf("execution %s: %w", v.id, err)
		}
		if len(news) == 0 {
			return v.last, nil
		}
	}
	x, err := v.e.opts.Store.Get(ctx, v.id)
	if err != nil {
		return nil, fmt.Errorf("execution %s: %w", v.id, err)
	}
	v.last = x
	return x, nil
}
