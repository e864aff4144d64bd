package engine

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
)

// A rerun with only one task runs that task, reuses the earlier ones, and skips the later ones; its output is that task's.
func TestRerunOnly(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(chainOfItems)
		c := r.crew(`{"item":1}`)
		id := r.submit(Submission{Action: "w", Input: json.RawMessage(`{"items":[0,1,2],"tag":"a"}`)})
		r.ended(id)
		c.since()
		only := func(task string, index int) RerunOptions {
			return RerunOptions{Only: []orchestration.Item{{Task: task, Index: index}}}
		}

		// The named item fails again, and so does the rerun.
		again, _ := r.rerun(id, only("each", orchestration.AllItems))
		if x := r.ended(again); x.Stage != flow.Failed || x.RerunOf != id {
			r.Errorf("the rerun in which its task fails is %s of %s", x.Stage, x.RerunOf)
		}
		c.succeed()
		c.since()
		again, plan := r.rerun(id, only("each", orchestration.AllItems))
		x := r.ended(again)
		if x.Stage != flow.Completed || string(x.Outcome.Output) != `{"each":[{"item":0},{"item":1},{"item":2}]}` {
			r.Errorf("the rerun is %s: %s, planned %+v", x.Stage, x.Outcome.Output, plan.Workflow.Tasks)
		}
		if !slices.Equal(x.AsRerun().Only, []string{"each"}) || !slices.Contains(x.AsRerun().LeftOut, "join") {
			r.Errorf("the rerun is of %v, without %v", x.AsRerun().Only, x.AsRerun().LeftOut)
		}
		for _, ran := range c.since() {
			if !strings.HasPrefix(ran, `{"item":`) {
				r.Errorf("%s ran beside what was named", ran)
			}
		}
		if kids := r.kids(again); kids["join[0]"] != nil || kids["each[0]"] == nil || !kids["each[0]"].ReusedOf.IsZero() {
			r.Errorf("its tasks are %+v", kids)
		}
		if w, err := r.e.Why(r.ctx, again); err != nil || !strings.Contains(strings.Join(w.Facts, "; "), "it is of each only; join is left out") {
			r.Errorf("why says %+v, %v", w, err)
		}

		// With one item, the others are reused.
		third, _ := r.rerun(again, only("each", 1))
		if x := r.ended(third); x.Stage != flow.Completed || string(x.Outcome.Output) != `{"each":[{"item":0},{"item":1},{"item":2}]}` {
			r.Errorf("the rerun of an item is %s: %+v", x.Stage, x.Outcome)
		}
		r.same("ran for the item", c.since(), `{"item":1}×1`)

		// A plain rerun of a rerun with only, and a retry of it, run the whole workflow.
		whole, _ := r.rerun(again, RerunOptions{})
		if x := r.ended(whole); x.Stage != flow.Completed || x.AsRerun().Only != nil || x.AsRerun().LeftOut != nil {
			r.Errorf("the rerun of the whole is %s, of %v", x.Stage, x.AsRerun().Only)
		}
		r.same("ran for the whole", c.since(), `{"all":[{"item":0},{"item":1},{"item":2}]}×1`)
		retried, err := r.e.Retry(r.ctx, again, "")
		if err != nil {
			r.Fatal(err)
		}
		if x := r.ended(retried.Execution); x.Stage != flow.Completed || x.AsRerun().Only != nil || x.RetryOf() != again {
			r.Errorf("a retry is %s, of %v and %s", x.Stage, x.AsRerun().Only, x.RetryOf())
		}
		of, _ := r.rerun(retried.Execution, RerunOptions{})
		if x := r.ended(of); !x.RetryOf().IsZero() || x.RerunOf != retried.Execution {
			r.Errorf("a rerun of a retry is a retry of %s and a rerun of %s", x.RetryOf(), x.RerunOf)
		}

		for name, row := range map[string]struct {
			of   flow.ID
			o    RerunOptions
			path string
			say  string
		}{
			"something before it failed": {id, only("join", orchestration.AllItems), "only", "each, which comes before it, cannot be reused"},
			"no such task":               {id, only("jion", orchestration.AllItems), "only", `no task "jion"`},
			"with from": {id, RerunOptions{Only: []orchestration.Item{{Task: "each", Index: 0}}, From: []orchestration.Item{{Task: "each", Index: 0}}}, "only",
				"runs alone"},
		} {
			var bad *fault.Invalid
			if _, _, err := r.e.Rerun(r.ctx, row.of, row.o); !errors.As(err, &bad) || bad.Problems[0].Path != row.path || !strings.Contains(bad.Problems[0].Message, row.say) {
				r.Errorf("%s: %v", name, err)
			}
		}
	})
}
