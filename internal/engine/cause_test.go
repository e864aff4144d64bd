package engine

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// causes is a workflow whose item 0 waits for its next attempt when item 1 fails finally, and a workflow above it.
const causes = `
name: verify
input: {type: object}
retry: {max_attempts: 3, delay: 1h, on: [oom]}
action: noop
---
name: deploy
tasks:
  verify: {foreach: "${{ ['oom', 'real', 'late'] }}", action: verify, with: {v: "${{ item }}"}}
  notify: {needs: verify, if: always(), action: noop, with: {v: "${{ tasks.verify.error.code + ': ' + tasks.verify.error.message }}"}}
---
name: fleet
tasks:
  regions: {foreach: "${{ [1, 2] }}", action: deploy}
  notify: {needs: regions, if: always(), action: noop, with: {v: "${{ tasks.regions.error.message }}"}}
`

// A failed foreach names the item that failed, and never one that was cancelled for it.
func TestAFailedForeachNamesTheFailure(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"oom", "real"}, {"oom", "late", "real"}, {"late", "oom", "real"}} {
		onEachStore(t, func(r *rig) {
			r.define(causes)
			h := r.worker()
			id := r.submit(Submission{Action: "deploy"})
			work := map[string]handoff.Assignment{}
			for len(work) < 3 {
				for _, a := range h.take(3) {
					var in struct{ V string }
					if err := json.Unmarshal(a.Payload, &in); err != nil {
						t.Fatal(err)
					}
					work[in.V] = a
				}
			}
			for _, v := range order {
				h.fail(work[v], v)
			}
			if order[len(order)-2] == "oom" && len(order) == 2 {
				h.fail(work["late"], "late")
			}
			told := h.take(1)[0]
			if !strings.Contains(string(told.Payload), `"real: real"`) {
				t.Errorf("%v: the handler was told %s", order, told.Payload)
			}
			h.complete(told, "1")
			x := r.ended(id)
			if e := x.Outcome.Error; x.Stage != flow.Failed || e.Message != `task "verify" (item 1) failed: real: real` {
				t.Errorf("%v: %s %+v", order, x.Stage, e)
			}
			plan, err := r.e.PlanRerun(r.ctx, id, RerunOptions{})
			if err != nil || plan.Workflow.Tasks[0].Reason != "it failed" {
				t.Errorf("%v: %+v %v", order, plan, err)
			}
			r.replayAll()
		})
	}
}

// A workflow of workflows also names the task that failed below it.
func TestAWorkflowOfWorkflowsNamesTheFailure(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(causes)
		r.worker().serve(func(a handoff.Assignment) (string, *flow.Error) {
			for _, v := range []string{"oom", "real"} {
				if string(a.Payload) == `{"v":"`+v+`"}` {
					return "", &flow.Error{Code: v, Message: "cause of " + v}
				}
			}
			return string(a.Payload), nil
		})
		id := r.submit(Submission{Action: "fleet"})
		x := r.ended(id)
		if e := x.Outcome.Error; x.Stage != flow.Failed || !strings.Contains(e.Message, "task_failed: task \"verify\" (item 1) failed: real: cause of real") {
			t.Errorf("%s %+v", x.Stage, e)
		}
		if said := r.get(r.child(id, "notify", 0)); !strings.Contains(string(said.Outcome.Output), "cause of real") {
			t.Errorf("the handler was told %s", said.Outcome.Output)
		}
		r.replayAll()
	})
}

// A workflow that ends because an item was cancelled names that item and its reason, and not an item that was cancelled as a consequence.
func TestACancelledItemIsNamed(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(`
kind: action
name: one
concurrency: {key: one, limit: 1, when_full: cancel_new}
action: code
with: {language: bash, source: exit}
---
name: full
tasks: {v: {foreach: [1, 2], action: one}}
---
name: stopped
tasks: {v: {foreach: [1, 2], action: code, with: {language: bash, source: exit}}}
---
name: above
tasks: {w: {action: stopped}}
`)
		full, stopped, above := r.submit(Submission{Action: "full"}), r.submit(Submission{Action: "stopped"}), r.submit(Submission{Action: "above"})
		for _, id := range []flow.ID{r.child(stopped, "v", 1), r.child(r.child(above, "w", 0), "v", 1)} {
			if _, err := r.e.Cancel(r.ctx, id, "not this one"); err != nil {
				t.Fatal(err)
			}
		}
		r.worker().serve(func(handoff.Assignment) (string, *flow.Error) { return "1", nil })
		for id, want := range map[flow.ID]string{
			full: `task "v" (item 1) was cancelled: key_full: `, stopped: `task "v" (item 1) was cancelled: not this one`,
			above: `task "w" was cancelled: task "v" (item 1) was cancelled: not this one`,
		} {
			x := r.ended(id)
			if e := x.Outcome.Error; x.Stage != flow.Cancelled || e.Code != flow.CodeCancelled || !strings.HasPrefix(e.Message, want) || !strings.Contains(string(e.Details), `"task"`) {
				t.Errorf("%s %+v; want %s", x.Stage, e, want)
			}
		}
		if x := r.ended(r.child(stopped, "v", 0)); x.Stage == flow.Cancelled && x.Outcome.Error.Message != "a task of the workflow was cancelled" {
			t.Errorf("the other item: %+v", x.Outcome.Error)
		}
		r.replayAll()
	})
}

// A task whose expression names a workflow that does not exist fails with a message in users' terms.
func TestATaskOfNoWorkflow(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(`
name: caller
input: {type: object}
tasks: {v: {action: workflow, with: {name: "${{ input.name }}", input: {}}}}
---
name: versioned
input: {type: object}
tasks: {v: {action: workflow, with: {name: caller, version: "${{ input.version }}", input: {}}}}
`)
		for input, want := range map[string]string{
			`{"name":"nope"}`: `there is no action or workflow "nope": apply its definition, or name another one`,
			`{"version":9}`:   `there is no version 9 of action or workflow "caller": apply its definition, or name another one`,
		} {
			action := "caller"
			if strings.Contains(input, "version") {
				action = "versioned"
			}
			x := r.ended(r.submit(Submission{Action: action, Input: json.RawMessage(input)}))
			if e := x.Outcome.Error; x.Stage != flow.Failed || !strings.HasSuffix(e.Message, want) {
				t.Errorf("%s: %s %+v", input, x.Stage, e)
			}
		}
		r.replayAll()
	})
}
