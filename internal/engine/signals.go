package engine

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	// signalsAtOnce is how many signals and enforcements one transaction of retention removes, or a page of their data: about 10 ms on
	// SQLite.
	signalsAtOnce = 500
	signalsRest   = 20 * time.Millisecond // between two of these: commits of others go between
)

// sweepSignals removes the signals that retention does not keep.
func (e *Engine) sweepSignals(ctx context.Context) {
	if e.opts.SignalRetention <= 0 {
		return
	}
	for {
		pause := e.jittered(purgePause(e.opts.SignalRetention))
		switch dropped, err := e.dropSignals(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			e.opts.Log.Error("removing old signals failed; it will be tried again", telemetry.Err, err)
		case dropped > 0:
			pause = signalsRest
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// dropSignals removes some of the signals that retention does not keep, and returns how many.
func (e *Engine) dropSignals(ctx context.Context) (dropped int, err error) {
	err = e.update(ctx, func(ctx context.Context, tx store.Tx) error {
		now, err := tx.Now(ctx)
		if err == nil {
			dropped, err = tx.DropSignals(ctx, now.Add(-e.opts.SignalRetention), signalsAtOnce)
		}
		return err
	})
	return dropped, err
}
