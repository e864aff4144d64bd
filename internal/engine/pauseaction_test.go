package engine

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// No execution of a paused action begins: no waiting one, no new one for which a worker waits, and no task of a
// workflow. Other actions in the same queue continue, even behind hundreds of suspended executions, and after the
// resume the executions begin in their order.
func TestPausedAction(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define("name: dial\nkind: action\naction: noop\n---\nname: w\ntasks: {a: {action: dial}}\n")
		h := r.worker()
		running := r.submit(Submission{Action: "dial"})
		a := h.take(1)[0]
		var ids []flow.ID
		for range 2*suspendBatch + 10 {
			ids = append(ids, r.submit(Submission{Action: "dial"}))
		}
		if p := r.pause(store.PausedAction, "dial", PauseOrder{By: "ann", Reason: "the line is down"}); !p.Paused || p.Of != store.PausedAction {
			t.Errorf("%+v", p)
		}
		h.complete(a, `1`)
		r.ended(running)
		got := h.begin(5)
		task := r.submit(Submission{Action: "w"})
		ids = append(ids, r.submit(Submission{Action: "dial"}))
		r.settled()
		if len(got) > 0 {
			t.Fatalf("claimed of a paused action: %+v", <-got)
		}
		for _, id := range []flow.ID{ids[0], ids[len(ids)-1]} {
			if x := r.get(id); x.Place != flow.Ready {
				t.Errorf("%s is %s", id, x.Place)
			}
			if w := r.why(id, `action "dial" is paused since`, "by ann", "(the line is down)", "pawl resume action dial"); w.Waiting != "paused" || w.Queue != flow.DefaultQueue || w.Runtime != "" {
				t.Errorf("%+v", w)
			}
		}
		other := r.submit(Submission{Action: "noop"})
		if work := <-got; len(work) != 1 || work[0].Execution != other {
			t.Fatalf("of another action: %+v", work)
		}
		got = h.begin(5)
		r.settled()
		r.resume(store.PausedAction, "dial")
		work := <-got
		for len(work) < len(ids)+1 {
			work = append(work, h.take(100)...)
		}
		at := map[flow.ID]bool{}
		for i := range work {
			at[work[i].Execution] = true
			h.complete(work[i], `1`)
		}
		for _, id := range ids {
			if !at[id] {
				t.Errorf("%s did not begin when its action was resumed", id)
			}
		}
		r.ended(task)
	})
}

// The routing keys of any number of paused actions do not count against those of labels, handlers and runtimes, and workers do not read
// them.
func TestRoutingKeysOfPausedActionsCountNothing(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		for i := range routingKeysLimit {
			r.e.rememberRoutingKey(flow.SuspendedKey(flow.DefaultQueue, fmt.Sprintf("action-%d", i)))
		}
		h := r.workerLabelled("zone=eu")
		id := r.submit(Submission{Action: "noop", WorkerLabels: map[string]string{"zone": "eu"}})
		if work := h.take(1); len(work) != 1 || work[0].Execution != id {
			t.Errorf("took %+v", work)
		}
	})
}

// Executions that the engine runs itself do not begin while their action is paused: a workflow, and a sleep and a workflow among the tasks
// of another one. They can be paused, be cancelled, and time out as in a queue. The pause ends by itself.
func TestPausedActionOfTheEngine(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define("name: inner\ntasks: {s: {action: sleep, with: {for: 0s}}}\n---\nname: outer\ntasks: {in: {action: inner}}\n")
		r.pause(store.PausedAction, "inner", PauseOrder{By: "ann"})
		r.pause(store.PausedAction, "sleep", PauseOrder{For: 300 * time.Millisecond})
		outer, inner, dropped := r.submit(Submission{Action: "outer"}), r.submit(Submission{Action: "inner"}), r.submit(Submission{Action: "inner"})
		late := r.submit(Submission{Action: "inner", Settings: flow.Settings{QueueTimeout: time.Millisecond}})
		child := r.children(outer, 1)[0].Execution
		for _, id := range []flow.ID{inner, child} {
			if x := r.get(id); x.Place != flow.Ready || x.Stage != flow.Scheduled {
				t.Errorf("%s is %s", id, x.Stage)
			}
			r.why(id, `action "inner" is paused since`, "pawl resume action inner")
		}
		if x := r.ended(late); x.Stage != flow.TimedOut || x.Outcome.Error.Code != flow.CodeQueueTimeout {
			t.Errorf("%+v", x.Outcome)
		}
		if _, err := r.e.Cancel(r.ctx, dropped, "enough"); err != nil {
			t.Fatal(err)
		}
		if x := r.ended(dropped); x.Stage != flow.Cancelled {
			t.Errorf("%s", x.Stage)
		}
		again, err := r.e.Retry(r.ctx, dropped, "")
		if err != nil || r.get(again.Execution).Place != flow.Ready {
			t.Fatalf("%+v, %v", again, err)
		}
		if p, err := r.e.PauseExecution(r.ctx, inner, PauseOrder{By: "bob"}); err != nil || !p.Paused {
			t.Fatalf("%+v, %v", p, err)
		}
		if _, err := r.e.ResumeExecution(r.ctx, inner, PauseOrder{}); err != nil {
			t.Fatal(err)
		}
		p := r.resume(store.PausedAction, "inner")
		for _, id := range []flow.ID{outer, inner, again.Execution} {
			if x := r.ended(id); x.Stage != flow.Completed || id != outer && x.ClaimedAt.Before(p.At) {
				t.Errorf("%s is %s, begun %s, resumed %s", id, x.Stage, x.ClaimedAt, p.At)
			}
		}
		if all, err := r.e.Paused(r.ctx); err != nil || len(all) > 0 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// Suspended executions continue if a server dies between the end of the pause and moving them back.
func TestSuspendedByADeadServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: w\ntasks: {s: {action: sleep, with: {for: 0s}}}\n")
	r.pause(store.PausedAction, "w", PauseOrder{})
	id := r.submit(Submission{Action: "w"})
	// Only the store is changed, as if the server had died then.
	_, err := r.store.ChangePause(r.ctx, store.PausedAction, "w", func(now time.Time, _ store.Pause) *store.Pause { return &store.Pause{At: now} })
	if err != nil {
		t.Fatal(err)
	}
	r.replica()
	r.ended(id)
}

// Two servers claim and begin what either of them pauses and resumes. Between the start and the end of a pause, by the
// database's clock, no execution of the action begins, and after it all complete.
func TestPausedActionAmongReplicas(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define("name: w\ntasks: {a: {action: dial}}\n---\nname: dial\nkind: action\naction: noop\n")
		two := r.pair()
		const rounds = 10
		var ids [2][]flow.ID
		var submitting sync.WaitGroup
		for i, e := range two.engines {
			submitting.Go(func() {
				for n := range 10 * rounds {
					out, err := e.Submit(r.ctx, []Submission{{Action: []string{"w", "dial"}[n%2]}})
					if err != nil || out[0].Err != nil {
						t.Errorf("%+v, %v", out, err)
						return
					}
					ids[i] = append(ids[i], out[0].Execution)
				}
			})
		}
		for i := range rounds {
			name := []string{"w", "dial"}[i%2]
			if _, err := two.engines[i%2].PauseWork(r.ctx, store.PausedAction, name, PauseOrder{By: "ann"}); err != nil {
				t.Fatal(err)
			}
			if _, err := two.engines[(i+1)%2].ResumeWork(r.ctx, store.PausedAction, name, PauseOrder{By: "bob"}); err != nil {
				t.Fatal(err)
			}
		}
		submitting.Wait()
		for _, id := range slices.Concat(ids[0], ids[1]) {
			r.ended(id)
		}
		two.stop()
		// Invariant 58 says that no execution began in a pause; every test of this kind verifies it at its end.
	})
}

// Without pauses, a claim allocates nothing for the check.
func TestNoPauseAllocatesNothing(t *testing.T) {
	tx := &transaction{dispatch: newDispatch(&roster{}, &pauseSet{}), now: time.Now()}
	queues := []string{"default", "gpu@docker"}
	if n := testing.AllocsPerRun(1000, func() {
		if tx.pausesAction("deploy") || tx.queuePaused("default") || len(tx.notPaused(queues)) != 2 {
			t.Error("something is paused")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
