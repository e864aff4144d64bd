package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
)

func rulesCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "rules",
		Short: "Test, replay, retry, pause and resume rules",
		Long: `Rules run actions for signals. They are documents of kind rule: pawl apply applies them, pawl get rules lists them, and
pawl get enforcements what they have made of which signal. pawl why sg_… says why a rule has fired or not.`,
	}
	c.AddCommand(rulesTest(a), rulesReplay(a), rulesRetry(a), rulesPause(a), rulesResume(a))
	return c
}

func rulesPause(a *app.App) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:     "pause NAME…",
		Short:   "Let rules start nothing until they are resumed",
		Long:    "Let rules start nothing until they are resumed. The signals that come meanwhile are kept.",
		Example: "  pawl rules pause clean-disk --reason 'the disks are being replaced'",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			return eachSchedule(a, cmd, names, func(ctx context.Context, s *app.Session, name string) (string, error) {
				r, err := s.PauseRule(ctx, name, reason)
				if err != nil {
					return "", err
				}
				return r.Name + " is paused", nil
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for those who look at it later")
	return c
}

func rulesResume(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "resume NAME…",
		Short:   "Let rules start executions again, for the signals that come from now on",
		Example: "  pawl rules resume clean-disk",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			return eachSchedule(a, cmd, names, func(ctx context.Context, s *app.Session, name string) (string, error) {
				r, err := s.ResumeRule(ctx, name)
				if err != nil {
					return "", err
				}
				return r.Name + " is resumed", nil
			})
		},
	}
}

func listRules(ctx context.Context, _ *app.App, c *client.Client, _ *listing) (any, *output.Table, error) {
	all, err := c.Rules(ctx)
	all = append([]api.Rule{}, all...) // in JSON an empty list, not null
	t := &output.Table{}
	t.Row("NAME", "VERSION", "ON", "IF", "ACTION", "STATE")
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

func listEnforcements(ctx context.Context, _ *app.App, c *client.Client, l *listing) (any, *output.Table, error) {
	if l.limit < 1 {
		return nil, nil, exit.Usagef("--limit %d: give a number of 1 or more", l.limit)
	}
	all := []api.Enforcement{}
	for e, err := range c.AllEnforcements(ctx, client.EnforcementFilter{Rule: l.rule, State: l.state, Signal: l.signal, Limit: min(l.limit, 1000)}) {
		if err != nil {
			return nil, nil, err
		}
		if all = append(all, e); len(all) >= l.limit {
			break
		}
	}
	t := &output.Table{}
	t.Row("SIGNAL", "RULE", "STATE", "EXECUTION", "AT", "REASON")
	for i := range all {
		e := &all[i]
		t.Row(e.Signal, fmt.Sprintf("%s@%d", e.Rule, e.Version), e.State, e.Execution, output.Ago(e.At), reasonText(e.Reason))
	}
	return all, t, nil
}
