package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

func TestRerun(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	if _, err := h.client.Define(t.Context(), []byte(`
name: relay
tasks:
  each: {foreach: "${{ input.items }}", action: noop, with: {n: "${{ item }}"}}
  join: {needs: [each], action: noop, with: {all: "${{ tasks.each.output }}"}}
outputs: {all: "${{ tasks.join.output.all }}"}
`), "relay.yaml"); err != nil {
		t.Fatal(err)
	}
	ran := func(x *api.Execution, err error) *api.Execution {
		t.Helper()
		if err == nil {
			x, err = h.client.Wait(t.Context(), x.ID)
		}
		if err != nil || x.Status != api.Completed {
			t.Fatalf("%+v, %v", x, err)
		}
		return x
	}
	was := ran(h.client.Submit(t.Context(), api.Submission{Action: "relay", Input: json.RawMessage(`{"items":[1,2,3]}`)}))
	in := api.RerunRequest{Input: json.RawMessage(`{"items":[1,5,3]}`)}
	plan, err := h.client.PlanRerun(t.Context(), was.ID, in)
	if err != nil || plan.Of != was.ID || plan.Version != 1 || plan.Reused != 2 || plan.Status != "" || len(plan.Tasks) != 2 ||
		plan.Tasks[0].Decision != "partly" || plan.Tasks[0].Runs != 1 || plan.Tasks[0].Items[0] != 1 || plan.Tasks[0].Reason != "its input has changed" || plan.Tasks[1].Decision != "run" {
		t.Errorf("plan %+v, %v", plan, err)
	}
	x := ran(h.client.Rerun(t.Context(), was.ID, in))
	if x.RerunOf != was.ID || string(x.Output) != `{"all":[{"n":1},{"n":5},{"n":3}]}` {
		t.Errorf("the rerun is %+v", x)
	}
	page, err := h.client.List(t.Context(), client.Filter{RerunOf: was.ID})
	if err != nil || len(page.Executions) != 1 || page.Executions[0].ID != x.ID || page.Executions[0].RerunOf != was.ID {
		t.Errorf("its reruns are %+v, %v", page, err)
	}
	tasks, err := h.client.Tasks(t.Context(), x.ID, 10)
	if err != nil || tasks.Tasks[0].Reused != 2 || tasks.Tasks[1].Reused != 0 || !tasks.Tasks[0].Executions[0].Reused || tasks.Tasks[0].Executions[1].Reused {
		t.Errorf("its tasks are %+v, %v", tasks, err)
	}
	kid, err := h.client.Get(t.Context(), tasks.Tasks[0].Executions[0].ID)
	if err != nil || kid.ReusedOf == "" || string(kid.Output) != `{"n":1}` {
		t.Errorf("what was reused is %+v, %v", kid, err)
	}
	// One task only: the tasks after it are left out.
	in = api.RerunRequest{Only: []string{"each[1]"}}
	if plan, err = h.client.PlanRerun(t.Context(), was.ID, in); err != nil || plan.Tasks[0].Decision != "partly" || plan.Tasks[1].Decision != "leave" || plan.Tasks[1].Reason != "the rerun is of each only" {
		t.Errorf("plan of one item only %+v, %v", plan, err)
	}
	if y := ran(h.client.Rerun(t.Context(), was.ID, in)); string(y.Output) != `{"each":[{"n":1},{"n":2},{"n":3}]}` || len(y.Only) != 1 || y.Only[0] != "each[1]" {
		t.Errorf("the rerun of one item only is %+v", y)
	}
	// A supplied output: the tasks after it use it.
	in = api.RerunRequest{Outputs: map[string]json.RawMessage{"each[1]": json.RawMessage(`{"n":9}`)}, By: "ada"}
	if plan, err = h.client.PlanRerun(t.Context(), was.ID, in); err != nil || plan.Tasks[0].Decision != "give" || plan.Tasks[0].Given != 1 || plan.Tasks[0].Reused != 2 || plan.Tasks[1].Reason != "its input has changed" {
		t.Errorf("plan with a given output %+v, %v", plan, err)
	}
	gave := ran(h.client.Rerun(t.Context(), was.ID, in))
	if string(gave.Output) != `{"all":[{"n":1},{"n":9},{"n":3}]}` || gave.GivenBy != "ada" {
		t.Errorf("the rerun with a given output is %+v", gave)
	}
	if tasks, err = h.client.Tasks(t.Context(), gave.ID, 10); err != nil || tasks.Tasks[0].Given != 1 || tasks.Tasks[0].Reused != 2 || !tasks.Tasks[0].Executions[1].Given || tasks.Tasks[0].Executions[1].Reused {
		t.Errorf("its tasks are %+v, %v", tasks, err)
	}
	// Nothing is left to run.
	if plan, err = h.client.PlanRerun(t.Context(), x.ID, api.RerunRequest{}); err != nil || plan.Status != api.Completed || plan.Reused != 4 {
		t.Errorf("plan of the rerun %+v, %v", plan, err)
	}

	const path = "/api/v1/executions/"
	first, one := h.do(t, http.MethodPost, path+was.ID+"/rerun", "", "Idempotency-Key", "once")
	second, two := h.do(t, http.MethodPost, path+was.ID+"/rerun", "{}", "Idempotency-Key", "once")
	var a, b api.Execution
	if json.Unmarshal(one, &a) != nil || json.Unmarshal(two, &b) != nil || first.StatusCode != 202 || second.StatusCode != 200 || a.ID != b.ID || first.Header.Get("Location") != path+a.ID {
		t.Errorf("%s %s\n%s %s", first.Status, one, second.Status, two)
	}
	for body, want := range map[string]string{`{"from":["jion"]}`: "join", `{"from":["each[7]"]}`: "pawl describe", `{"from":["each["]}`: "each[0]", `{"only":["each["]}`: "each[0]", `{"only":["jion"]}`: "join", `{"outputs":{"jion":1}}`: "join", `{"outputs":{"each":1}}`: "each[0]", `{"outputs":{"join":1},"from":["join"]}`: "one of the two", `{"only":["join"],"from":["each"]}`: "leave out", `{"definition":"relay@7"}`: "relay@1"} {
		if p := h.problem(t, 422, api.ProblemInvalid, http.MethodPost, path+was.ID+"/rerun/plan", body); len(p.Errors) != 1 || !strings.Contains(p.Errors[0].Fix, want) {
			t.Errorf("%s: %+v, want %q", body, p, want)
		}
	}
	h.problem(t, 422, api.ProblemInvalid, http.MethodPost, path+was.ID+"/rerun", `{"form":["each"]}`)
	slow, err := h.client.Submit(t.Context(), api.Submission{Action: "sleep", Input: json.RawMessage(`{"for":"1h"}`)})
	if err != nil {
		t.Fatal(err)
	}
	h.problem(t, 422, api.ProblemInvalid, http.MethodPost, path+slow.ID+"/rerun", "")
}
