package debug

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
)

type replayOptions struct {
	at         int64
	definition string
	format     output.Format
}

func ReplayCommand(a *app.App) *cobra.Command {
	var o replayOptions
	c := &cobra.Command{
		Use:   "replay ID…",
		Short: "Replay recorded histories by the rules of the engine, and show the differences",
		Long: `Replay recorded histories: each recorded event is compared with the decision that the rules of the engine give
for the events before it, at the recorded times and with the recorded results. Nothing runs and nothing is
changed. Parts that the record does not contain are printed as not known. The exit code is 1 if there is a
difference.

With --definition, the recorded results of a workflow's tasks are put through another definition: the command
prints which tasks it would have started, skipped, or given other input. An item with other input has no
recorded result, so everything after it is not known.`,
		Example: `  pawl replay ex_…
  pawl replay ex_… --at 137                     the state at event 137, and what it waited for
  pawl replay ex_… --definition new.yaml        where it would have gone another way
  pawl get executions --since 168h -o name | xargs pawl replay`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("at") && o.at < 1:
				return exit.Usagef("--at %d: events are numbered from 1 on", o.at)
			case o.at > 0 && o.definition != "":
				return exit.Usagef("--at is for the recorded history and --definition for another one: leave out one of them")
			case o.at > 0 && len(args) > 1:
				return exit.Usagef("--at is for one execution")
			case o.format != output.AsTable && len(args) > 1:
				return exit.Usagef("-o is for one execution")
			}
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				if o.definition != "" {
					return compareReplays(ctx, a, s, args, &o)
				}
				return replay(ctx, a, s, args, &o)
			})
		},
	}
	f := c.Flags()
	f.Int64Var(&o.at, "at", 0, "replay up to the event with this number, and show the state at that point")
	f.StringVar(&o.definition, "definition", "", "a file with another definition of the workflow (- for standard input)")
	output.FormatFlag(c, &o.format, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

// replay replays each execution, and fails if a history does not follow from the rules.
func replay(ctx context.Context, a *app.App, s *app.Session, ids []string, o *replayOptions) error {
	bad := 0
	for _, id := range ids {
		r, err := s.Replay(ctx, id, o.at)
		if err != nil {
			return err
		}
		if !r.Follows {
			bad++
		}
		if o.format != output.AsTable {
			if err := output.WriteData(a.Out, o.format, r); err != nil {
				return err
			}
			continue
		}
		showReplay(a, r)
		if o.at > 0 {
			showState(a, &r.State)
		}
	}
	if bad > 0 {
		return fmt.Errorf("%s not follow from the rules", output.Plural(bad, "history does", "histories do"))
	}
	return nil
}

// ShownFindings is the number of findings, and of unknowns, that are shown per execution; -o json has all.
const ShownFindings = 20

func showReplay(a *app.App, r *api.Replay) {
	verdict := "follows from the rules"
	switch {
	case !r.Follows:
		verdict = "does NOT follow from the rules: " + output.Plural(len(r.Findings), "finding", "findings")
	case len(r.Unknown) > 0:
		verdict = "follows from the rules, as far as is known"
	}
	output.Printf(a.Out, "%s: %s; %s\n", r.Execution, output.Plural(r.Events, "event", "events"), verdict)
	for i, f := range r.Findings {
		if i == ShownFindings {
			output.Printf(a.Out, "  … and %d more (-o json has them)\n", len(r.Findings)-i)
			break
		}
		output.Printf(a.Out, "  %s\n    by the rules: %s\n    recorded:     %s\n    why:          %s\n", findingPlace(f.Seq, f.Task), f.Rules, f.Recorded, f.Why)
	}
	for i, u := range r.Unknown {
		if i == ShownFindings {
			output.Printf(a.Out, "  … and %d more (-o json has them)\n", len(r.Unknown)-i)
			break
		}
		output.Printf(a.Out, "  not known, %s: %s\n", findingPlace(u.Seq, u.Task), u.What)
	}
}

func findingPlace(seq int64, task string) string {
	text := "the execution"
	if seq > 0 {
		text = fmt.Sprintf("event %d", seq)
	}
	if task != "" {
		text += ", " + task
	}
	return text
}

func showState(a *app.App, s *api.ReplayState) {
	output.Printf(a.Out, "\nAt event %d (%s): %s, attempt %d", s.Seq, s.At.Format("2006-01-02 15:04:05.000"), s.Status, s.Attempt)
	if s.Worker != "" {
		output.Printf(a.Out, ", worker %s", s.Worker)
	}
	if !s.NotBefore.IsZero() {
		output.Printf(a.Out, ", not before %s", s.NotBefore.Format("15:04:05.000"))
	}
	output.Printf(a.Out, "\nwhy: %s\n", s.Why.Summary)
	for _, f := range s.Why.Facts {
		output.Printf(a.Out, "  %s\n", f)
	}
	for _, n := range s.Why.NotKnown {
		output.Printf(a.Out, "  not known: %s\n", n)
	}
	if len(s.Tasks) == 0 {
		return
	}
	fmt.Fprintln(a.Out)
	t := output.Titled("TASK", "DECIDED", "STARTED", "OPEN", "COMPLETED", "FAILED", "CANCELLED", "TIMED OUT")
	for i := range s.Tasks {
		k := &s.Tasks[i]
		t.Row(k.Task, k.Mark, output.Count(k.Started), output.Count(k.Open), output.Count(k.Completed), output.Count(k.Failed), output.Count(k.Cancelled), output.Count(k.TimedOut))
	}
	t.Write(a.Out)
}

// compareReplays reports where recorded runs would have gone differently.
func compareReplays(ctx context.Context, a *app.App, s *app.Session, ids []string, o *replayOptions) error {
	files, err := a.ReadFiles([]string{o.definition})
	if err != nil {
		return &exit.Error{Code: exit.Misuse, Err: err}
	}
	for _, id := range ids {
		r, err := s.CompareReplay(ctx, id, api.ReplayRequest{Document: string(files[0].Content)})
		if err != nil {
			return err
		}
		if o.format != output.AsTable {
			return output.WriteData(a.Out, o.format, r)
		}
		showComparison(a, r)
	}
	return nil
}

func showComparison(a *app.App, r *api.ReplayComparison) {
	t, changed := &output.Table{}, 0
	t.Row("TASK", "CHANGE", "RECORDED", "WOULD BE", "WHY")
	for i := range r.Tasks {
		k := &r.Tasks[i]
		if k.Change != "same" {
			changed++
		}
		t.Row(k.Task, k.Change, k.Recorded, k.Would, strings.ReplaceAll(k.Why, "\n", " "))
	}
	end := "how it would have ended is not known"
	switch {
	case r.Alike:
		end = "it would have ended as it did"
	case r.Status != "":
		end = fmt.Sprintf("it would have ended otherwise: %s", r.Status)
	}
	if changed == 0 {
		output.Printf(a.Out, "%s: no task would have gone another way; %s\n", r.Execution, end)
		return
	}
	output.Printf(a.Out, "%s: %s of %d would have gone another way; %s\n", r.Execution, output.Plural(changed, "task", "tasks"), len(r.Tasks), end)
	t.Write(a.Out)
}
