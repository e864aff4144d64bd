package engine

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// A workflow that times out has as many attempts as its policy allows, by itself and as the task of another one, and each begins with its
// own tasks.
func TestWorkflowTimeoutRetries(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(`
name: slow
timeout: 50ms
retry: {max_attempts: 3, delay: 1ms, on: [timeout]}
tasks:
  nap: {action: sleep, with: {for: 1h}}
---
name: slow-without-retry
tasks:
  nap: {action: sleep, with: {for: 1h}}
---
name: above
tasks:
  sub: {action: slow-without-retry, timeout: 50ms, retry: {max_attempts: 3, delay: 1ms}}
`)
		id := r.submit(Submission{Action: "slow"})
		x := r.ended(id)
		if x.Stage != flow.TimedOut || x.Attempt != 3 || x.Outcome.Error.Code != flow.CodeTimeout {
			r.Errorf("by itself: %s after attempt %d of 3: %+v", x.Stage, x.Attempt, x.Outcome.Error)
		}
		for attempt := 1; attempt <= 3; attempt++ {
			naps := r.children(id, attempt)
			if len(naps) != 1 || naps[0].Stage != flow.Cancelled && naps[0].Stage != flow.TimedOut {
				r.Errorf("the tasks of attempt %d: %+v", attempt, naps)
			}
		}
		above := r.submit(Submission{Action: "above"})
		if x := r.ended(above); x.Stage != flow.Failed {
			r.Errorf("above: %s: %+v", x.Stage, x.Outcome)
		}
		sub := r.children(above, 1)[0]
		if sub.Stage != flow.TimedOut || sub.Attempt != 3 {
			r.Errorf("as a task: %s after attempt %d of 3", sub.Stage, sub.Attempt)
		}
	})
}

// Cancelling a workflow whose attempt is timing out ends it: no attempt follows.
func TestCancelWhileTimingOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(`
name: slow
timeout: 10s
retry: {max_attempts: 3, delay: 1ms}
tasks:
  work: {action: noop}
`)
	h := r.worker()
	id := r.submit(Submission{Action: "slow"})
	work := h.take(1)[0]
	r.pass(11 * time.Second)
	if x := r.get(id); x.State.Cancel == nil || x.State.Cancel.Code != flow.CodeTimeout {
		t.Fatalf("the order is %+v: the worker has not confirmed it", x.State.Cancel)
	}
	if _, err := r.e.Cancel(r.ctx, id, "enough"); err != nil {
		t.Fatal(err)
	}
	h.report(work, ev(&work, 0, flow.EvRunning, nil), ev(&work, 1, flow.EvCancelled, nil))
	if x := r.ended(id); x.Stage != flow.Cancelled || x.Attempt != 1 {
		t.Errorf("%s in attempt %d: %+v", x.Stage, x.Attempt, x.Outcome.Error)
	}
}

// A sleep that ended before its deadline has completed, however late the engine looks: here it was down for a minute.
func TestSleepOverBeforeItsTimeout(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: w\ntasks:\n  nap: {action: sleep, with: {for: 10s}, timeout: 20s}\n" +
		"---\nname: late\ntasks:\n  nap: {action: sleep, with: {for: 20s}, timeout: 10s}\n")
	id, late := r.submit(Submission{Action: "w"}), r.submit(Submission{Action: "late"})
	total := r.submit(Submission{Action: "sleep", Input: []byte(`{"for": "10s"}`), Settings: flow.Settings{TotalTimeout: 15 * time.Second}})
	r.pass(time.Minute)
	if x := r.ended(id); x.Stage != flow.Completed {
		t.Errorf("a sleep of 10 s with a timeout of 20 s: %s: %+v", x.Stage, x.Outcome.Error)
	}
	if x := r.ended(total); x.Stage != flow.Completed {
		t.Errorf("a sleep of 10 s with a total_timeout of 15 s: %s: %+v", x.Stage, x.Outcome.Error)
	}
	if x := r.ended(late); x.Stage != flow.Failed {
		t.Errorf("a sleep of 20 s with a timeout of 10 s: %s", x.Stage)
	}
}

// children are the rows of one attempt of a workflow.
func (r *rig) children(id flow.ID, attempt int) []store.Child {
	r.Helper()
	all, err := r.store.Children(r.ctx, store.WorkflowAttempt{ID: id, Attempt: attempt}, "", -1, 1000)
	if err != nil {
		r.Fatal(err)
	}
	return all
}
