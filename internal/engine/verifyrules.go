package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/automation"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

const (
	// verifiedSignals is how many signals, the latest, are evaluated again.
	verifiedSignals = 10_000
	// newForLong is how long a signal may be new: every server looks for new ones every 5 s (pendingEvery).
	newForLong = 30 * time.Second
)

// verifyRules evaluates the rules for the latest signals again, and compares the results with the stored enforcements.
func (e *Engine) verifyRules(ctx context.Context) (broken []store.Violation, err error) {
	var now time.Time
	err = e.update(ctx, func(ctx context.Context, tx store.Tx) (err error) { // not by the committer: a stopped engine is verified, too
		now, err = tx.Now(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	f := store.SignalFilter{Limit: pastPage}
	for seen := 0; seen < verifiedSignals; {
		page, err := e.opts.Store.Signals(ctx, f)
		if err != nil || len(page) == 0 {
			return broken, err
		}
		for i := range page {
			seen++
			found, err := e.verifySignal(ctx, &page[i], now)
			if err != nil {
				return nil, err
			}
			broken = append(broken, found...)
		}
		f.Before = store.PlaceOf(&page[len(page)-1])
	}
	return broken, nil
}

func (e *Engine) verifySignal(ctx context.Context, s *flow.Signal, now time.Time) (broken []store.Violation, err error) {
	id := s.ID.Text(flow.SignalPrefix)
	unreadable := func(why string) []store.Violation {
		return []store.Violation{{Invariant: 32, Execution: s.Cause, Say: fmt.Sprintf("signal %s cannot be read: %s", id, why)}}
	}
	if s.Damage != "" {
		return unreadable(s.Damage), nil
	}
	if s.State == flow.SignalNew {
		if age := now.Sub(s.At); age > newForLong {
			broken = append(broken, store.Violation{Invariant: 41, Execution: s.Cause, Say: fmt.Sprintf("signal %s is new for %s: the rules have not been asked about it", id, age.Round(time.Second))})
		}
		return broken, nil
	}
	const most = 10_000
	found, err := e.opts.Store.Enforcements(ctx, store.EnforcementFilter{Signal: s.Number, Limit: most})
	if err != nil {
		return nil, err
	}
	set, err := e.rulesAt(ctx, s.Generation)
	if err != nil {
		return nil, err
	}
	if !s.Replayed {
		verdicts, err := automation.Match(set, s)
		if err != nil {
			return unreadable(err.Error()), nil
		}
		for _, v := range verdicts {
			if !slices.ContainsFunc(found, func(k flow.Enforcement) bool { return k.Rule == v.Rule.Name }) {
				broken = append(broken, store.Violation{Invariant: 40, Execution: s.Cause, Say: fmt.Sprintf("rule %s holds of signal %s, and has no enforcement of it", v.Rule.Name, id)})
			}
		}
	}
	for _, k := range found {
		r := set.Rule(k.Rule)
		if r == nil || r.Version != k.Version || k.State != flow.EnforcementRan {
			continue // a later version enforced it in a replay
		}
		if reason := automation.Guard(r, s.Rules); reason != nil {
			broken = append(broken, store.Violation{Invariant: 51, Execution: k.Execution, Say: fmt.Sprintf("rule %s has run on signal %s: %s", k.Rule, id, reason.Message)})
		}
	}
	return broken, nil
}
