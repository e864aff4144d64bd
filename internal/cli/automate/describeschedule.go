package automate

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/definition"
)

const (
	shownTimes = 5
	shownTicks = 5
)

// describedSchedule is the output of pawl describe for a schedule as data.
type describedSchedule struct {
	*api.Schedule
	Why   *api.ScheduleWhy  `json:"why"`
	Times []api.PreviewTime `json:"times"`
	Ticks []api.Tick        `json:"ticks"`
}

// DescribeSchedule shows a schedule: its state, its next times, and the results of its last ones.
func DescribeSchedule(ctx context.Context, a *app.App, s *app.Session, name string, f output.Format) error {
	d := describedSchedule{}
	var err error
	if d.Schedule, err = s.Schedule(ctx, name); err != nil {
		return err
	}
	if d.Why, err = s.WhySchedule(ctx, name); err != nil {
		return err
	}
	if d.Ticks, err = s.Ticks(ctx, name, shownTicks); err != nil {
		return err
	}
	document, err := definition.Decode(d.Document)
	if err != nil {
		return fmt.Errorf("read schedule %s: %w", name, err)
	}
	if d.PausedAt == nil {
		d.Times = document.Schedule.Preview(name, time.Now(), shownTimes).Times
	}
	if f != output.AsTable {
		return output.WriteData(a.Out, f, d)
	}
	t := &output.Table{}
	t.Fields(
		"Name", d.Name, "Version", strconv.Itoa(d.Version), "When", strings.Join(d.When, ", "), "Zone", d.Zone, "Action", d.Action,
		"From", document.Schedule.From, "Until", document.Schedule.Until, "Overlap", string(document.Schedule.Overlap),
		"Catch-up", string(document.Schedule.CatchUp), "Last", output.When(d.Last), "Execution", d.Execution, "State", d.Why.Summary,
	)
	t.Write(a.Out)
	for _, fact := range d.Why.Facts {
		output.Printf(a.Out, "  - %s\n", fact)
	}
	if len(d.Times) > 0 {
		fmt.Fprintln(a.Out, "\nNext:")
		for _, at := range d.Times {
			output.Printf(a.Out, "  %s\n", at.Local)
		}
	}
	if len(d.Ticks) > 0 {
		fmt.Fprintln(a.Out, "\nLast:")
		writeTicks(a.Out, "  ", d.Ticks)
	}
	return nil
}

func WhySchedule(ctx context.Context, a *app.App, s *app.Session, name string, f output.Format) error {
	w, err := s.WhySchedule(ctx, name)
	return output.Show(a.Out, f, w, err, func() { output.Reasons(a.Out, w.Summary, w.Facts, w.Unblock) })
}
