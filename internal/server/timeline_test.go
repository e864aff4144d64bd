package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
)

const sweep = `
name: sweep
tasks:
  each: {foreach: [0, 1, 2, 3, 4], action: noop, with: {n: "${{ item }}"}}
  nap: {action: sleep, with: {for: 1ms}}
  bad: {action: code, with: {language: python, source: fail}, retry: {max_attempts: 2, delay: 1ms}, continue_on_error: true}
`

// The attempts of a workflow's tasks come page by page, each with its worker and its times in order.
func TestTimeline(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	if _, err := h.client.Define(t.Context(), []byte(sweep), "sweep.yaml"); err != nil {
		t.Fatal(err)
	}
	x, err := h.client.Submit(t.Context(), api.Submission{Action: "sweep"})
	if err != nil {
		t.Fatal(err)
	}
	if x, err = h.client.Wait(t.Context(), x.ID); err != nil {
		t.Fatal(err)
	}
	whole, err := h.client.Timeline(t.Context(), x.ID, "", 0)
	if err != nil || whole.NextCursor != "" || whole.Execution != x.ID || whole.Status != x.Status {
		t.Fatalf("%+v, %v", whole, err)
	}
	var got []string
	for _, a := range whole.Attempts {
		who := "a worker"
		if a.Worker == "engine" {
			who = "engine"
		} else if a.Worker == "" {
			who = "none"
		}
		got = append(got, fmt.Sprintf("%s %d/%d %s %s %s", a.Task, a.Index, a.Attempt, a.Status, a.Code, who))
		for _, both := range [][2]time.Time{{a.CreatedAt, a.QueuedAt}, {a.QueuedAt, a.ClaimedAt}, {a.ClaimedAt, a.StartedAt}, {a.StartedAt, a.FinishedAt}} {
			if both[0].IsZero() || both[1].Before(both[0]) {
				t.Errorf("moments out of order: %+v", a)
			}
		}
	}
	want := []string{"bad 0/1 failed nonzero_exit a worker", "bad 0/2 failed nonzero_exit a worker", "each 0/1 completed  a worker", "each 1/1 completed  a worker", "each 2/1 completed  a worker",
		"each 3/1 completed  a worker", "each 4/1 completed  a worker", "nap 0/1 completed  engine"}
	if !slices.Equal(got, want) {
		t.Errorf("attempts\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var paged []api.TimelineAttempt
	pages := 0
	for cursor := ""; ; pages++ {
		p, err := h.client.Timeline(t.Context(), x.ID, cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		paged = append(paged, p.Attempts...)
		if cursor = p.NextCursor; cursor == "" {
			break
		}
	}
	if a, b := mustJSON(t, paged), mustJSON(t, whole.Attempts); a != b || pages < 3 {
		t.Errorf("%d pages more than one: %s\nat once: %s", pages, a, b)
	}
	for _, bad := range []string{"?cursor=each", "?cursor=each%2Fx", "?cursor=each%2F-1", "?limit=0", "?limit=1001"} {
		h.problem(t, http.StatusBadRequest, api.ProblemInvalid, "GET", "/api/v1/executions/"+x.ID+"/timeline"+bad, "")
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// An execution that is not a workflow has its own attempts; a running attempt has no end.
func TestTimelineOfOne(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	id := h.code(t, "hang")
	h.await(t, id, "running", running)
	tl, err := h.client.Timeline(t.Context(), id, "", 0)
	if err != nil || len(tl.Attempts) != 1 {
		t.Fatalf("%+v, %v", tl, err)
	}
	if a := tl.Attempts[0]; a.Execution != id || a.Task != "" || a.Status != api.Running || a.Worker == "" || a.StartedAt.IsZero() || !a.FinishedAt.IsZero() {
		t.Errorf("%+v", a)
	}
}

// An attempt whose worker was lost ends at that time, and keeps its status.
func TestTimelineOfALostAttempt(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var a api.TimelineAttempt
	for i, e := range []flow.Event{{Type: flow.EvRequested}, {Type: flow.EvWaiting, Data: json.RawMessage(`{"key":"k"}`)}, {Type: flow.EvScheduled}, {Type: flow.EvProvisioning, Data: json.RawMessage(`{"worker":"box-3"}`)}, {Type: flow.EvRunning},
		{Type: flow.EvProgress, Data: json.RawMessage(`{"code":"of the program"}`)}, {Type: flow.EvLost, Data: json.RawMessage(`{"reason":"its lease ran out"}`)}} {
		e.At = begun.Add(time.Duration(i) * time.Second)
		takeIn(&a, &e)
	}
	if a.Worker != "box-3" || !a.Lost || a.Status != api.Running || a.Code != "" || !a.FinishedAt.Equal(begun.Add(6*time.Second)) || !a.QueuedAt.Equal(begun.Add(2*time.Second)) {
		t.Errorf("%+v", a)
	}
}
