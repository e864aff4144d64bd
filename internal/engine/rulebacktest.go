package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/automation"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

const (
	// pastSignals is how many past signals one request reads, the latest first; pastPage is how many it reads together.
	pastSignals = 10_000
	pastPage    = 500
	// pastWork is how many operations a test of rules takes, about a second of a processor, before it stops reading older signals.
	pastWork = 10_000_000
	// replayAtOnce is how many signals one transaction evaluates a rule for again, unless the executions of fewer fill it.
	replayAtOnce = 200
	// pastSamples is how many signals an answer names.
	pastSamples = 20
)

// mostOften are the keys of up to n of the greatest counts.
func mostOften(counts map[string]int, n int) []string {
	all := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	return all[:min(n, len(all))]
}

func countPast(p *api.RulePast, s flow.EnforcementState) {
	//exhaustive:enforce
	switch s {
	case flow.EnforcementRan, flow.EnforcementFolded:
		p.Ran++
	case flow.EnforcementBuffered:
		p.Held++
	case flow.EnforcementRefused:
		p.Refused++
	case flow.EnforcementFailed:
		p.Failed++
	}
}

// walkPast reads the signals since a time that a rule listens to, the latest first, until spent has pastWork.
func (e *Engine) walkPast(ctx context.Context, r *automation.Rule, since time.Time, spent *definition.Work, look func(*flow.Signal) error) (more bool, err error) {
	f := signalsOf(r, since)
	f.Limit = pastPage
	for seen := 0; ; {
		page, err := e.opts.Store.Signals(ctx, f)
		if err != nil || len(page) == 0 {
			return false, err
		}
		for i := range page {
			if seen++; seen > pastSignals || spent.Done > pastWork {
				return true, nil
			}
			// One signal may take a second of a processor: without its caller the walk must end.
			if err := ctx.Err(); err != nil {
				return false, err
			}
			if s := &page[i]; r.ListensTo(s.Trigger) && !s.Replayed {
				if err := look(s); err != nil {
					return false, err
				}
			}
		}
		f.Before = store.PlaceOf(&page[len(page)-1])
	}
}

// TestRules returns what rules would have started for the signals since a time, by the functions that fire rules, and how that differs from
// the versions in force. It stores nothing.
func (e *Engine) TestRules(ctx context.Context, defs []*definition.Definition, since time.Time) ([]api.RulePast, error) {
	in, err := e.readRules(ctx, 0)
	if err != nil {
		return nil, err
	}
	all, spent := []api.RulePast{}, &definition.Work{}
	for _, d := range defs {
		if d.Rule == nil {
			continue
		}
		p, err := e.testRule(ctx, &automation.Rule{Name: d.Name, Rule: d.Rule}, in.Rule(d.Name), since, spent)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// testRule is TestRules for one rule; was is the version in force, or nil.
func (e *Engine) testRule(ctx context.Context, r, was *automation.Rule, since time.Time, spent *definition.Work) (p api.RulePast, err error) {
	p = api.RulePast{Rule: r.Name, Samples: []api.PastSample{}}
	var windows pastWindows
	once, alone := map[string]struct{}{}, 0
	p.More, err = e.walkPast(ctx, r, since, spent, func(s *flow.Signal) error {
		x, err := e.evaluateAlone(ctx, r, s, spent)
		if err != nil && fault.Lasting(err) {
			p.Signals++
			addPast(&p, s.ID, flow.EnforcementFailed, unreadReason(err))
			return nil
		}
		if err != nil {
			return err
		}
		y, err := e.evaluateAlone(ctx, was, s, spent)
		if err != nil {
			return err
		}
		sample, state, before := api.PastSample{Signal: s.ID.Text(flow.SignalPrefix)}, flow.EnforcementState(0), flow.EnforcementState(0)
		p.Signals++
		if x != nil {
			state, sample.Reason = x.verdict.State, shownReason(x.verdict.Reason)
			windows.buffer(&x.verdict, s)
			if key := x.verdict.Once; state == flow.EnforcementRan && key != "" {
				once[key] = struct{}{}
			} else if state == flow.EnforcementRan {
				alone++
			}
		}
		if y != nil {
			before = y.verdict.State
		}
		sample.State, sample.Was = state.String(), before.String()
		sample.Unlike = was != nil && (state != before || x != nil && string(x.verdict.Input) != string(y.verdict.Input))
		if sample.Unlike {
			p.Unlike++
		}
		countPast(&p, state)
		if (state != 0 || sample.Unlike) && len(p.Samples) < pastSamples {
			p.Samples = append(p.Samples, sample)
		}
		return nil
	})
	if p.Runs = windows.runs(r.Window); r.Once != nil && r.Window == nil {
		p.Runs = len(once) + alone
	}
	return p, err
}

// evaluate returns a rule's planned enforcement of a signal; nil: none, or there is no rule. It adds the operations to spent.
func (e *Engine) evaluate(ctx context.Context, r *automation.Rule, s *flow.Signal, spent *definition.Work) (*plannedEnforcement, error) {
	if r == nil {
		return nil, nil
	}
	if s.Damage != "" {
		return nil, fault.Damaged(s.Damage)
	}
	w := definition.WorkWithin(definition.SharedWork)
	defer func() { spent.Done += w.Done }()
	v, holds, err := automation.MatchRule(r, s, w)
	if err != nil || !holds {
		return nil, err
	}
	return e.planEnforcement(ctx, v, s.ID, w)
}

// addPast counts a rule's result for a past signal, and keeps the first ones as samples.
func addPast(p *api.RulePast, id flow.ID, state flow.EnforcementState, why flow.Reason) {
	if countPast(p, state); len(p.Samples) < pastSamples {
		p.Samples = append(p.Samples, api.PastSample{Signal: id.Text(flow.SignalPrefix), State: state.String(), Reason: shownReason(why)})
	}
}

// unreadReason is the reason why a rule cannot be evaluated for a signal.
func unreadReason(err error) flow.Reason {
	return flow.Reason{Code: flow.ReasonInput, Message: problem.Clip(err.Error(), reasonMost)}
}

// ErrPaused means that a paused rule cannot start something.
var ErrPaused = errors.New("the rule is paused")

// ReplayRule evaluates a rule for the signals since a time of which it has no enforcement, the oldest first, as if they came now. It may be
// repeated at any time: a rule enforces a signal once. dry starts nothing.
func (e *Engine) ReplayRule(ctx context.Context, name string, since time.Time, dry bool) (*api.RulePast, error) {
	r, _, err := e.Rule(ctx, name)
	if err != nil {
		return nil, err
	}
	if r.Paused && !dry {
		return nil, ErrPaused
	}
	p := &api.RulePast{Rule: name, Samples: []api.PastSample{}}
	var all []flow.Signal
	p.More, err = e.walkPast(ctx, r, since, &definition.Work{}, func(s *flow.Signal) error {
		if s.State == flow.SignalMatched {
			c := *s
			c.Data, c.Headers = nil, nil // ten thousand signals are kept
			all, p.Signals = append(all, c), p.Signals+1
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(all)
	for len(all) > 0 {
		n, err := e.replay(ctx, r, all, dry, p)
		if err != nil {
			return p, err
		}
		all = all[n:]
	}
	return p, nil
}

// replay evaluates a rule for the first of some past signals, as many as one transaction takes, and returns how many.
func (e *Engine) replay(ctx context.Context, r *automation.Rule, all []flow.Signal, dry bool, p *api.RulePast) (n int, err error) {
	var signals []flow.Signal
	xs := map[int64][]*plannedEnforcement{}
	for budget := e.budget.WithRows(replayAtOnce); n < len(all) && !budget.Spent(); n++ {
		budget.Spend(1, 0)
		s, err := e.opts.Store.Signal(ctx, all[n].ID)
		if errors.Is(err, store.ErrNotFound) {
			continue // retention has removed it meanwhile
		}
		if err != nil {
			return 0, err
		}
		existing, err := e.opts.Store.Enforcements(ctx, store.EnforcementFilter{Rule: r.Name, Signal: s.Number, Limit: 1})
		if err != nil {
			return 0, err
		}
		if len(existing) > 0 {
			p.Enforced++
			continue
		}
		x, err := e.evaluate(ctx, r, &s, &definition.Work{})
		if err != nil && fault.Lasting(err) {
			addPast(p, s.ID, flow.EnforcementFailed, unreadReason(err))
			continue
		}
		if err != nil {
			return 0, err
		}
		if x != nil {
			budget.Spend(0, x.size()+len(s.Data))
			signals, xs[s.Number] = append(signals, s), []*plannedEnforcement{x}
		}
	}
	if dry {
		for i := range signals {
			v := &xs[signals[i].Number][0].verdict
			addPast(p, signals[i].ID, v.State, v.Reason)
		}
		return n, nil
	}
	return n, e.enforcePast(ctx, signals, xs, p)
}

// enforcePast carries out a rule for past signals. If one is refused, the rule has failed for it, and the others are not affected.
func (e *Engine) enforcePast(ctx context.Context, signals []flow.Signal, xs map[int64][]*plannedEnforcement, p *api.RulePast) error {
	if len(signals) == 0 {
		return nil
	}
	done, err := inBatch(ctx, e, nil, func(ctx context.Context, t *transaction) ([]flow.Enforcement, error) {
		return t.enforceOnce(ctx, signals, func(s *flow.Signal) []*plannedEnforcement { return xs[s.Number] })
	})
	x := xs[signals[0].Number][0]
	switch {
	case err == nil:
	case !fault.Lasting(err):
		return err
	case len(signals) > 1:
		for i := range signals {
			if err := e.enforcePast(ctx, signals[i:i+1], xs, p); err != nil {
				return err
			}
		}
		return nil
	case x.start != nil:
		x.fail(err)
		return e.enforcePast(ctx, signals, xs, p)
	default:
		addPast(p, signals[0].ID, flow.EnforcementFailed, unreadReason(err))
		return nil
	}
	e.counters.enforced(done)
	for i := range done {
		addPast(p, done[i].Signal, done[i].State, done[i].Reason)
	}
	return nil
}
