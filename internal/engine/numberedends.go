package engine

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/store"
)

// numberedAtOnce is how many ends one transaction numbers.
const numberedAtOnce = 1000

// NumberedEnds returns up to n ended executions with the label, after the number after, in the order of their numbers. Ended ones without a
// number are numbered first. If nothing is returned, open reports whether more may come: an execution with the label has not ended, or
// another replica is numbering one.
func (e *Engine) NumberedEnds(ctx context.Context, l store.Label, after int64, n int) (page []store.Ended, open bool, err error) {
	// A reader that catches up does not search for new ends at every page: the search reads all executions with the label.
	if page, err = e.opts.Store.Ended(ctx, l, after, n); err != nil || len(page) > 0 {
		return page, true, err
	}
	ended, open, err := e.opts.Store.Unnumbered(ctx, l, numberedAtOnce)
	if err != nil {
		return nil, true, err
	}
	if len(ended) > 0 {
		open = true
		// In its own transaction: the committer's decisions read nothing of it.
		err := e.update(ctx, func(ctx context.Context, tx store.Tx) (err error) {
			defer fault.Recovered(&err)
			_, err = tx.Number(ctx, l, ended)
			return err
		})
		if err != nil {
			return nil, true, fmt.Errorf("number what has ended: %w", err)
		}
	}
	// In any case read again: another reader may have numbered ends since the first read.
	page, err = e.opts.Store.Ended(ctx, l, after, n)
	return page, open, err
}
