package observe

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/automate"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/cli/steer"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/terminal"
)

func DescribeCommand(a *app.App) *cobra.Command {
	var f output.Format
	var timed bool
	var items string
	var statuses []string
	c := &cobra.Command{
		Use:   "describe ID",
		Short: "Show everything about one execution, signal, inquiry, webhook or schedule",
		Example: `  pawl describe ex_…
  pawl describe sg_…
  pawl describe iq_…
  pawl describe webhook:github
  pawl describe schedule:nightly
  pawl describe rule:clean-disk
  pawl describe ex_… --timeline        which worker had each attempt, and when; of a workflow those of its tasks
  pawl describe ex_… --items grade --status failed,timed_out  the executions of one task of a workflow
  pawl describe ex_… -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				if items != "" {
					return describeItems(ctx, a, s, args[0], items, statuses, f)
				}
				if timed {
					return describeTimeline(ctx, a, s, args[0], f)
				}
				if strings.HasPrefix(args[0], flow.SignalPrefix) {
					return automate.DescribeSignal(ctx, a, s, args[0], f)
				}
				if strings.HasPrefix(args[0], flow.InquiryPrefix) {
					return automate.DescribeInquiry(ctx, a, s, args[0], f)
				}
				for _, k := range describable {
					if name, ok := strings.CutPrefix(args[0], k.prefix); ok {
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
	c.Flags().BoolVar(&timed, "timeline", false, "executions: when each attempt waited and ran, by worker")
	c.Flags().StringVar(&items, "items", "", "workflows: all executions of this task, by index")
	c.Flags().StringSliceVar(&statuses, "status", nil, "with --items: only executions with one of these statuses")
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
	field("Retry of", x.RetryOf)
	field("Given by", x.GivenBy)
	field("Only", strings.Join(x.Only, ", "))
	if x.Status.Terminal() {
		reruns, err := steer.Again(ctx, s, client.Filter{RerunOf: x.ID})
		if err != nil {
			return err
		}
		field("Reruns", reruns)
		retries, err := steer.Again(ctx, s, client.Filter{RetryOf: x.ID})
		if err != nil {
			return err
		}
		field("Retries", retries)
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
		field("Paused", strings.TrimPrefix(output.Pause(x.Paused), "paused "))
	}
	if x.CancelOrder != nil {
		field("Ordered", fmt.Sprintf("to end as %s: %s", x.CancelOrder.As, x.CancelOrder.Reason))
		if until := x.CancelOrder.CleanupUntil; !until.IsZero() {
			field("Cleaning up", "until "+output.When(&until)+" at the latest; a second cancel ends it at once")
		}
	}
	if x.Error != nil {
		field("Error", x.Error.Error())
	}
	if !x.Status.Terminal() && (x.Status != api.Running || flow.Kind(x.Kind).ByEngine()) {
		why, err := s.Why(ctx, x.ID)
		if err != nil {
			return err
		}
		field("Waits", why.Summary)
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
