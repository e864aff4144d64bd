package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/engine/fault"
)

// Nothing new of a retired definition is accepted, by whatever name, and what has begun goes on.
func TestRetired(t *testing.T) {
	onEachStore(t, func(r *rig) {
		r.versions(2)
		r.move("stable", AliasOrder{To: to(1)})
		r.define("kind: workflow\nname: roll\ntasks:\n  first: {action: deploy}\n  then: {action: deploy@stable, needs: [first]}\n")
		if _, err := r.e.Retire(r.ctx, "deploi", false, "", ""); !errors.As(err, new(*fault.NoSuch)) || !strings.Contains(err.Error(), "deploy") {
			r.Errorf("a definition that is not there: %v", err)
		}
		if _, err := r.e.Retire(r.ctx, "deploy", false, "", strings.Repeat("x", fault.ReasonLimit+1)); !errors.As(err, new(*fault.Invalid)) {
			r.Errorf("a long reason: %v", err)
		}
		if x, err := r.e.Retire(r.ctx, "deploy", true, "", ""); err != nil || x.Retired {
			r.Errorf("to bring back what never was retired: %+v, %v", x, err)
		}
		known := r.submit(Submission{Action: "deploy", IdempotencyKey: "known"})
		for range 2 { // the second time changes nothing
			if x, err := r.e.Retire(r.ctx, "deploy", false, "ann", "use rollout"); err != nil || !x.Retired || x.By != "ann" {
				r.Fatalf("%+v, %v", x, err)
			}
		}
		for _, action := range []string{"deploy", "deploy@2", "deploy@stable", "deploy@latest"} {
			out, err := r.e.Submit(r.ctx, []Submission{{Action: action}})
			if err != nil || !strings.Contains(fmt.Sprint(out[0].Err), "by ann: use rollout") {
				r.Errorf("%s: %+v, %v", action, out, err)
			}
		}
		if again := r.submit(Submission{Action: "deploy", IdempotencyKey: "known"}); again != known {
			r.Errorf("a submission that was accepted before is %s, not %s", again, known)
		}
		all, err := r.e.catalog.Retired(r.ctx, []string{"deploy", "roll", "none"})
		if err != nil || len(all) != 1 || all["deploy"].Reason != "use rollout" || all["deploy"].At.IsZero() {
			r.Errorf("%+v, %v", all, err)
		}
		h := r.worker()
		wf := r.submit(Submission{Action: "roll"}) // its tasks may run it
		for range 3 {                              // with what was accepted before
			h.complete(h.take(1)[0], `{}`)
		}
		if x := r.ended(wf); x.Stage.String() != "completed" {
			r.Errorf("a workflow with tasks that run it ended as %v", x.Stage)
		}
		if _, err := r.e.Retry(r.ctx, known, ""); !strings.Contains(fmt.Sprint(err), "is retired") {
			r.Errorf("retry: %v", err)
		}
		if _, _, err := r.e.Rerun(r.ctx, known, RerunOptions{}); !strings.Contains(fmt.Sprint(err), "is retired") {
			r.Errorf("rerun: %v", err)
		}
		if x, err := r.e.Retire(r.ctx, "deploy", true, "bob", ""); err != nil || x.Retired {
			r.Errorf("%+v, %v", x, err)
		}
		r.submit(Submission{Action: "deploy@stable"})
	})
}
