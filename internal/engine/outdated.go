package engine

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/store"
)

// sweepOutdated deletes rows that are not needed any more: meters, the locks of meters and windows, shares of wait lists, notes about
// asides, expired outcomes of the cache, and ticks older than retention. It does so once a minute, and less often while there are none.
func (e *Engine) sweepOutdated(ctx context.Context) {
	old := func(kind store.Outdated) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) { return e.dropOld(ctx, kind) }
	}
	drops := []func(context.Context) (int, error){
		old(store.OldMeters), e.dropLocks, old(store.OldShares), old(store.OldAsides), e.dropKept, old(store.OldTicks),
	}
	e.tidy(ctx, "removing what is left of rates, windows, lines, asides, kept outcomes and ticks", func(ctx context.Context) (all int, err error) {
		for _, drop := range drops {
			dropped, failed := drop(ctx)
			all, err = all+dropped, errors.Join(err, failed)
		}
		return all, err
	})
}

// dropLocks deletes the locks of meters and windows that do not exist any more. It returns 0: locks are not counted.
func (e *Engine) dropLocks(ctx context.Context) (int, error) {
	for last := ""; ; {
		err := e.update(ctx, func(ctx context.Context, tx store.Tx) error {
			next, err := tx.DropLocks(ctx, last, oldAtOnce)
			if err == nil {
				last = next
			}
			return err
		})
		if err != nil || last == "" {
			return 0, err
		}
	}
}

const (
	// sharesKept is how long the shares of an unused wait list are kept.
	sharesKept = time.Hour
	// oldAtOnce is how many rows one transaction drops.
	oldAtOnce = 1000
)

// retentionOf is how long rows of a kind are kept; 0: for ever.
func (e *Engine) retentionOf(kind store.Outdated) time.Duration {
	//exhaustive:enforce
	switch kind {
	case store.OldAsides:
		return asidesKept
	case store.OldMeters:
		return time.Minute
	case store.OldShares:
		return sharesKept
	case store.OldTicks:
		return e.opts.Retention
	}
	return 0
}

// dropOld deletes rows of a kind that are not needed any more.
func (e *Engine) dropOld(ctx context.Context, kind store.Outdated) (int, error) {
	age := e.retentionOf(kind)
	if age <= 0 {
		return 0, nil
	}
	return e.dropAll(ctx, func(ctx context.Context, tx store.Tx, now time.Time) (int, error) {
		return tx.DropOld(ctx, kind, now.Add(-age), oldAtOnce)
	})
}

// dropKept deletes expired outcomes of the cache, and those beyond keptMost.
func (e *Engine) dropKept(ctx context.Context) (int, error) {
	return e.dropAll(ctx, func(ctx context.Context, tx store.Tx, now time.Time) (int, error) {
		return tx.DropKept(ctx, now, keptMost, oldAtOnce)
	})
}

// dropAll deletes some rows in each transaction, until there are fewer than oldAtOnce.
func (e *Engine) dropAll(ctx context.Context, deleteBatch func(context.Context, store.Tx, time.Time) (int, error)) (all int, err error) {
	for {
		dropped := 0
		err := e.update(ctx, func(ctx context.Context, tx store.Tx) error {
			now, err := tx.Now(ctx)
			if err == nil {
				dropped, err = deleteBatch(ctx, tx, now)
			}
			return err
		})
		if all += dropped; err != nil || dropped < oldAtOnce {
			return all, err
		}
	}
}
