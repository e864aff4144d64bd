package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// What the parameters of a list select runs again in an execution of its own, whose tasks say which became which; a plan changes nothing.
func TestRerunMany(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Reach: 4})
	submit := func(action, input, team string) string {
		t.Helper()
		x, err := h.client.Submit(t.Context(), api.Submission{Action: action, Input: json.RawMessage(input), Labels: map[string]string{"team": team}})
		if err == nil && action != "sleep" {
			x, err = h.client.Wait(t.Context(), x.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		return x.ID
	}
	done := []string{submit("noop", `{"n":1}`, "docs"), submit("noop", `{"n":2}`, "docs")}
	open := submit("sleep", `{"for":"1h"}`, "docs")
	for range 6 {
		submit("noop", "{}", "web")
	}
	f := client.Filter{Where: "label.team = docs and status in (completed, running) and kind in (noop, sleep)"}
	plan, err := h.client.RerunMany(t.Context(), f, api.RerunManyRequest{Plan: true})
	if err != nil || plan.Execution != "" || plan.Selected != 3 || plan.SearchedTo != nil || plan.NextCursor != "" || plan.Refused != 1 || plan.Runs != 2 || len(plan.Planned) != 3 ||
		plan.Planned[0].ID != open || plan.Planned[0].Problem == nil || plan.Planned[2].ID != done[0] || plan.Planned[2].Runs != 1 {
		t.Fatalf("%+v %v", plan, err)
	}
	if plan.Counted != 3 || len(plan.Refusals) != 1 || plan.Refusals[0].Count != 1 || plan.Refusals[0].First != open || plan.Refusals[0].Detail != plan.Planned[0].Problem.Detail {
		t.Errorf("%+v", plan)
	}
	if first, err := h.client.RerunMany(t.Context(), f, api.RerunManyRequest{Plan: true, Details: 1}); err != nil || len(first.Planned) != 1 || first.Counted != 3 || first.Runs != 2 {
		t.Errorf("%+v %v", first, err)
	}
	if page, err := h.client.List(t.Context(), client.Filter{RerunOf: done[0]}); err != nil || len(page.Executions) != 0 {
		t.Errorf("the plan has made %+v, %v", page, err)
	}
	many, err := h.client.RerunMany(t.Context(), f, api.RerunManyRequest{AtOnce: 1})
	if err != nil || many.Selected != 3 || many.Execution == "" {
		t.Fatalf("%+v %v", many, err)
	}
	x, err := h.client.Wait(t.Context(), many.Execution)
	if err != nil || x.Status != api.Completed || x.Action != "pawl.rerun" {
		t.Fatalf("%+v %v", x, err)
	}
	tasks := 0
	for task, err := range h.client.All(t.Context(), client.Filter{Workflow: many.Execution, Outputs: true}) {
		if err != nil {
			t.Fatal(err)
		}
		tasks++
		if task.Index == 0 { // the newest first: that which is still open
			if task.Status != api.Failed || task.Error.Code != "rerun_refused" || !strings.Contains(task.Error.Message, "still") {
				t.Errorf("%+v", task)
			}
			continue
		}
		var out struct{ Execution, Status string }
		if err := json.Unmarshal(task.Output, &out); err != nil || out.Status != "completed" {
			t.Errorf("%+v %v", task, err)
		}
		again, err := h.client.Get(t.Context(), out.Execution)
		if err != nil || again.RerunOf != done[2-task.Index] {
			t.Errorf("%+v %v", again, err)
		}
	}
	if tasks != 3 {
		t.Errorf("%d tasks", tasks)
	}
	// The same call again is the same, whatever is selected by now.
	body := `{"ids": ["` + done[0] + `"]}`
	var first, second api.RerunMany
	for _, out := range []*api.RerunMany{&first, &second} {
		_, answer := h.do(t, "POST", "/api/v1/executions:rerun", body, "Idempotency-Key", "once")
		if err := json.Unmarshal(answer, out); err != nil || out.Execution == "" {
			t.Fatalf("%s %v", answer, err)
		}
		body = `{"ids": ["` + done[1] + `"]}`
	}
	if first.Execution != second.Execution {
		t.Errorf("%s and %s", first.Execution, second.Execution)
	}
	if _, err := h.client.Wait(t.Context(), first.Execution); err != nil {
		t.Error(err)
	}
	for body, status := range map[string]int{"{}": 400, `{"ids": ["` + done[0] + `"], "at_once": 101}`: 422, `{"ids": ["` + done[0] + `"], "at_once": -1}`: 422, `{"ids": ["7"]}`: 422, `{"at_onc": 1}`: 422, `{"plan": true, "details": -1}`: 422} {
		if res, answer := h.do(t, "POST", "/api/v1/executions:rerun", body); res.StatusCode != status {
			t.Errorf("%s: %s %s", body, res.Status, answer)
		}
	}
	if _, err := h.client.Cancel(t.Context(), open, "", 0); err != nil {
		t.Error(err)
	}
}
