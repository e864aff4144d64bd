package server

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/automation"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

func renderRule(r *automation.Rule) api.Rule {
	out := api.Rule{Name: r.Name, Version: r.Version, On: r.On, Action: r.Run.ActionText(), Paused: r.Paused, Reason: r.Reason}
	if r.If != nil {
		out.If = r.If.Text()
	}
	return out
}

func renderEnforcements(all []flow.Enforcement) []api.Enforcement {
	out := make([]api.Enforcement, len(all))
	for i := range all {
		out[i] = engine.ShownEnforcement(&all[i])
	}
	return out
}

func (c *call) rules() error {
	all, err := c.Engine.Rules(c.ctx())
	if err != nil {
		return fmt.Errorf("list rules: %w", err)
	}
	list := api.RuleList{Rules: make([]api.Rule, len(all))}
	for i, r := range all {
		list.Rules[i] = renderRule(r)
	}
	return c.json(http.StatusOK, list)
}

func (c *call) answerRule(err error) error {
	name := c.r.PathValue("name")
	var r *automation.Rule
	var d *definition.Definition
	if err == nil {
		r, d, err = c.Engine.Rule(c.ctx(), name)
	}
	if err != nil {
		return missing("rule", name, err)
	}
	out := renderRule(r)
	out.Document = d.Canonical()
	return c.json(http.StatusOK, out)
}

func (c *call) rule() error { return c.answerRule(nil) }

func (c *call) pauseRule(in *api.PauseRequest) error {
	return c.steerRule(c.Engine.PauseRule(c.ctx(), c.r.PathValue("name"), in.Reason))
}

func (c *call) resumeRule() error {
	return c.steerRule(c.Engine.ResumeRule(c.ctx(), c.r.PathValue("name")))
}

// steerRule answers once every server knows about the change.
func (c *call) steerRule(err error) error {
	if err == nil {
		c.Engine.Settle(c.ctx())
	}
	return c.answerRule(err)
}

func (c *call) enforcements() error {
	f := store.EnforcementFilter{Rule: c.query.Get("rule"), Limit: int(c.number("limit", 100, 1, 1000))}
	if state := c.query.Get("state"); state != "" {
		if f.State = flow.EnforcementStateOf(state); f.State == 0 {
			c.fault("state", state, "there is no such state", "one of "+strings.Join(flow.EnforcementStates(), ", "))
		}
	}
	if text := c.query.Get("cursor"); text != "" {
		number, rule, _ := strings.Cut(text, ".")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 1 {
			c.noPlace()
		}
		f.BeforeSignal, f.BeforeRule = n, rule
	}
	if text := c.query.Get("signal"); text != "" {
		id, err := flow.ParseID(flow.SignalPrefix, text)
		if err != nil {
			c.fault("signal", text, err.Error(), "")
		} else if s, err := c.Engine.Reader().Signal(c.ctx(), id); err != nil {
			return missing("signal", text, err)
		} else {
			f.Signal = s.Number
		}
	}
	if err := c.checked(); err != nil {
		return err
	}
	if c.wantsStream() {
		first := f
		return watchList(c, api.StreamEnforcement, func(e *api.Enforcement) string { return e.Signal + " " + e.Rule }, func() { f = first }, func() ([]api.Enforcement, error) {
			rows, err := c.Engine.Reader().Enforcements(c.ctx(), f)
			if err != nil {
				return nil, fmt.Errorf("list enforcements: %w", err)
			}
			if len(rows) > 0 {
				last := &rows[len(rows)-1]
				f.BeforeSignal, f.BeforeRule = last.Number, last.Rule
			}
			return renderEnforcements(rows), nil
		})
	}
	rows, err := c.Engine.Reader().Enforcements(c.ctx(), f)
	if err != nil {
		return fmt.Errorf("list enforcements: %w", err)
	}
	page := api.EnforcementPage{Enforcements: renderEnforcements(rows)}
	if len(rows) == f.Limit {
		last := &rows[len(rows)-1]
		page.NextCursor = fmt.Sprintf("%d.%s", last.Number, last.Rule)
	}
	return c.json(http.StatusOK, page)
}

func (c *call) retryEnforcement() error {
	text, rule := c.r.PathValue("signal"), c.r.PathValue("rule")
	id, err := flow.ParseID(flow.SignalPrefix, text)
	if err != nil {
		return notFound("signal", text)
	}
	e, err := c.Engine.RetryEnforcement(c.ctx(), id, rule)
	switch {
	case errors.Is(err, engine.ErrNotEnforced):
		return refusal(http.StatusNotFound, api.ProblemNotFound, fmt.Sprintf("rule %.100q has made nothing of signal %s: pawl rules replay asks it about signals of the past", rule, text))
	case errors.Is(err, engine.ErrPaused):
		return invalid(api.FieldError{Path: "rule", Value: rule, Message: "the rule is paused and starts nothing", Fix: "resume it first (pawl rules resume)"})
	case errors.Is(err, store.ErrNotFound):
		return refusal(http.StatusNotFound, api.ProblemNotFound, fmt.Sprintf("there is no signal %s, or no rule %.100q", text, rule))
	case err != nil:
		return fmt.Errorf("try rule %s again: %w", rule, err)
	}
	return c.json(http.StatusOK, engine.ShownEnforcement(e))
}
