package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// Executions of a paused action wait under routing keys of their own (flow.SuspendedKey), which no worker reads. A claim that finds one
// elsewhere moves it there, and an execution that the engine runs itself goes there instead of beginning. Holding an execution back costs
// one write; after that, claims are not slowed by any number of suspended executions. After the pause, watchPauses moves them back to their
// old routing keys, where they keep their turn.

// suspendBatch is how many executions one transaction moves under the routing keys of paused actions, or back.
const suspendBatch = 200

// loadPauses reads the latest pauses, unless the lock of a session has brought them already.
func (t *transaction) loadPauses(ctx context.Context) error {
	if t.dispatch.pausesKnown {
		return nil
	}
	generation, err := t.tx.LastPause(ctx)
	if err != nil {
		return err
	}
	return t.learnPauses(ctx, generation)
}

// pausesAction reports whether an action is paused, as far as the transaction knows, and notes when the pause ends.
func (t *transaction) pausesAction(name string) bool {
	return t.notePause(t.dispatch.pauses.on(store.PausedAction, name, t.now))
}

// mustSuspend reports whether the action of an execution that is to be scheduled is paused. For a kind that the engine runs itself this is
// the only check. For other kinds the claim checks again, so an outdated answer costs one move to another routing key and starts nothing.
func (t *transaction) mustSuspend(ctx context.Context, d *flow.Draft) (bool, error) {
	if !d.Kind.ByEngine() && !t.pausesAction(d.Action) {
		return false, nil
	}
	err := t.loadPauses(ctx)
	return err == nil && t.pausesAction(d.Action), err
}

// suspend puts an admitted execution under the routing key of its paused action.
func (t *transaction) suspend(ctx context.Context, d *flow.Draft, ticket int64) error {
	routingKey := flow.SuspendedKey(d.Queue, d.Action)
	if err := t.writeRoutingKey(ctx, routingKey); err != nil {
		return err
	}
	if d.New {
		d.Queue = routingKey
	} else if err := t.tx.Reroute(ctx, d.Execution, routingKey); err != nil {
		return err
	}
	if d.Kind.ByEngine() {
		return d.EnqueueSuspended(ticket, t.now)
	}
	return d.Schedule(ticket, t.now)
}

// suspendPaused moves executions of paused actions that a claim has found under routing keys of their own, and returns the others.
func (t *transaction) suspendPaused(ctx context.Context, xs []*flow.Execution) (others []*flow.Execution, err error) {
	for _, x := range xs {
		if !t.pausesAction(x.Action) {
			others = append(others, x)
			continue
		}
		routingKey := flow.SuspendedKey(x.Queue, x.Action)
		if err := t.writeRoutingKey(ctx, routingKey); err != nil {
			return nil, err
		}
		if err := t.tx.Reroute(ctx, x, routingKey); err != nil {
			return nil, err
		}
		t.dispatch.moved++
	}
	return others, nil
}

// moveResumed moves executions out of the routing keys of actions that are not paused any more, and begins those that the engine runs
// itself.
func (e *Engine) moveResumed(ctx context.Context) error {
	if err := e.readRoutingKeys(ctx); err != nil {
		return err
	}
	e.routingKeys.mu.Lock()
	suspended := slices.Clone(e.routingKeys.suspended)
	e.routingKeys.mu.Unlock()
	for more := len(suspended) > 0; more; {
		var err error
		more, err = inBatch(ctx, e, nil, func(ctx context.Context, t *transaction) (bool, error) { return t.moveResumed(ctx, suspended) })
		if err != nil {
			return fmt.Errorf("put back executions of actions that are not paused any more: %w", err)
		}
	}
	return nil
}

// moveResumed moves one batch out of routing keys, and reports whether there may be more.
func (t *transaction) moveResumed(ctx context.Context, routingKeys []string) (more bool, err error) {
	if err := t.flush(ctx); err != nil {
		return false, err
	}
	if err := t.loadPauses(ctx); err != nil {
		return false, err
	}
	routingKeys = slices.DeleteFunc(slices.Clone(routingKeys), func(routingKey string) bool {
		action, _ := flow.PausedAction(routingKey)
		return t.pausesAction(action)
	})
	xs, err := t.tx.Take(ctx, routingKeys, suspendBatch)
	if err != nil {
		return false, fmt.Errorf("take: %w", err)
	}
	var starting []*flow.Execution
	for _, x := range xs {
		routingKey := flow.ResumedKey(x.Queue)
		if err := t.tx.Reroute(ctx, x, routingKey); err != nil {
			return false, err
		}
		if x.Kind.ByEngine() {
			starting = append(starting, x)
		} else {
			t.dispatch.queued[routingKey]++
		}
	}
	return len(xs) > 0, t.beginAll(ctx, t.adopt(starting))
}

// beginAll begins suspended executions that the engine runs itself.
func (t *transaction) beginAll(ctx context.Context, ds []*flow.Draft) error {
	if err := t.prepareBegin(ctx, ds); err != nil {
		return err
	}
	for _, d := range ds {
		err := t.tried(d, func() error {
			if err := d.Begin(t.now); err != nil {
				return err
			}
			return t.e.engineKind(d.Kind).Begin(ctx, t, d)
		})
		if err != nil {
			return err
		}
		t.Changed(d)
	}
	return nil
}

// moveResumedOrLog calls moveResumed and logs its error.
func (e *Engine) moveResumedOrLog(ctx context.Context) {
	if err := e.moveResumed(ctx); err != nil && ctx.Err() == nil {
		e.opts.Log.Warn("executions of actions that are not paused any more wait on; they are looked for again", telemetry.Err, err)
	}
}
