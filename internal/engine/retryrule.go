package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/automation"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// ErrNotEnforced means that a rule has no enforcement of a signal, so that there is nothing to retry.
var ErrNotEnforced = errors.New("the rule has no enforcement of the signal")

// startedNothing reports whether an enforcement may be retried.
func startedNothing(e *flow.Enforcement) bool {
	return e.State == flow.EnforcementFailed || e.State == flow.EnforcementRefused
}

// RetryEnforcement evaluates the rule in force again for a signal for which it, or an earlier version, has started nothing because it
// failed or was refused. The result replaces the row of the first try, so a rule has one enforcement of a signal, however often and on
// however many servers this is called. If the rule has run, or buffers the signal, the row is returned unchanged. If the rule's condition
// does not hold any more, the error is an *Invalid, and the row stays. ErrNotFound: the signal or rule does not exist.
func (e *Engine) RetryEnforcement(ctx context.Context, signal flow.ID, rule string) (*flow.Enforcement, error) {
	s, err := e.opts.Store.Signal(ctx, signal)
	if err != nil {
		return nil, err
	}
	r, _, err := e.Rule(ctx, rule)
	if err != nil {
		return nil, err
	}
	existing, err := e.opts.Store.Enforcements(ctx, store.EnforcementFilter{Rule: rule, Signal: s.Number, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(existing) == 0 {
		return nil, ErrNotEnforced
	}
	if !startedNothing(&existing[0]) {
		return &existing[0], nil
	}
	if r.Paused {
		return nil, ErrPaused
	}
	x, err := e.evaluateRetry(ctx, r, &s)
	if err != nil {
		return nil, err
	}
	again := newRequest(nil, classCall, func(ctx context.Context, t *transaction) (enforceRetry, error) { return t.enforceAgain(ctx, &s, x) })
	again.needs = x.want
	done, err := awaitAnswer(ctx, e, again)
	if err != nil {
		return nil, err
	}
	if done.enforced {
		e.counters.enforced([]flow.Enforcement{done.enforcement})
	}
	return &done.enforcement, nil
}

type enforceRetry struct {
	enforcement flow.Enforcement
	enforced    bool // by this retry; false: another one has started something
}

// evaluateRetry is evaluate for a rule that has started nothing for the signal. If the rule would start nothing now, the error is an
// *Invalid.
func (e *Engine) evaluateRetry(ctx context.Context, r *automation.Rule, s *flow.Signal) (*plannedEnforcement, error) {
	if s.Damage != "" {
		return nil, fault.Damaged(s.Damage)
	}
	why, err := automation.Explain(r, s)
	if err != nil {
		return nil, err
	}
	switch {
	case !why.Listens:
		return nil, fault.New("rule", r.Name, fmt.Sprintf("version %d does not listen to %s", r.Version, s.Trigger), "name the trigger in its `on`, and apply it")
	case !why.Holds:
		return nil, fault.New("rule", r.Name, fmt.Sprintf("version %d would make nothing of the signal: %s", r.Version, unheldText(why.Clauses)), "pawl why "+s.ID.Text(flow.SignalPrefix)+" shows the signal as the rule sees it")
	}
	return e.planEnforcement(ctx, why.Verdict, s.ID, definition.WorkWithin(definition.SharedWork))
}

// enforceAgain replaces a rule's earlier result for a signal, unless that has started something meanwhile. It locks the
// keys of the execution before the enforcement, in the order of all other rule starts.
func (t *transaction) enforceAgain(ctx context.Context, s *flow.Signal, x *plannedEnforcement) (k enforceRetry, err error) {
	there, err := t.tx.Enforced(ctx, []int64{s.Number}) // the signal stays until the end of the transaction
	if err != nil {
		return k, err
	}
	if there[s.Number] == nil {
		return k, fmt.Errorf("signal %s: %w", s.ID.Text(flow.SignalPrefix), store.ErrNotFound)
	}
	if k.enforcement, err = t.tx.LockEnforcement(ctx, s.Number, x.verdict.Rule.Name); err != nil {
		return k, err
	}
	if k.enforcement.Signal = s.ID; !startedNothing(&k.enforcement) {
		return k, nil
	}
	if k.enforcement, err = t.enforcement(ctx, s, x); err != nil {
		return k, err
	}
	k.enforced = true
	rows := t.changes.add()
	rows.Rules.Retried = append(rows.Rules.Retried, k.enforcement)
	return k, nil
}
