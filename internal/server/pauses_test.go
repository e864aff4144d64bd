package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
)

// A queue and a worker are paused and resumed; lists, metrics, why and the history show it.
func TestPauses(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	c, ctx := h.client, t.Context()
	p, err := c.PauseQueue(ctx, "default", api.PauseOrder{By: "ann", Reason: "new disks", For: api.Duration(time.Hour)})
	if err != nil || p.Number != 1 || p.Kind != "queue" || p.Name != "default" || !p.Paused || p.Until.Sub(p.At) != time.Hour || p.By != "ann" || p.Reason != "new disks" {
		t.Fatalf("%+v, %v", p, err)
	}
	id := h.code(t, "hang")
	if w, err := c.Why(ctx, id); err != nil || w.Waiting != "paused" || !w.Until.Equal(p.Until) || !strings.Contains(w.Summary, "by ann") {
		t.Errorf("why: %+v, %v", w, err)
	}
	if queues, err := c.Queues(ctx); err != nil || queues[0].Paused == nil || *queues[0].Paused != *p {
		t.Errorf("%+v, %v", queues, err)
	}
	workers, err := c.Workers(ctx)
	if err != nil || len(workers) == 0 {
		t.Fatal(workers, err)
	}
	name := workers[0].Name
	w, err := c.PauseWorker(ctx, name, api.PauseOrder{})
	if err != nil || w.Kind != "worker" {
		t.Errorf("%+v, %v", w, err)
	}
	if workers, err := c.Workers(ctx); err != nil || workers[0].Paused == nil || *workers[0].Paused != *w {
		t.Errorf("%+v, %v", workers, err)
	}
	if all, err := c.Pauses(ctx); err != nil || len(all) != 2 || all[0] != *p || all[1] != *w {
		t.Errorf("%+v, %v", all, err)
	}
	if _, body := h.do(t, "GET", "/metrics", ""); !strings.Contains(string(body), `pawl_paused{kind="queue"} 1`) || !strings.Contains(string(body), `pawl_paused{kind="worker"} 1`) {
		t.Errorf("%s", body)
	}
	if a, err := c.PauseAction(ctx, "noop", api.PauseOrder{}); err != nil || a.Kind != "action" || a.Name != "noop" {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := c.ResumeAction(ctx, "noop", api.ResumeOrder{}); err != nil || a.Paused {
		t.Errorf("%+v, %v", a, err)
	}
	if r, err := c.ResumeWorker(ctx, name, api.ResumeOrder{By: "bob"}); err != nil || r.Paused || r.Number != 5 || r.By != "bob" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := c.ResumeQueue(ctx, "default", api.ResumeOrder{Reason: "done"}); err != nil || r.Number != 6 || r.Reason != "done" {
		t.Errorf("%+v, %v", r, err)
	}
	if all, err := c.Pauses(ctx); err != nil || len(all) > 0 {
		t.Errorf("%+v, %v", all, err)
	}
	var numbers []int64
	for p, err := range c.PauseHistory(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, p.Number)
	}
	if len(numbers) != 6 || numbers[0] != 6 || numbers[5] != 1 {
		t.Errorf("history %v", numbers)
	}
	if res, body := h.do(t, "GET", "/api/v1/pauses?history=true&limit=3", ""); res.StatusCode != http.StatusOK || !strings.Contains(string(body), `"next_cursor":"4"`) {
		t.Errorf("%s %s", res.Status, body)
	}
	for path, want := range map[string]int{
		"POST /api/v1/queues/defualt/pause":         http.StatusNotFound,
		"POST /api/v1/actions/nop/pause":            http.StatusNotFound,
		"POST /api/v1/workers/nobody/resume":        http.StatusNotFound,
		"GET /api/v1/pauses?history=true&cursor=-1": http.StatusBadRequest,
	} {
		method, path, _ := strings.Cut(path, " ")
		if res, body := h.do(t, method, path, ""); res.StatusCode != want {
			t.Errorf("%s: %s %s", path, res.Status, body)
		}
	}
	if _, err := c.Kill(ctx, id, "", 0); err != nil {
		t.Fatal(err)
	}
}

// A paused definition is marked in lists and by itself, and its executions begin when it is resumed.
func TestPausedAction(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	c, ctx := h.client, t.Context()
	if _, err := c.Define(ctx, []byte("name: dial\nkind: action\naction: noop\n"), ""); err != nil {
		t.Fatal(err)
	}
	p, err := c.PauseAction(ctx, "dial", api.PauseOrder{By: "ann", Reason: "no line", For: api.Duration(time.Hour)})
	if err != nil || p.Kind != "action" || p.Until.Sub(p.At) != time.Hour {
		t.Fatalf("%+v, %v", p, err)
	}
	x, err := c.Submit(ctx, api.Submission{Action: "dial"})
	if err != nil {
		t.Fatal(err)
	}
	if w, err := c.Why(ctx, x.ID); err != nil || w.Waiting != "paused" || !w.Until.Equal(p.Until) || !strings.Contains(w.Summary, `action "dial" is paused since`) {
		t.Errorf("why: %+v, %v", w, err)
	}
	if got, err := c.Get(ctx, x.ID); err != nil || got.Queue != "default" || got.Runtime != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if queues, err := c.Queues(ctx); err != nil || queues[0].Ready != 1 {
		t.Errorf("%+v, %v", queues, err)
	}
	if d, err := c.Definition(ctx, "dial", 0); err != nil || d.Paused == nil || *d.Paused != *p {
		t.Errorf("%+v, %v", d, err)
	}
	for d, err := range c.Definitions(ctx) {
		if err != nil || d.Paused == nil {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if _, body := h.do(t, "GET", "/metrics", ""); !strings.Contains(string(body), `pawl_paused{kind="action"} 1`) {
		t.Errorf("%s", body)
	}
	if _, err := c.ResumeAction(ctx, "dial", api.ResumeOrder{By: "bob"}); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Wait(ctx, x.ID); err != nil || got.Status != api.Completed {
		t.Errorf("%+v, %v", got, err)
	}
}

// pausable submits a workflow that waits for its first task.
func (h *house) pausable(t *testing.T) string {
	t.Helper()
	ctx := t.Context()
	if _, err := h.client.Define(ctx, []byte("name: slow\ntasks:\n  a: {action: sleep, with: {for: 1h}}\n  b: {needs: [a], action: noop}\n"), ""); err != nil {
		t.Fatal(err)
	}
	x, err := h.client.Submit(ctx, api.Submission{Action: "slow"})
	if err != nil {
		t.Fatal(err)
	}
	return x.ID
}

// The execution of a workflow is paused and resumed and shows it; an execution that cannot be paused is refused.
func TestPausedExecution(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	c, ctx := h.client, t.Context()
	id := h.pausable(t)
	p, err := c.PauseExecution(ctx, id, api.PauseOrder{By: "ann", Reason: "full", For: api.Duration(time.Hour)})
	if err != nil || p.Kind != "execution" || p.Name != id || !p.Paused || p.Until.Sub(p.At).Round(time.Second) != time.Hour || p.By != "ann" {
		t.Fatalf("%+v, %v", p, err)
	}
	if x, err := c.Get(ctx, id); err != nil || x.Paused == nil || x.Paused.Reason != "full" || !x.Paused.Until.Equal(p.Until) {
		t.Errorf("%+v, %v", x, err)
	}
	if r, err := c.ResumeExecution(ctx, id, api.ResumeOrder{By: "bob"}); err != nil || r.Paused || r.By != "bob" || r.At.IsZero() {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := c.ResumeExecution(ctx, id, api.ResumeOrder{}); err != nil || !r.At.IsZero() {
		t.Errorf("not paused: %+v, %v", r, err)
	}
	if _, err := c.Cancel(ctx, id, "", 10*time.Second); err != nil {
		t.Fatal(err)
	}
	tasks, err := c.Tasks(ctx, id, 10)
	if err != nil {
		t.Fatal(err)
	}
	child := tasks.Tasks[0].Executions[0].ID
	for path, want := range map[string]int{
		id + "/pause": http.StatusConflict, child + "/pause": http.StatusUnprocessableEntity, "ex_06h0nbrknhwhq6mc4wc6rc9rpg/resume": http.StatusNotFound, "nonsense/pause": http.StatusNotFound,
	} {
		if res, body := h.do(t, "POST", "/api/v1/executions/"+path, ""); res.StatusCode != want {
			t.Errorf("%s: %s %s", path, res.Status, body)
		}
	}
	if res, body := h.do(t, "POST", "/api/v1/executions/"+id+"/pause", `{"for":"-1h"}`); res.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("%s %s", res.Status, body)
	}
}
