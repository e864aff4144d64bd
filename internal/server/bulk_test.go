package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/flow"
)

// sleepers submits n executions that sleep for an hour, with a label.
func (h *house) sleepers(t *testing.T, n int, label string) (ids []string) {
	t.Helper()
	for range n {
		x, err := h.client.Submit(t.Context(), api.Submission{Action: "sleep", Input: json.RawMessage(`{"for":"1h"}`), Labels: map[string]string{"team": label}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, x.ID)
	}
	return ids
}

func TestCancelMany(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	docs, other := h.sleepers(t, 5, "docs"), h.sleepers(t, 1, "other")
	statuses := func() (all []string) {
		for _, id := range append(append([]string{}, docs...), other...) {
			x, err := h.client.Get(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(x.Status))
		}
		return all
	}
	of := client.Filter{Labels: map[string]string{"team": "docs"}}
	r, err := h.client.CancelMany(t.Context(), of, api.BulkRequest{DryRun: true})
	if err != nil || r.Selected != 5 || r.Done != 5 || !r.DryRun {
		t.Fatalf("a dry run: %+v %v", r, err)
	}
	if got := strings.Join(statuses(), " "); strings.Contains(got, "cancelled") {
		t.Fatalf("after a dry run: %s", got)
	}
	of.Limit = 2
	pages := 0
	for seen := 0; ; pages++ {
		if r, err = h.client.CancelMany(t.Context(), of, api.BulkRequest{Reason: "all of docs"}); err != nil {
			t.Fatal(err)
		}
		for _, x := range r.Executions {
			if seen++; x.Status != api.Cancelled || x.Problem != nil || x.ID != docs[5-seen] {
				t.Errorf("%+v", x)
			}
		}
		if of.Cursor = r.NextCursor; of.Cursor == "" {
			break
		}
	}
	if got := strings.Join(statuses(), " "); pages != 2 || got != strings.Repeat("cancelled ", 5)+"running" {
		t.Errorf("after %d pages: %s", pages, got)
	}
	// By ids: an execution that has ended is refused, and the others are cancelled all the same.
	done := h.code(t, "hello")
	h.await(t, done, "ended", terminal)
	r, err = h.client.CancelMany(t.Context(), client.Filter{}, api.BulkRequest{IDs: []string{done, other[0], other[0]}})
	if err != nil || r.Selected != 2 || r.Done != 1 || r.Executions[0].Problem == nil || r.Executions[0].Problem.Type != api.ProblemFinished || r.Executions[1].Status != api.Cancelled {
		t.Errorf("%+v %v", r, err)
	}
}

func TestRetryMany(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	ids := h.sleepers(t, 3, "docs")
	of := client.Filter{Labels: map[string]string{"team": "docs"}}
	if _, err := h.client.CancelMany(t.Context(), of, api.BulkRequest{}); err != nil {
		t.Fatal(err)
	}
	one := fmt.Sprintf(`{"ids": [%q, %q]}`, ids[0], ids[1])
	var first, again, other api.BulkResult
	send := func(out *api.BulkResult, body, key string) {
		t.Helper()
		res, text := h.do(t, "POST", "/api/v1/executions:retry", body, "Idempotency-Key", key)
		if err := json.Unmarshal(text, out); err != nil || res.StatusCode != 200 {
			t.Fatalf("%s %s", res.Status, text)
		}
	}
	send(&first, one, "k1")
	send(&again, one, "k1")
	send(&other, one, "k2")
	for i := range 2 {
		if first.Executions[i].New == "" || first.Executions[i].New != again.Executions[i].New || first.Executions[i].New == other.Executions[i].New {
			t.Errorf("%+v, again %+v, under another key %+v", first.Executions[i], again.Executions[i], other.Executions[i])
		}
	}
	// By parameters: they select the three that ended without completing, and not the four new ones.
	r, err := h.client.RetryMany(t.Context(), of, api.BulkRequest{DryRun: true})
	if err != nil || r.Selected != 3 || r.Done != 3 {
		t.Errorf("%+v %v", r, err)
	}
	of.Status = []api.Status{api.Scheduled, api.Running}
	if r, err = h.client.RetryMany(t.Context(), of, api.BulkRequest{}); err != nil || r.Selected != 4 || r.Done != 0 || r.Executions[0].Problem.Type != api.ProblemNotFinished {
		t.Errorf("what has not ended: %+v %v", r, err)
	}
}

func TestBulkRequestsAreChecked(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	h.sleepers(t, 1, "docs")
	nobody := flow.ID{1}.String()
	many, _ := json.Marshal(api.BulkRequest{IDs: make([]string, api.BulkLimit+1)})
	for _, tc := range []struct{ query, body, says string }{
		{"", "", "says of no execution that it is meant"},
		{"?top_level=true", "{}", "says of no execution that it is meant"},
		{"?label=team=docs", `{"ids": ["` + nobody + `"]}`, "give ids, or parameters"},
		{"", `{"ids": ["` + nobody + `"]}`, "there is no such execution"},
		{"", `{"ids": ["x"]}`, "it is not an execution's id"},
		{"", `{"id": ["x"]}`, "id"},
		{"", string(many), "at most 1000"},
		{"?limit=0&label=a=b", "", "limit"},
		{"?label=a=b&dry_run=true", "", "dry_run"},
	} {
		for _, what := range []string{"cancel", "retry"} {
			res, text := h.do(t, "POST", "/api/v1/executions:"+what+tc.query, tc.body)
			if res.StatusCode/100 != 4 || !strings.Contains(string(text), tc.says) {
				t.Errorf("%s%s %.60s: %s %s", what, tc.query, tc.body, res.Status, text)
			}
		}
	}
	if all, err := h.client.List(t.Context(), client.Filter{Status: []api.Status{api.Cancelled}}); err != nil || len(all.Executions) > 0 {
		t.Errorf("%+v %v", all, err)
	}
}

// A panic over one execution of a bulk request gives a problem for that one: it runs in a goroutine of its own, where an unhandled panic
// would end the process.
func TestBulkThatPanics(t *testing.T) {
	t.Parallel()
	c := &call{Server: &Server{log: slog.New(slog.DiscardHandler)}, r: httptest.NewRequest(http.MethodPost, "/", http.NoBody)}
	x := &flow.Execution{ID: flow.ID{1}}
	entry := c.one(bulk{do: func(context.Context, *flow.Execution) (api.BulkEntry, error) { panic("no") }}, x, false)
	if entry.ID != x.ID.String() || entry.Problem == nil || entry.Problem.Status != http.StatusInternalServerError {
		t.Errorf("%+v", entry)
	}
}

// A repeated cancel, as from clients whose answer was lost, is not a second cancel: the clean-up continues, even if the request names a
// workflow together with its sub-workflow.
func TestCancelSentAgain(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	if _, err := h.client.Define(t.Context(), []byte(`
name: tidies
tasks:
  work: {action: sleep, with: {for: 1h}}
  tidy: {needs: work, if: always(), action: sleep, with: {for: 1h}}
---
name: above
tasks: {sub: {action: tidies}}
`), ""); err != nil {
		t.Fatal(err)
	}
	x, err := h.client.Submit(t.Context(), api.Submission{Action: "above"})
	if err != nil {
		t.Fatal(err)
	}
	var sub string
	waitFor(t, "the sub-workflow", func() bool {
		p, err := h.client.List(t.Context(), client.Filter{Workflow: x.ID})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Executions {
			sub = c.ID
		}
		return sub != ""
	})
	both := fmt.Sprintf(`{"ids": [%q, %q]}`, x.ID, sub)
	for range 3 {
		for path, body := range map[string]string{"/api/v1/executions/" + x.ID + "/cancel": "", "/api/v1/executions:cancel": both} {
			if res, text := h.do(t, "POST", path, body, "Idempotency-Key", "k1"); res.StatusCode/100 != 2 {
				t.Fatalf("%s %s", res.Status, text)
			}
			for _, id := range []string{x.ID, sub} {
				if x, err := h.client.Get(t.Context(), id); err != nil || x.Status != api.Running || x.CancelOrder == nil {
					t.Fatalf("after a repeated cancel: %+v %v", x, err)
				}
			}
		}
	}
	if res, text := h.do(t, "POST", "/api/v1/executions/"+x.ID+"/cancel?wait=1m", "", "Idempotency-Key", "k2"); res.StatusCode != 200 {
		t.Errorf("a second cancel: %s %s", res.Status, text)
	}
	x, err = h.client.Submit(t.Context(), api.Submission{Action: "tidies"})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("k", 600)
	if res, text := h.do(t, "POST", "/api/v1/executions/"+x.ID+"/cancel", "", "Idempotency-Key", long); res.StatusCode/100 != 4 {
		t.Errorf("a long key: %s %s", res.Status, text)
	}
}

// Killing over the paths of evaluations gives no grace either.
func TestKillOfAnEvaluation(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	for _, path := range []string{"/api/v1/evaluations/", "/api/eval/", "/api/v1/executions/"} {
		id := h.code(t, "hang on")
		h.await(t, id, "running", running)
		if res, text := h.do(t, "POST", path+id+"/kill?wait=20s", ""); res.StatusCode != 200 {
			t.Errorf("%s: %s %s", path, res.Status, text)
		}
	}
}
