package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
)

// A task with a given output ends with it and does not run; later tasks use that output.
func TestRerunWithGivenOutputs(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(chainOfItems)
		c := r.crew(`{"item":1}`)
		id := r.submit(Submission{Action: "w", Input: json.RawMessage(`{"items":[0,1,2],"tag":"a"}`)})
		r.ended(id)
		c.since()
		give := func(task string, index int, output string) RerunOptions {
			return RerunOptions{By: "ada", Outputs: []flow.OutputOverride{{Task: task, Index: index, Output: json.RawMessage(output)}}}
		}

		again, plan := r.rerun(id, give("each", 1, `{"item":"one"}`))
		x := r.ended(again)
		if want := `{"all":[{"item":0},{"item":"one"},{"item":2}],"tag":"a"}`; x.Stage != flow.Completed || string(x.Outcome.Output) != want || x.AsRerun().OverriddenBy != "ada" {
			r.Errorf("the rerun is %s with %s, given by %q; planned %+v", x.Stage, x.Outcome.Output, x.AsRerun().OverriddenBy, plan.Workflow.Tasks)
		}
		if ran := c.since(); slices.Contains(ran, `{"item":1}×1`) {
			r.Errorf("what was given ran: %v", ran)
		}
		kids := r.kids(again)
		k := kids["each[1]"]
		if k.AsRerun().OverriddenBy != "ada" || string(k.Outcome.Output) != `{"item":"one"}` || !k.ReusedOf.IsZero() {
			r.Errorf("the item that was given its output is %+v", k)
		}
		if h := r.history(k.ID); !slices.Equal(h, []flow.EventType{flow.EvRequested, flow.EvOverridden}) {
			r.Errorf("its history is %v", h)
		}
		for id, say := range map[flow.ID]string{k.ID: "its output was given by ada", again: "ada has given the output of each[1]"} {
			if w, err := r.e.Why(r.ctx, id); err != nil || !strings.Contains(strings.Join(w.Facts, "; "), say) {
				r.Errorf("why says %+v, %v; want %q", w, err, say)
			}
		}

		// A rerun of the rerun reuses the given output.
		third, _ := r.rerun(again, RerunOptions{})
		if y := r.ended(third); y.AsRerun().OverriddenBy != "" || string(y.Outcome.Output) != string(x.Outcome.Output) ||
			r.kids(third)["each[1]"].ReusedOf != k.ID {
			r.Errorf("its rerun is %+v with %s", y.Request, y.Outcome.Output)
		}
		r.same("ran for the rerun of the rerun", c.since())

		// A task whose input is unchanged by the given output is reused.
		again, _ = r.rerun(third, give("fetch", orchestration.AllItems, `{"tag":"b"}`))
		if y := r.ended(again); !strings.Contains(string(y.Outcome.Output), `"tag":"b"`) {
			r.Errorf("a rerun with the output of its first task is %s: %s", y.Stage, y.Outcome.Output)
		}
		r.same("ran though only an output of the workflow changes", c.since())

		// The plan is right also if the output is given to a task after one that runs.
		later := give("join", orchestration.AllItems, `{"all":[]}`)
		later.From = []orchestration.Item{{Task: "fetch", Index: orchestration.AllItems}}
		if plan, err := r.e.PlanRerun(r.ctx, id, later); err != nil || !slices.ContainsFunc(plan.Workflow.Tasks, func(p orchestration.Planned) bool {
			return p.Task == "join" && p.Decision == orchestration.Override && p.Overridden == 1 && strings.HasPrefix(p.Reason,
				"its output is given, when its turn comes")
		}) {
			r.Errorf("%+v, %v", plan, err)
		}

		// Together with only: the failed item before it has a given output, and the named task runs alone.
		o := give("each", 1, `{"item":"uno"}`)
		o.Only = []orchestration.Item{{Task: "join", Index: orchestration.AllItems}}
		if again, _ = r.rerun(third, o); string(r.ended(again).Outcome.Output) != `{"join":{"all":[{"item":0},{"item":"uno"},{"item":2}]}}` {
			r.Errorf("it alone gives %+v", r.get(again).Outcome)
		}

		many := RerunOptions{}
		for range maxOverrides + 1 {
			many.Outputs = append(many.Outputs, flow.OutputOverride{Task: "each", Output: json.RawMessage(`1`)})
		}
		twice := give("each", 1, `1`)
		twice.Outputs = append(twice.Outputs, twice.Outputs[0])
		runs := give("each", 1, `1`)
		runs.From = []orchestration.Item{{Task: "each", Index: orchestration.AllItems}}
		for say, o := range map[string]RerunOptions{
			`no task "jion"`: give("jion", orchestration.AllItems, `1`), "has no foreach": give("join", 0, `1`), "no such item": give("each", 3, `1`),
			"an output of its own": give("each", orchestration.AllItems, `[1]`), "not JSON": give("join", orchestration.AllItems, `one`),
			"more than 64 KB": give("join", orchestration.AllItems, fmt.Sprintf("%q", strings.Repeat("x", maxOverrideBytes))),
			"at most 100":     many, "two outputs": twice, "was named to run": runs,
			"names a file": give("join", orchestration.AllItems, `{"files":[{"name":"a","blob":"ex_1/1/a","size":3}]}`),
		} {
			var bad *fault.Invalid
			if _, err := r.e.PlanRerun(r.ctx, id, o); !errors.As(err, &bad) || bad.Problems[0].Path != "outputs" || !strings.Contains(bad.Problems[0].Message, say) || bad.Problems[0].Fix == "" {
				r.Errorf("%s: %v", say, err)
			}
		}
	})
}
