package automate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
)

func schedulesBackfill(a *app.App) *cobra.Command {
	var f output.Format
	var from, to string
	var b api.BackfillRequest
	c := &cobra.Command{
		Use:   "backfill NAME --from TIME --to TIME",
		Short: "Start executions for past times of a schedule",
		Long: `Start one execution for each time of a schedule in the period from --from to --to (exclusive). Times are RFC
3339, or days in the schedule's time zone. Times that already had an execution are skipped, so the command may
be repeated; --again TAG starts them once more per tag. The executions run --at-once at a time, unless their
action has its own concurrency key, and carry the label pawl.backfill.`,
		Example: `  pawl schedules backfill nightly --from 2026-11-01 --to 2026-11-15 --dry-run
  pawl schedules backfill nightly --from 2026-11-01 --to 2026-11-15 --at-once 4
  pawl wait --label pawl.backfill=backfill`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				k, err := s.Schedule(ctx, args[0])
				if err != nil {
					return err
				}
				if b.From, err = momentOf("from", from, k.Zone); err != nil {
					return err
				}
				if b.To, err = momentOf("to", to, k.Zone); err != nil {
					return err
				}
				return backfill(ctx, a, s, args[0], b, f)
			})
		},
	}
	c.Flags().StringVar(&from, "from", "", "start of the period, for example 2026-11-01 or 2026-11-01T10:00:00Z")
	c.Flags().StringVar(&to, "to", "", "end of the period, exclusive")
	c.Flags().StringVar(&b.Again, "again", "", "tag: also start times that already had an execution, once per tag")
	c.Flags().IntVar(&b.AtOnce, "at-once", 1, "executions in progress at the same time")
	c.Flags().BoolVar(&b.DryRun, "dry-run", false, "print what would be started, but start nothing")
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

// momentOf parses a moment, or a day in a time zone.
func momentOf(flag, text, zone string) (time.Time, error) {
	if text == "" {
		return time.Time{}, exit.Usagef("--%s is missing: write a day as 2026-11-01, or a time as 2026-11-01T10:00:00Z", flag)
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	at, err := time.LoadLocation(zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("load the schedule's zone: %w", err)
	}
	t, err := time.ParseInLocation(time.DateOnly, text, at)
	if err != nil {
		return t, exit.Usagef("--%s %q: write a day as 2026-11-01, or a time as 2026-11-01T10:00:00Z", flag, text)
	}
	return t, nil
}

// backfill works through a time span in several calls. If it is interrupted, executions that it has started stay.
func backfill(ctx context.Context, a *app.App, s *app.Session, name string, b api.BackfillRequest, f output.Format) error {
	all := api.Backfilled{Fired: []api.BackfilledTime{}, PassedOver: []api.BackfilledTime{}}
	var n backfilled
	for more := true; more; {
		done, err := s.Backfill(ctx, name, b)
		if err != nil {
			return err
		}
		n.add(done)
		if f == output.AsTable {
			writeBackfilled(a.Out, done) // the lines are not kept: every second of a year is 32 million times
		} else {
			all.Fired, all.PassedOver = append(all.Fired, done.Fired...), append(all.PassedOver, done.PassedOver...)
			all.WhenFull = cmp.Or(done.WhenFull, all.WhenFull)
		}
		if more = done.Next != nil; more {
			b.From = *done.Next
		}
	}
	if f != output.AsTable {
		return output.WriteData(a.Out, f, all)
	}
	verb := "started"
	if b.DryRun {
		verb = "would be started"
	}
	a.Say("pawl: %s %s; %s passed over: an execution was started for them before", output.Plural(n.fired, "execution", "executions"), verb,
		output.Plural(n.passedOver, "time", "times"))
	for _, line := range n.warnings(b.DryRun) {
		a.Say("pawl: %s", line)
	}
	if n.fired > 0 && !b.DryRun {
		app.SayLeft(a, s, "")
	}
	return nil
}

// writeBackfilled writes a line for each time: whether an execution was started, or which one the time already had.
func writeBackfilled(to io.Writer, done *api.Backfilled) {
	for i := range done.Fired {
		t := &done.Fired[i]
		fmt.Fprintln(to, strings.TrimRight(output.When(&t.Nominal)+" "+t.Execution+ended(t, " "), " "))
	}
	for i := range done.PassedOver {
		t := &done.PassedOver[i]
		by := "the schedule"
		if t.Tag != "" {
			by = t.Tag
		}
		fmt.Fprintf(to, "%s passed over: %s of %s is %s\n", output.When(&t.Nominal), t.Execution, by, cmp.Or(ended(t, ""), "removed"))
	}
}

// ended is the state of a time's execution, preceded by before; "" if it is unknown, or if the execution was only just started.
func ended(t *api.BackfilledTime, before string) string {
	switch {
	case t.Status == "" || before != "" && !t.Status.Terminal():
		return ""
	case t.ErrorCode != "":
		return before + string(t.Status) + " (" + t.ErrorCode + ")"
	}
	return before + string(t.Status)
}

type backfilled struct {
	fired, passedOver int
	without           int    // times that already had an execution, which did not complete
	full              int    // that ended at once
	code              string // of these
	whenFull          string
}

func (n *backfilled) add(done *api.Backfilled) {
	n.fired, n.passedOver = n.fired+len(done.Fired), n.passedOver+len(done.PassedOver)
	n.whenFull = cmp.Or(done.WhenFull, n.whenFull)
	for i := range done.PassedOver {
		if t := &done.PassedOver[i]; t.Status.Terminal() && t.Status != api.Completed {
			n.without++
		}
	}
	for i := range done.Fired {
		if t := &done.Fired[i]; t.Status == api.Cancelled {
			n.full, n.code = n.full+1, t.ErrorCode
		}
	}
}

// warnings lists the times without a result although they had an execution, and how to get one.
func (n *backfilled) warnings(dry bool) (lines []string) {
	if n.without > 0 {
		lines = append(lines, fmt.Sprintf("%s of those passed over did not complete; --again TAG starts them once more",
			output.Plural(n.without, "execution", "executions")))
	}
	switch {
	case n.full > 0 && n.whenFull != "":
		lines = append(lines, fmt.Sprintf("%s ended at once (%s), since the action's concurrency key has when_full: %s; a repeat passes these times over",
			output.Plural(n.full, "execution", "executions"), n.code, n.whenFull))
	case n.whenFull != "" && dry && n.fired > 1:
		lines = append(lines, fmt.Sprintf("the action's concurrency key has when_full: %s, so executions that find it full are cancelled; "+
			"with when_full: queue they wait", n.whenFull))
	}
	return lines
}
