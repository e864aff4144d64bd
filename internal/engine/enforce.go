package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/automation"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

const (
	// plannedSize is how many bytes an enforcement counts for in a transaction, so that one transaction with signals that start many rules has
	// about 4,000 executions at the most.
	plannedSize = 2 << 10
	// reasonMost bounds, in bytes, the stored reason why an enforcement has started nothing.
	reasonMost = 2000
)

type plannedEnforcement struct {
	verdict automation.Verdict
	start   *plannedStart         // of one that runs
	once    *store.IdempotencyKey // the value of once, if the rule has it
}

// ruleChoice says which rules are evaluated for a signal.
type ruleChoice struct {
	except map[string]bool // they have an enforcement of it
	turn   bool            // it is the signal's turn, so costly rules are evaluated; otherwise they wait for the turn
	after  string          // rules up to this name were evaluated in earlier turns
}

type matched struct {
	all  []*plannedEnforcement
	more bool   // rules remain: the signal stays new and waits for its turn
	last string // the last evaluated rule, by name
	work int    // operations that were computed
}

// match evaluates rules for a signal, and makes the requests of the executions that they start. It stops after the rule with which these
// reach the rows, bytes or operations of one transaction. An error is one of the store, or about the whole signal: an error of a rule is
// the rule's verdict.
func (e *Engine) match(ctx context.Context, set *automation.Set, s *flow.Signal, a ruleChoice) (m matched, err error) {
	asked, err := automation.Ask(set, s)
	if err != nil {
		return m, err
	}
	budget := e.budget
	for _, r := range asked.Rules {
		key := loop.Key(r.Name, r.Version)
		switch {
		case a.except[r.Name] || r.Name <= a.after:
			continue
		case !a.turn && e.rules.costly.Has(key):
			m.more = true
			continue
		case budget.Spent():
			m.more = true
			return m, nil
		}
		m.last = r.Name
		w := definition.WorkWithin(definition.QuickWork)
		if a.turn {
			w = definition.WorkWithin(definition.SharedWork)
		}
		x, err := e.ask(ctx, asked, r, s.ID, w, a.turn)
		if err != nil {
			return m, err
		}
		m.work += w.Done
		budget.Compute(w.Done)
		if !a.turn && w.Exceeded() {
			e.rules.costly.Add(key)
			m.more = true
			continue
		}
		if x == nil {
			continue
		}
		if err := e.breakCircuit(ctx, &x.verdict, s); err != nil {
			return m, err
		}
		if x.verdict.State == flow.EnforcementRefused {
			x.start, x.once = nil, nil
		}
		budget.Spend(1, x.size()-plannedSize)
		m.all = append(m.all, x)
	}
	return m, nil
}

// ask evaluates one rule, and returns its planned enforcement; nil: nothing, or more than the work allows. Without a turn a rule that
// exceeds the work starts nothing. A rule that has ended the process repeatedly fails.
func (e *Engine) ask(ctx context.Context, asked *automation.Asked, r *automation.Rule, signal flow.ID, w *definition.Work, turn bool) (
	*plannedEnforcement, error) {
	done, err := e.beginRule(r)
	if err != nil {
		x := &plannedEnforcement{verdict: automation.Verdict{Rule: r}}
		x.fail(err)
		return x, nil
	}
	defer done()
	v, holds := asked.Verdict(r, w)
	if !holds || !turn && w.Exceeded() {
		return nil, nil
	}
	return e.planEnforcement(ctx, v, signal, w)
}

func (e *Engine) beginRule(r *automation.Rule) (done func(), err error) {
	return e.opts.Crashes.Begin("rule", loop.Key(r.Name, r.Version), r.Name)
}

// planEnforcement makes the request of the execution that a verdict starts. w counts and bounds the work.
func (e *Engine) planEnforcement(ctx context.Context, v automation.Verdict, signal flow.ID,
	w *definition.Work) (*plannedEnforcement, error) {
	x := &plannedEnforcement{verdict: v}
	for _, key := range []struct{ path, text string }{{windowPath(v.Rule), v.Window}, {"run.rate.key", v.Rate}, {"run.concurrency.fair_by", v.Fair.By}} {
		if err := requests.CheckText(key.path, key.text, fault.KeyLimit); err != nil {
			x.fail(err)
			x.verdict.Reason.Code, x.verdict.Reason.Path = flow.ReasonInput, key.path
			return x, nil
		}
	}
	if v.State != flow.EnforcementRan {
		x.verdict.Reason.Message = problem.Clip(v.Reason.Message, reasonMost)
		return x, nil
	}
	settings := &v.Rule.Run.Settings
	sub := &Submission{Action: v.Rule.Run.ActionText(), Input: v.Input, Queue: settings.Queue, Priority: settings.Priority,
		Settings: settings.Settings, Retry: settings.Retry, Labels: settings.Labels, work: w}
	if v.Key != "" {
		sub.Key, sub.KeyLimit, sub.WhenFull, sub.Fair = v.Key, settings.Concurrency.Limit, settings.Concurrency.WhenFull, v.Fair
	}
	k := &plannedStart{id: e.opts.NewID()}
	if k.err = e.request(ctx, sub, k.id, &k.request); k.err != nil {
		var refused *fault.Invalid
		if !errors.As(k.err, &refused) && !fault.OfBatch(k.err) {
			return nil, k.err
		}
		x.fail(k.err)
		return x, nil
	}
	k.request.Signal, k.request.Rules = signal, v.Chain
	if v.Rate != "" {
		k.request.Rate = settings.Rate.Of(v.Rate)
	}
	k.sums = uploads.SumsIn(k.request.Input, k.request.With)
	if v.Once != "" {
		x.once = onceKey(v.Rule.Name, v.Once, k.id)
		k.request.IdempotencyKey = x.once.Key
	}
	x.start = k
	return x, nil
}

// windowPath is the field of a rule that selects the window of a signal.
func windowPath(r *automation.Rule) string {
	if r.Window == nil {
		return ""
	}
	return r.Window.Field + ".key"
}

// fail changes the verdict to failed, because the action does not accept the rule's input.
func (x *plannedEnforcement) fail(why error) {
	x.verdict.State = flow.EnforcementFailed
	x.verdict.Reason = flow.Reason{Code: flow.ReasonAction, Message: problem.Clip(why.Error(), reasonMost), Path: "run"}
	x.start, x.once = nil, nil
}

// onceKey is the idempotency key under which a rule starts one execution for a value.
func onceKey(rule, value string, id flow.ID) *store.IdempotencyKey {
	key := fmt.Sprintf("rule:%s:%x", rule, sha256.Sum256([]byte(value)))
	return &store.IdempotencyKey{Key: key, Execution: id, Hash: sha256.Sum256([]byte(key))}
}

// window is the key of the window in which the signal is buffered.
func (x *plannedEnforcement) window() store.WindowKey {
	return store.WindowKey{Rule: x.verdict.Rule.Name, Key: x.verdict.Window}
}

func (x *plannedEnforcement) want(t *transaction) {
	t.wants.keys = append(t.wants.keys, x.locks()...)
	if x.start == nil {
		return
	}
	if x.once != nil {
		t.wants.idempotency = append(t.wants.idempotency, x.once.Key)
	}
	t.wants.uploads = append(t.wants.uploads, x.start.sums...)
}

// locks are the keys that the enforcement locks: of its window, and of its execution.
func (x *plannedEnforcement) locks() (keys []string) {
	if x.verdict.State == flow.EnforcementBuffered {
		keys = append(keys, x.window().Lock())
	}
	if x.start != nil {
		keys = append(keys, locksOf(&x.start.request)...)
	}
	return keys
}

func (x *plannedEnforcement) size() int {
	if x.start == nil {
		return plannedSize
	}
	return plannedSize + x.start.request.PayloadSize()
}

// enforce carries out a rule for a signal that the transaction keeps or has locked: it adds the enforcement's row and the execution.
func (t *transaction) enforce(ctx context.Context, s *flow.Signal, x *plannedEnforcement) (flow.Enforcement, error) {
	e, err := t.enforcement(ctx, s, x)
	if err == nil {
		rows := t.changes.add()
		rows.Rules.Enforcements = append(rows.Rules.Enforcements, e)
	}
	return e, err
}

// enforcement starts or buffers what a rule planned for a signal, and returns the row for it.
func (t *transaction) enforcement(ctx context.Context, s *flow.Signal, x *plannedEnforcement) (flow.Enforcement, error) {
	e := flow.Enforcement{Signal: s.ID, Number: s.Number, Rule: x.verdict.Rule.Name, Version: x.verdict.Rule.Version, State: x.verdict.State, At: t.now, Reason: x.verdict.Reason}
	if x.start != nil {
		if err := t.startEnforced(ctx, x, &e); err != nil {
			return e, err
		}
	}
	if e.State == flow.EnforcementBuffered {
		e.Window = x.verdict.Window
		if err := t.bufferSignal(ctx, s, x.verdict.Rule.Window, x.window()); err != nil {
			return e, err
		}
	}
	return e, nil
}

// startEnforced starts the execution of an enforcement, unless there is one for the same value already, or something that it names does not
// exist.
func (t *transaction) startEnforced(ctx context.Context, x *plannedEnforcement, e *flow.Enforcement) error {
	if x.once != nil {
		if existing, ok := t.loaded.idempotency[x.once.Key]; ok {
			e.State, e.Execution = flow.EnforcementFolded, existing.Execution
			if existing.Hash != x.once.Hash {
				e.State, e.Execution = flow.EnforcementFailed, flow.ID{}
				e.Reason = flow.Reason{Code: flow.ReasonInput, Path: "run.once", Message: fmt.Sprintf("a submission has used the idempotency key %s",
					existing.Key)}
			}
			return nil
		}
	}
	missing, err := t.missingUploads(ctx, x.start)
	if err != nil {
		return err
	}
	if missing != nil {
		e.State, e.Reason = flow.EnforcementFailed, flow.Reason{Code: flow.ReasonAction, Message: problem.Clip(missing.Error(), reasonMost), Path: "run.input"}
		return nil
	}
	e.Execution = x.start.id
	if x.once != nil {
		if t.loaded.idempotency == nil {
			t.loaded.idempotency = map[string]store.IdempotencyKey{}
		}
		t.loaded.idempotency[x.once.Key] = *x.once
	}
	if err := t.submitPlanned(ctx, x.start); err != nil {
		return err
	}
	if x.once != nil {
		// Not earlier: admission may write the decisions so far, and the key refers to an existing execution.
		t.changes.idempotency = append(t.changes.idempotency, *x.once)
	}
	return nil
}

func (c *counters) enforced(all []flow.Enforcement) {
	for i := range all {
		c.enforcements[all[i].State].Add(1)
		if all[i].State == flow.EnforcementRan {
			c.submitted.Add(1)
		}
	}
}
