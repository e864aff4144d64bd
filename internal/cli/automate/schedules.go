package automate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/listing"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/definition"
)

func SchedulesCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "schedules",
		Short: "Preview, pause, resume, fire and backfill schedules",
		Long: `Schedules start executions at given times. They are documents of kind schedule: pawl apply registers them, pawl
get schedules lists them. They fire while a server runs.`,
	}
	c.AddCommand(schedulesPreview(a), schedulesPause(a), schedulesResume(a), schedulesFire(a), schedulesBackfill(a), schedulesTicks(a))
	return c
}

func ListSchedules(ctx context.Context, _ *app.App, c *client.Client, l *listing.Options) (any, *output.Table, error) {
	all, err := c.Schedules(ctx)
	t := output.Listing(l.Format, 7, "NAME", "WHEN", "ZONE", "ACTION", "NEXT", "LAST", "STATE", "VERSION", "EXECUTION")
	for i := range all {
		k := &all[i]
		state := "on"
		switch {
		case k.PausedAt != nil && k.Reason != "":
			state = "paused: " + k.Reason
		case k.PausedAt != nil:
			state = "paused"
		case k.Next == nil:
			state = "over"
		}
		t.Row(k.Name, strings.Join(k.When, ", "), k.Zone, k.Action, output.When(k.Next), output.When(k.Last), state, strconv.Itoa(k.Version), k.Execution)
	}
	return all, t, err
}

func schedulesPause(a *app.App) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:     "pause NAME…",
		Short:   "Pause schedules until they are resumed",
		Example: "  pawl schedules pause nightly --reason 'the database is being moved'",
		Args:    cobra.MinimumNArgs(1),
		RunE: app.ForEach(a, func(ctx context.Context, s *app.Session, name string) (string, error) {
			k, err := s.PauseSchedule(ctx, name, reason)
			if err != nil {
				return "", err
			}
			return k.Name + " is paused", nil
		}),
	}
	c.Flags().StringVar(&reason, "reason", "", "reason, kept for later readers")
	return c
}

func schedulesResume(a *app.App) *cobra.Command {
	var catchUp bool
	c := &cobra.Command{
		Use:     "resume NAME…",
		Short:   "Resume schedules",
		Example: "  pawl schedules resume nightly",
		Args:    cobra.MinimumNArgs(1),
		RunE: app.ForEach(a, func(ctx context.Context, s *app.Session, name string) (string, error) {
			k, err := s.ResumeSchedule(ctx, name, catchUp)
			if err != nil {
				return "", err
			}
			if k.Next == nil {
				return k.Name + " is resumed, and no time comes any more", nil
			}
			return fmt.Sprintf("%s is resumed; next at %s", k.Name, output.When(k.Next)), nil
		}),
	}
	c.Flags().BoolVar(&catchUp, "catch-up", false,
		"apply catch_up to the times that passed during the pause; without this flag they are missed")
	return c
}

func schedulesFire(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "fire NAME…",
		Short: "Start executions now, as ticks would",
		Long: `Start one execution of each schedule now, even if it is paused or its last execution has not ended, and print
its ID. The regular times of the schedule do not change.`,
		Example: "  pawl schedules fire nightly",
		Args:    cobra.MinimumNArgs(1),
		RunE: app.ForEach(a, func(ctx context.Context, s *app.Session, name string) (string, error) {
			id, err := s.FireSchedule(ctx, name)
			if err == nil {
				app.SayLeft(a, s, id)
			}
			return id, err
		}),
	}
}

func schedulesTicks(a *app.App) *cobra.Command {
	var f output.Format
	var limit int
	c := &cobra.Command{
		Use:     "ticks NAME",
		Short:   "List past times of a schedule and their results, newest first",
		Example: "  pawl schedules ticks nightly",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				all, err := s.Ticks(ctx, args[0], limit)
				return output.Show(a.Out, f, all, err, func() { writeTicks(a.Out, "", all) })
			})
		},
	}
	c.Flags().IntVar(&limit, "limit", 50, "largest number of rows")
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

func writeTicks(to io.Writer, indent string, all []api.Tick) {
	t := &output.Table{}
	t.Row(indent+"TIME", "STATE", "WHY", "EXECUTION", "MESSAGE")
	for _, k := range all {
		state, when := "fired", output.When(&k.Nominal)
		if k.Execution == "" {
			state = "missed"
		}
		if k.Count > 1 {
			state = fmt.Sprintf("missed %d", k.Count)
			when += " to " + output.When(&k.Last)
		}
		t.Row(indent+when, state, k.Why, k.Execution, k.Message)
	}
	t.Write(to)
}

func schedulesPreview(a *app.App) *cobra.Command {
	var f output.Format
	var from string
	var count int
	c := &cobra.Command{
		Use:   "preview FILE|NAME",
		Short: "Print the next times of schedules, and the effect of clock changes",
		Long: `Print the next times of the schedules in a file, or of a registered one. For each clock change of the time zone
in the next two years, print which local times are skipped or repeated and when they fire instead. A file needs
neither server nor database.`,
		Example: `  pawl schedules preview examples/nightly.yaml
  pawl schedules preview nightly --from 2027-03-27T00:00:00Z`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at := time.Now()
			if from != "" {
				var err error
				if at, err = time.Parse(time.RFC3339, from); err != nil {
					return exit.Usagef("--from %q: write a time as 2026-11-02T10:00:00Z", from)
				}
			}
			if count < 1 || count > 10_000 {
				return exit.Usagef("--count %d: give 1 to 10000", count)
			}
			defs, err := schedulesIn(cmd.Context(), a, args[0])
			if err != nil {
				return err
			}
			all := make([]api.SchedulePreview, 0, len(defs))
			for _, d := range defs {
				all = append(all, d.Schedule.Preview(d.Name, at, count))
			}
			if f != output.AsTable {
				return output.WriteData(a.Out, f, all)
			}
			for i := range all {
				if i > 0 {
					fmt.Fprintln(a.Out)
				}
				writePreview(a, &all[i], defs[i])
			}
			return nil
		},
	}
	c.Flags().StringVar(&from, "from", "", "first time to consider (default: now)")
	c.Flags().IntVar(&count, "count", 10, "number of times")
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

// schedulesIn are the schedules of a file, or the applied schedule of that name.
func schedulesIn(ctx context.Context, a *app.App, arg string) ([]*definition.Definition, error) {
	defs, err := documentsIn(ctx, a, arg, definition.KindSchedule, func(ctx context.Context, s *app.Session) (json.RawMessage, error) {
		k, err := s.Schedule(ctx, arg)
		if err != nil {
			return nil, err
		}
		return k.Document, nil
	})
	if err == nil && len(defs) == 0 {
		err = exit.Usagef("%s has no schedule (kind: schedule)", arg)
	}
	return defs, err
}

// documentsIn are the documents of one kind in a file, or, if arg is not a file, the one that applied reads.
func documentsIn(ctx context.Context, a *app.App, arg string, kind definition.Kind, applied func(context.Context, *app.Session) (json.RawMessage, error)) ([]*definition.Definition, error) {
	if _, err := os.Stat(arg); arg == "-" || err == nil {
		files, err := a.ReadFiles([]string{arg})
		if err != nil {
			return nil, &exit.Error{Code: exit.Misuse, Err: err}
		}
		var all []*definition.Definition
		for _, file := range files {
			found, err := definition.Parse(file.Name, file.Content, a.MayKnowLanguage)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
		return slices.DeleteFunc(all, func(d *definition.Definition) bool { return d.Kind != kind }), nil
	}
	var d *definition.Definition
	err := a.WithClient(ctx, app.Reading, func(ctx context.Context, s *app.Session) error {
		raw, err := applied(ctx, s)
		if err != nil {
			return fmt.Errorf("there is no file %s: %w", arg, err)
		}
		if d, err = definition.Decode(raw); err == nil && d.Kind != kind {
			err = fmt.Errorf("it is no %s", kind)
		}
		if err != nil {
			return fmt.Errorf("read %s %s: %w", kind, arg, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []*definition.Definition{d}, nil
}

func writePreview(a *app.App, p *api.SchedulePreview, d *definition.Definition) {
	output.Printf(a.Out, "%s: %s, in %s\n", p.Name, d.Schedule.Run.ActionText(), p.Zone)
	t := &output.Table{}
	head := []string{"NEXT", "UTC"}
	if d.Schedule.Jitter > 0 {
		head = append(head, "FIRED")
	}
	t.Row(head...)
	for _, at := range p.Times {
		cells := []string{at.Local, output.When(&at.Nominal)}
		if d.Schedule.Jitter > 0 {
			cells = append(cells, at.Due.Format("2006-01-02T15:04:05.000Z"))
		}
		t.Row(cells...)
	}
	t.Write(a.Out)
	if len(p.Times) == 0 {
		fmt.Fprintln(a.Out, "no time comes any more")
	}
	for _, c := range p.Changes {
		output.Printf(a.Out, "\n%s: the clocks go from UTC%s to UTC%s\n", output.When(&c.At), c.Before, c.After)
		for _, l := range c.Times {
			does := "not fired"
			if len(l.Fired) > 0 {
				does = "fired at " + strings.Join(l.Fired, " and ")
			}
			how := "does not come"
			if l.Is == "repeated" {
				how = "comes twice"
			}
			output.Printf(a.Out, "  %s %s: %s\n", l.Local, how, does)
		}
		if len(c.Times) == 0 {
			fmt.Fprintln(a.Out, "  no time of the schedule lies there")
		}
	}
}
