package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/automation"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/why"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// WhySignal explains, for each rule that listens to a signal's trigger or for the named one, why it has started something for the signal or
// not. The rules are those in force when the signal came. aside lists what the engine could not do with the signal so far.
func (e *Engine) WhySignal(ctx context.Context, id flow.ID, rule string) (all []api.RuleWhy, aside []string, err error) {
	s, err := e.opts.Store.Signal(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if aside, err = e.whyAside(ctx, &s); err != nil {
		return nil, nil, err
	}
	all, err = e.whySignal(ctx, &s, rule)
	if err != nil && fault.Lasting(err) && len(aside) > 0 {
		return []api.RuleWhy{}, aside, nil // the error that keeps rules from being evaluated also keeps them from being explained
	}
	return all, aside, err
}

// whyAside lists what could not be done with a signal, and until when it is put aside.
func (e *Engine) whyAside(ctx context.Context, s *flow.Signal) (all []string, err error) {
	if s.Damage != "" {
		all = append(all, "its row is damaged: "+s.Damage)
	}
	for _, of := range []struct {
		kind store.AsideKind
		text string
	}{{store.AsideMatching, "the rules could not be asked about it"}, {store.AsideCorrelation,
		"the executions that wait for signals could not be asked about it"}} {
		a, err := store.AsideAt(ctx, e.opts.Store, of.kind, s.ID, time.Now())
		if err != nil {
			return nil, err
		}
		if a != nil {
			all = append(all, fmt.Sprintf("%s (%s): it is put aside until %s", of.text, a.Reason, why.Clock(a.Until)))
		}
	}
	return all, nil
}

func (e *Engine) whySignal(ctx context.Context, s *flow.Signal, rule string) ([]api.RuleWhy, error) {
	set, err := e.rulesAt(ctx, s.Generation)
	if err != nil {
		return nil, err
	}
	const most = 1000
	found, err := e.opts.Store.Enforcements(ctx, store.EnforcementFilter{Signal: s.Number, Limit: most})
	if err != nil {
		return nil, err
	}
	known := make(map[string]*flow.Enforcement, len(found))
	for i := range found {
		known[found[i].Rule] = &found[i]
	}
	rules := set.On(s.Trigger)
	if rule != "" {
		if rules = nil; set.Rule(rule) != nil {
			rules = []*automation.Rule{set.Rule(rule)}
		}
	}
	all := []api.RuleWhy{}
	for _, r := range rules {
		if err := ctx.Err(); err != nil {
			return nil, err // each rule is evaluated, and the caller has gone
		}
		w, err := whyRule(r, s, known[r.Name])
		if err != nil {
			return nil, err
		}
		if k := known[r.Name]; k != nil && k.State == flow.EnforcementBuffered {
			if w.Summary, err = e.bufferedText(ctx, k); err != nil {
				return nil, err
			}
		}
		delete(known, r.Name)
		all = append(all, w)
	}
	for name, k := range known { // a later version, through which the signal was replayed
		if rule == "" || rule == name {
			all = append(all, api.RuleWhy{Rule: name, Version: k.Version, Fired: hasExecution(k), Clauses: []api.RuleClause{}, Enforcement: shown(k),
				Summary: enforcedText(k) + ", when the signal was replayed: the rule was not in force when it came"})
		}
	}
	if rule != "" && len(all) == 0 {
		if _, _, err := e.Rule(ctx, rule); err != nil {
			return nil, err
		}
		all = append(all, api.RuleWhy{Rule: rule, Clauses: []api.RuleClause{}, Summary: notInForce(rule)})
	}
	return all, nil
}

func notInForce(rule string) string {
	return "it was not in force when the signal came: pawl rules replay " + rule + " asks it about signals of the past"
}

func hasExecution(k *flow.Enforcement) bool {
	return k.State == flow.EnforcementRan || k.State == flow.EnforcementFolded
}

func shown(k *flow.Enforcement) *api.Enforcement {
	if k == nil {
		return nil
	}
	out := ShownEnforcement(k)
	return &out
}

// ShownEnforcement converts an enforcement to the wire type.
func ShownEnforcement(k *flow.Enforcement) api.Enforcement {
	return api.Enforcement{Signal: k.Signal.Text(flow.SignalPrefix), Rule: k.Rule, Version: k.Version, State: k.State.String(),
		Execution: k.Execution.String(), At: k.At, Reason: shownReason(k.Reason)}
}

func shownReason(r flow.Reason) *api.EnforceReason {
	if r == (flow.Reason{}) {
		return nil
	}
	return &api.EnforceReason{Code: r.Code, Message: r.Message, Path: r.Path}
}

// whyRule explains why a rule in force has started something for a signal or not.
func whyRule(r *automation.Rule, s *flow.Signal, k *flow.Enforcement) (api.RuleWhy, error) {
	w := api.RuleWhy{Rule: r.Name, Version: r.Version, Clauses: []api.RuleClause{}, Enforcement: shown(k)}
	x, err := automation.Explain(r, s)
	if err != nil {
		return w, err
	}
	w.Clauses = append(w.Clauses, x.Clauses...)
	switch {
	case k != nil:
		w.Fired, w.Summary = hasExecution(k), enforcedText(k)
	case !x.Listens:
		w.Summary = fmt.Sprintf("it listens to %s, and the signal is %s", strings.Join(r.On, ", "), s.Trigger)
	case s.Replayed:
		w.Summary = "the signal repeats content that came before under another id: no rule is asked about it"
	case r.Paused:
		w.Summary = "it was paused when the signal came"
		if r.Reason != "" {
			w.Summary += ": " + r.Reason
		}
	case s.State == flow.SignalNew:
		w.Summary = "the rules have not been asked about the signal yet"
	case x.Holds:
		w.Summary = "its condition holds, and it has no enforcement of the signal"
	default:
		w.Summary = unheldText(x.Clauses)
	}
	return w, nil
}

func enforcedText(k *flow.Enforcement) string {
	switch k.State {
	case flow.EnforcementRan:
		return "it has started " + k.Execution.String()
	case flow.EnforcementFolded:
		return "the signal was folded into " + k.Execution.String() + ", which stands for it"
	case flow.EnforcementBuffered:
		return fmt.Sprintf("the signal is held in window %q", k.Window)
	}
	text := fmt.Sprintf("%s (%s): %s", k.State, k.Reason.Code, k.Reason.Message)
	if k.Reason.Path != "" {
		text += ", at " + k.Reason.Path
	}
	return text
}

// bufferedText describes the window that buffers a signal, and when it closes.
func (e *Engine) bufferedText(ctx context.Context, k *flow.Enforcement) (string, error) {
	text := enforcedText(k)
	r, err := e.ruleOf(ctx, k.Rule, k.Version)
	if err != nil || r.Window == nil {
		return text, err
	}
	text += " of its " + r.Window.Field
	w, err := e.opts.Store.Window(ctx, store.WindowKey{Rule: k.Rule, Key: k.Window})
	if errors.Is(err, store.ErrNotFound) {
		return text + ", which has just closed", nil
	}
	if err != nil {
		return text, err
	}
	stands := "the last of them"
	switch r.Window.Keep {
	case definition.KeepFirst:
		stands = "the first of them"
	case definition.KeepAll:
		stands = "all of them together"
	}
	until := "unless another one comes before"
	if r.Window.Quiet == 0 {
		until = "at the latest"
	}
	return fmt.Sprintf("%s, which has %d of at most %d signals with %d bytes: it runs for %s at %s, %s", text, w.Count, r.Window.Size, w.Bytes, stands, w.Wake.Format(time.RFC3339), until), nil
}

// unheldText names the first part of a condition that does not hold, and the values that it compares.
func unheldText(clauses []api.RuleClause) string {
	for _, c := range clauses {
		if c.Holds && c.Error == "" {
			continue
		}
		text := fmt.Sprintf("its condition does not hold: %s is false", c.Text)
		for i, v := range c.Values {
			link := ", and "
			if i == 0 {
				link = "; "
			}
			text += fmt.Sprintf("%s%s is %s", link, v.Text, v.Value)
		}
		return text
	}
	return "its condition does not hold"
}

// explainedSignals is how many past signals WhyRule looks at.
const explainedSignals = 200

// WhyRule reports whether a rule would start something, and the results of the latest signals that it listens to.
func (e *Engine) WhyRule(ctx context.Context, name string) (*automation.Rule, *api.RuleState, error) {
	r, _, err := e.Rule(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	w := &api.RuleState{Summary: fmt.Sprintf("it is in force, as version %d, and listens to %s", r.Version, strings.Join(r.On, ", ")), Facts: []string{}, Unblock: []api.Advice{}}
	if r.Paused {
		w.Summary = "it is paused and starts nothing"
		if r.Reason != "" {
			w.Summary += ": " + r.Reason
		}
		w.Unblock = append(w.Unblock, why.ResumeIt("rule", name, "pawl rules resume "+name))
	}
	latest, err := e.latestOf(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	if latest.heard == 0 {
		w.Facts = append(w.Facts, "none of the latest signals is one that it listens to")
		w.Unblock = append(w.Unblock, api.Advice{Text: "a signal of one of these names comes; the list of signals shows which names do"})
		return r, w, nil
	}
	w.Facts = append(w.Facts, fmt.Sprintf("of the latest signals it listens to %d, the last one %s at %s", latest.heard, latest.last.ID.Text(flow.SignalPrefix), latest.last.At.UTC().Format("2006-01-02 15:04:05Z")))
	for state := flow.EnforcementRan; state <= flow.EnforcementFailed; state++ {
		if n := latest.states[state]; n > 0 {
			w.Facts = append(w.Facts, fmt.Sprintf("%d %s", n, state))
		}
	}
	for _, text := range mostOften(latest.unheld, 5) {
		w.Facts = append(w.Facts, fmt.Sprintf("%d not: %s", latest.unheld[text], text))
	}
	if latest.states[flow.EnforcementFailed] > 0 {
		w.Unblock = append(w.Unblock, api.Advice{Text: "a corrected rule is applied, and asked about these signals again", Do: "retry", Kind: "rule", Name: name, Command: "pawl rules retry " + name})
	}
	return r, w, nil
}

// latestSignals sums up the latest signals that a rule listens to.
type latestSignals struct {
	heard  int // signals that it listens to
	last   *flow.Signal
	states map[flow.EnforcementState]int // how many have an enforcement in each state
	unheld map[string]int                // how many have none, by reason
}

func (e *Engine) latestOf(ctx context.Context, r *automation.Rule) (*latestSignals, error) {
	l := &latestSignals{states: map[flow.EnforcementState]int{}, unheld: map[string]int{}}
	f := signalsOf(r, time.Time{})
	f.Limit = explainedSignals
	found, err := e.opts.Store.Signals(ctx, f)
	if err != nil {
		return nil, err
	}
	for i := range found {
		s := &found[i]
		if !r.ListensTo(s.Trigger) {
			continue
		}
		if l.heard++; l.last == nil {
			l.last = s
		}
		existing, err := e.opts.Store.Enforcements(ctx, store.EnforcementFilter{Rule: r.Name, Signal: s.Number, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(existing) > 0 {
			l.states[existing[0].State]++
			continue
		}
		set, err := e.rulesAt(ctx, s.Generation)
		if err != nil {
			return nil, err
		}
		was := set.Rule(r.Name)
		of, err := whyRule(cmp.Or(was, r), s, nil)
		if was == nil {
			of.Summary = notInForce(r.Name)
		}
		if err != nil { // an error of one signal does not affect the others
			of.Summary = "the rules cannot be asked about it: " + err.Error()
		}
		l.unheld[of.Summary]++
	}
	return l, nil
}

// signalsOf selects the signals that a rule may listen to.
func signalsOf(r *automation.Rule, since time.Time) store.SignalFilter {
	f := store.SignalFilter{Since: since}
	if len(r.On) == 1 && !strings.HasSuffix(r.On[0], "*") {
		f.Trigger = r.On[0]
	}
	return f
}
