package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine/why"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// why asks, and fails unless the answer as a whole says everything that is wanted and nothing that is not.
func (r *rig) why(id flow.ID, wants ...string) why.Answer {
	r.Helper()
	w, err := r.e.Why(r.ctx, id)
	if err != nil {
		r.Fatal(err)
	}
	all := strings.Join(append(append([]string{w.Summary}, w.Facts...), w.Unblock...), "\n")
	for _, want := range wants {
		if not, is := strings.CutPrefix(want, "!"); is {
			if strings.Contains(all, not) {
				r.Errorf("%q is in\n%s", not, all)
			}
		} else if !strings.Contains(all, want) {
			r.Errorf("%q is not in\n%s", want, all)
		}
	}
	return w
}

func (r *rig) child(of flow.ID, task string, index int) flow.ID {
	r.Helper()
	children, err := r.store.Children(r.ctx, store.WorkflowAttempt{ID: of, Attempt: 1}, task, index-1, 1)
	if err != nil || len(children) != 1 || children[0].Task != task || children[0].Index != index {
		r.Fatalf("%v %+v", err, children)
	}
	return children[0].Execution
}

// TestWhyDescendsToTheRootCause asks of a workflow five levels above what keeps it.
func TestWhyDescendsToTheRootCause(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(`
kind: queue
name: gpu
---
name: w1
tasks:
  fit: {action: noop, queue: gpu}
`)
		for i := 2; i <= 5; i++ {
			r.define(fmt.Sprintf("name: w%d\ntasks:\n  t%d: {action: w%d}\n  nap: {action: sleep, with: {for: 1h}}\n", i, i, i-1))
		}
		id := r.submit(Submission{Action: "w5"})
		w := r.why(id, "waits for its tasks: 2 running", `task t5 → t4 → t3 → t2 → fit: no live worker serves queue "gpu"`, "start a worker that serves queue \"gpu\"",
			"task nap (", "sleeping until")
		leaf := id
		for _, task := range []string{"t5", "t4", "t3", "t2", "fit"} {
			leaf = r.child(leaf, task, 0)
		}
		if w.Waiting != "children" || w.Root != leaf {
			r.Errorf("root %s, want %s: %+v", w.Root, leaf, w)
		}
	})
}

// TestWhyOfManyTasksIsBounded looks at few of them, however many there are and however deep they are nested.
func TestWhyOfManyTasksIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(`
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
	w := r.why(r.submit(Submission{Action: "wider"}), "waits for its tasks: 20 running", "task b[0] → a[0]: no live worker")
	if len(w.Facts) > 10 {
		t.Errorf("%d facts", len(w.Facts))
	}
}

// TestWhySaysThatAWorkflowIsFailing has a task that failed beside one that still runs.
func TestWhySaysThatAWorkflowIsFailing(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(`
name: w
tasks:
  bad: {action: noop}
  slow: {action: sleep, with: {for: 1h}}
  soft: {action: noop, continue_on_error: true}
`)
		h := r.worker()
		id := r.submit(Submission{Action: "w"})
		for _, a := range h.take(2) {
			h.fail(a, "oom")
		}
		r.why(id, "is failing, since task bad failed (oom: oom): waits for its tasks: 1 running; task slow: sleeping until", "pawl cancel "+id.String(), "!task soft failed")
	})
}

// TestWhySaysHowManyItemsAreOpen has a foreach that its own concurrency holds back.
func TestWhySaysHowManyItemsAreOpen(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(`
name: w
tasks:
  each: {action: noop, foreach: '${{ lists.range(8) }}', concurrency: 2}
`)
		h := r.worker()
		id := r.submit(Submission{Action: "w"})
		h.complete(h.take(1)[0], "1")
		h.take(1)
		r.why(id, "task each: 1 of 8 items has ended, 2 are open, 5 have not begun (concurrency 2)", "task each[1]")
	})
}

// TestWhyNamesTheHoldersOfSlots has a worker whose only slots are held.
func TestWhyNamesTheHoldersOfSlots(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		session, err := r.e.Open(r.ctx, handoff.Session{Name: "small", Queues: []string{flow.DefaultQueue}, Slots: 2})
		if err != nil {
			r.Fatal(err)
		}
		h := &hand{r, session}
		other := r.worker("other") // its slots are for another queue
		elsewhere := r.submit(Submission{Action: "noop", Queue: "other"})
		other.take(1)
		first := r.submit(Submission{Action: "noop"})
		h.take(1)
		waits := r.submit(Submission{Action: "noop"})
		r.why(waits, "1 of 2 slots is held: "+first.String(), "!"+elsewhere.String())
		h.take(1)
		last := r.submit(Submission{Action: "noop"})
		r.why(last, "all 2 slots are held: "+first.String()+" (noop, on worker small since ", waits.String())
	})
}

// TestWhyNamesWhatIsMissingAsFlagsHaveIt asks for a container where no worker runs them.
func TestWhyNamesWhatIsMissingAsFlagsHaveIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) {
		o.Needs = func(kind flow.Kind, with []byte) []string {
			if kind == flow.KindContainer {
				return []string{"container"}
			}
			return needs(kind, with)
		}
	})
	r.worker()
	r.why(r.submit(Submission{Action: "container", Input: json.RawMessage(`{"image":"x"}`)}), "has a runtime for containers", "pawl worker --queues default --runtime sandbox,docker", `!runtime "container"`)
	r.why(r.submit(Submission{Action: "noop", Input: json.RawMessage(`{"runtime":"boat"}`)}), `has runtime "boat"`, "pawl worker --queues default --runtime boat")
}

// TestWhySaysWhereALimitIsRaised tells a key that came with a submission from one of a definition.
func TestWhySaysWhereALimitIsRaised(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: act\naction: noop\nconcurrency: {key: k}\n---\nname: w\ntasks:\n  a: {action: noop, concurrency: {key: k}}\n")
	r.submit(Submission{Action: "noop", Key: "k", KeyLimit: 1})
	r.why(r.submit(Submission{Action: "noop", Key: "k", KeyLimit: 1}), "submitted again with a higher concurrency.limit", "!definition")
	r.why(r.submit(Submission{Action: "act"}), "raised in the definition of act, or with the submission")
	w := r.submit(Submission{Action: "w"})
	r.why(r.child(w, "a", 0), "raised in task a of its workflow's definition")
}

// TestWhyTellsTheLastFailureInWords has no JSON in it.
func TestWhyTellsTheLastFailureInWords(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	id := r.submit(Submission{Action: "noop", Retry: &flow.Retry{MaxAttempts: 3, Delay: time.Hour}})
	h.fail(h.take(1)[0], "oom")
	r.why(id, "attempt 2 of 3 starts in 10m0s, after it failed (oom: oom)", "!{")
	if _, err := r.e.Why(r.ctx, flow.ID{1}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%v", err)
	}
}
