package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// An execution of a custom kind is misplaced in a lane that names no kind. A version from before lanes named kinds put it
// there: an earlier version on the same database, or a server of that version that still runs beside this one. Workers of
// the lane do not run it, and workers that have its handler do not look into the lane. So the execution is moved to the
// lane of its kind, where it keeps its turn: by the claim that finds it, or, where no worker looks into the lane any more, by
// the sweep.

// misplacedBatch is how many executions the sweep looks at in one transaction.
const misplacedBatch = 100

// relane moves the misplaced ones of executions that a look into lanes has found, and those whose actions are paused,
// and returns the others.
func (t *transaction) relane(ctx context.Context, xs []*flow.Execution) (others []*flow.Execution, err error) {
	for _, x := range xs {
		lane := flow.ForKind(x.Queue, x.Kind)
		held := t.pausesAction(x.Action)
		if held {
			lane = flow.HoldBack(lane, x.Action)
		}
		if lane == x.Queue {
			others = append(others, x)
			continue
		}
		if err := t.writeLane(ctx, lane); err != nil {
			return nil, err
		}
		if err := t.tx.Relane(ctx, x, lane); err != nil {
			return nil, err
		}
		if held {
			t.dispatch.moved++
		} else {
			t.dispatch.queued[lane]++
		}
	}
	return others, nil
}

// relaneMisplaced moves the misplaced executions of queues that only workers of custom kinds serve. It ends with a batch in
// which none is misplaced: a queue with 100 executions of built-in kinds at its head, which no worker of it runs, hides
// misplaced ones behind them.
func (e *Engine) relaneMisplaced(ctx context.Context, sessions []store.Session) (err error) {
	var served, looked []string
	for _, s := range sessions {
		reach := flow.ReachOf(s.Queues, s.Kinds)
		served, looked = append(served, s.Queues...), append(looked, reach.Queues()...)
	}
	slices.Sort(served)
	queues := slices.DeleteFunc(slices.Compact(served), func(q string) bool { return slices.Contains(looked, q) })
	for moved := -1; moved != 0 && len(queues) > 0; {
		moved, err = inBatch(ctx, e, nil, func(ctx context.Context, t *transaction) (int, error) {
			if err := t.flush(ctx); err != nil {
				return 0, err
			}
			if err := t.loadPauses(ctx); err != nil {
				return 0, err
			}
			xs, err := t.tx.Take(ctx, queues, misplacedBatch)
			if err != nil {
				return 0, err
			}
			others, err := t.relane(ctx, xs)
			return len(xs) - len(others), err
		})
		if err != nil {
			return fmt.Errorf("move executions to the lanes of their kinds: %w", err)
		}
	}
	return nil
}
