package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// Run commits and sweeps until ctx ends; then it finishes the pending requests and returns. Later calls get ErrClosed.
// If the store does not answer at the start, Run waits for it.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.startWhenStoreAnswers(ctx); err != nil && ctx.Err() == nil {
		err = fmt.Errorf("start engine: %w", err)
		e.refuseAll(err)
		return err
	}
	var wg sync.WaitGroup
	for _, run := range e.Loops() {
		wg.Go(func() { run(ctx) })
	}
	wg.Wait()
	return nil
}

// startWhenStoreAnswers calls Start until the store answers.
func (e *Engine) startWhenStoreAnswers(ctx context.Context) error {
	for {
		err := e.Start(ctx)
		if err == nil || fault.OfBatch(err) {
			return err
		}
		e.opts.Log.Warn("the engine waits for its store", telemetry.Err, err)
		if !loop.Sleep(ctx, e.jittered(beginAgain), nil) {
			return ctx.Err()
		}
	}
}

const beginAgain = time.Second

// refuseAll refuses pending and later requests for good.
func (e *Engine) refuseAll(why error) {
	e.mu.Lock()
	e.closed = fmt.Errorf("%w: %w", ErrClosed, why)
	pending, claimers := e.batcher.clear(), e.claimers.clear()
	e.mu.Unlock()
	for _, o := range pending {
		o.done(e.closed)
	}
	for _, k := range claimers {
		k.answer(nil, e.closed)
	}
}

// Closed is why the engine accepts nothing any more; nil while it does.
func (e *Engine) Closed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// Start recovers the state that an earlier process left. Run calls it first.
func (e *Engine) Start(ctx context.Context) error {
	for _, q := range e.opts.Queues {
		if err := e.catalog.PersistQueue(ctx, q); err != nil {
			return err
		}
	}
	if _, err := e.readRules(ctx, catalog.LatestFor); err != nil {
		return err
	}
	if e.opts.Crashes.Died() && !e.opts.Before.IsZero() {
		e.crashed[e.opts.Before] = true // its lease may have expired, for example if a pod restarts after minutes
	}
	if !e.opts.Exclusive {
		return nil
	}
	return e.opts.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := tx.ExpireEmbedded(ctx); err != nil || !e.opts.Crashes.Died() {
			return err
		}
		expired, err := tx.Expired(ctx, 10*expiredPage) // those of remote workers as well
		for _, s := range expired {
			e.crashed[s.ID] = s.Embedded
		}
		return err
	})
}
