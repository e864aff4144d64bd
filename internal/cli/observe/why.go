package observe

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/automate"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/flow"
)

func WhyCommand(a *app.App) *cobra.Command {
	var f output.Format
	var rule string
	c := &cobra.Command{
		Use:   "why ID...",
		Short: "Explain what an execution or schedule is waiting for, or why a rule did or did not fire",
		Long: `Explain what an execution or a schedule is waiting for, and what would unblock it. For a signal (sg_…): which
rules started something and why the others did not, clause by clause with the values that were compared. For a
rule (rule:NAME): its state and its decisions on the latest signals.`,
		Example: `  pawl why ex_…
  pawl why sg_… --rule clean-disk
  pawl why rule:clean-disk
  pawl why schedule:nightly
  pawl why ex_… -o json
  pawl why ex_… ex_… ex_…         a line for each`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				if len(args) > 1 {
					return whyMany(ctx, a, s, args, f)
				}
				if strings.HasPrefix(args[0], flow.SignalPrefix) {
					return automate.WhySignal(ctx, a, s, args[0], rule, f)
				}
				if rule != "" {
					return exit.Usagef("--rule is for a signal, as in pawl why sg_… --rule %s", rule)
				}
				if name, ok := strings.CutPrefix(args[0], "schedule:"); ok {
					return automate.WhySchedule(ctx, a, s, name, f)
				}
				if name, ok := strings.CutPrefix(args[0], "rule:"); ok {
					return automate.WhyRule(ctx, a, s, name, f)
				}
				w, err := s.Why(ctx, args[0])
				return output.Show(a.Out, f, w, err, func() {
					output.Reasons(a.Out, w.Summary, w.Facts, w.Unblock)
					if s.Embedded && !w.Status.Terminal() {
						fmt.Fprintf(a.Out, "  - no pawl run or pawl server is working on %s now: start one\n", a.Config.Text("state_dir"))
					}
				})
			})
		},
	}
	c.Flags().StringVar(&rule, "rule", "", "signals: only this rule, even if it listens to other triggers")
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}
