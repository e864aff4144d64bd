package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	// newAtOnce and newStarts bound one transaction that evaluates rules for new signals: the signals, and the executions that the rules
	// start.
	newAtOnce = 500
	newStarts = 1000
	newAgain  = time.Second // after a failed look
	// outputMost is the largest output that is included in the signal of an end; for a larger one, a rule's action reads the output.
	outputMost = 64 << 10
	// messageMost bounds an error's message in the signal.
	messageMost = 4 << 10
)

// endData is the data of the signal of an execution's end.
type endData struct {
	Execution  flow.ID           `json:"execution"`
	Action     string            `json:"action"`
	Version    int               `json:"version,omitempty"`
	Status     string            `json:"status"`
	Attempt    int               `json:"attempt"`
	Labels     map[string]string `json:"labels"`
	CreatedAt  time.Time         `json:"created_at"`
	FinishedAt time.Time         `json:"finished_at"`
	Error      *endError         `json:"error"`
	Output     json.RawMessage   `json:"output"` // null if it is larger than outputMost
	OutputSize int               `json:"output_size"`
}

type endError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// recordEnds keeps a signal for each execution that ends with this write if a rule may listen to its end, so that the signal exists exactly
// if the end does. Another transaction evaluates the rules, so that no consequence of an end can prevent its record. Without rules about
// ends, this costs two comparisons per end.
func (t *transaction) recordEnds(ctx context.Context) error {
	set := t.e.rules.current.Load()
	if set == nil || !set.ListensToEnds() {
		return nil
	}
	for _, d := range t.changes.drafts {
		if d.Ended() && d.Parent.IsZero() && !t.deferred(d) && set.ListensToEnd(&d.Request, d.Stage) {
			if err := t.recordEnd(ctx, d, set.Generation); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *transaction) recordEnd(ctx context.Context, d *flow.Draft, generation int64) error {
	end := endData{Execution: d.ID, Action: d.Action, Version: d.Version, Status: d.Stage.String(), Attempt: d.Attempt, Labels: d.Labels, CreatedAt: d.CreatedAt, FinishedAt: d.FinishedAt}
	if end.Labels == nil {
		end.Labels = map[string]string{}
	}
	if o := d.Outcome; o != nil {
		if o.Error != nil {
			end.Error = &endError{o.Error.Code, problem.Clip(o.Error.Message, messageMost)}
		}
		if end.OutputSize = len(o.Output); end.OutputSize <= outputMost {
			end.Output = o.Output
		}
	}
	return t.Record(ctx, flow.Signal{Trigger: flow.TriggerEnded, Key: d.ID.String(), Subject: d.Action, Source: flow.SourceExecution,
		SignalDetail: flow.SignalDetail{Cause: d.ID, Rules: d.Rules}}, generation, end)
}

// matchSignals evaluates rules for new signals: at once for those of this replica, and when watchPending announces those of servers that
// have ended.
func (e *Engine) matchSignals(ctx context.Context) {
	loop.Repeat(ctx, e.opts.Log, "asking the rules about new signals", newAgain, e.rules.wake, func(ctx context.Context) (time.Duration, error) {
		more, err := e.matchNew(ctx)
		return e.jittered(loop.IdleUnless(more)), err
	})
}

// matching is a new signal, with the results of the rules of its generation.
type matching struct {
	signal flow.Signal
	matched
}

func (m *matching) bytes() (n int) {
	for _, x := range m.all {
		n += x.size()
	}
	return n
}

// matchNew evaluates the rules for some new signals, takes one turn of those that wait for costly rules, and reports whether there may be
// more to do at once.
func (e *Engine) matchNew(ctx context.Context) (more bool, err error) {
	waiting := e.rules.turns.Len() > 0
	err = e.rules.scanned.Look(waiting, func(after store.SignalPlace) (last store.SignalPlace, found bool, err error) {
		last, handled, err := e.matchSome(ctx, after)
		more = more || handled > 0 || waiting && last != after
		return last, last != after, err
	})
	if err != nil {
		return false, err
	}
	turned, err := e.matchTurn(ctx)
	return more || turned, err
}

// matchSome evaluates the rules, except costly ones, for some new signals behind a place. A signal for which that fails is put aside. last
// is the place of the last signal that was read.
func (e *Engine) matchSome(ctx context.Context, after store.SignalPlace) (last store.SignalPlace, handled int, err error) {
	last = after
	found, err := e.opts.Store.NewSignals(ctx, time.Now(), after, newAtOnce)
	if err != nil || len(found) == 0 {
		return last, 0, err
	}
	var all []*matching
	for i, budget := 0, e.budget.WithRows(newStarts); i < len(found) && !budget.Spent(); i++ {
		last = store.PlaceOf(&found[i])
		if e.rules.turns.Has(found[i].ID) {
			continue
		}
		m, err := e.askRules(ctx, &found[i], ruleChoice{})
		switch {
		case err == nil:
			all = append(all, m)
			budget.Spend(len(m.all), m.bytes())
			budget.Compute(m.work)
			budget.Decode(len(found[i].Data))
		case !fault.Lasting(err):
			return last, handled, err
		default:
			aside, err := e.leaveAside(ctx, store.AsideMatching, found[i].ID, err)
			if err != nil {
				return last, handled, err
			}
			if aside {
				handled++
			}
		}
	}
	n, err := e.commitMatches(ctx, all)
	for _, m := range all {
		if m.more && err == nil {
			e.rules.turns.Add(m.signal.ID, "")
		}
	}
	return last, handled + n, err
}

// matchTurn evaluates costly rules for the signal whose turn it is: at least one, and as many as the budget of a transaction allows. It
// reports whether a signal had a turn.
func (e *Engine) matchTurn(ctx context.Context) (bool, error) {
	id, after, waits := e.rules.turns.Take()
	if !waits {
		return false, nil
	}
	s, err := e.opts.Store.Signal(ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && s.State != flow.SignalNew {
		e.rules.turns.Drop(id) // another server has matched it, or retention has removed it
		return true, nil
	}
	var m *matching
	if err == nil {
		m, err = e.askRules(ctx, &s, ruleChoice{turn: true, after: after})
	}
	if err == nil {
		_, err = e.commitMatches(ctx, []*matching{m})
	}
	switch {
	case err == nil && m.more:
		e.rules.turns.Turned(id, m.last)
	case err == nil:
		e.rules.turns.Drop(id)
	case fault.Lasting(err):
		e.rules.turns.Drop(id)
		_, err = e.leaveAside(ctx, store.AsideMatching, id, err)
	default:
		e.rules.turns.Turned(id, after)
	}
	return true, err
}

// askRules evaluates the rules of its generation for a new signal.
func (e *Engine) askRules(ctx context.Context, s *flow.Signal, a ruleChoice) (m *matching, err error) {
	defer fault.Recovered(&err)
	m = &matching{signal: *s}
	if s.Damage != "" {
		return nil, fault.Damaged(s.Damage)
	}
	if s.Replayed {
		return m, nil
	}
	set, err := e.rulesAt(ctx, s.Generation)
	if err != nil {
		return nil, err
	}
	// If the signal's rules are carried out in parts, this server, or one that has stopped, may have enforced some rules already.
	if a.turn {
		if a.except, err = e.enforcedBy(ctx, s); err != nil {
			return nil, err
		}
	}
	m.matched, err = e.match(ctx, set, s, a)
	return m, err
}

// enforcedBy names the rules that have an enforcement for a signal.
func (e *Engine) enforcedBy(ctx context.Context, s *flow.Signal) (map[string]bool, error) {
	known := map[string]bool{}
	f := store.EnforcementFilter{Signal: s.Number, Limit: newStarts}
	for {
		page, err := e.opts.Store.Enforcements(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range page {
			known[page[i].Rule] = true
		}
		if len(page) < f.Limit {
			return known, nil
		}
		f.BeforeSignal, f.BeforeRule = s.Number, page[len(page)-1].Rule
	}
}

// matchResult is the result of one transaction that carries out the rules for new signals.
type matchResult struct {
	signals int // signals that were still new, and not locked by another server
	done    []flow.Enforcement
}

// commitMatches carries out the rules for new signals in one transaction, and returns the number of signals. It skips signals that another
// server has matched or is about to match. A signal whose decision is refused does not affect others: its rules have failed, or it is put
// aside.
func (e *Engine) commitMatches(ctx context.Context, all []*matching) (int, error) {
	if len(all) == 0 {
		return 0, nil
	}
	c, err := inBatch(ctx, e, nil, func(ctx context.Context, t *transaction) (matchResult, error) { return t.applyMatches(ctx, all) })
	switch {
	case err == nil:
		e.counters.enforced(c.done)
		return c.signals, nil
	case !fault.Lasting(err):
		return 0, err
	case len(all) == 1:
		e.opts.Log.Error("a signal cannot be enforced: its rules have failed", telemetry.Signal, all[0].signal.ID.Text(flow.SignalPrefix), telemetry.Err, err)
		if slices.ContainsFunc(all[0].all, func(x *plannedEnforcement) bool { return x.start != nil }) {
			for _, x := range all[0].all {
				x.fail(err)
			}
			return e.commitMatches(ctx, all)
		}
		if aside, err := e.leaveAside(ctx, store.AsideMatching, all[0].signal.ID, err); err != nil || !aside {
			return 0, err
		}
		return 1, nil
	}
	matched := 0
	for _, m := range all {
		n, err := e.commitMatches(ctx, []*matching{m})
		if err != nil {
			return matched, err
		}
		matched += n
	}
	return matched, nil
}

func (t *transaction) applyMatches(ctx context.Context, all []*matching) (c matchResult, err error) {
	numbers := make([]int64, len(all))
	byNumber := make(map[int64]*matching, len(all))
	for i, m := range all {
		numbers[i], byNumber[m.signal.Number] = m.signal.Number, m
	}
	locked, err := t.tx.LockSignals(ctx, numbers)
	if err != nil || len(locked) == 0 {
		return c, err
	}
	c.signals = len(locked)
	for i := range locked {
		if !byNumber[locked[i].Number].more {
			rows := t.changes.add()
			rows.Signals.Matched = append(rows.Signals.Matched, locked[i].Number)
		}
	}
	c.done, err = t.enforceOnce(ctx, locked, func(s *flow.Signal) []*plannedEnforcement { return byNumber[s.Number].all })
	return c, err
}

// enforceOnce carries out the rules for stored signals, except rules that have an enforcement of the signal already.
func (t *transaction) enforceOnce(ctx context.Context, signals []flow.Signal,
	plansOf func(*flow.Signal) []*plannedEnforcement) (done []flow.Enforcement, err error) {
	numbers := make([]int64, len(signals))
	var once []string
	for i := range signals {
		numbers[i] = signals[i].Number
		for _, x := range plansOf(&signals[i]) {
			if x.once != nil {
				once = append(once, x.once.Key)
			}
		}
	}
	known, err := t.tx.Enforced(ctx, numbers)
	if err != nil {
		return nil, err
	}
	if err := t.loadIdempotency(ctx, once); err != nil {
		return nil, err
	}
	for i := range signals {
		s := &signals[i]
		if known[s.Number] == nil {
			continue // retention has removed it meanwhile
		}
		for _, x := range plansOf(s) {
			if slices.Contains(known[s.Number], x.verdict.Rule.Name) {
				continue
			}
			e, err := t.enforce(ctx, s, x)
			if err != nil {
				return nil, err
			}
			done = append(done, e)
		}
	}
	return done, nil
}
