package engine

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// deploys releases its lock however it ends.
const deploys = `
name: deploy
cleanup_timeout: 1m
tasks:
  lock: {action: sleep, with: {for: 0s}}
  work: {needs: lock, action: noop}
  verify: {needs: work, action: noop}
  unlock: {needs: [lock, verify], if: cancelled(), action: noop}
---
name: long
total_timeout: 1h
cleanup_timeout: 1m
tasks:
  work: {action: sleep, with: {for: 10h}}
  unlock: {needs: work, if: always(), action: sleep, with: {for: 10h}}
---
name: brief
cleanup_timeout: 0
tasks:
  work: {action: sleep, with: {for: 10h}}
  unlock: {needs: work, if: always(), action: sleep, with: {for: 10h}}
---
name: above
cleanup_timeout: 30s
tasks:
  sub: {action: long}
`

func (r *rig) cancel(id flow.ID, reason string) {
	r.Helper()
	if _, err := r.e.Cancel(r.ctx, id, reason); err != nil {
		r.Fatal(err)
	}
}

// stageOf is the stage of a workflow's task; 0: it was never started.
func (r *rig) stageOf(of flow.ID, task string) flow.Stage {
	r.Helper()
	for _, c := range r.children(of, 1) {
		if c.Task == task {
			return c.Stage
		}
	}
	return 0
}

func TestCleanup(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(deploys)
		h := r.worker()
		id := r.submit(Submission{Action: "deploy"})
		work := h.take(1)[0]
		r.cancel(id, "wrong branch")
		h.report(work, ev(&work, 0, flow.EvRunning, nil), ev(&work, 1, flow.EvCancelled, nil))
		unlock := h.take(1)[0]
		if unlock.Execution != r.child(id, "unlock", 0) {
			r.Fatalf("%s was started", unlock.Execution)
		}
		r.why(id, "it is cleaning up until")
		h.report(unlock, ev(&unlock, 0, flow.EvRunning, nil), ev(&unlock, 1, flow.EvCompleted, nil))
		x := r.ended(id)
		if x.Stage != flow.Cancelled || x.Outcome.Error.Message != "wrong branch" {
			r.Errorf("%s: %+v", x.Stage, x.Outcome.Error)
		}
		if r.stageOf(id, "unlock") != flow.Completed || r.stageOf(id, "verify") != 0 {
			r.Errorf("unlock is %s, verify %s", r.stageOf(id, "unlock"), r.stageOf(id, "verify"))
		}
	})
}

func TestCleanupIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(deploys)
	id := r.submit(Submission{Action: "long"})
	r.pass(time.Hour + time.Second)
	if r.stageOf(id, "unlock") != flow.Running {
		t.Fatalf("unlock is %s after the total timeout", r.stageOf(id, "unlock"))
	}
	r.pass(time.Minute + time.Second)
	if x := r.ended(id); x.Stage != flow.TimedOut || x.Outcome.Error.Code != flow.CodeTotalTimeout {
		t.Errorf("%s: %+v", x.Stage, x.Outcome.Error)
	}
	if r.stageOf(id, "unlock") != flow.Cancelled {
		t.Errorf("unlock is %s after the clean-up", r.stageOf(id, "unlock"))
	}
	r.wantReason(id, "unlock", "the clean-up took longer than the cleanup_timeout of the workflow, or of one above it")
	r.wantReason(id, "work", "not finished within total_timeout 1h0m0s")
}

// wantReason checks why a task of a workflow was cancelled.
func (r *rig) wantReason(of flow.ID, task, want string) {
	r.Helper()
	if x := r.get(r.child(of, task, 0)); x.Outcome == nil || x.Outcome.Error == nil || x.Outcome.Error.Message != want {
		r.Errorf("%s: %+v, want %q", task, x.Outcome, want)
	}
}

func TestSecondCancelEndsCleanup(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(deploys)
	for _, action := range []string{"long", "above"} {
		id := r.submit(Submission{Action: action})
		of := id
		if action == "above" {
			of = r.child(id, "sub", 0)
		}
		r.cancel(id, "enough")
		if x := r.get(id); x.Stage.Terminal() || r.stageOf(of, "unlock") != flow.Running {
			t.Fatalf("%s: %s, unlock is %s", action, x.Stage, r.stageOf(of, "unlock"))
		}
		r.cancel(id, "at once")
		if x := r.ended(id); x.Stage != flow.Cancelled || x.Outcome.Error.Message != "enough" {
			t.Errorf("%s: %s: %+v", action, x.Stage, x.Outcome.Error)
		}
		r.wantReason(of, "unlock", "the clean-up was ended by a second cancel or a kill")
	}
}

func TestNoCleanup(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(deploys)
	brief, killed := r.submit(Submission{Action: "brief"}), r.submit(Submission{Action: "above"})
	sub := r.child(killed, "sub", 0)
	r.cancel(brief, "enough")
	if _, err := r.e.Kill(r.ctx, killed, "enough"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []flow.ID{brief, killed, sub} {
		if x := r.get(id); x.Stage != flow.Cancelled {
			t.Errorf("%s is %s", x.Action, x.Stage)
		}
	}
	if r.stageOf(brief, "unlock") != 0 || r.stageOf(sub, "unlock") != 0 {
		t.Error("a clean-up was run")
	}
}

// The clean-up of a sub-workflow ends with that of the workflow above it.
func TestCleanupWithinThatOfTheWorkflowAbove(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(deploys)
	id := r.submit(Submission{Action: "above"})
	sub := r.child(id, "sub", 0)
	r.cancel(id, "enough")
	r.pass(29 * time.Second)
	if x := r.get(id); x.Stage.Terminal() || r.stageOf(sub, "unlock") != flow.Running {
		t.Fatalf("%s, unlock is %s", x.Stage, r.stageOf(sub, "unlock"))
	}
	r.pass(2 * time.Second)
	if x := r.ended(id); x.Stage != flow.Cancelled || r.get(sub).Stage != flow.Cancelled {
		t.Errorf("%s, the sub-workflow is %s", x.Stage, r.get(sub).Stage)
	}
	r.wantReason(sub, "unlock", "the clean-up took longer than the cleanup_timeout of the workflow, or of one above it")
}

// Running tasks of a cancelled workflow continue if their condition survives that, and the waiting items of such a foreach begin.
func TestCleanupGoesOn(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(`
name: w
tasks:
  nap: {action: sleep, with: {for: 10h}}
  tidy: {if: always(), foreach: "${{ [1, 2, 3] }}", concurrency: 1, action: noop}
`)
		h := r.worker()
		id := r.submit(Submission{Action: "w"})
		first := h.take(1)[0]
		r.cancel(id, "enough")
		h.report(first, ev(&first, 0, flow.EvRunning, nil), ev(&first, 1, flow.EvCompleted, nil))
		h.serve(echo)
		if x := r.ended(id); x.Stage != flow.Cancelled {
			r.Errorf("%s: %+v", x.Stage, x.Outcome.Error)
		}
		tidied := 0
		for _, c := range r.children(id, 1) {
			if c.Task == "tidy" && c.Stage == flow.Completed {
				tidied++
			}
		}
		if tidied != 3 || r.stageOf(id, "nap") != flow.Cancelled {
			r.Errorf("%d of 3 tidied, nap is %s", tidied, r.stageOf(id, "nap"))
		}
	})
}

// A kill of a workflow, and a second cancel, give no grace to the programs of its tasks, at any depth and whether they were cancelled
// before or not. The end of a clean-up gives them grace.
func TestKillOfAWorkflowGivesNoGrace(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(`
name: wide
cleanup_timeout: 1m
tasks:
  work: {foreach: [1, 2], action: noop}
  unlock: {needs: work, if: cancelled(), action: noop}
---
name: high
cleanup_timeout: 1m
tasks:
  own: {action: noop}
  sub: {action: wide}
`)
		h := r.worker()
		for name, c := range map[string]struct {
			end    func(flow.ID)
			atOnce bool
		}{
			"cancel": {func(id flow.ID) { r.cancel(id, "please") }, false},
			"end of a clean-up": {func(id flow.ID) {
				if r.cancel(id, "please"); r.clock != nil { // that of PostgreSQL cannot be set
					r.pass(time.Minute + time.Second)
				}
			}, false},
			"kill":             {func(id flow.ID) { r.kill(id) }, true},
			"cancel twice":     {func(id flow.ID) { r.cancel(id, "please"); r.cancel(id, "now") }, true},
			"cancel and kill":  {func(id flow.ID) { r.cancel(id, "please"); r.kill(id) }, true},
			"a task, and kill": {func(id flow.ID) { r.cancel(r.child(id, "own", 0), "please"); r.kill(id) }, true},
		} {
			id := r.submit(Submission{Action: "high"})
			work := h.take(3)
			c.end(id)
			orders, err := h.e.Orders(h.ctx, h.session)
			if err != nil || len(orders) != len(work) {
				r.Fatalf("%s: %v %+v", name, err, orders)
			}
			for _, o := range orders {
				if o.AtOnce != c.atOnce {
					r.Errorf("%s: %+v", name, o)
				}
			}
			for i := range work {
				h.report(work[i], ev(&work[i], 0, flow.EvRunning, nil), ev(&work[i], 1, flow.EvCancelled, nil))
			}
			r.kill(id)
			r.ended(id)
		}
		r.verify()
	})
}

// kill ends an execution without clean-up and grace, if it has not ended.
func (r *rig) kill(id flow.ID) {
	r.Helper()
	if _, err := r.e.Kill(r.ctx, id, "now"); err != nil {
		r.Fatal(err)
	}
}
