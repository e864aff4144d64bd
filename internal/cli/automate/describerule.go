package automate

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/definition"
)

const shownEnforcements = 5

// describedRule is the output of pawl describe for a rule as data.
type describedRule struct {
	*api.Rule
	Why    *api.RuleState    `json:"why"`
	Latest []api.Enforcement `json:"enforcements"`
}

// DescribeRule shows a rule: its state, its windows and limits, and its latest enforcements.
func DescribeRule(ctx context.Context, a *app.App, s *app.Session, name string, f output.Format) error {
	d := describedRule{}
	var err error
	if d.Rule, err = s.Rule(ctx, name); err != nil {
		return err
	}
	if d.Why, err = s.WhyRule(ctx, name); err != nil {
		return err
	}
	page, err := s.Enforcements(ctx, client.EnforcementFilter{Rule: name, Limit: shownEnforcements})
	if err != nil {
		return err
	}
	d.Latest = page.Enforcements
	if f != output.AsTable {
		return output.WriteData(a.Out, f, d)
	}
	document, err := definition.Decode(d.Document)
	if err != nil {
		return fmt.Errorf("read rule %s: %w", name, err)
	}
	t := &output.Table{}
	t.Fields(
		"Name", d.Name, "Version", strconv.Itoa(d.Version), "On", strings.Join(d.On, ", "), "If", d.If, "Action", d.Action,
		"Holds", holdsText(document.Rule.Window), "Depth", strconv.Itoa(document.Rule.Depth), "Reentry", map[bool]string{true: "allow"}[document.Rule.Reentry],
		"Storm", circuitBreakerText(document.Rule.CircuitBreaker), "State", d.Why.Summary,
	)
	t.Write(a.Out)
	if len(d.Latest) == 0 {
		fmt.Fprintln(a.Out, "\nIt has made nothing of any signal that is kept.")
		return nil
	}
	fmt.Fprintln(a.Out, "\nLatest:")
	t = &output.Table{}
	for i := range d.Latest {
		e := &d.Latest[i]
		t.Row("  "+e.Signal, e.State, e.Execution, e.At.UTC().Format(time.RFC3339), output.Reason(e.Reason))
	}
	t.Write(a.Out)
	return nil
}

// holdsText describes how long a rule holds signals.
func holdsText(w *definition.Window) string {
	switch {
	case w == nil:
		return ""
	case w.Quiet > 0:
		return fmt.Sprintf("%s: until it is quiet for %s, at most %s, and runs for %s", w.Field, w.Quiet, w.AtMost, w.Keep)
	}
	return fmt.Sprintf("%s: %d signals, %d bytes or %s", w.Field, w.Size, w.Bytes, w.AtMost)
}

func circuitBreakerText(s *definition.CircuitBreaker) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("pauses itself beyond %d in %s on one server", s.Limit, s.Per)
}
