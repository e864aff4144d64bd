package engine

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/store"
)

// numberedAtOnce is how many ends one transaction gives their numbers.
const numberedAtOnce = 1000

// NumberedEnds returns up to n executions with the label that have ended, beyond the number after, in the order of their
// numbers. Ended ones without a number are numbered first. When nothing is returned, open says whether more may come:
// an execution with the label has not ended, or another replica is numbering one.
func (e *Engine) NumberedEnds(ctx context.Context, l store.Label, after int64, n int) (page []store.Ended, open bool, err error) {
	// A reader that catches up does not look for new ends at every page: that reads everything with the label.
	if page, err = e.opts.Store.Ended(ctx, l, after, n); err != nil || len(page) > 0 {
		return page, true, err
	}
	ended, open, err := e.opts.Store.Unnumbered(ctx, l, numberedAtOnce)
	if err != nil {
		return nil, true, err
	}
	if len(ended) > 0 {
		open = true
		// In a transaction of its own: it concerns nothing that the committer's decisions read.
		err := e.update(ctx, func(ctx context.Context, tx store.Tx) (err error) {
			defer fault.Recovered(&err)
			_, err = tx.Number(ctx, l, ended)
			return err
		})
		if err != nil {
			return nil, true, fmt.Errorf("number what has ended: %w", err)
		}
	}
	// Again in any case: another reader may have given numbers since the first look.
	page, err = e.opts.Store.Ended(ctx, l, after, n)
	return page, open, err
}
