package automate

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
)

// WhySignal explains why rules started something for a signal or did not.
func WhySignal(ctx context.Context, a *app.App, s *app.Session, id, rule string, f output.Format) error {
	w, err := s.WhySignal(ctx, id, rule)
	return output.Show(a.Out, f, w, err, func() {
		output.Printf(a.Out, "%s (%s): %s\n", w.Signal.ID, w.Signal.Trigger, w.Summary)
		for _, r := range w.Rules {
			mark := "-"
			if r.Fired {
				mark = "+"
			}
			output.Printf(a.Out, "  %s %s: %s\n", mark, r.Rule, r.Summary)
			for _, k := range r.Clauses {
				said := "does not hold"
				switch {
				case k.Error != "":
					said = k.Error
				case k.Holds:
					said = "holds"
				}
				var values []string
				for _, v := range k.Values {
					values = append(values, fmt.Sprintf("%s is %s", v.Text, v.Value))
				}
				if len(values) > 0 && k.Error == "" {
					said += " (" + strings.Join(values, ", ") + ")"
				}
				output.Printf(a.Out, "      %s: %s\n", k.Text, said)
			}
		}
	})
}

func WhyRule(ctx context.Context, a *app.App, s *app.Session, name string, f output.Format) error {
	w, err := s.WhyRule(ctx, name)
	return output.Show(a.Out, f, w, err, func() { output.Reasons(a.Out, w.Summary, w.Facts, w.Unblock) })
}

func rulesTest(a *app.App) *cobra.Command {
	var f output.Format
	var since string
	c := &cobra.Command{
		Use:   "test FILE",
		Short: "Test rules on past signals, before they are applied",
		Long: `Evaluate the rules in a file on past signals, with the same code that runs rules, and show where the result
differs from the versions in force. Nothing is started or stored.`,
		Example: "  pawl rules test rules.yaml --since 7d",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := app.Moment("--since", since)
			if err != nil {
				return err
			}
			files, err := a.ReadFiles(args)
			if err != nil {
				return &exit.Error{Code: exit.Misuse, Err: err}
			}
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				all, err := s.TestRules(ctx, api.RulesTest{Document: string(files[0].Content), Since: at})
				return output.Show(a.Out, f, all, err, func() {
					for i := range all {
						p := &all[i]
						held := ""
						if p.Held > 0 {
							held = fmt.Sprintf(" hold %d for %s,", p.Held, output.Plural(p.Runs, "execution", "executions"))
						}
						in := ""
						if p.Held == 0 && p.Runs > 0 {
							in = " in " + output.Plural(p.Runs, "execution", "executions")
						}
						output.Printf(a.Out, "%s: of %s it would run for %d%s,%s fail for %d and be refused for %d; %d unlike the version in force\n",
							p.Rule, output.Plural(p.Signals, "signal", "signals"), p.Ran, in, held, p.Failed, p.Refused, p.Unlike)
						writeSamples(a, p)
					}
				})
			})
		},
	}
	c.Flags().StringVar(&since, "since", "7d", "oldest signals to use: an age such as 7d, or a time such as 2026-11-02T10:00:00Z")
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

func rulesReplay(a *app.App) *cobra.Command {
	var f output.Format
	var since string
	var dry bool
	c := &cobra.Command{
		Use:   "replay NAME",
		Short: "Run a rule on past signals that it has not processed, once each",
		Long: `Run a rule on past signals that it has not processed, oldest first, as if they arrived now: for example after it
was paused or repaired. A rule processes a signal only once, so this command may be repeated at any time.`,
		Example: `  pawl rules replay clean-disk --since 24h --dry-run
  pawl rules replay clean-disk --since 24h`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := app.Moment("--since", since)
			if err != nil {
				return err
			}
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				p, err := s.ReplayRule(ctx, args[0], api.RuleReplay{Since: at, DryRun: dry})
				return output.Show(a.Out, f, p, err, func() {
					did, holds, failed, refused := "has run for", "holds", "failed for", "was refused for"
					if dry {
						did, holds, failed, refused = "would run for", "hold", "fail for", "be refused for"
					}
					held := ""
					if p.Held > 0 {
						held = fmt.Sprintf(" %s %d,", holds, p.Held)
					}
					output.Printf(a.Out, "%s: of %s it %s %d,%s %s %d and %s %d; of %d it had made something before\n",
						p.Rule, output.Plural(p.Signals, "signal", "signals"), did, p.Ran, held, failed, p.Failed, refused, p.Refused, p.Enforced)
					writeSamples(a, p)
				})
			})
		},
	}
	c.Flags().StringVar(&since, "since", "24h", "oldest signals to use: an age such as 24h, or a time such as 2026-11-02T10:00:00Z")
	c.Flags().BoolVar(&dry, "dry-run", false, "print what would be started, but start nothing")
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

func writeSamples(a *app.App, p *api.RulePast) {
	t := &output.Table{}
	for _, s := range p.Samples {
		was := ""
		if s.Unlike {
			was = "was: " + cmp.Or(s.Was, "nothing")
		}
		t.Row("  "+s.Signal, cmp.Or(s.State, "nothing"), was, output.Reason(s.Reason))
	}
	t.Write(a.Out)
	if p.More {
		fmt.Fprintln(a.Out, "  there are older signals, which were not looked at")
	}
}
