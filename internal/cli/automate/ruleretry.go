package automate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/flow"
)

func rulesRetry(a *app.App) *cobra.Command {
	var f output.Format
	var state string
	c := &cobra.Command{
		Use:   "retry NAME [SIGNAL…]",
		Short: "Run a rule again on signals that failed or were refused",
		Long: `Run the version of a rule in force again on signals for which it, or an earlier version, failed or was refused:
for example after a repair. Without signals it is run on all failed ones, oldest first. A rule processes a
signal only once, so this command may be repeated at any time. The exit code is 1 if some fail again.`,
		Example: `  pawl rules retry clean-disk
  pawl rules retry clean-disk --state refused
  pawl rules retry clean-disk sg_…`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if k := flow.EnforcementStateOf(state); k != flow.EnforcementFailed && k != flow.EnforcementRefused {
				return exit.Usagef("--state %s: what can be tried again is failed or refused", state)
			}
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				name, signals := args[0], args[1:]
				if len(signals) == 0 {
					if _, err := s.Rule(ctx, name); err != nil {
						return err
					}
					for e, err := range s.AllEnforcements(ctx, client.EnforcementFilter{Rule: name, State: state, Limit: 1000}) {
						if err != nil {
							return err
						}
						signals = append(signals, e.Signal)
					}
					slices.Reverse(signals)
				}
				return retryEnforcements(ctx, a, s, name, signals, f)
			})
		},
	}
	c.Flags().StringVar(&state, "state", flow.EnforcementFailed.String(), "if no signals are named: failed or refused")
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

func retryEnforcements(ctx context.Context, a *app.App, s *app.Session, rule string, signals []string, f output.Format) error {
	all := []api.Enforcement{}
	bad := 0
	for _, signal := range signals {
		e, err := s.RetryEnforcement(ctx, signal, rule)
		if refused, ok := errors.AsType[*api.Problem](err); ok && refused.Type == api.ProblemInvalid && len(signals) > 1 {
			a.Say("pawl: %s: %s", signal, refused.Detail) // the rule no longer applies to it; the others continue
			bad++
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", signal, err)
		}
		if e.Reason != nil {
			bad++
		}
		all = append(all, *e)
	}
	if f != output.AsTable {
		if err := output.WriteData(a.Out, f, all); err != nil {
			return err
		}
	} else {
		t := &output.Table{}
		for i := range all {
			e := &all[i]
			t.Row(e.Signal, e.State, e.Execution, output.Reason(e.Reason))
		}
		t.Write(a.Out)
		if len(signals) == 0 {
			a.Say("pawl: nothing is to be tried again")
		}
	}
	if bad > 0 {
		return &exit.Error{Code: exit.General, Err: fmt.Errorf("rule %s has started nothing for %d of %s", rule, bad, output.Plural(len(signals), "signal", "signals"))}
	}
	return nil
}
