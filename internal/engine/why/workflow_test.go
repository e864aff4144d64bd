package why_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/engine/enginetest"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// explained asks, and fails unless the whole answer has everything that is wanted and nothing that is not.
func explained(r *enginetest.Rig, id flow.ID, wants ...string) api.Why {
	r.Helper()
	w, err := r.Engine.Why(r.Ctx, id)
	if err != nil {
		r.Fatal(err)
	}
	all := strings.Join(append([]string{w.Summary}, w.Facts...), "\n") + fmt.Sprintf("\n%+v", w.Unblock)
	for _, want := range wants {
		if not, ok := strings.CutPrefix(want, "!"); ok {
			if strings.Contains(all, not) {
				r.Errorf("%q is in\n%s", not, all)
			}
		} else if !strings.Contains(all, want) {
			r.Errorf("%q is not in\n%s", want, all)
		}
	}
	return w
}

func child(r *enginetest.Rig, of flow.ID, task string, index int) flow.ID {
	r.Helper()
	children, err := r.Store.Children(r.Ctx, store.WorkflowAttempt{ID: of, Attempt: 1}, task, index-1, 1)
	if err != nil || len(children) != 1 || children[0].Task != task || children[0].Index != index {
		r.Fatalf("%v %+v", err, children)
	}
	return children[0].Execution
}

// TestWhyDescendsToTheRootCause asks why a workflow five levels above the cause waits.
func TestWhyDescendsToTheRootCause(t *testing.T) {
	t.Parallel()
	enginetest.OnEachStore(t, func(r *enginetest.Rig) {
		r.Define(`
kind: queue
name: gpu
---
name: w1
tasks:
  fit: {action: noop, queue: gpu}
`)
		for i := 2; i <= 5; i++ {
			r.Define(fmt.Sprintf("name: w%d\ntasks:\n  t%d: {action: w%d}\n  nap: {action: sleep, with: {for: 1h}}\n", i, i, i-1))
		}
		id := r.Submit(engine.Submission{Action: "w5"})
		w := explained(r, id, "waits for its tasks: 2 running", `task t5 → t4 → t3 → t2 → fit: no live worker serves queue "gpu"`, "start a worker that serves queue \"gpu\"",
			"task nap (", "sleeping until")
		leaf := id
		for _, task := range []string{"t5", "t4", "t3", "t2", "fit"} {
			leaf = child(r, leaf, task, 0)
		}
		if w.Waiting != "children" || w.Root != leaf.String() {
			r.Errorf("root %s, want %s: %+v", w.Root, leaf, w)
		}
	})
}

// TestWhyOfManyTasksIsBounded checks that an answer reads few tasks, however many there are and however deep they are nested.
func TestWhyOfManyTasksIsBounded(t *testing.T) {
	t.Parallel()
	r := enginetest.OnSQLite(t)
	r.Define(`
kind: queue
name: gpu
---
name: wide
tasks:
  a: {action: noop, queue: gpu, foreach: '${{ lists.range(500) }}'}
---
name: wider
tasks:
  b: {action: wide, foreach: '${{ lists.range(20) }}'}
`)
	w := explained(r, r.Submit(engine.Submission{Action: "wider"}), "waits for its tasks: 20 running", "task b[0] → a[0]: no live worker")
	if len(w.Facts) > 10 {
		t.Errorf("%d facts", len(w.Facts))
	}
}

// TestWhySaysThatAWorkflowIsFailing has a task that failed beside one that still runs.
func TestWhySaysThatAWorkflowIsFailing(t *testing.T) {
	t.Parallel()
	enginetest.OnEachStore(t, func(r *enginetest.Rig) {
		r.Define(`
name: w
tasks:
  bad: {action: noop}
  slow: {action: sleep, with: {for: 1h}}
  soft: {action: noop, continue_on_error: true}
`)
		h := r.Worker()
		id := r.Submit(engine.Submission{Action: "w"})
		for _, a := range h.Take(2) {
			h.Fail(a, "oom")
		}
		explained(r, id, "is failing, since task bad failed (oom: oom): waits for its tasks: 1 running; task slow: sleeping until", "pawl cancel "+id.String(), "!task soft failed")
	})
}

// TestWhySaysHowManyItemsAreOpen has a foreach that its own concurrency holds back.
func TestWhySaysHowManyItemsAreOpen(t *testing.T) {
	t.Parallel()
	enginetest.OnEachStore(t, func(r *enginetest.Rig) {
		r.Define(`
name: w
tasks:
  each: {action: noop, foreach: '${{ lists.range(8) }}', concurrency: 2}
`)
		h := r.Worker()
		id := r.Submit(engine.Submission{Action: "w"})
		h.Complete(h.Take(1)[0], "1")
		h.Take(1)
		explained(r, id, "task each: 1 of 8 items has ended, 2 are open, 5 have not begun (concurrency 2)", "task each[1]")
	})
}

// TestWhyNamesTheHoldersOfSlots has a worker whose only slots are held.
func TestWhyNamesTheHoldersOfSlots(t *testing.T) {
	t.Parallel()
	enginetest.OnEachStore(t, func(r *enginetest.Rig) {
		h := r.Open(handoff.Session{Name: "small", Queues: []string{flow.DefaultQueue}, Slots: 2})
		other := r.Worker("other") // its slots are for another queue
		elsewhere := r.Submit(engine.Submission{Action: "noop", Queue: "other"})
		other.Take(1)
		first := r.Submit(engine.Submission{Action: "noop"})
		h.Take(1)
		waits := r.Submit(engine.Submission{Action: "noop"})
		explained(r, waits, "1 of 2 slots is held: "+first.String(), "!"+elsewhere.String())
		h.Take(1)
		last := r.Submit(engine.Submission{Action: "noop"})
		explained(r, last, "all 2 slots are held: "+first.String()+" (noop, on worker small since ", waits.String())
	})
}

// TestWhyNamesWhatIsMissingAsFlagsHaveIt submits a container while no worker runs containers.
func TestWhyNamesWhatIsMissingAsFlagsHaveIt(t *testing.T) {
	t.Parallel()
	r := enginetest.OnSQLite(t, func(o *engine.Options) {
		o.Needs = func(kind flow.Kind, with []byte) []string {
			if kind == flow.KindContainer {
				return []string{"container"}
			}
			var p struct{ Runtime string }
			if json.Unmarshal(with, &p) != nil || p.Runtime == "" {
				return nil
			}
			return []string{p.Runtime}
		}
	})
	r.Worker()
	explained(r, r.Submit(engine.Submission{Action: "container", Input: json.RawMessage(`{"image":"x"}`)}), "has a runtime for containers", "pawl worker --queues default --runtime sandbox,docker", `!runtime "container"`)
	explained(r, r.Submit(engine.Submission{Action: "noop", Input: json.RawMessage(`{"runtime":"boat"}`)}), `has runtime "boat"`, "pawl worker --queues default --runtime boat")
}

// TestWhySaysWhereALimitIsRaised distinguishes a key of a submission from one of a definition.
func TestWhySaysWhereALimitIsRaised(t *testing.T) {
	t.Parallel()
	r := enginetest.OnSQLite(t)
	r.Define("name: act\naction: noop\nconcurrency: {key: k}\n---\nname: w\ntasks:\n  a: {action: noop, concurrency: {key: k}}\n")
	r.Submit(engine.Submission{Action: "noop", Key: "k", KeyLimit: 1})
	explained(r, r.Submit(engine.Submission{Action: "noop", Key: "k", KeyLimit: 1}), "submitted again with a higher limit of its key", "!definition")
	explained(r, r.Submit(engine.Submission{Action: "act"}), "raised in the definition of act, or with the submission")
	w := r.Submit(engine.Submission{Action: "w"})
	explained(r, child(r, w, "a", 0), "raised in task a of its workflow's definition")
}

// TestWhyTellsTheLastFailureInWords checks that the answer has no JSON.
func TestWhyTellsTheLastFailureInWords(t *testing.T) {
	t.Parallel()
	r := enginetest.OnSQLite(t)
	h := r.Worker()
	id := r.Submit(engine.Submission{Action: "noop", Retry: &flow.Retry{MaxAttempts: 3, Delay: time.Hour}})
	h.Fail(h.Take(1)[0], "oom")
	explained(r, id, "attempt 2 of 3 starts in 10m0s, after it failed (oom: oom)", "!{")
	if _, err := r.Engine.Why(r.Ctx, flow.ID{1}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%v", err)
	}
}
