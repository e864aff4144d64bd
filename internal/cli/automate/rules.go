// Package automate contains the commands about executions that are started automatically, and about questions to people: emit,
// answer, schedules, rules, hooks.
package automate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/listing"
	"github.com/pawl-run/pawl/internal/cli/output"
)

func RulesCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "rules",
		Short: "Test, replay, retry, pause and resume rules",
		Long: `Rules start actions when signals arrive. They are documents of kind rule: pawl apply registers them, pawl get
rules lists them, and pawl get enforcements lists their decisions. pawl why sg_… explains why a rule did or did
not fire.`,
	}
	c.AddCommand(rulesTest(a), rulesReplay(a), rulesRetry(a), rulesPause(a), rulesResume(a))
	return c
}

func rulesPause(a *app.App) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:     "pause NAME…",
		Short:   "Pause rules: they start nothing until they are resumed",
		Long:    "Pause rules: they start nothing until they are resumed. Signals that arrive during the pause are kept.",
		Example: "  pawl rules pause clean-disk --reason 'the disks are being replaced'",
		Args:    cobra.MinimumNArgs(1),
		RunE: app.ForEach(a, func(ctx context.Context, s *app.Session, name string) (string, error) {
			r, err := s.PauseRule(ctx, name, reason)
			if err != nil {
				return "", err
			}
			return r.Name + " is paused", nil
		}),
	}
	c.Flags().StringVar(&reason, "reason", "", "reason, kept for later readers")
	return c
}

func rulesResume(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "resume NAME…",
		Short:   "Resume rules for signals that arrive from now on",
		Example: "  pawl rules resume clean-disk",
		Args:    cobra.MinimumNArgs(1),
		RunE: app.ForEach(a, func(ctx context.Context, s *app.Session, name string) (string, error) {
			r, err := s.ResumeRule(ctx, name)
			if err != nil {
				return "", err
			}
			return r.Name + " is resumed", nil
		}),
	}
}

func ListRules(ctx context.Context, _ *app.App, c *client.Client, _ *listing.Options) (any, *output.Table, error) {
	all, err := c.Rules(ctx)
	t := output.Titled("NAME", "VERSION", "ON", "IF", "ACTION", "STATE")
	for i := range all {
		r := &all[i]
		state := "on"
		switch {
		case r.Paused && r.Reason != "":
			state = "paused: " + r.Reason
		case r.Paused:
			state = "paused"
		}
		t.Row(r.Name, strconv.Itoa(r.Version), strings.Join(r.On, ", "), r.If, r.Action, state)
	}
	return all, t, err
}

func ListEnforcements(ctx context.Context, _ *app.App, c *client.Client, l *listing.Options) (any, *output.Table, error) {
	all, err := listing.First(c.AllEnforcements(ctx, client.EnforcementFilter{Rule: l.Rule, State: l.State, Signal: l.Signal, Limit: min(l.Limit, 1000)}), l.Limit)
	if err != nil {
		return nil, nil, err
	}
	t := output.Titled("SIGNAL", "RULE", "STATE", "EXECUTION", "AT", "REASON")
	for i := range all {
		e := &all[i]
		t.Row(e.Signal, fmt.Sprintf("%s@%d", e.Rule, e.Version), e.State, e.Execution, output.Ago(e.At), output.Reason(e.Reason))
	}
	return all, t, nil
}
