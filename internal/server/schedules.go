package server

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

func renderSchedule(k *store.Schedule, d *definition.Definition) api.Schedule {
	out := api.Schedule{Name: k.Name, Version: k.Version, Action: d.Schedule.Run.ActionText(), When: d.Schedule.Cron, Zone: d.Schedule.Location().String(),
		Next: moment(k.Next), Due: moment(k.Due), Last: moment(k.Last), PausedAt: moment(k.PausedAt), Reason: k.Reason}
	if !k.Execution.IsZero() {
		out.Execution = k.Execution.String()
	}
	switch {
	case d.Schedule.Every != 0:
		out.When = []string{"every " + api.Duration(d.Schedule.Every).String()}
	case d.Schedule.At != "":
		out.When = []string{"at " + d.Schedule.At}
	}
	return out
}

func (c *call) schedules() error {
	limit := int(c.number("limit", 100, 1, 1000))
	if err := c.checked(); err != nil {
		return err
	}
	rows, err := c.Engine.Schedules(c.ctx(), c.query.Get("cursor"), limit)
	if err != nil {
		return fmt.Errorf("list schedules: %w", err)
	}
	page := api.SchedulePage{Schedules: []api.Schedule{}}
	for i := range rows {
		page.Schedules = append(page.Schedules, renderSchedule(&rows[i].Schedule, rows[i].Document))
	}
	if len(rows) == limit {
		page.NextCursor = rows[limit-1].Name
	}
	return c.json(http.StatusOK, page)
}

func (c *call) answerSchedule(err error) error {
	name := c.r.PathValue("name")
	var k store.Schedule
	var d *definition.Definition
	if err == nil {
		k, d, err = c.Engine.Schedule(c.ctx(), name)
	}
	if err != nil {
		return missing("schedule", name, err)
	}
	out := renderSchedule(&k, d)
	out.Document = d.Canonical()
	return c.json(http.StatusOK, out)
}

func (c *call) schedule() error { return c.answerSchedule(nil) }

func (c *call) pauseSchedule(in *api.PauseRequest) error {
	_, err := c.Engine.PauseSchedule(c.ctx(), c.r.PathValue("name"), in.Reason)
	return c.answerSchedule(err)
}

func (c *call) resumeSchedule(in *api.ResumeRequest) error {
	_, err := c.Engine.ResumeSchedule(c.ctx(), c.r.PathValue("name"), in.CatchUp)
	return c.answerSchedule(err)
}

func (c *call) fireSchedule() error {
	name := c.r.PathValue("name")
	id, err := c.Engine.FireSchedule(c.ctx(), name)
	if err != nil {
		return missing("schedule", name, err)
	}
	return c.json(http.StatusAccepted, api.FiredSchedule{Execution: id.String()})
}

func (c *call) ticks() error {
	limit := int(c.number("limit", 100, 1, 1000))
	var before time.Time
	if text := c.query.Get("cursor"); text != "" {
		micros, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			c.noPlace()
		}
		before = time.UnixMicro(micros).UTC()
	}
	if err := c.checked(); err != nil {
		return err
	}
	name := c.r.PathValue("name")
	if _, _, err := c.Engine.Schedule(c.ctx(), name); errors.Is(err, store.ErrNotFound) {
		return notFound("schedule", name)
	}
	rows, err := c.Engine.Reader().Ticks(c.ctx(), name, before, limit)
	if err != nil {
		return fmt.Errorf("list ticks of %s: %w", name, err)
	}
	page := api.TickPage{Ticks: []api.Tick{}}
	for _, k := range rows {
		t := api.Tick{Nominal: k.Nominal, Last: k.Last, Count: k.Count, At: k.At, Why: k.Why, Message: k.Message}
		if k.Execution != (flow.ID{}) {
			t.Execution = k.Execution.String()
		}
		page.Ticks = append(page.Ticks, t)
	}
	if len(rows) == limit {
		page.NextCursor = strconv.FormatInt(rows[limit-1].Nominal.UnixMicro(), 10)
	}
	return c.json(http.StatusOK, page)
}

func (c *call) whySchedule() error {
	name := c.r.PathValue("name")
	w, err := c.Engine.WhySchedule(c.ctx(), name)
	if err != nil {
		return missing("schedule", name, err)
	}
	return c.json(http.StatusOK, w)
}

// previewTimes is the largest number of times of one schedule in a preview.
const previewTimes = 1000

func (c *call) previewSchedules() error {
	count, from := int(c.number("count", 10, 1, previewTimes)), c.time("from")
	if err := c.checked(); err != nil {
		return err
	}
	defs, err := c.parsed()
	if err != nil {
		return err
	}
	if from.IsZero() {
		from = time.Now().UTC()
	}
	out := api.SchedulePreviews{Schedules: []api.SchedulePreview{}}
	for _, d := range defs {
		if d.Schedule != nil {
			out.Schedules = append(out.Schedules, d.Schedule.Preview(d.Name, from, count))
		}
	}
	return c.json(http.StatusOK, out)
}

func (c *call) backfillSchedule(in *api.BackfillRequest) error {
	name := c.r.PathValue("name")
	done, err := c.Engine.BackfillSchedule(c.ctx(), name, engine.Backfill{From: in.From.UTC(), To: in.To.UTC(), Again: in.Again, AtOnce: in.AtOnce, Dry: in.DryRun})
	if err != nil {
		return missing("schedule", name, err)
	}
	out := api.Backfilled{Fired: []api.BackfilledTime{}, PassedOver: []api.BackfilledTime{}, WhenFull: string(done.WhenFull), Next: moment(done.Next)}
	for i := range done.Ticks {
		out.Fired = append(out.Fired, renderBackfilled(&done.Ticks[i], done.Executions))
	}
	for i := range done.PassedOver {
		k := &done.PassedOver[i]
		t := renderBackfilled(k, done.Executions)
		t.Why, t.Tag = k.Why, k.Tag
		out.PassedOver = append(out.PassedOver, t)
	}
	return c.json(http.StatusOK, out)
}

func renderBackfilled(k *store.Tick, executions map[flow.ID]*flow.Execution) api.BackfilledTime {
	t := api.BackfilledTime{Nominal: k.Nominal, Execution: k.Execution.String()}
	if x := executions[k.Execution]; x != nil {
		t.Status = status(x.Stage)
		if x.Outcome != nil && x.Outcome.Error != nil {
			t.ErrorCode = string(x.Outcome.Error.Code)
		}
	}
	return t
}
