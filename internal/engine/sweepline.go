package engine

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	// linesEvery is how often the lines of keys are looked through for one whose head may go. The transaction that frees a slot
	// admits the next; what is found here was left over by one that could not.
	linesEvery = 10 * time.Second
	// linesPage is how many lines are read at once.
	linesPage = 200
	// linesRests is how many times as long as a look took the next one waits at least.
	linesRests = 20
)

// sweepLines lets the lines of keys go on whose head may go.
func (e *Engine) sweepLines(ctx context.Context) {
	pause := time.Duration(linesEvery)
	for {
		select {
		case <-time.After(e.jittered(pause)):
		case <-ctx.Done():
			return
		}
		began := time.Now()
		if err := e.servingLines(ctx); err != nil && ctx.Err() == nil {
			e.opts.Log.Error("looking through the lines of keys failed; it will be tried again", telemetry.Err, err)
		}
		pause = max(linesEvery, linesRests*time.Since(began))
	}
}

// servingLines hands in a request for each line whose head may go.
func (e *Engine) servingLines(ctx context.Context) error {
	for after := ""; ; {
		lines, err := e.opts.Store.Lines(ctx, after, linesPage)
		if err != nil {
			return err
		}
		for _, l := range lines {
			if after = l.Key; l.Holders < l.Head.KeyLimit {
				e.followUp(&lineOp{e: e, key: l.Key})
			}
		}
		if len(lines) < linesPage {
			return nil
		}
	}
}
