package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// failuresScanned is how many ticks are searched for ended executions.
const failuresScanned = 1000

// failures counts the last executions of a schedule's ticks that failed in a row, up to most, since the schedule was resumed or its
// document applied. Executions that have not ended, were cancelled, or were started by hand or by a backfill are ignored.
//
// They are counted when a tick is due and not when an execution ends: until then nothing would have been started, and ends cost nothing
// more.
func (e *Engine) failures(ctx context.Context, k *store.Schedule, most int) (failed int, err error) {
	if k.Execution.IsZero() || most == 0 {
		return 0, nil
	}
	var before time.Time
	for scanned := 0; scanned < failuresScanned; {
		page := max(most, 10)
		ticks, err := e.opts.Store.Ticks(ctx, k.Name, before, page)
		if err != nil {
			return 0, fmt.Errorf("count failures of schedule %s: %w", k.Name, err)
		}
		for i := range ticks {
			tick := &ticks[i]
			if before = tick.Nominal; tick.Execution.IsZero() || tick.Tag != "" {
				continue
			}
			if tick.At.Before(k.CountedFrom) {
				return failed, nil
			}
			x, err := e.opts.Store.Get(ctx, tick.Execution)
			switch {
			case errors.Is(err, store.ErrNotFound): // retention has removed it, and all earlier ones
				return failed, nil
			case err != nil && fault.OfBatch(err): // a row that cannot be read is not counted
			case err != nil:
				return 0, fmt.Errorf("count failures of schedule %s: %w", k.Name, err)
			case x.Stage == flow.Completed:
				return failed, nil
			case x.Stage == flow.Failed, x.Stage == flow.TimedOut:
				if failed++; failed == most {
					return failed, nil
				}
			}
		}
		if scanned += len(ticks); len(ticks) < page {
			return failed, nil
		}
	}
	return failed, nil
}

// failing returns why a schedule must pause itself; "" if it need not.
func (e *Engine) failing(ctx context.Context, d *definition.Definition, k *store.Schedule) (string, error) {
	most := d.Schedule.PauseAfter
	failed, err := e.failures(ctx, k, most)
	if err != nil || most == 0 || failed < most {
		return "", err
	}
	return fmt.Sprintf("%d executions in a row failed (pause_after)", failed), nil
}
