package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

func (r *rig) types(id flow.ID) (all []flow.EventType) {
	r.Helper()
	events, err := r.store.Events(r.ctx, id, 0, 100)
	if err != nil {
		r.Fatal(err)
	}
	for _, e := range events {
		all = append(all, e.Type)
	}
	return all
}

// A paused workflow starts no tasks. Running tasks continue, and after the resume the workflow continues from their ends.
func TestPausedWorkflow(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define("name: w\ntasks:\n  a: {action: noop}\n  b: {needs: [a], action: noop}\n")
		h := r.worker()
		id := r.submit(Submission{Action: "w"})
		a := h.take(1)[0]
		p, err := r.e.PauseExecution(r.ctx, id, PauseOrder{By: "ann", Reason: "the disks are full"})
		if err != nil || !p.Paused || p.By != "ann" || p.At.IsZero() || !p.Until.IsZero() {
			t.Fatalf("%+v, %v", p, err)
		}
		h.complete(a, `1`)
		r.ended(a.Execution)
		got := h.begin(1)
		r.settled()
		if len(got) > 0 {
			t.Fatalf("started by a paused workflow: %+v", <-got)
		}
		if w := r.why(id, "it was paused by ann, and starts no tasks: the disks are full", "pawl resume execution "+id.String()); w.Waiting != "paused" {
			t.Errorf("%+v", w)
		}
		if again, err := r.e.ResumeExecution(r.ctx, id, PauseOrder{By: "bob"}); err != nil || again.Paused || again.By != "bob" {
			t.Fatalf("%+v, %v", again, err)
		}
		b := (<-got)[0]
		if again, err := r.e.ResumeExecution(r.ctx, id, PauseOrder{}); err != nil || !again.At.IsZero() {
			t.Errorf("resumed twice: %+v, %v", again, err)
		}
		h.complete(b, `2`)
		if x := r.ended(id); x.Stage != flow.Completed || x.State.Pause != nil {
			t.Errorf("%+v", x.State)
		}
		types := r.types(id)
		i, j := slices.Index(types, flow.EvPaused), slices.Index(types, flow.EvResumed)
		if i < 0 || j != i+1 {
			t.Errorf("its history: %q", types)
		}
		if _, err := r.e.PauseExecution(r.ctx, id, PauseOrder{}); !errors.Is(err, flow.ErrFinished) {
			t.Errorf("one that has ended: %v", err)
		}
		var bad *fault.Invalid
		if _, err := r.e.PauseExecution(r.ctx, a.Execution, PauseOrder{}); !errors.As(err, &bad) {
			t.Errorf("a task: %v", err)
		}
		if _, err := r.e.PauseExecution(r.ctx, r.e.opts.NewID(), PauseOrder{}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("one that is not there: %v", err)
		}
	})
}

// A pause with a duration ends by itself, and the history records it.
func TestWorkflowPausedForAWhile(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define("name: w\ntasks:\n  a: {action: noop}\n  b: {needs: [a], action: noop}\n")
		h := r.worker()
		id := r.submit(Submission{Action: "w"})
		a := h.take(1)[0]
		p, err := r.e.PauseExecution(r.ctx, id, PauseOrder{For: 300 * time.Millisecond})
		if err != nil || p.Until.IsZero() {
			t.Fatalf("%+v, %v", p, err)
		}
		h.complete(a, `1`)
		b := h.take(1)[0]
		if x := r.get(b.Execution); x.CreatedAt.Before(p.Until) {
			t.Errorf("its next task is of %s, and it was paused until %s", x.CreatedAt, p.Until)
		}
		h.complete(b, `2`)
		r.ended(id)
		if types := r.types(id); !slices.Contains(types, flow.EvResumed) {
			t.Errorf("its history: %q", types)
		}
	})
}

// A pause of a workflow, and its resume, include the workflows beneath it.
func TestPausedWorkflowInAWorkflow(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define("name: w\ntasks:\n  a: {action: noop}\n  b: {needs: [a], action: noop}\n")
		r.define("name: outer\ntasks:\n  in: {foreach: \"${{ [1, 2] }}\", action: w}\n")
		h := r.worker()
		id := r.submit(Submission{Action: "outer"})
		first := h.take(2)
		if p, err := r.e.PauseExecution(r.ctx, id, PauseOrder{}); err != nil || p.Beneath != 2 {
			t.Fatalf("%+v, %v", p, err)
		}
		for _, a := range first {
			h.complete(a, `1`)
			r.ended(a.Execution)
		}
		got := h.begin(2)
		r.settled()
		if len(got) > 0 {
			t.Fatalf("started beneath a paused workflow: %+v", <-got)
		}
		if p, err := r.e.ResumeExecution(r.ctx, id, PauseOrder{}); err != nil || p.Beneath != 2 {
			t.Fatalf("%+v, %v", p, err)
		}
		all := <-got
		if len(all) < 2 {
			all = append(all, h.take(1)...)
		}
		for _, b := range all {
			h.complete(b, `2`)
		}
		r.ended(id)
	})
}

// A paused workflow can be cancelled, and its deadlines hold.
func TestPausedWorkflowEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: w\ntasks:\n  a: {action: noop}\n  b: {needs: [a], action: noop}\n")
	h := r.worker()
	for how, end := range map[flow.Stage]func(flow.ID){
		flow.Cancelled: func(id flow.ID) {
			if _, err := r.e.Cancel(r.ctx, id, "enough"); err != nil {
				t.Fatal(err)
			}
		},
		flow.TimedOut: func(flow.ID) { r.pass(time.Hour) },
	} {
		id := r.submit(Submission{Action: "w", Settings: flow.Settings{TotalTimeout: time.Minute}})
		a := h.take(1)[0]
		if _, err := r.e.PauseExecution(r.ctx, id, PauseOrder{}); err != nil {
			t.Fatal(err)
		}
		h.complete(a, `1`)
		end(id)
		if x := r.ended(id); x.Stage != how || x.State.Pause != nil {
			t.Errorf("%s: %s, %+v", how, x.Stage, x.State.Pause)
		}
	}
}

// A workflow that is paused before it begins starts no tasks after it has begun.
func TestWorkflowPausedBeforeItBegins(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: w\ntasks:\n  a: {action: noop}\n")
	h := r.worker()
	id := r.submit(Submission{Action: "w", StartIn: time.Hour})
	if _, err := r.e.PauseExecution(r.ctx, id, PauseOrder{Reason: "not yet"}); err != nil {
		t.Fatal(err)
	}
	r.pass(2 * time.Hour)
	r.within(patience, "it has not begun", func() bool { return r.get(id).Place == flow.Held })
	got := h.begin(1)
	r.settled()
	if len(got) > 0 {
		t.Fatalf("started by a paused workflow: %+v", <-got)
	}
	if w := r.why(id, "starts no tasks: not yet"); !strings.Contains(w.Summary, "paused") {
		t.Errorf("%+v", w)
	}
	if _, err := r.e.ResumeExecution(r.ctx, id, PauseOrder{}); err != nil {
		t.Fatal(err)
	}
	h.complete((<-got)[0], `1`)
	r.ended(id)
}

// While a workflow is paused with stopped timers, its timeouts, and the sleeps, waits and later rounds beneath it, do
// not end; after the resume they continue with the remaining time. Without stopped timers they run on.
func TestTimersOfAPausedWorkflowStandStill(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(paid)
	r.define("name: inner\ntimeout: 3h\ntasks:\n  nap: {action: sleep, with: {for: 2h}}\n")
	r.define("name: w\ntasks:\n  in: {action: inner}\n  hear: {action: wait, with: {signal: paid, timeout: 2h}, continue_on_error: true}\n  round: {action: noop, repeat: {until: \"false\", max: 2, delay: 2h}}\n")
	h := r.worker()
	id := r.submit(Submission{Action: "w", Settings: flow.Settings{TotalTimeout: 4 * time.Hour}})
	h.complete(h.take(1)[0], `1`)
	r.within(patience, "not all of its tasks wait", func() bool {
		in := r.child(id, "in", 0)
		return !in.IsZero() && !r.child(in, "nap", 0).IsZero() && !r.get(r.child(in, "nap", 0)).WakeAt.IsZero() && !r.get(r.child(id, "hear", 0)).WakeAt.IsZero() && !r.child(id, "round", 1).IsZero()
	})
	waiting := []flow.ID{r.child(r.child(id, "in", 0), "nap", 0), r.child(id, "hear", 0), r.child(id, "round", 1)}
	due := map[flow.ID]time.Time{}
	for _, k := range waiting {
		due[k] = r.get(k).WakeAt
	}
	p, err := r.e.PauseExecution(r.ctx, id, PauseOrder{By: "ann", Reason: "the disks are full", Stops: true})
	if err != nil || !p.Stops || p.Beneath != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	r.why(id, "it was paused by ann, and starts no tasks: the disks are full", "its timers stand still")
	r.why(waiting[0], "stands still with the workflow whose task it is", "pawl resume execution ")
	r.pass(24 * time.Hour)
	for _, k := range append(waiting, id, r.child(id, "in", 0)) {
		if x := r.get(k); x.Stage.Terminal() || !x.StandsStill() || !x.TotalDeadline().IsZero() || !x.EngineDeadline().IsZero() {
			t.Errorf("%s of a workflow that is paused is %s: %+v", x.Kind, x.Stage, x.State)
		}
	}
	if _, err := r.e.ResumeExecution(r.ctx, id, PauseOrder{By: "bob"}); err != nil {
		t.Fatal(err)
	}
	for _, k := range waiting {
		x := r.get(k)
		if stood := x.WakeAt.Sub(due[k]); x.State.Pause != nil || stood < 24*time.Hour || stood > 25*time.Hour {
			t.Errorf("%s is due %s later than it was: %+v", x.Kind, stood, x.State)
		}
	}
	if x := r.get(id); x.TotalDeadline().Sub(x.CreatedAt) < 28*time.Hour {
		t.Errorf("it must end by %s, and is of %s", x.TotalDeadline(), x.CreatedAt)
	}
	r.pass(150 * time.Minute) // past the two hours of its tasks, and before the three of inner
	if x := r.ended(waiting[0]); x.Stage != flow.Completed {
		t.Errorf("the sleep: %s", x.Stage)
	}
	if x := r.ended(waiting[1]); x.Stage != flow.TimedOut {
		t.Errorf("the wait: %s", x.Stage)
	}
	if got := r.worker().take(1)[0]; got.Execution != waiting[2] {
		t.Errorf("not the second round: %+v", got)
	}
	r.pass(2 * time.Hour)
	if x := r.ended(id); x.Stage != flow.TimedOut || x.Outcome.Error.Code != flow.CodeTotalTimeout {
		t.Errorf("it ended as %s, %+v", x.Stage, x.Outcome)
	}
}

// The total_timeout of a repeated task stops with its workflow, even if a round ends meanwhile and the next one is made only after the
// resume. A retry or a rerun of a round gets all of it, and not the rest that the round had.
func TestTimersStandStillBetweenRounds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: w\ntasks:\n  poll: {action: noop, repeat: {until: \"false\", max: 2}, total_timeout: 1h, continue_on_error: true}\n")
	h := r.worker()
	id := r.submit(Submission{Action: "w"})
	first := h.take(1)[0]
	for range 2 { // the second replaces the first
		if _, err := r.e.PauseExecution(r.ctx, id, PauseOrder{Stops: true}); err != nil {
			t.Fatal(err)
		}
	}
	r.pass(10 * time.Minute) // which the round runs
	running, end := ev(&first, 0, flow.EvRunning, nil), ev(&first, 1, flow.EvCompleted, &flow.Outcome{Output: json.RawMessage(`1`)})
	running.At, end.At = r.clock.now(), r.clock.now() // by the worker's clock
	h.report(first, running, end)
	r.ended(first.Execution)
	r.pass(8 * time.Hour)
	if _, err := r.e.PauseExecution(r.ctx, id, PauseOrder{Stops: true}); err != nil {
		t.Fatal(err)
	}
	r.pass(8 * time.Hour)
	if _, err := r.e.ResumeExecution(r.ctx, id, PauseOrder{}); err != nil {
		t.Fatal(err)
	}
	second := h.take(1)[0]
	if left := r.get(second.Execution).TotalTimeout; left < 48*time.Minute || left > 50*time.Minute {
		t.Errorf("%s are left to the second round", left)
	}
	h.complete(second, `2`)
	if x := r.ended(second.Execution); x.Stage != flow.Completed {
		t.Errorf("the second round is %s", x.Stage)
	}
	r.ended(id)
	retried, err := r.e.Retry(r.ctx, second.Execution, "")
	if err != nil {
		t.Fatal(err)
	}
	again, _ := r.rerun(second.Execution, RerunOptions{})
	for _, k := range []flow.ID{retried.Execution, again} {
		if x := r.get(k); x.TotalTimeout != time.Hour {
			t.Errorf("run again, the round has %s", x.TotalTimeout)
		}
	}
	for _, a := range h.take(2) {
		h.complete(a, `2`)
		r.ended(a.Execution)
	}
}

// A task keeps its slot of a rate in a pause that stops timers: if it were delayed, it would begin in slots of others.
func TestPauseKeepsSlotsOfARate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: mail\nkind: action\naction: noop\nrate: {key: mails, limit: 1, per: 1h}\n")
	r.define("name: w\ntasks:\n  mails: {foreach: [1, 2, 3], action: mail}\n")
	h := r.worker()
	id := r.submit(Submission{Action: "w"})
	h.complete(h.take(1)[0], `1`)
	if _, err := r.e.PauseExecution(r.ctx, id, PauseOrder{Stops: true}); err != nil {
		t.Fatal(err)
	}
	next := func(when string) {
		t.Helper()
		r.pass(90 * time.Minute)
		ready := 0
		for _, k := range r.kids(id) {
			if k.Place == flow.Ready {
				ready++
			}
		}
		if ready != 1 { // h.take would wait for one that does not come
			t.Fatalf("%s %d tasks can be taken, want 1", when, ready)
		}
		h.complete(h.take(1)[0], `1`)
	}
	next("in the pause") // it was created before
	if _, err := r.e.ResumeExecution(r.ctx, id, PauseOrder{}); err != nil {
		t.Fatal(err)
	}
	late := 0
	for name, k := range r.kids(id) {
		if k.Stage.Terminal() {
			continue
		}
		if late++; k.SlotAt.IsZero() || !k.WakeAt.Equal(k.SlotAt) {
			t.Errorf("%s begins at %s, and has the slot of %s", name, k.WakeAt, k.SlotAt)
		}
	}
	if late != 1 {
		t.Errorf("%d wait for their slots", late)
	}
	next("after the pause")
	r.ended(id)
}

// A paused workflow with a slot of a rate begins in its slot, and starts its tasks when it is resumed.
func TestPauseKeepsTheSlotOfAWorkflow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: w\nrate: {key: runs, limit: 1, per: 1h}\ntimeout: 1h\ntasks:\n  a: {action: noop}\n")
	h := r.worker()
	first, second, third := r.submit(Submission{Action: "w"}), r.submit(Submission{Action: "w"}), r.submit(Submission{Action: "w"})
	h.complete(h.take(1)[0], `1`)
	r.ended(first)
	for _, id := range []flow.ID{second, third} {
		if _, err := r.e.PauseExecution(r.ctx, id, PauseOrder{Stops: true}); err != nil {
			t.Fatal(err)
		}
	}
	r.why(second, "waits for the rate of key \"runs\"", "it is paused, and starts no tasks")
	r.pass(90 * time.Minute)
	if x := r.get(second); x.Place != flow.Held || !x.EngineDeadline().IsZero() || len(r.kids(second)) > 0 {
		t.Fatalf("in its slot it is %s, times out at %s, and has %d tasks", x.Place, x.EngineDeadline(), len(r.kids(second)))
	}
	for _, id := range []flow.ID{second, third} {
		if _, err := r.e.ResumeExecution(r.ctx, id, PauseOrder{}); err != nil {
			t.Fatal(err)
		}
	}
	if x := r.get(third); x.Place != flow.Delayed || !x.WakeAt.Equal(x.SlotAt) || !x.QueuedAt.Equal(x.SlotAt) {
		t.Errorf("it is %s until %s, counts as waiting from %s, and has the slot of %s", x.Place, x.WakeAt, x.QueuedAt, x.SlotAt)
	}
	h.complete(h.take(1)[0], `1`)
	if x := r.ended(second); x.Stage != flow.Completed {
		t.Errorf("it ended as %s, %+v", x.Stage, x.Outcome)
	}
	r.pass(40 * time.Minute)
	if x := r.get(third); x.Place != flow.Held {
		t.Fatalf("in its slot it is %s", x.Place)
	}
	h.complete(h.take(1)[0], `1`)
	r.ended(third)
}

// An order continues when its caller has gone. If a server dies between its batches, the workflow still shows as paused: a resume changes
// it last, and a repeated resume changes the rest. Otherwise timers would stay stopped for good in a workflow that is not paused.
func TestResumeIsInterrupted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const naps = pausedAtOnce + 20
	r.define("name: inner\ntasks:\n  nap: {action: sleep, with: {for: 2h}}\n")
	r.define(fmt.Sprintf("name: w\ntasks:\n  in: {action: inner}\n  naps: {foreach: \"${{ lists.range(%d) }}\", concurrency: %d, action: sleep, with: {for: 2h}}\n", naps, naps))
	id := r.submit(Submission{Action: "w"})
	var all []flow.ID // that sleep
	r.within(patience, "not all of its tasks sleep", func() bool {
		all = nil
		kids := r.kids(id)
		if in := kids["in[0]"]; in != nil {
			maps.Copy(kids, r.kids(in.ID))
		}
		for _, k := range kids {
			if k.Kind == flow.KindSleep && k.Place == flow.Held {
				all = append(all, k.ID)
			}
		}
		return len(all) == naps+1
	})
	still := func() (n int) {
		for _, k := range all {
			if r.get(k).StandsStill() {
				n++
			}
		}
		return n
	}
	// change gives an order whose caller goes at once, and which fails from the nth execution on; 0: it does not fail.
	change := func(fails int, in changeOrder, order pauseOrder) error {
		ctx, leave := context.WithCancel(r.ctx)
		defer leave()
		n := 0
		_, err := r.e.changeWorkflows(ctx, id, in, func(tx *transaction, d *flow.Draft) (*flow.Pause, error) {
			leave()
			if n++; fails > 0 && n >= fails { // also when the engine tries its batch once more
				return nil, errors.New("the server dies")
			}
			return order(tx, d)
		})
		return err
	}
	pause := func(tx *transaction, d *flow.Draft) (*flow.Pause, error) {
		err := d.Pause(flow.Pause{Stops: true}, tx.now)
		return d.State.Pause, err
	}
	resume := func(tx *transaction, d *flow.Draft) (*flow.Pause, error) {
		if d.State.Pause == nil {
			return nil, nil
		}
		return &flow.Pause{At: tx.now}, d.Resume("", "", tx.now)
	}
	for _, c := range []struct {
		name  string
		fails int
		in    changeOrder
		order pauseOrder
		top   bool // it is paused
		least int  // how many are stopped, at least
		most  int
	}{
		{"a pause that is interrupted", naps, topFirst, pause, true, 1, naps},
		{"the pause once more", 0, topFirst, pause, true, naps + 1, naps + 1},
		{"a resume that is interrupted", naps, topLast, resume, true, 1, naps},
		{"the resume once more", 0, topLast, resume, false, 0, 0},
	} {
		err := change(c.fails, c.in, c.order)
		n := still()
		if top := r.get(id).State.Pause != nil; (err != nil) != (c.fails > 0) || top != c.top || n < c.least || n > c.most {
			t.Errorf("%s: %v; it is paused: %t; %d of %d tasks stand still", c.name, err, top, n, len(all))
		}
	}
}

// After a pause with stopped timers has expired, the timers continue from its end; if a pause without stopped timers replaces it, they
// continue from then on.
func TestTimersGoOn(t *testing.T) {
	t.Parallel()
	for name, goOn := range map[string]func(*rig, flow.ID){
		"by itself": func(r *rig, _ flow.ID) { r.pass(time.Hour) },
		"replaced": func(r *rig, id flow.ID) {
			r.pass(time.Minute)
			if _, err := r.e.PauseExecution(r.ctx, id, PauseOrder{}); err != nil {
				r.Fatal(err)
			}
			r.pass(59 * time.Minute)
		},
		"stopped twice": func(r *rig, id flow.ID) {
			if _, err := r.e.PauseExecution(r.ctx, id, PauseOrder{For: time.Minute, Stops: true}); err != nil {
				r.Fatal(err)
			}
			r.pass(time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.define("name: w\ntasks:\n  nap: {action: sleep, with: {for: 30m}}\n")
			id := r.submit(Submission{Action: "w"})
			r.within(patience, "it does not sleep", func() bool {
				nap := r.child(id, "nap", 0)
				return !nap.IsZero() && !r.get(nap).WakeAt.IsZero()
			})
			nap := r.get(r.child(id, "nap", 0))
			if _, err := r.e.PauseExecution(r.ctx, id, PauseOrder{For: time.Minute, Stops: true}); err != nil {
				t.Fatal(err)
			}
			goOn(r, id)
			x := r.ended(nap.ID)
			if x.Stage != flow.Completed || x.PausedFor == nil || x.PausedFor.All < 55*time.Second || x.PausedFor.All > 65*time.Second {
				t.Errorf("%s, stood still for %+v", x.Stage, x.PausedFor)
			}
			if name == "replaced" { // it may have ended
				if _, err := r.e.ResumeExecution(r.ctx, id, PauseOrder{}); err != nil && !errors.Is(err, flow.ErrFinished) {
					t.Fatal(err)
				}
			}
			r.ended(id)
		})
	}
}

// Waiting executions can end while their timers are stopped: they take a signal, and obey an order to end.
func TestWhatStandsStillCanEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(paid)
	r.define("name: w\ntasks:\n  hear: {action: wait, with: {signal: paid, timeout: 2h}}\n  nap: {action: sleep, with: {for: 2h}}\n")
	id := r.submit(Submission{Action: "w"})
	r.within(patience, "its tasks do not wait", func() bool {
		hear, nap := r.child(id, "hear", 0), r.child(id, "nap", 0)
		return !hear.IsZero() && !r.get(hear).WakeAt.IsZero() && !nap.IsZero() && !r.get(nap).WakeAt.IsZero()
	})
	if _, err := r.e.PauseExecution(r.ctx, id, PauseOrder{Stops: true}); err != nil {
		t.Fatal(err)
	}
	r.say("paid", id.String(), `{}`)
	if x := r.ended(r.child(id, "hear", 0)); x.Stage != flow.Completed || x.State.Pause != nil {
		t.Errorf("the wait: %s, %+v", x.Stage, x.State.Pause)
	}
	if _, err := r.e.Cancel(r.ctx, id, "enough"); err != nil {
		t.Fatal(err)
	}
	if x := r.ended(id); x.Stage != flow.Cancelled || x.State.Pause != nil {
		t.Errorf("%s, %+v", x.Stage, x.State)
	}
	if x := r.get(r.child(id, "nap", 0)); x.Stage != flow.Cancelled || x.State.Pause != nil {
		t.Errorf("the sleep: %s, %+v", x.Stage, x.State)
	}
}
