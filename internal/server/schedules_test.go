package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
)

func TestSchedules(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	c, ctx := h.client, t.Context()
	const doc = "kind: schedule\nname: nightly\ncron: ['30 2 * * *', '0 4 * * 6']\nzone: Europe/Berlin\nrun: {action: noop, input: {by: '${{ tick.why }}'}}\n" +
		"---\nkind: schedule\nname: often\nevery: 90m\nrun: {action: noop}\n"
	if v, err := c.Validate(ctx, []byte(doc), "s.yaml"); err != nil || !v.Valid {
		t.Fatalf("validate: %v, %+v", err, v)
	}
	if v, err := c.Validate(ctx, []byte(strings.Replace(doc, "30 2 * * *", "30 2 30 2 *", 1)), "s.yaml"); err != nil || v.Valid || v.Problems[0].Path != "cron[0]" || v.Problems[0].Line != 3 {
		t.Errorf("a date that never comes: %v, %+v", err, v)
	}
	d, err := c.Define(ctx, []byte(doc), "s.yaml")
	if err != nil || len(d.Definitions) != 2 || d.Definitions[0].Kind != "schedule" || d.Definitions[0].Version != 1 || !d.Definitions[0].Created {
		t.Fatalf("define: %v, %+v", err, d)
	}
	all, err := c.Schedules(ctx)
	if err != nil || len(all) != 2 || all[0].Name != "nightly" || all[0].Next == nil || !all[0].Next.After(time.Now()) || all[1].When[0] != "every 1h30m0s" {
		t.Errorf("schedules: %v, %+v", err, all)
	}
	k, err := c.PauseSchedule(ctx, "nightly", "for the weekend")
	if err != nil || k.PausedAt == nil || k.Due != nil || k.Reason != "for the weekend" || len(k.Document) == 0 {
		t.Errorf("paused: %v, %+v", err, k)
	}
	if k, err = c.ResumeSchedule(ctx, "nightly", false); err != nil || k.PausedAt != nil || k.Due == nil {
		t.Errorf("resumed: %v, %+v", err, k)
	}
	id, err := c.FireSchedule(ctx, "nightly")
	if err != nil {
		t.Fatal(err)
	}
	x, err := c.Get(ctx, id)
	if err != nil || string(x.Input) != `{"by":"by_hand"}` || x.Labels["pawl.schedule"] != "nightly" {
		t.Errorf("fired: %v, %+v", err, x)
	}
	ticks, err := c.Ticks(ctx, "nightly", 10)
	if err != nil || len(ticks) != 1 || ticks[0].Execution != id || ticks[0].Why != "by_hand" || ticks[0].Count != 1 {
		t.Errorf("ticks: %v, %+v", err, ticks)
	}
	var p *api.Problem
	for _, name := range []string{"nobody", "a b", strings.Repeat("x", 300)} {
		if _, err := c.Schedule(ctx, name); !errors.As(err, &p) || p.Status != http.StatusNotFound {
			t.Errorf("schedule %.20q: %v", name, err)
		}
		if _, err := c.FireSchedule(ctx, name); !errors.As(err, &p) || p.Status != http.StatusNotFound {
			t.Errorf("firing %.20q: %v", name, err)
		}
	}
	for def, err := range c.Definitions(ctx) {
		if err != nil || def.Kind == "schedule" {
			t.Errorf("among the definitions: %v, %+v", err, def)
		}
	}
}

func TestSchedulePreview(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	const doc = "kind: schedule\nname: nightly\ncron: '30 2 * * *'\nzone: Europe/Berlin\nuntil: 2027-03-30\nrun: {action: noop}\n"
	res, body := h.do(t, "POST", "/api/v1/schedules:preview?from=2027-03-26T12:00:00Z&count=9", doc, "Content-Type", "application/yaml")
	var out api.SchedulePreviews
	if err := json.Unmarshal(body, &out); err != nil || res.StatusCode != 200 || len(out.Schedules) != 1 {
		t.Fatalf("%s %v %s", res.Status, err, body)
	}
	p := out.Schedules[0]
	if len(p.Times) != 3 || p.Times[1].Local != "Sun 2027-03-28 03:00:00 +02:00" || len(p.Changes) != 5 || p.Changes[0].Times[0].Is != "skipped" || p.Changes[0].Times[0].Fired[0] != "03:00:00 +02:00" {
		t.Errorf("%+v", p)
	}
	if all, err := h.client.Schedules(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("the preview has left %+v, %v", all, err)
	}
	const hourly = "kind: schedule\nname: hourly\ncron: '0 * * * *'\nrun: {action: noop}\n"
	res, body = h.do(t, "POST", "/api/v1/schedules:preview?from=9999-12-30T20:30:00Z", hourly, "Content-Type", "application/yaml")
	if err := json.Unmarshal(body, &out); err != nil || res.StatusCode != 200 || len(out.Schedules[0].Times) != 3 {
		t.Errorf("at the end of 9999: %s %v %s", res.Status, err, body)
	}
	for _, from := range []string{"9999-12-31T23:30:00-12:00", "0000-01-01T00:00:00Z"} {
		h.problem(t, 400, api.ProblemInvalid, "POST", "/api/v1/schedules:preview?from="+from, hourly, "Content-Type", "application/yaml")
	}
	h.problem(t, 400, api.ProblemInvalid, "POST", "/api/v1/schedules:preview?count=1001", doc, "Content-Type", "application/yaml")
	h.problem(t, 422, api.ProblemInvalid, "POST", "/api/v1/schedules:preview", "kind: schedule\nname: s\n", "Content-Type", "application/yaml")

	if _, err := h.client.Define(t.Context(), []byte(doc), ""); err != nil {
		t.Fatal(err)
	}
	if w, err := h.client.WhySchedule(t.Context(), "nightly"); err != nil || w.Name != "nightly" || w.Waiting != "time" || w.Summary == "" {
		t.Errorf("%+v, %v", w, err)
	}
	h.problem(t, 404, api.ProblemNotFound, "GET", "/api/v1/schedules/nobody/why", "")
}
