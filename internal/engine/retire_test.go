package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
)

// New executions of a retired definition are refused, by any name, and running ones continue.
func TestRetired(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.versions(2)
		r.move("stable", api.AliasOrder{To: to(1)})
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
		r.mentions("kind: workflow\nname: roll\ntasks:\n  first: {action: deploy}\n  then: {action: deploy@stable, needs: [first]}\n  last: {action: noop}\n---\n"+
			"kind: schedule\nname: nightly\ncron: '0 3 * * *'\nrun: {action: deploy}\n---\nkind: action\nname: deploy\naction: noop\n",
			"tasks.first.action deploy: the task runs it all the same", "tasks.then.action deploy@stable: the task runs it all the same",
			"run.action deploy: each start of it is refused", "name deploy: nothing new of it is accepted")
		r.mentions("kind: queue\nname: gpu\n")
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

// mentions fails unless definitions get the wanted warnings, each with path, value and the beginning of the fix.
func (r *rig) mentions(text string, want ...string) {
	r.Helper()
	defs, err := definition.Parse("w.yaml", []byte(text), nil)
	if err != nil {
		r.Fatal(err)
	}
	all, err := r.e.MentionsOfRetired(r.ctx, defs)
	if err != nil {
		r.Fatal(err)
	}
	var got []string
	for _, p := range all {
		fix, _, _ := strings.Cut(p.Fix, " until it is brought back")
		fix, _, _ = strings.Cut(fix, ": name another one")
		got = append(got, fmt.Sprintf("%s %s: %s", p.Path, p.Value, fix))
		if p.File != "w.yaml" || p.Line == 0 || !strings.Contains(p.Message, "deploy is retired since ") || !strings.Contains(p.Message, ", by ann: use rollout") || !strings.HasSuffix(p.Fix, "pawl retire deploy --undo") {
			r.Errorf("%+v", p)
		}
	}
	if !slices.Equal(got, want) {
		r.Errorf("warned of\n%q, want\n%q", got, want)
	}
}
