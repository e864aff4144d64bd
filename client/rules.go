package client

import (
	"context"
	"iter"
	"net/url"

	"github.com/pawl-run/pawl/api"
)

// Rules lists the rules in force, by name.
func (c *Client) Rules(ctx context.Context) ([]api.Rule, error) {
	var l api.RuleList
	err := c.call(ctx, get("/rules", nil), &l)
	return l.Rules, err
}

// Rule loads one rule, with its document.
func (c *Client) Rule(ctx context.Context, name string) (*api.Rule, error) {
	return fetch[api.Rule](ctx, c, get("/rules/"+url.PathEscape(name), nil))
}

// PauseRule keeps a rule from starting executions until it is resumed.
func (c *Client) PauseRule(ctx context.Context, name, reason string) (*api.Rule, error) {
	return c.steerRule(ctx, name, "/pause", api.PauseRequest{Reason: reason})
}

// ResumeRule lets a rule start executions again.
func (c *Client) ResumeRule(ctx context.Context, name string) (*api.Rule, error) {
	return c.steerRule(ctx, name, "/resume", nil)
}

func (c *Client) steerRule(ctx context.Context, name, how string, body any) (*api.Rule, error) {
	return fetch[api.Rule](ctx, c, post("/rules/"+url.PathEscape(name)+how, body))
}

// EnforcementFilter selects enforcements. Zero fields select everything.
type EnforcementFilter struct {
	Rule   string
	State  string
	Signal string // id of a signal
	Limit  int    // of a page: 1 to 1000; 100 by default
	Cursor string // NextCursor of the page before
}

func (f EnforcementFilter) query() url.Values {
	q := url.Values{}
	set(q, "rule", f.Rule)
	set(q, "state", f.State)
	set(q, "signal", f.Signal)
	set(q, "cursor", f.Cursor)
	setInt(q, "limit", int64(f.Limit))
	return q
}

// FollowEnforcements walks through the latest enforcements that f selects, f.Limit at most, and then through each one that is new, or that
// changes while it is among the latest, as FollowSignals does.
func (c *Client) FollowEnforcements(ctx context.Context, f EnforcementFilter) iter.Seq2[api.Enforcement, error] {
	return follow[api.Enforcement](ctx, c, "/enforcements", f.query(), api.StreamEnforcement)
}

// Enforcements returns one page, newest signals first.
func (c *Client) Enforcements(ctx context.Context, f EnforcementFilter) (*api.EnforcementPage, error) {
	return fetch[api.EnforcementPage](ctx, c, get("/enforcements", f.query()))
}

// AllEnforcements walks through all enforcements that f selects, page by page. An error ends the walk.
func (c *Client) AllEnforcements(ctx context.Context, f EnforcementFilter) iter.Seq2[api.Enforcement, error] {
	return entries(ctx, c, "/enforcements", f.query(), func(p *api.EnforcementPage) ([]api.Enforcement, string) { return p.Enforcements, p.NextCursor })
}

// WhySignal says why the rules that listen to a signal's trigger, or the named rule, did or did not start something for it.
func (c *Client) WhySignal(ctx context.Context, id, rule string) (*api.SignalWhy, error) {
	q := url.Values{}
	set(q, "rule", rule)
	return fetch[api.SignalWhy](ctx, c, get("/signals/"+url.PathEscape(id)+"/why", q))
}

// WhyRule returns the state of a rule and its decisions about the latest signals.
func (c *Client) WhyRule(ctx context.Context, name string) (*api.RuleState, error) {
	return fetch[api.RuleState](ctx, c, get("/rules/"+url.PathEscape(name)+"/why", nil))
}

// TestRules says what the rules in a document would have decided about past signals. It stores nothing.
func (c *Client) TestRules(ctx context.Context, in api.RulesTest) ([]api.RulePast, error) {
	var out api.RulesTested
	err := c.call(ctx, post("/rules:test", in), &out)
	return out.Rules, err
}

// ReplayRule applies a rule to past signals for which it has no enforcement. It may be repeated, since a rule enforces a signal once.
func (c *Client) ReplayRule(ctx context.Context, name string, in api.RuleReplay) (*api.RulePast, error) {
	return fetch[api.RulePast](ctx, c, post("/rules/"+url.PathEscape(name)+"/replay", in))
}

// RetryEnforcement applies the rule in force again to a signal for which it started nothing because of an error or a refusal. If the rule
// has started something, the existing enforcement is returned, so the call may be repeated.
func (c *Client) RetryEnforcement(ctx context.Context, signal, rule string) (*api.Enforcement, error) {
	return fetch[api.Enforcement](ctx, c, post("/enforcements/"+url.PathEscape(signal)+"/"+url.PathEscape(rule)+"/retry", nil))
}
