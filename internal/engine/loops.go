package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/pawl-run/pawl/internal/store"
)

// Run commits and sweeps until ctx ends; then it finishes what is pending and returns. Calls that come later get
// ErrClosed.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.Start(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("start engine: %w", err)
	}
	var wg sync.WaitGroup
	for _, loop := range e.Loops() {
		wg.Go(func() { loop(ctx) })
	}
	wg.Wait()
	return nil
}

// Loops are what Run runs side by side until ctx ends: the committers first, then what watches over them. Whoever needs to decide the
// order in which they begin, as a simulation does, calls Start and runs them itself.
func (e *Engine) Loops() []func(context.Context) {
	var all []func(context.Context)
	for range e.opts.Committers {
		all = append(all, e.commitLoop)
	}
	return append(all, e.sweepDue, e.sweepSessions, e.sweepFinished, e.lookout)
}

// Start brings back what an earlier life of this process left. Run does it first.
func (e *Engine) Start(ctx context.Context) error {
	for _, q := range e.opts.Queues {
		if err := e.catalog.persistQueue(ctx, q); err != nil {
			return err
		}
	}
	if !e.opts.Exclusive {
		return nil
	}
	return e.opts.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		return tx.ExpireEmbedded(ctx, now)
	})
}
