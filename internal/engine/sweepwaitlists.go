package engine

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	// waitListsPage is how many wait lists are read at once.
	waitListsPage = 200
	// waitListsPauseFactor makes the loop pause for waitListsPauseFactor*d after a look that took d, so that looks take at most 5 % of the
	// time. Chosen, not measured.
	waitListsPauseFactor = 20
)

// sweepWaitLists serves wait lists of keys whose head fits. It runs at every second read of watchPending (waitListsRounds): every 8 to 10
// s, and more often if a sixth of a lease is less than 5 s. The transaction that frees a slot admits the next execution; the sweep finds
// those left over by transactions that could not.
func (e *Engine) sweepWaitLists(ctx context.Context) {
	var rested time.Time
	for {
		select {
		case <-e.waitLists:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		if began.Before(rested) {
			continue
		}
		if err := e.serveWaitLists(ctx); err != nil && ctx.Err() == nil {
			e.opts.Log.Error("looking through the wait lists of keys failed; it will be tried again", telemetry.Err, err)
		}
		rested = time.Now().Add(waitListsPauseFactor * time.Since(began))
	}
}

// serveWaitLists enqueues a request for each wait list whose head fits.
func (e *Engine) serveWaitLists(ctx context.Context) error {
	for after := ""; ; {
		waitLists, err := e.opts.Store.WaitLists(ctx, after, waitListsPage)
		if err != nil {
			return err
		}
		for _, l := range waitLists {
			if after = l.Key; l.Holders < l.Head.KeyLimit {
				e.followUp(&waitListOp{e: e, key: l.Key})
			}
		}
		if len(waitLists) < waitListsPage {
			return nil
		}
	}
}
