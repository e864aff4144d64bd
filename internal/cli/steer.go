package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/terminal"
)

func cancelCommand(a *app.App) *cobra.Command {
	return endCommand(a, "cancel", "Cancel executions", `Cancel executions. What nobody holds yet ends at once. What a worker is running is stopped there, and is cancelled
once the worker has confirmed that nothing is left running; --wait says how long to wait for that. Flags select executions instead of ids,
as they do for pawl get: without --yes they are only listed.`,
		(*client.Client).Cancel, (*client.Client).CancelMany)
}

func killCommand(a *app.App) *cobra.Command {
	return endCommand(a, "kill", "Kill what executions are running", `Kill the code that executions are running, with everything that it has started. They are cancelled once the worker
has confirmed that nothing is left of it. Flags select executions instead of ids, as they do for pawl get: without --yes
they are only listed.`,
		(*client.Client).Kill, (*client.Client).CancelMany)
}

func endCommand(a *app.App, verb, short, long string, end func(*client.Client, context.Context, string, string, time.Duration) (*api.Execution, error),
	many func(*client.Client, context.Context, client.Filter, api.BulkRequest) (*api.BulkResult, error)) *cobra.Command {
	var reason string
	var wait time.Duration
	var b bulk
	c := &cobra.Command{
		Use:   verb + " ID…",
		Short: short,
		Long:  long,
		Example: "  pawl " + verb + " ex_… --reason 'wrong input'\n" +
			"  pawl " + verb + " --label team=docs --status scheduled          list them, and change nothing\n" +
			"  pawl " + verb + " --label team=docs --status scheduled --yes",
		RunE: func(cmd *cobra.Command, ids []string) error {
			selects, err := b.selects(ids)
			if err != nil {
				return err
			}
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				if selects {
					return each(ctx, a, &b, verb, reason, func(ctx context.Context, f client.Filter, in api.BulkRequest) (*api.BulkResult, error) {
						return many(s.Client, ctx, f, in)
					})
				}
				var failed []error
				for _, id := range ids {
					x, err := end(s.Client, ctx, id, reason, wait)
					if err != nil {
						failed = append(failed, fmt.Errorf("%s %s: %w", verb, id, err))
						continue
					}
					if x.Status.Terminal() {
						fmt.Fprintf(a.Out, "%s %s\n", x.ID, x.Status)
					} else {
						fmt.Fprintf(a.Out, "%s %s, ordered to end as %s\n", x.ID, x.Status, orderedAs(x))
					}
				}
				return errors.Join(failed...)
			})
		},
	}
	b.flags(c)
	c.Flags().StringVar(&reason, "reason", "", "why, for those who look at it later")
	wait = 10 * time.Second
	app.DurationVar(c.Flags(), &wait, "wait", "how long to wait for the confirmation")
	return c
}

func orderedAs(x *api.Execution) api.Status {
	if x.CancelOrder != nil {
		return x.CancelOrder.As
	}
	return api.Cancelled
}

func retryCommand(a *app.App) *cobra.Command {
	var wait bool
	var b bulk
	c := &cobra.Command{
		Use:   "retry ID",
		Short: "Run a finished execution's request again, as a new execution",
		Long: `Run a finished execution's request again, as a new execution. Flags select executions instead of an id, as they do for
pawl get: of these, what has failed, timed out or was cancelled, unless --status says otherwise. Without --yes they are only listed.`,
		Example: `  pawl retry ex_…
  pawl retry ex_… --wait                              stay until it has ended
  pawl retry --label team=docs --since 1h             list what would be run again
  pawl retry --label team=docs --since 1h --yes`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m := app.Reading
			selects, err := b.selects(args)
			switch {
			case err != nil:
				return err
			case selects && wait:
				return exit.Usagef("--wait goes with one id: follow many with pawl get executions -w")
			case selects:
				return a.WithClient(cmd.Context(), m, func(ctx context.Context, s *app.Session) error {
					return each(ctx, a, &b, "retry", "", s.RetryMany)
				})
			}
			if wait {
				m = app.Working
			}
			return a.WithClient(cmd.Context(), m, func(ctx context.Context, s *app.Session) error {
				x, err := s.Retry(ctx, args[0])
				if err != nil {
					return err
				}
				if !wait {
					fmt.Fprintln(a.Out, x.ID)
					return nil
				}
				return watch(ctx, a, s, x, output.AsTable)
			})
		},
	}
	b.flags(c)
	c.Flags().BoolVar(&wait, "wait", false, "watch it until it has ended, and exit as it did")
	return c
}

func whyCommand(a *app.App) *cobra.Command {
	var f output.Format
	var rule string
	c := &cobra.Command{
		Use:   "why ID",
		Short: "Say what an execution or a schedule is waiting for and what would unblock it, or why a rule has fired or not",
		Long: `Say what an execution or a schedule is waiting for, and what would unblock it; of a signal (sg_…), which rules have started something for it
and why the others have not, part by part of their conditions with the values that these had; of a rule (rule:NAME), how it
stands and what became of the latest signals that it listens to.`,
		Example: `  pawl why ex_…
  pawl why sg_… --rule clean-disk
  pawl why rule:clean-disk
  pawl why schedule:nightly
  pawl why ex_… -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				if strings.HasPrefix(args[0], flow.SignalPrefix) {
					return whySignal(ctx, a, s, args[0], rule, f)
				}
				if rule != "" {
					return exit.Usagef("--rule is for a signal, as in pawl why sg_… --rule %s", rule)
				}
				if name, is := strings.CutPrefix(args[0], "schedule:"); is {
					return whySchedule(ctx, a, s, name, f)
				}
				if name, is := strings.CutPrefix(args[0], "rule:"); is {
					return whyRule(ctx, a, s, name, f)
				}
				w, err := s.Why(ctx, args[0])
				if err != nil {
					return err
				}
				if f != output.AsTable {
					return output.WriteData(a.Out, f, w)
				}
				writeReasons(a, w.Summary, w.Facts, w.Unblock)
				if s.Embedded && !w.Status.Terminal() {
					fmt.Fprintf(a.Out, "  - no pawl run or pawl server is working on %s now: start one\n", a.Config.Text("state_dir"))
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&rule, "rule", "", "of a signal: about this rule only, whatever it listens to")
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

// writeReasons writes why something waits, and what would let it go on.
func writeReasons(a *app.App, summary string, facts, unblock []string) {
	fmt.Fprintln(a.Out, summary)
	for _, fact := range facts {
		fmt.Fprintf(a.Out, "  - %s\n", fact)
	}
	if len(unblock) > 0 {
		fmt.Fprintln(a.Out, "What would unblock it:")
		for _, u := range unblock {
			fmt.Fprintf(a.Out, "  - %s\n", u)
		}
	}
}

func describeCommand(a *app.App) *cobra.Command {
	var f output.Format
	c := &cobra.Command{
		Use:   "describe ID",
		Short: "Show everything about one execution: its request, tasks, history and outcome; or about a signal, inquiry, webhook or schedule",
		Example: `  pawl describe ex_…
  pawl describe sg_…
  pawl describe iq_…
  pawl describe webhook:github
  pawl describe schedule:nightly
  pawl describe rule:clean-disk
  pawl describe ex_… -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				if strings.HasPrefix(args[0], flow.SignalPrefix) {
					return describeSignal(ctx, a, s, args[0], f)
				}
				if strings.HasPrefix(args[0], flow.InquiryPrefix) {
					return describeInquiry(ctx, a, s, args[0], f)
				}
				for _, k := range describable {
					if name, is := strings.CutPrefix(args[0], k.prefix); is {
						return k.describe(ctx, a, s, name, f)
					}
				}
				x, err := s.Get(ctx, args[0])
				if err != nil {
					return err
				}
				if f != output.AsTable {
					return output.WriteData(a.Out, f, x)
				}
				return describe(ctx, a, s, x)
			})
		},
	}
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

func describe(ctx context.Context, a *app.App, s *app.Session, x *api.Execution) error {
	t := &output.Table{}
	field := func(name, value string) {
		if value != "" && value != "0s" && value != "0" {
			t.Row(name+":", value)
		}
	}
	action := x.Action
	if x.Version > 0 {
		action = fmt.Sprintf("%s@%d", x.Action, x.Version)
	}
	field("ID", x.ID)
	if x.Kind != x.Action {
		action += " (" + x.Kind + ")"
	}
	field("Action", action)
	field("Alias", x.Alias)
	field("Status", string(x.Status))
	field("Attempt", fmt.Sprint(x.Attempt))
	if x.Workflow != "" {
		field("Task", fmt.Sprintf("%s[%d] of %s", x.Task, x.Index, x.Workflow))
	}
	field("Rerun of", x.RerunOf)
	if i := x.Imported; i != nil {
		field("Imported", fmt.Sprintf("from %s, %s: it ran there, and nothing happens to it here", i.From, i.At.Local().Format("2006-01-02 15:04:05")))
	}
	field("Given by", x.GivenBy)
	field("Only", strings.Join(x.Only, ", "))
	if x.Status.Terminal() {
		again, err := reruns(ctx, s, x.ID)
		if err != nil {
			return err
		}
		field("Reruns", again)
	}
	if x.Cached {
		field("Cached", "outcome of "+x.ReusedOf+": it did not run")
	} else if x.ReusedOf != "" {
		field("Outcome", "that of "+x.ReusedOf+": it did not run")
	}
	field("Signal", x.Signal)
	field("Rules", strings.Join(x.Rules, " → "))
	field("Queue", x.Queue)
	field("Runtime", x.Runtime)
	field("Worker labels", flow.LabelText(x.WorkerLabels))
	field("Priority", fmt.Sprint(x.Priority))
	if x.Key != "" {
		field("Key", fmt.Sprintf("%s (limit %d)", x.Key, x.KeyLimit))
	}
	field("Labels", flow.LabelText(x.Labels))
	field("Timeout", x.Timeout.String())
	field("Queue timeout", x.QueueTimeout.String())
	field("Total timeout", x.TotalTimeout.String())
	field("Created", stamp(x.CreatedAt))
	field("Not before", stamp(x.NotBefore))
	field("Started", stamp(x.StartedAt))
	field("Finished", stamp(x.FinishedAt))
	field("Took", output.Took(x))
	field("Worker", x.Worker)
	if x.Paused != nil {
		field("Paused", strings.TrimPrefix(pauseText(x.Paused), "paused "))
	}
	if x.CancelOrder != nil {
		field("Ordered", fmt.Sprintf("to end as %s: %s", x.CancelOrder.As, x.CancelOrder.Reason))
	}
	if x.Error != nil {
		field("Error", x.Error.Error())
	}
	t.Write(a.Out)
	if x.Kind == "workflow" {
		if err := describeTasks(ctx, a, s, x); err != nil {
			return err
		}
	}
	fmt.Fprintln(a.Out, "\nHistory:")
	h := &output.Table{}
	for after := int64(0); ; {
		page, err := s.Events(ctx, x.ID, after, 500)
		if err != nil {
			return err
		}
		for _, e := range page.Events {
			h.Row(eventCells(&e)...)
			after = e.Seq
		}
		if !page.More || len(page.Events) == 0 {
			break
		}
	}
	h.Write(a.Out)
	for _, part := range []struct {
		name string
		raw  []byte
	}{{"Input", x.Input}, {"Output", x.Output}} {
		if len(part.raw) > 0 && string(part.raw) != "null" {
			fmt.Fprintf(a.Out, "\n%s:\n", part.name)
			var b strings.Builder
			if err := output.WriteYAML(&b, part.raw); err != nil {
				return err
			}
			for line := range strings.Lines(b.String()) {
				fmt.Fprint(a.Out, "  ", strings.TrimRight(terminal.Clean(strings.TrimSuffix(line, "\n")), " "), "\n")
			}
		}
	}
	return nil
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05.000 MST")
}

func eventCells(e *api.Event) []string {
	return []string{fmt.Sprintf("  %4d", e.Seq), e.At.Local().Format("15:04:05.000000"), fmt.Sprintf("attempt %d", e.Attempt), e.Type, string(e.Data)}
}
