package engine

import (
	"errors"
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

// A workflow that is paused starts no tasks. Those that have begun go on, and when it is resumed it goes on from their ends.
func TestPausedWorkflow(t *testing.T) {
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

// A pause for a while ends by itself, and the history says so.
func TestWorkflowPausedForAWhile(t *testing.T) {
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

// The workflows beneath one that is paused are paused with it, and resumed with it.
func TestPausedWorkflowInAWorkflow(t *testing.T) {
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

// A workflow that is paused can be cancelled, and its deadlines hold.
func TestPausedWorkflowEnds(t *testing.T) {
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

// What is paused before it begins starts no tasks once it has.
func TestWorkflowPausedBeforeItBegins(t *testing.T) {
	r := newRig(t)
	r.define("name: w\ntasks:\n  a: {action: noop}\n")
	h := r.worker()
	id := r.submit(Submission{Action: "w", StartIn: time.Hour})
	if _, err := r.e.PauseExecution(r.ctx, id, PauseOrder{Reason: "not yet"}); err != nil {
		t.Fatal(err)
	}
	r.pass(2 * time.Hour)
	r.within(10*time.Second, "it has not begun", func() bool { return r.get(id).Place == flow.Held })
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

// While a workflow is paused so that its timers stop, neither its timeouts nor sleeps, waits and later rounds beneath it come to their ends;
// when it is resumed they go on by as long as they stood still. Without that they run on.
func TestTimersOfAPausedWorkflowStandStill(t *testing.T) {
	r := newRig(t)
	r.define(paid)
	r.define("name: inner\ntimeout: 3h\ntasks:\n  nap: {action: sleep, with: {for: 2h}}\n")
	r.define("name: w\ntasks:\n  in: {action: inner}\n  hear: {action: wait, with: {signal: paid, timeout: 2h}, continue_on_error: true}\n  round: {action: noop, repeat: {until: \"false\", max: 2, delay: 2h}}\n")
	h := r.worker()
	id := r.submit(Submission{Action: "w", Settings: flow.Settings{TotalTimeout: 4 * time.Hour}})
	h.complete(h.take(1)[0], `1`)
	r.within(10*time.Second, "not all of its tasks wait", func() bool {
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

// A pause that stops timers and ends by itself lets them go on from its end, and one without that, which replaces it, from then on.
func TestTimersGoOn(t *testing.T) {
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
			r.within(10*time.Second, "it does not sleep", func() bool {
				nap := r.child(id, "nap", 0)
				return !nap.IsZero() && !r.get(nap).WakeAt.IsZero()
			})
			nap := r.get(r.child(id, "nap", 0))
			if _, err := r.e.PauseExecution(r.ctx, id, PauseOrder{For: time.Minute, Stops: true}); err != nil {
				t.Fatal(err)
			}
			goOn(r, id)
			x := r.ended(nap.ID)
			if x.Stage != flow.Completed || x.Stood == nil || x.Stood.All < 55*time.Second || x.Stood.All > 65*time.Second {
				t.Errorf("%s, stood still for %+v", x.Stage, x.Stood)
			}
			if name == "replaced" { // it may have ended: nothing of it is open
				if _, err := r.e.ResumeExecution(r.ctx, id, PauseOrder{}); err != nil && !errors.Is(err, flow.ErrFinished) {
					t.Fatal(err)
				}
			}
			r.ended(id)
		})
	}
}

// What waits can end while its timers stand still: a signal is taken, and an order to end carried out.
func TestWhatStandsStillCanEnd(t *testing.T) {
	r := newRig(t)
	r.define(paid)
	r.define("name: w\ntasks:\n  hear: {action: wait, with: {signal: paid, timeout: 2h}}\n  nap: {action: sleep, with: {for: 2h}}\n")
	id := r.submit(Submission{Action: "w"})
	r.within(10*time.Second, "its tasks do not wait", func() bool {
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
