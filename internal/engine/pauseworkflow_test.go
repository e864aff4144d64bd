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
