package engine

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	// linesPage is how many lines are read at once.
	linesPage = 200
	// linesPauseFactor is how long the next look waits at least: after a look of d for linesPauseFactor*d, so that looks
	// take at most 5 % of the time. Chosen, not measured.
	linesPauseFactor = 20
)

// sweepLines lets the lines of keys go on whose head may go. It looks at every second look of watchPending
// (linesRounds): every 8 to 10 s, and more often where a sixth of a lease is less than 5 s. The transaction that frees
// a slot admits the next; what is found here was left over by one that could not.
func (e *Engine) sweepLines(ctx context.Context) {
	var rested time.Time
	for {
		select {
		case <-e.lines:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		if began.Before(rested) {
			continue
		}
		if err := e.serveLines(ctx); err != nil && ctx.Err() == nil {
			e.opts.Log.Error("looking through the lines of keys failed; it will be tried again", telemetry.Err, err)
		}
		rested = time.Now().Add(linesPauseFactor * time.Since(began))
	}
}

// serveLines hands in a request for each line whose head may go.
func (e *Engine) serveLines(ctx context.Context) error {
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
