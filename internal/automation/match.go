package automation

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// Verdict is a rule's verdict on a signal: it runs, is refused, or has failed.
type Verdict struct {
	Rule   *Rule
	State  flow.EnforcementState
	Reason flow.Reason     // why the rule starts no execution
	Input  json.RawMessage // input of the execution that it starts
	Key    string          // the concurrency key of the rule, if it has one
	Rate   string          // the key of the rule's rate, if it has one
	Fair   flow.Fair       // the group and weight by which the slots of Key are shared
	Once   string          // the value of `once`, for example an order number: a second signal with it starts nothing
	Window string          // the key of the window that buffers the signal; empty: the signal is not buffered
	Chain  []string        // the rules that have led to the execution, this one last
}

// Match returns the verdict of each rule that listens to a signal's trigger, by name of the rules. It leaves out rules that are paused, or
// whose condition does not hold.
func Match(s *Set, signal *flow.Signal) (all []Verdict, err error) {
	asked, err := Ask(s, signal)
	if err != nil {
		return nil, err
	}
	for _, r := range asked.Rules {
		if v, holds := asked.Verdict(r, definition.WorkWithin(definition.SharedWork)); holds {
			all = append(all, v)
		}
	}
	return all, nil
}

// Asked is a signal with the rules to evaluate for it. Callers evaluate them in parts, because inputs may be large, and conditions may take
// long.
type Asked struct {
	Rules  []*Rule // that listen to the signal and are not paused, by name
	signal *flow.Signal
	vars   *definition.Vars
}

// Ask finds the rules to evaluate for a signal.
func Ask(s *Set, signal *flow.Signal) (*Asked, error) {
	a := &Asked{signal: signal}
	rules := s.On(signal.Trigger)
	if len(rules) == 0 {
		return a, nil
	}
	var err error
	if a.vars, err = definition.SignalVars(signal); err != nil {
		return nil, err
	}
	a.Rules = slices.DeleteFunc(slices.Clone(rules), func(r *Rule) bool { return r.Paused })
	return a, nil
}

// Verdict returns the verdict of one of the rules, and false if the condition does not hold. w counts and bounds the work: if it is
// exceeded, the verdict is that error.
func (a *Asked) Verdict(r *Rule, w *definition.Work) (v Verdict, holds bool) {
	a.vars.Work = w
	return r.match(a.signal, a.vars)
}

// MatchRule is Match for one rule, even if it is paused. w counts and bounds the work.
func MatchRule(r *Rule, signal *flow.Signal, w *definition.Work) (v Verdict, holds bool, err error) {
	if !r.ListensTo(signal.Trigger) {
		return v, false, nil
	}
	vars, err := definition.SignalVars(signal)
	if err != nil {
		return v, false, err
	}
	vars.Work = w
	v, holds = r.match(signal, vars)
	return v, holds, nil
}

// match evaluates a rule that listens to a signal.
func (r *Rule) match(signal *flow.Signal, vars *definition.Vars) (v Verdict, holds bool) {
	v = Verdict{Rule: r, State: flow.EnforcementFailed}
	if r.If != nil {
		holds, err := r.If.Eval(vars)
		if err != nil {
			v.Reason = fault(flow.ReasonIf, err)
			return v, true
		}
		if !holds {
			return v, false
		}
	}
	if reason := Guard(r, signal.Rules); reason != nil {
		v.State, v.Reason = flow.EnforcementRefused, *reason
		return v, true
	}
	if r.Window != nil {
		var err error
		if v.Window, err = r.Window.Key.Text(vars); err != nil {
			v.Reason = fault(flow.ReasonInput, err)
			return v, true
		}
	}
	if !r.Window.All() {
		if reason := r.evaluate(vars, &v); reason != nil {
			v.Reason = *reason
			return v, true
		}
	}
	v.Chain = append(slices.Clip(signal.Rules), r.Name)
	if v.State = flow.EnforcementRan; r.Window != nil {
		v.State = flow.EnforcementBuffered
	}
	return v, true
}

// evaluate fills a verdict with the input and keys of the rule's execution, or returns what is wrong with them.
func (r *Rule) evaluate(vars *definition.Vars, v *Verdict) *flow.Reason {
	var err error
	if v.Input, err = r.InputFor(vars); err == nil && r.Run.Settings.Concurrency != nil {
		if v.Key, err = r.Run.Settings.Concurrency.Key.Text(vars); err == nil {
			v.Fair, err = r.Run.Settings.Concurrency.Fair(vars)
		}
	}
	if err == nil && r.Run.Settings.Rate != nil {
		v.Rate, err = r.Run.Settings.Rate.Key.Text(vars)
	}
	if err == nil && r.Once != nil {
		v.Once, err = r.Once.Text(vars)
	}
	if err != nil {
		reason := fault(flow.ReasonInput, err)
		return &reason
	}
	return nil
}

// Release returns the verdict of a rule on a signal that it has buffered and whose window is closing. w counts and bounds the work.
func Release(r *Rule, signal *flow.Signal, w *definition.Work) (Verdict, error) {
	v, holds, err := MatchRule(r, signal, w)
	if err == nil && !holds && !w.Exceeded() {
		err = fmt.Errorf("rule %s has held a signal that it is not about", r.Name)
	}
	if v.State == flow.EnforcementBuffered {
		v.State = flow.EnforcementRan
	}
	return v, err
}

// fault is the reason why a part of a rule cannot be evaluated.
func fault(code string, err error) flow.Reason {
	if e, ok := errors.AsType[*definition.EvalError](err); ok {
		return flow.Reason{Code: code, Message: fmt.Sprintf("${{ %s }}: %v", e.Expression, e.Err), Path: e.Field}
	}
	return flow.Reason{Code: code, Message: err.Error()}
}

// Explanation is why a rule fires on a signal or does not.
type Explanation struct {
	Listens bool
	Clauses []api.RuleClause // of its condition; none if it has none or does not listen
	Verdict Verdict          // when Holds
	Holds   bool
}

// Explain returns the verdict of a rule on a signal, with the reason for each part of its condition.
func Explain(r *Rule, signal *flow.Signal) (x Explanation, err error) {
	if x.Listens = r.ListensTo(signal.Trigger); !x.Listens {
		return x, nil
	}
	vars, err := definition.SignalVars(signal)
	if err != nil {
		return x, err
	}
	if r.If != nil {
		x.Clauses = r.If.Explain(vars)
	}
	x.Verdict, x.Holds = r.match(signal, vars)
	return x, nil
}
