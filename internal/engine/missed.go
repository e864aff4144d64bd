package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// missedAfter is the least age of a claim that Missed returns, unless a thirtieth of a lease is shorter: for a younger claim, the answer of
// Take may still be on its way. Chosen, not measured.
const missedAfter = time.Second

// mostMissed bounds how many attempts one call of Missed returns. The next call returns others, because the worker then names the first
// ones.
const mostMissed = 1000

// Missed implements handoff.Handoff. It returns attempts whose claims are older than missedAfter and younger than two thirds of a lease:
// recoverUnstarted is about to take older ones back. It reads committed rows and changes nothing: an attempt that is recovered at the same
// moment is fenced when its worker reports it.
func (e *Engine) Missed(ctx context.Context, session flow.ID, have []flow.AttemptID) ([]handoff.Assignment, error) {
	if _, err := e.sessionOf(ctx, session); err != nil {
		return nil, err
	}
	from := e.opts.Uptime()
	now, err := e.now(ctx)
	if err != nil {
		return nil, sessionError(err)
	}
	if !e.clocks.durationsValid(clockReading{now, from, e.opts.Uptime()}) {
		return nil, nil // the age of the claims is not known
	}
	had := make(map[flow.AttemptID]bool, len(have))
	for _, a := range have {
		had[a] = true
	}
	var missed []*flow.Execution
	for id, bytes := (flow.ID{}), 0; ; {
		xs, err := e.opts.Store.Provisioning(ctx, session, id, unstartedPage)
		if err != nil {
			return nil, sessionError(fmt.Errorf("find hand-offs: %w", err))
		}
		for _, x := range xs {
			if x.Owner != session || len(missed) == mostMissed || bytes > store.TakeBytes {
				return e.assignments(missed), nil
			}
			id = x.ID
			age := now.Sub(x.ClaimedAt)
			if had[flow.AttemptID{Execution: x.ID, Attempt: x.Attempt}] || age < min(missedAfter, e.opts.Lease/30) || age >= 2*e.opts.Lease/3 {
				continue
			}
			whole, err := e.opts.Store.Get(ctx, x.ID)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, sessionError(fmt.Errorf("load %s: %w", x.ID, err))
			}
			if whole.Owner == session && whole.Attempt == x.Attempt && whole.Stage == flow.Provisioning {
				missed = append(missed, whole)
				bytes += len(whole.Payload())
			}
		}
		if len(xs) < unstartedPage {
			return e.assignments(missed), nil
		}
	}
}
