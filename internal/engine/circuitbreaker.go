package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/admission"
	"github.com/pawl-run/pawl/internal/automation"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// circuitBreakers counts how often each rule with a bound, for example 100 runs a minute, starts executions. Each server counts for itself,
// so three servers together allow 300. The breaker stops rules that start one another without end, and needs no lock in the database.
type circuitBreakers struct {
	mu  sync.Mutex
	all map[string]breakerState // by rule
}

// breakerState is the used part of a rule's bound since its latest change: a resumed rule, or a new version, starts with an empty count.
type breakerState struct {
	since int64
	tat   time.Time
}

// allow reports whether a rule may run once more, and counts the run.
func (s *circuitBreakers) allow(r *automation.Rule, now time.Time) bool {
	if r.CircuitBreaker == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.all[r.Name]
	if k.since != r.Since && !r.Paused { // runs that a paused rule buffers in windows continue to count
		k = breakerState{since: r.Since}
	}
	begin, tat := admission.Reserve(k.tat, now, r.CircuitBreaker.Limit, r.CircuitBreaker.Per, r.CircuitBreaker.Limit)
	if begin.After(now) {
		return false
	}
	if s.all == nil || len(s.all) >= catalog.Limit {
		s.all = map[string]breakerState{}
	}
	s.all[r.Name] = breakerState{k.since, tat}
	return true
}

// release subtracts a run that allow counted but that did not happen.
func (s *circuitBreakers) release(r *automation.Rule) {
	if r.CircuitBreaker == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.all[r.Name]; ok {
		k.tat = k.tat.Add(-r.CircuitBreaker.Per / time.Duration(r.CircuitBreaker.Limit))
		s.all[r.Name] = k
	}
}

// breakCircuit refuses a run of a rule that exceeds its bound, and pauses the rule. A signal that is stored already
// starts nothing and is not counted, so a provider that sends everything three times does not open the breaker.
func (e *Engine) breakCircuit(ctx context.Context, v *automation.Verdict, s *flow.Signal) error {
	if v.State != flow.EnforcementRan || v.Rule.CircuitBreaker == nil {
		return nil
	}
	if s.Number == 0 && s.Key != "" { // it is not stored yet
		if known, err := e.opts.Store.HasSignal(ctx, store.KeyOf(s)); err != nil || known {
			return err
		}
	}
	if e.rules.breakers.allow(v.Rule, time.Now()) {
		return nil
	}
	v.State, v.Reason = flow.EnforcementRefused, breakerReason(v.Rule)
	if err := e.PauseRule(ctx, v.Rule.Name, v.Reason.Message); err != nil && !errors.Is(err, store.ErrNotFound) {
		e.opts.Log.Warn("pausing a rule that fires more often than its storm allows failed; it is tried again with its next signal", "rule",
			v.Rule.Name, telemetry.Err, err)
	}
	return nil
}

// breakerReason is the reason why a rule beyond its bound does not run and was paused.
func breakerReason(r *automation.Rule) flow.Reason {
	return flow.Reason{Code: flow.ReasonCircuitBreaker, Path: "storm",
		Message: fmt.Sprintf("it would run more than %d times in %s on one server", r.CircuitBreaker.Limit, r.CircuitBreaker.Per)}
}

// recordPaused keeps the signal of a paused rule, if any rule listens to it.
func (t *transaction) recordPaused(ctx context.Context, name, reason string) error {
	set := t.e.rules.current.Load()
	if len(set.On(flow.TriggerPaused)) == 0 {
		return nil
	}
	return t.Record(ctx, flow.Signal{Trigger: flow.TriggerPaused, Subject: name, Source: rulePrefix + name}, set.Generation,
		map[string]string{"rule": name, "reason": reason})
}
