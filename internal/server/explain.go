package server

import (
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
	out := api.SignalWhy{Signal: renderSignal(&s), Rules: all}
	fired := 0
	for i := range all {
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

func (c *call) ruleWhy() error {
	name := c.r.PathValue("name")
	r, w, err := c.Engine.WhyRule(c.ctx(), name)
	if err != nil {
		return missing("rule", name, err)
	}
	w.Rule = renderRule(r)
	return c.json(http.StatusOK, w)
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
	return c.json(http.StatusOK, api.RulesTested{Rules: all})
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
	return c.json(http.StatusOK, p)
}
