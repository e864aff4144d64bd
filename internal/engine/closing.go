package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/automation"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// closing is the execution that a closing window starts. It is planned outside of the transaction that closes the window.
type closing struct {
	window     store.Window
	rule       *automation.Rule
	leadSignal *flow.Signal
	// the signals that the execution gets; nil: it gets the leading one, which represents all that the window buffers by then
	all []flow.Signal
	// the signals of this part, with the leading one, if the window buffers more than windowMost or its closing fails
	part []flow.Signal
	plan *plannedEnforcement
}

// closeWindow starts the execution for the signals of a window, and reports whether it has. It does not if the window has changed since it
// was read, or is due later by now. If this takes long without a turn, the error is errCostly.
func (e *Engine) closeWindow(ctx context.Context, w store.Window, turn bool) (closed bool, err error) {
	defer fault.Recovered(&err)
	k, err := e.readWindow(ctx, w)
	if err != nil {
		return false, err
	}
	if k == nil {
		return false, e.dropEmpty(ctx, w)
	}
	key := loop.Key(k.rule.Name, k.rule.Version)
	if !turn && e.rules.costly.Has(key) {
		return false, errCostly
	}
	work := definition.WorkWithin(definition.QuickWork)
	if turn {
		work = definition.WorkWithin(definition.SharedWork)
	}
	done, err := e.beginRule(k.rule)
	if err != nil {
		return false, err
	}
	defer done()
	var v automation.Verdict
	if k.all != nil {
		v, err = automation.Gather(k.rule, k.all, work)
	} else {
		v, err = automation.Release(k.rule, k.leadSignal, work)
	}
	if err != nil {
		return false, err
	}
	if err := e.breakCircuit(ctx, &v, k.leadSignal); err != nil {
		return false, err
	}
	if v.State == flow.EnforcementRan {
		defer func() {
			if !closed { // another server may have closed it and counted the run
				e.rules.breakers.release(v.Rule)
			}
		}()
	}
	if k.plan, err = e.planEnforcement(ctx, v, k.leadSignal.ID, work); err != nil {
		return false, err
	}
	if !turn && work.Exceeded() {
		e.rules.costly.Add(key)
		return false, errCostly
	}
	result, err := inBatch(ctx, e, nil, func(ctx context.Context, t *transaction) (*flow.Enforcement, error) { return t.closeWindow(ctx, k) })
	if err != nil || result == nil {
		return false, err
	}
	e.counters.enforced([]flow.Enforcement{*result})
	return true, nil
}

// closeWindow writes the closing of a window, unless the window has changed. If one execution cannot take all its signals, the rest stays
// in the window. It returns nil if the window does not change.
func (t *transaction) closeWindow(ctx context.Context, k *closing) (result *flow.Enforcement, err error) {
	key := k.window.WindowKey
	if err := t.lockKeys(ctx, []string{key.Lock()}); err != nil {
		return nil, err
	}
	found, err := t.tx.Windows(ctx, []store.WindowKey{key})
	now, ok := found[key]
	if err != nil || !ok || now.Wake.After(t.now) {
		return nil, err
	}
	c := store.Closing{WindowKey: key}
	c.Lead = k.leadSignal.Number
	switch signals := slices.Concat(k.all, k.part); {
	case len(signals) > 0:
		buffered, err := t.tx.BufferedIn(ctx, key, len(signals)+1)
		if err != nil || !begins(buffered, signals) {
			return nil, err
		}
		c.Signals, c.Rest = numbersOf(signals), t.restOf(now, k, signals, buffered)
	case !sameWindow(now, k.window), now.Count > windowMost: // more signals have joined since it was read
		return nil, nil
	}
	result = &flow.Enforcement{State: k.plan.verdict.State, Reason: k.plan.verdict.Reason}
	if k.plan.start != nil {
		if k.plan.once != nil {
			if err := t.loadIdempotency(ctx, []string{k.plan.once.Key}); err != nil {
				return nil, err
			}
		}
		if err := t.startEnforced(ctx, k.plan, result); err != nil {
			return nil, err
		}
	}
	c.State, c.Execution, c.Reason = result.State, result.Execution, result.Reason
	// Signals that this transaction buffers later join the rest, or open a new window.
	rows := t.changes.add()
	rows.Windows.Closed = append(rows.Windows.Closed, c)
	t.effects.addFailpoint(failpoint.WindowKept)
	h := txn.Part[bufferedWindows](t)
	delete(h.known, key)
	h.opened = h.opened || c.Rest != nil
	return result, nil
}

// begins reports whether the buffered signals begin with the signals that were read.
func begins(buffered []store.SignalPlace, read []flow.Signal) bool {
	if len(buffered) < len(read) {
		return false
	}
	for i := range read {
		if buffered[i].Number != read[i].Number {
			return false
		}
	}
	return true
}

func numbersOf(all []flow.Signal) []int64 {
	numbers := make([]int64, len(all))
	for i := range all {
		numbers[i] = all[i].Number
	}
	return numbers
}

// restOf is the window of the signals that remain after a closing; nil: there are none. buffered are the signals that the closing takes,
// and the next one.
func (t *transaction) restOf(now store.Window, k *closing, takes []flow.Signal, buffered []store.SignalPlace) *store.Window {
	if len(buffered) == len(takes) {
		return nil
	}
	next := buffered[len(takes)]
	w := &store.Window{WindowKey: now.WindowKey, Opened: next.At, Wake: t.now, Count: now.Count - len(takes), Bytes: now.Bytes, First: next.Number, Last: now.Last}
	for i := range takes {
		w.Bytes -= int64(len(takes[i].Data))
		if takes[i].Number == now.Last { // it was buffered before signals of the rest: transactions on PostgreSQL overlap
			w.Last = next.Number
		}
	}
	if k.rule != nil {
		w.Wake = automation.ClosesAt(k.rule.Window, w.Opened, t.now, w.Count, w.Bytes)
	}
	return w
}

// readWindow reads the signals for which a due window starts an execution, and the rule's version of the last signal. It is nil if the
// window is empty.
func (e *Engine) readWindow(ctx context.Context, w store.Window) (*closing, error) {
	k := &closing{window: w}
	last, err := e.bufferedBy(ctx, w, w.Last)
	if err != nil {
		return nil, err
	}
	if k.rule, err = e.ruleOf(ctx, w.Rule, last.Version); err != nil {
		return nil, err
	}
	if k.rule.Window.All() {
		buffered, err := e.opts.Store.BufferedSignals(ctx, w.WindowKey, k.rule.Window.Size)
		if err != nil || len(buffered) == 0 {
			return nil, err
		}
		k.all = buffered[:automation.Portion(k.rule.Window, buffered)]
		if n := slices.IndexFunc(k.all, func(s flow.Signal) bool { return s.Damage != "" }); n >= 0 {
			k.all = k.all[:n] // the damaged signal fails by itself, as the first of the rest
		}
		if len(k.all) == 0 {
			return nil, fault.Damaged(buffered[0].Damage)
		}
		k.leadSignal = &k.all[0]
		return k, nil
	}
	if w.Count > windowMost {
		return k, e.readPart(ctx, k)
	}
	lead := last
	if k.rule.Window != nil && k.rule.Window.Keep == definition.KeepFirst && w.First != w.Last {
		first, err := e.bufferedBy(ctx, w, w.First)
		if err != nil {
			return nil, err
		}
		rule, err := e.ruleOf(ctx, w.Rule, first.Version)
		if err != nil {
			return nil, err
		}
		if !rule.Window.All() { // a version that gathers signals cannot start with a single one
			lead, k.rule = first, rule
		}
	}
	s, err := e.opts.Store.Signal(ctx, lead.Signal)
	if err == nil && s.Damage != "" {
		err = fault.Damaged(s.Damage)
	}
	k.leadSignal = &s
	return k, err
}

// readPart reads the next part of a window that buffers more signals than one execution may represent.
func (e *Engine) readPart(ctx context.Context, k *closing) (err error) {
	if k.part, err = e.opts.Store.BufferedSignals(ctx, k.window.WindowKey, windowMost); err != nil {
		return err
	}
	if len(k.part) == 0 {
		return fmt.Errorf("it counts %d signals, and holds none", k.window.Count)
	}
	if k.leadSignal = &k.part[len(k.part)-1]; k.rule.Window != nil && k.rule.Window.Keep == definition.KeepFirst {
		k.leadSignal = &k.part[0]
	}
	if k.leadSignal.Damage != "" {
		return fault.Damaged(k.leadSignal.Damage)
	}
	enforcement, err := e.bufferedBy(ctx, k.window, k.leadSignal.Number)
	if err != nil {
		return err
	}
	rule, err := e.ruleOf(ctx, k.window.Rule, enforcement.Version)
	if err == nil && !rule.Window.All() { // a version that gathers signals cannot start with a single one
		k.rule = rule
	}
	return err
}

func (e *Engine) bufferedBy(ctx context.Context, w store.Window, number int64) (flow.Enforcement, error) {
	found, err := e.opts.Store.Enforcements(ctx, store.EnforcementFilter{Rule: w.Rule, Signal: number, Limit: 1})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("it holds signal number %d, of which there is no enforcement", number)
	}
	if err != nil {
		return flow.Enforcement{}, err
	}
	return found[0], nil
}

// ruleOf is a version of a rule, with the state of the rule in force.
func (e *Engine) ruleOf(ctx context.Context, name string, version int) (*automation.Rule, error) {
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	d, err := e.ruleDocument(ctx, rulePrefix+name, version)
	if err != nil {
		return nil, err
	}
	r := &automation.Rule{Name: name, Version: version, Rule: d.Rule}
	if set := e.rules.current.Load(); set != nil {
		if now := set.Rule(name); now != nil {
			r.Paused, r.Since = now.Paused, now.Since
		}
	}
	return r, nil
}
