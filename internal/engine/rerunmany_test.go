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
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
)

const releases = `
name: release
tasks:
  build: {action: noop, with: {v: "build ${{ input.n }}"}}
  publish: {needs: [build], action: noop, with: {v: "publish ${{ input.n }}"}}
`

// rerunMany runs executions again and returns the execution that does so.
func (r *rig) rerunMany(ids []flow.ID, atOnce int) flow.ID {
	r.Helper()
	s, err := r.e.RerunMany(r.ctx, ids, RerunManyOptions{AtOnce: atOnce})
	if err != nil {
		r.Fatal(err)
	}
	return s.Execution
}

// rerunsOf returns the reruns of an execution.
func (r *rig) rerunsOf(id flow.ID) []*flow.Execution {
	r.Helper()
	all, err := store.List(r.ctx, r.store, store.Filter{RerunOf: id, Limit: 100})
	if err != nil {
		r.Fatal(err)
	}
	return all
}

// carriedOut is what the tasks of a bulk rerun have ended with, in order.
func (r *rig) carriedOut(bulk flow.ID) (all []string) {
	r.Helper()
	children, err := r.store.Children(r.ctx, store.WorkflowAttempt{ID: bulk, Attempt: 1}, "", -1, 1000)
	if err != nil {
		r.Fatal(err)
	}
	for _, c := range children {
		x := r.get(c.Execution)
		say := x.Stage.String()
		if x.Outcome != nil && x.Outcome.Error != nil {
			say += " " + x.Outcome.Error.Code
		}
		if x.Outcome != nil && x.Outcome.Output != nil {
			var out struct{ Status string }
			if err := json.Unmarshal(x.Outcome.Output, &out); err != nil {
				r.Fatal(err)
			}
			say += " " + out.Status
		}
		all = append(all, say)
	}
	return all
}

// Many are run again just as one is: the same is reused, the same runs, and it ends alike. What is refused changes nothing for the others.
func TestRerunMany(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(releases)
		c := r.crew(`{"v":"publish 1"}`, `{"v":"publish 2"}`, `{"v":"publish 3"}`)
		var ids []flow.ID
		for n := range 4 {
			ids = append(ids, r.submit(Submission{Action: "release", Input: json.RawMessage(fmt.Sprintf(`{"n": %d}`, n))}))
		}
		for _, id := range ids {
			r.ended(id)
		}
		open := r.submit(Submission{Action: "sleep", Input: json.RawMessage(`{"for": "1h"}`)})
		c.since()
		c.succeed()
		alone, plan := r.rerun(ids[1], RerunOptions{})
		r.ended(alone)
		ranAlone := c.since()
		bulk := r.rerunMany(append(slices.Clone(ids), open), 2)
		if x := r.ended(bulk); x.Stage != flow.Completed {
			r.Fatalf("%s: %+v", x.Stage, x.Outcome)
		}
		if got := r.carriedOut(bulk); fmt.Sprint(got) != "[completed completed completed completed completed completed completed completed failed rerun_refused]" {
			r.Errorf("%q", got)
		}
		if got, want := c.since(), []string{`{"v":"publish 1"}×1`, `{"v":"publish 2"}×1`, `{"v":"publish 3"}×1`}; !slices.Equal(got, want) || !slices.Equal(ranAlone, want[:1]) {
			r.Errorf("together %q ran, and one alone ran %q", got, ranAlone)
		}
		two := r.rerunsOf(ids[1])
		if len(two) != 2 {
			r.Fatalf("%d reruns", len(two))
		}
		a, b := r.get(two[0].ID), r.get(two[1].ID) // newest first: together, alone
		for _, x := range []*flow.Execution{a, b} {
			x.ID, x.CreatedAt, x.NotBefore, x.IdempotencyKey = flow.ID{}, time.Time{}, time.Time{}, ""
		}
		if fmt.Sprintf("%+v %s", a.Request, a.Outcome.Output) != fmt.Sprintf("%+v %s", b.Request, b.Outcome.Output) || a.Stage != b.Stage || plan.Workflow.Tasks[0].Decision != orchestration.Reuse {
			r.Errorf("together:\n%+v\nalone:\n%+v", a, b)
		}
		if _, err := r.e.Cancel(r.ctx, open, ""); err != nil {
			r.Fatal(err)
		}
		r.replayAll()
	})
}

// Cancelled, it starts no more reruns; those that have begun go on.
func TestRerunManyCancelled(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define("name: one\naction: noop\n")
		w := r.worker()
		var ids []flow.ID
		for range 5 {
			ids = append(ids, r.submit(Submission{Action: "one"}))
		}
		for range ids {
			for _, a := range w.take(1) {
				w.fail(a, "boom")
			}
		}
		for _, id := range ids {
			r.ended(id)
		}
		bulk := r.rerunMany(ids, 2)
		first, second := w.take(1)[0], w.take(1)[0]
		if why, err := r.e.Why(r.ctx, r.childrenOf(bulk)[0]); err != nil || why.Waiting != "rerun" || !strings.Contains(why.Summary, first.Execution.String()) && !strings.Contains(why.Summary, second.Execution.String()) {
			r.Errorf("%+v %v", why, err)
		}
		if _, err := r.e.Cancel(r.ctx, bulk, "enough"); err != nil {
			r.Fatal(err)
		}
		r.ended(bulk)
		w.complete(first, "{}")
		w.complete(second, "{}")
		r.ended(first.Execution)
		r.ended(second.Execution)
		if n := len(r.rerunsOf(ids[0])) + len(r.rerunsOf(ids[1])); n != 2 {
			r.Errorf("%d reruns of the first two", n)
		}
		for _, id := range ids[2:] {
			if all := r.rerunsOf(id); len(all) > 0 {
				r.Errorf("%s was run again as %s", id, all[0].ID)
			}
		}
	})
}

func (r *rig) childrenOf(bulk flow.ID) (ids []flow.ID) {
	r.Helper()
	children, err := r.store.Children(r.ctx, store.WorkflowAttempt{ID: bulk, Attempt: 1}, "", -1, 1000)
	if err != nil {
		r.Fatal(err)
	}
	for _, c := range children {
		ids = append(ids, c.Execution)
	}
	return ids
}

// However often a rerun is carried out, it is submitted once.
func TestRerunIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define("name: one\naction: noop\n")
		w := r.worker()
		id := r.submit(Submission{Action: "one"})
		w.fail(w.take(1)[0], "boom")
		r.ended(id)
		again := r.submit(Submission{Action: "rerun", Input: json.RawMessage(fmt.Sprintf(`{"execution": %q}`, id))})
		a := w.take(1)[0]
		for range 3 { // as after a kill, or by another replica
			go func() { _ = r.e.carry(r.ctx, again, make(chan struct{}, 1)) }()
		}
		w.complete(a, `{"v": 1}`)
		x := r.ended(again)
		if want := fmt.Sprintf(`{"execution":%q,"status":"completed"}`, a.Execution); string(x.Outcome.Output) != want {
			r.Errorf("%s, want %s", x.Outcome.Output, want)
		}
		if n := len(r.rerunsOf(id)); n != 1 {
			r.Errorf("%d reruns", n)
		}
	})
}

// heldReads is a store in which reads of one execution are counted, and wait.
type heldReads struct {
	store.Store
	of    atomic.Pointer[flow.ID]
	reads atomic.Int32
	goOn  chan struct{}
}

func (s *heldReads) Get(ctx context.Context, id flow.ID) (*flow.Execution, error) {
	if of := s.of.Load(); of != nil && *of == id {
		s.reads.Add(1)
		<-s.goOn
	}
	return s.Store.Get(ctx, id)
}

// A rerun that is handed over again while it is planned is planned once.
func TestRerunIsPlannedOnce(t *testing.T) {
	t.Parallel()
	s := &heldReads{goOn: make(chan struct{})}
	r := newRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
	r.define("name: one\naction: noop\n")
	w := r.worker()
	id := r.submit(Submission{Action: "one"})
	w.fail(w.take(1)[0], "boom")
	r.ended(id)
	s.of.Store(&id)
	again := r.submit(Submission{Action: "rerun", Input: json.RawMessage(fmt.Sprintf(`{"execution": %q}`, id))})
	r.until(func() bool { return s.reads.Load() > 0 }) // its plan begins with the original
	for range 3 {
		r.e.reruns.add([]flow.ID{again})
	}
	close(s.goOn)
	w.complete(w.take(1)[0], `{"v": 1}`)
	r.ended(again)
	r.until(func() bool {
		r.e.reruns.mu.Lock()
		defer r.e.reruns.mu.Unlock()
		return len(r.e.reruns.has) == 0
	})
	if n := s.reads.Load(); n != 1 {
		t.Errorf("it was planned %d times", n)
	}
}

// The queue of reruns has each rerun once, in the order in which they came, until it is done.
func TestCarrier(t *testing.T) {
	t.Parallel()
	c := rerunQueue{has: map[flow.ID]bool{}, signal: make(chan struct{}, 1)}
	c.add([]flow.ID{{1}, {2}, {1}})
	if got := c.wait(); got != carryLook {
		t.Errorf("while some wait, an end is waited for %s", got)
	}
	first, _ := c.take()
	c.add([]flow.ID{{1}, {2}, {3}})
	second, _ := c.take()
	third, _ := c.take()
	if fourth, some := c.take(); some || first != (flow.ID{1}) || second != (flow.ID{2}) || third != (flow.ID{3}) {
		t.Errorf("taken: %s, %s, %s, %s", first, second, third, fourth)
	}
	if got := c.wait(); got != carryWait {
		t.Errorf("while none waits, an end is waited for %s", got)
	}
	c.done(first)
	c.add([]flow.ID{{1}, {2}})
	if next, some := c.take(); !some || next != first {
		t.Errorf("after its end, taken: %s", next)
	}
}

func TestRerunManyIsChecked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one := []flow.ID{{1}}
	for want, c := range map[string]struct {
		ids []flow.ID
		o   RerunManyOptions
	}{
		"nothing to run again": {nil, RerunManyOptions{AtOnce: 1}},
		"10000 at most":        {make([]flow.ID, RerunManyLimit+1), RerunManyOptions{AtOnce: 1}},
		"give 1 to 100":        {one, RerunManyOptions{AtOnce: 101}},
	} {
		if _, err := r.e.RerunMany(r.ctx, c.ids, c.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	bulk := r.rerunMany(one, 1)
	r.ended(bulk)
	if got := r.carriedOut(bulk); fmt.Sprint(got) != "[failed rerun_refused]" {
		t.Errorf("%q", got)
	}
	s, err := r.e.Submit(r.ctx, []Submission{{Action: "rerun", Input: json.RawMessage(`{"execution": "7"}`)}})
	if err != nil || s[0].Err == nil || !strings.Contains(s[0].Err.Error(), "is not an execution's id") {
		t.Errorf("%+v %v", s, err)
	}
}
