package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

func (c *call) signalWhy() error {
	s, err := c.loadSignal()
	if err != nil {
		return err
	}
	rule := c.query.Get("rule")
	all, aside, err := c.Engine.WhySignal(c.ctx(), s.ID, rule)
	if rule != "" && errors.Is(err, store.ErrNotFound) {
		return notFound("rule", rule)
	}
	if err != nil {
		return fmt.Errorf("explain signal: %w", err)
	}
	out := api.SignalWhy{Signal: renderSignal(&s), Rules: make([]api.RuleWhy, len(all))}
	fired := 0
	for i := range all {
		out.Rules[i] = renderRuleWhy(&all[i])
		if all[i].Fired {
			fired++
		}
	}
	switch n := len(all); {
	case n == 0:
		out.Summary = fmt.Sprintf("no rule that was in force listens to %s", s.Trigger)
	case s.State == flow.SignalNew:
		out.Summary = "the rules have not been asked about it yet"
	default:
		out.Summary = fmt.Sprintf("%d of %d rules that listen to %s have started something for it", fired, n, s.Trigger)
	}
	out.Summary = strings.Join(append([]string{out.Summary}, aside...), "; ")
	return c.json(http.StatusOK, out)
}

func renderRuleWhy(w *engine.RuleWhy) api.RuleWhy {
	out := api.RuleWhy{Rule: w.Rule, Version: w.Version, Fired: w.Fired, Summary: w.Summary, Clauses: make([]api.RuleClause, len(w.Clauses))}
	for i, k := range w.Clauses {
		out.Clauses[i] = api.RuleClause{Text: k.Text, Holds: k.Holds}
		if k.Err != nil {
			out.Clauses[i].Error = k.Err.Error()
		}
		for _, v := range k.Values {
			out.Clauses[i].Values = append(out.Clauses[i].Values, api.RuleValue{Text: v.Text, Value: json.RawMessage(v.Value)})
		}
	}
	if w.Enforcement != nil {
		e := renderEnforcement(w.Enforcement)
		out.Enforcement = &e
	}
	return out
}

func (c *call) ruleWhy() error {
	name := c.r.PathValue("name")
	w, err := c.Engine.WhyRule(c.ctx(), name)
	if err != nil {
		return missing("rule", name, err)
	}
	return c.json(http.StatusOK, api.RuleState{Rule: renderRule(w.Rule), Summary: w.Summary, Facts: w.Facts, Unblock: renderAdvice(w.Unblock)})
}

func (c *call) testRules(in *api.RulesTest) error {
	defs, err := definition.Parse("document", []byte(in.Document), c.knowsLanguage)
	if err != nil {
		return err
	}
	all, err := c.Engine.TestRules(c.ctx(), defs, in.Since)
	if err != nil {
		return fmt.Errorf("test rules: %w", err)
	}
	if len(all) == 0 {
		return invalid(api.FieldError{Path: "document", Message: "it has no rule", Fix: "send documents of kind: rule"})
	}
	out := api.RulesTested{Rules: make([]api.RulePast, len(all))}
	for i := range all {
		out.Rules[i] = renderPast(&all[i])
	}
	return c.json(http.StatusOK, out)
}

func (c *call) replayRule(in *api.RuleReplay) error {
	name := c.r.PathValue("name")
	p, err := c.Engine.ReplayRule(c.ctx(), name, in.Since, in.DryRun)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return notFound("rule", name)
	case errors.Is(err, engine.ErrPaused):
		return invalid(api.FieldError{Path: "name", Value: name, Message: "the rule is paused and starts nothing", Fix: "resume it first (pawl rules resume), or ask with dry_run"})
	case err != nil:
		return fmt.Errorf("replay rule %s: %w", name, err)
	}
	return c.json(http.StatusOK, renderPast(p))
}

func renderPast(p *engine.Past) api.RulePast {
	out := api.RulePast{Rule: p.Rule, Signals: p.Signals, Ran: p.Ran, Held: p.Held, Runs: p.Runs, Refused: p.Refused, Failed: p.Failed, Enforced: p.Enforced, Unlike: p.Unlike, More: p.More, Samples: make([]api.PastSample, len(p.Samples))}
	for i, s := range p.Samples {
		out.Samples[i] = api.PastSample{Signal: s.Signal.Text(flow.SignalPrefix), State: s.State.String(), Was: s.Was.String(), Unlike: s.Unlike, Reason: renderReason(s.Reason)}
	}
	return out
}
