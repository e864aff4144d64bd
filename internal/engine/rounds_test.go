package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
)

const polling = `
name: w
input: {type: object, properties: {ready: {type: integer, default: 3}}}
tasks:
  slow: {action: sleep, with: {for: 300ms}}
  poll:
    action: noop
    repeat: {until: "output.round >= input.ready", max: 5, delay: 30ms}
    with: {last: "${{ default(previous.round, 0) }}", round: "${{ round }}"}
  use: {needs: [poll, slow], action: noop, with: {of: "${{ tasks.poll.output.round }}"}}
outputs: {of: "${{ tasks.use.output.of }}"}
`

// rounds are the executions of the task poll, in order.
func (r *rig) rounds(id flow.ID) (all []*flow.Execution) {
	r.Helper()
	kids := r.kids(id)
	for n := 0; kids[fmt.Sprintf("poll[%d]", n)] != nil; n++ {
		all = append(all, kids[fmt.Sprintf("poll[%d]", n)])
	}
	return all
}

// Each round is a separate execution, which waits for its delay and then runs; the last one's output is the task's.
func TestRounds(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(polling)
		r.worker().serve(echo)
		id := r.submit(Submission{Action: "w"})
		x := r.ended(id)
		if x.Stage != flow.Completed || string(x.Outcome.Output) != `{"of":3}` {
			t.Fatalf("it is %s: %s %v", x.Stage, x.Outcome.Output, x.Outcome.Error)
		}
		all := r.rounds(id)
		if len(all) != 3 {
			t.Fatalf("%d rounds", len(all))
		}
		for n, k := range all {
			if want := fmt.Sprintf(`{"last":%d,"round":%d}`, n, n+1); string(canonical(k.Input)) != want {
				t.Errorf("round %d is given %s, want %s", n+1, k.Input, want)
			}
			if h := r.history(k.ID); !slices.Equal(h, []flow.EventType{flow.EvRequested, flow.EvScheduled, flow.EvProvisioning, flow.EvRunning, flow.EvCompleted}) {
				t.Errorf("round %d has the history %v", n+1, h)
			}
			if n > 0 && (k.NotBefore.Sub(k.CreatedAt) != 30*time.Millisecond || k.ClaimedAt.Before(k.NotBefore) || k.CreatedAt.Before(all[n-1].FinishedAt)) {
				t.Errorf("round %d was made at %s, not before %s, claimed at %s; the one before it ended at %s", n+1, k.CreatedAt, k.NotBefore, k.ClaimedAt, all[n-1].FinishedAt)
			}
		}
	})
}

// A task whose condition is never met fails, with its own code and the expression.
func TestRoundsThatReachNothing(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(polling)
		r.worker().serve(echo)
		id := r.submit(Submission{Action: "w", Input: json.RawMessage(`{"ready":9}`)})
		x := r.ended(id)
		if n := len(r.rounds(id)); x.Stage != flow.Failed || n != 5 {
			t.Fatalf("it is %s after %d rounds", x.Stage, n)
		}
		want := `task "poll" failed: not_reached: tasks.poll.repeat.until: ${{ output.round >= input.ready }} did not hold after round 5 of at most 5`
		if e := x.Outcome.Error; e.Code != flow.CodeTaskFailed || e.Message != want || !strings.Contains(string(e.Details), `"code":"not_reached"`) {
			t.Errorf("it failed with %v, %s", e, e.Details)
		}
	})
}

// The total_timeout of a repeated task covers all its rounds.
func TestRoundsWithinATotalTimeout(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		for _, goOn := range []bool{false, true} {
			r.define(fmt.Sprintf(`
name: w
tasks:
  poll: {action: noop, repeat: {until: "false", max: 1000, delay: 50ms}, total_timeout: 400ms, continue_on_error: %t}
`, goOn))
			r.worker().serve(echo)
			id := r.submit(Submission{Action: "w"})
			x := r.ended(id)
			want := flow.Failed
			if goOn {
				want = flow.Completed
			}
			if x.Stage != want {
				t.Errorf("it is %s: %v", x.Stage, x.Outcome.Error)
			}
			all := r.rounds(id)
			deadline := all[0].CreatedAt.Add(400 * time.Millisecond)
			for n, k := range all {
				if last := n == len(all)-1; (k.Stage == flow.TimedOut) != last {
					t.Errorf("round %d of %d is %s", n+1, len(all), k.Stage)
				}
				if at := k.TotalDeadline(); at.Before(deadline) || at.Sub(deadline) > time.Microsecond && k.TotalTimeout > time.Microsecond {
					t.Errorf("round %d is to end by %s, and all of them by %s", n+1, at, deadline)
				}
			}
		}
	})
}

// A waiting round is cancelled with its workflow, and when another task fails.
func TestRoundsAreCancelled(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(`
kind: queue
name: aside
---
name: w
tasks:
  poll: {action: noop, repeat: {until: "false", max: 10, delay: 1h}}
  other: {action: noop, needs: [bad], with: {n: 1}}
  bad: {action: noop, queue: aside, with: {n: 2}}
`)
		r.worker().serve(echo)
		waits := func(id flow.ID) {
			for {
				if all := r.rounds(id); len(all) == 2 && all[1].Place == flow.Delayed {
					return
				}
				r.settled()
			}
		}
		aside := r.worker("aside")
		id := r.submit(Submission{Action: "w"})
		waits(id)
		aside.fail(aside.take(1)[0], "boom")
		if x := r.ended(id); x.Stage != flow.Failed {
			t.Errorf("it is %s", x.Stage)
		}
		if all := r.rounds(id); len(all) != 2 || all[1].Stage != flow.Cancelled {
			t.Errorf("%d rounds, the last is %s", len(all), all[len(all)-1].Stage)
		}
		r.define("name: alone\ntasks:\n  poll: {action: noop, repeat: {until: \"false\", max: 10, delay: 1h}}\n")
		id = r.submit(Submission{Action: "alone"})
		waits(id)
		why, err := r.e.Why(r.ctx, id)
		if err != nil || !strings.Contains(why.Summary, "task poll (round 2 of at most 10): waits for its time") {
			t.Errorf("why says %q (%v)", why.Summary, err)
		}
		if _, err := r.e.Cancel(r.ctx, id, "enough"); err != nil {
			t.Fatal(err)
		}
		if x := r.ended(id); x.Stage != flow.Cancelled {
			t.Errorf("it is %s", x.Stage)
		}
	})
}

// A rerun keeps the completed rounds, and continues with the one that failed.
func TestRerunOfRounds(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(polling)
		c := r.crew(`{"last":2,"round":3}`)
		id := r.submit(Submission{Action: "w", Input: json.RawMessage(`{"ready":4}`)})
		if x := r.ended(id); x.Stage != flow.Failed {
			t.Fatalf("the original is %s", x.Stage)
		}
		was := r.rounds(id)
		c.since()
		c.succeed()
		again, _ := r.rerun(id, RerunOptions{})
		if x := r.ended(again); x.Stage != flow.Completed {
			t.Fatalf("the rerun is %s: %v", x.Stage, x.Outcome.Error)
		}
		r.same("ran again", c.since(), `{"last":2,"round":3}×1`, `{"last":3,"round":4}×1`, `{"of":4}×1`)
		for n, k := range r.rounds(again) {
			if reused := n < 2; reused != (k.ReusedOf == was[min(n, len(was)-1)].ID) {
				t.Errorf("round %d has the outcome of %s", n+1, k.ReusedOf)
			}
		}
		given, _ := r.rerun(again, RerunOptions{Outputs: []flow.OutputOverride{{Task: "poll", Index: orchestration.AllItems, Output: json.RawMessage(`{"round":7}`)}}})
		if x := r.ended(given); x.Stage != flow.Completed || string(x.Outcome.Output) != `{"of":7}` || len(r.rounds(given)) != 1 {
			t.Errorf("with a given output it is %s: %s, %d rounds", x.Stage, x.Outcome.Output, len(r.rounds(given)))
		}
		if _, err := r.e.PlanRerun(r.ctx, id, RerunOptions{From: []orchestration.Item{{Task: "poll", Index: 1}}}); err == nil || !strings.Contains(err.Error(), "each of its rounds follows from the one before it") {
			t.Errorf("one round was named: %v", err)
		}
		missed := r.submit(Submission{Action: "w", Input: json.RawMessage(`{"ready":9}`)})
		r.ended(missed)
		c.since()
		again, _ = r.rerun(missed, RerunOptions{Input: json.RawMessage(`{"ready":1}`)})
		r.ended(again)
		r.same("of what was not reached ran again", c.since(), `{"last":0,"round":1}×1`, `{"of":1}×1`)
	})
}

// outcomesOf counts the outcomes of children that steps read.
type outcomesOf struct {
	store.Store
	all, one, counts atomic.Int64
}

func (o *outcomesOf) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	return o.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return decide(ctx, &outcomesOfTx{tx, o}) })
}

type outcomesOfTx struct {
	store.Tx
	o *outcomesOf
}

func (t *outcomesOfTx) Outcomes(ctx context.Context, workflowAttempt store.WorkflowAttempt, tasks []string,
	most int64) (map[string][]store.ChildOutcome, error) {
	all, err := t.Tx.Outcomes(ctx, workflowAttempt, tasks, most)
	for _, children := range all {
		t.o.all.Add(int64(len(children)))
	}
	return all, err
}

func (t *outcomesOfTx) Outcome(ctx context.Context, workflowAttempt store.WorkflowAttempt, task string, index int,
	most int64) (*store.ChildOutcome, error) {
	t.o.one.Add(1)
	return t.Tx.Outcome(ctx, workflowAttempt, task, index, most)
}

func (t *outcomesOfTx) LockWorkflows(ctx context.Context, knownWorkflows []store.KnownWorkflow) ([]store.LockedWorkflow, error) {
	for _, k := range knownWorkflows {
		if k.Change < 0 {
			t.o.counts.Add(1)
		}
	}
	return t.Tx.LockWorkflows(ctx, knownWorkflows)
}

// A step of a task that has had 999 rounds reads one of them.
func TestManyRounds(t *testing.T) {
	t.Parallel()
	read := &outcomesOf{}
	r := newRig(t, func(o *Options) {
		read.Store = o.Store
		o.Store = read
	})
	r.define(`
name: w
tasks:
  poll: {action: noop, repeat: {until: "output.n == 1000", max: 1000}, with: {n: "${{ round }}"}}
  use: {needs: [poll], action: noop, with: {n: "${{ tasks.poll.output.n }}"}}
outputs: {n: "${{ tasks.use.output.n }}"}
`)
	r.worker().serve(func(a handoff.Assignment) (string, *flow.Error) { return echo(a) })
	id := r.submit(Submission{Action: "w"})
	if x := r.ended(id); x.Stage != flow.Completed || string(x.Outcome.Output) != `{"n":1000}` {
		t.Fatalf("it is %s: %s %v", x.Stage, x.Outcome.Output, x.Outcome.Error)
	}
	if all, counts := read.all.Load(), read.counts.Load(); all > 10 || counts > 2*wideFrom {
		t.Errorf("%d outcomes were read with all others of their task, and children were counted %d times", all, counts)
	}
	if one := read.one.Load(); one > 1100 {
		t.Errorf("%d rounds were read", one)
	}
}
