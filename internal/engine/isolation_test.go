package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// refusing is a store that refuses to write some drafts, like a database whose types or limits they do not fit.
type refusing struct {
	store.Store
	refuse  atomic.Pointer[func(*flow.Draft) bool]
	refused atomic.Bool             // the last transaction
	crowd   atomic.Int64            // so many transactions meet a conflict, each after a refused one
	newer   atomic.Bool             // the definitions are of a later version of the program
	garbled atomic.Pointer[flow.ID] // is read from its queue in a stage that cannot be claimed
}

var errPlanted = errors.New("planted: the database does not take this row")

func (s *refusing) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	return s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return decide(ctx, &refusingTx{tx, s}) })
}

type refusingTx struct {
	store.Tx
	s *refusing
}

func (t *refusingTx) Apply(ctx context.Context, d store.Delta) error {
	if t.s.crowd.Load() > 0 && t.s.refused.Swap(false) {
		t.s.crowd.Add(-1)
		return store.ErrConflict
	}
	if refuse := t.s.refuse.Load(); refuse != nil {
		for _, x := range d.Drafts {
			if (*refuse)(x) {
				t.s.refused.Store(true)
				return errPlanted
			}
		}
	}
	for _, x := range d.Drafts {
		if id := t.s.garbled.Load(); id != nil && x.ID == *id {
			x.Before.Stage, x.Stage = flow.Scheduled, flow.Scheduled // like the row
		}
	}
	return t.Tx.Apply(ctx, d)
}

func (t *refusingTx) Take(ctx context.Context, queues []string, n int) ([]*flow.Execution, error) {
	xs, err := t.Tx.Take(ctx, queues, n)
	for _, x := range xs {
		if id := t.s.garbled.Load(); id != nil && x.ID == *id {
			x.Stage = flow.Requested
		}
	}
	return xs, err
}

func (t *refusingTx) Definition(ctx context.Context, name string, version int) (store.Definition, error) {
	d, err := t.Tx.Definition(ctx, name, version)
	if t.s.newer.Load() {
		d.Document = []byte(`{"of": "a later version"}`)
	}
	return d, err
}

func (s *refusing) set(refuse func(*flow.Draft) bool) { s.refuse.Store(&refuse) }

// isolated runs a test on each store, wrapped in one that can refuse rows. lease is that of worker sessions.
func isolated(t *testing.T, test func(*rig, *refusing), change ...func(*Options)) {
	t.Helper()
	s := &refusing{}
	onEachStore(t, func(r *rig) { test(r, s) }, append(change, func(o *Options) {
		s.Store = o.Store
		o.Store = s
	})...)
}

// patience is how long tests wait for the engine's loops. Due work is done within seconds on any machine; forgotten or
// refused work is tried again after a minute at the earliest (windowsAside, scheduleAgain, purgeEvery).
const patience = 50 * time.Second

// within waits for a condition that the engine's loops bring about.
func (r *rig) within(d time.Duration, what string, is func() bool) {
	r.Helper()
	for deadline := time.Now().Add(d); !is(); {
		changed, stop := r.e.WatchAll()
		select {
		case <-changed:
		case <-time.After(10 * time.Millisecond):
		}
		stop()
		if time.Now().After(deadline) {
			r.Fatalf("after %s: %s", d, what)
		}
	}
}

// A report is recorded even if its workflow cannot continue: the store refuses the workflow's next task, and the ended task keeps its end.
func TestReportIsRecordedThoughTheNextStepIsRefused(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		r.define("name: w\ntasks:\n  one: {action: noop}\n  two: {needs: [one], action: noop}\n  three: {needs: [one], action: noop}\n")
		s.set(func(d *flow.Draft) bool { return d.New && d.Task == "two" })
		h := r.worker()
		id := r.submit(Submission{Action: "w"})
		a := h.take(1)[0]
		if receipt := h.complete(a, `1`); receipt.Verdict != flow.Applied {
			r.Errorf("the report: %+v", receipt)
		}
		if x := r.get(a.Execution); x.Stage != flow.Completed {
			r.Errorf("the task is %s", x.Stage)
		}
		x := r.ended(id)
		if x.Stage != flow.Failed || x.Outcome.Error.Code != flow.CodeInternal || !strings.Contains(x.Outcome.Error.Message, errPlanted.Error()) {
			r.Errorf("the workflow: %s %+v", x.Stage, x.Outcome.Error)
		}
		if all := r.children(id, 1); len(all) != 1 {
			r.Errorf("its tasks: %+v", all)
		}
	})
}

// The same if the second try, without the next step, meets a conflict: it is repeated.
func TestRefusedStepInConflict(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		r.define("name: w\ntasks:\n  one: {action: noop}\n  two: {needs: [one], action: noop}\n")
		s.set(func(d *flow.Draft) bool { return d.New && d.Task == "two" })
		s.refused.Store(false)
		s.crowd.Store(1)
		h := r.worker()
		id := r.submit(Submission{Action: "w"})
		a := h.take(1)[0]
		if receipt := h.complete(a, `1`); receipt.Verdict != flow.Applied {
			r.Errorf("the report: %+v", receipt)
		}
		if s.crowd.Load() != 0 {
			r.Error("there was no conflict: the test has tested nothing")
		}
		if x := r.ended(id); x.Stage != flow.Failed {
			r.Errorf("the workflow is %s", x.Stage)
		}
	})
}

// If the store refuses a report, its attempt is taken back: the worker was told to stop, and would never end it.
func TestAttemptOfAReportThatCannotBeStored(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		h := r.worker()
		id := r.submit(Submission{Action: "noop"})
		a := h.take(1)[0]
		s.set(func(d *flow.Draft) bool { return d.Stage == flow.Completed })
		if receipt := h.complete(a, `1`); receipt.Verdict != flow.Refused {
			r.Errorf("the report: %+v", receipt)
		}
		if x := r.get(id); x.Place == flow.Held && x.Owner == h.session {
			r.Errorf("it is still its worker's: %s", x.Stage)
		}
	})
}

// The same if one batch has many reports: all are recorded, and the other workflows continue.
func TestNeighboursOfARefusedStep(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		r.define("name: bad\ntasks:\n  one: {action: noop}\n  two: {needs: [one], action: noop}\n---\nname: good\ntasks:\n  one: {action: noop}\n  next: {needs: [one], action: noop}\n")
		s.set(func(d *flow.Draft) bool { return d.New && d.Task == "two" })
		h := r.worker()
		var bad, good []flow.ID
		for range 5 {
			bad, good = append(bad, r.submit(Submission{Action: "bad"})), append(good, r.submit(Submission{Action: "good"}))
		}
		var reports []flow.Report
		for range 10 {
			a := h.take(1)[0]
			reports = append(reports, flow.Report{Execution: a.Execution, Attempt: 1, Events: []flow.Event{
				ev(&a, 0, flow.EvRunning, nil), ev(&a, 1, flow.EvCompleted, &flow.Outcome{Output: json.RawMessage(`1`)})}})
		}
		receipts, err := r.e.Report(r.ctx, h.session, reports)
		if err != nil {
			r.Fatal(err)
		}
		for _, rc := range receipts {
			if rc.Verdict != flow.Applied {
				r.Errorf("%+v", rc)
			}
		}
		h.serve(echo)
		for _, id := range good {
			if x := r.ended(id); x.Stage != flow.Completed {
				r.Errorf("a neighbour: %s %+v", x.Stage, x.Outcome.Error)
			}
		}
		for _, id := range bad {
			if x := r.ended(id); x.Stage != flow.Failed {
				r.Errorf("a workflow whose step was refused: %s", x.Stage)
			}
		}
	})
}

// A workflow ends even if a follow-up of its end is refused: the first step of the next workflow in the wait list of its key, or the next
// step of the workflow above it. Only that one fails.
func TestEndBesideARefusedFollowUp(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		r.define(`
name: good
concurrency: {key: k, limit: 1}
tasks:
  one: {action: noop}
---
name: bad
concurrency: {key: k, limit: 1}
tasks:
  two: {action: noop}
---
name: above
tasks:
  sub: {action: good}
  two: {needs: [sub], action: noop}
`)
		s.set(func(d *flow.Draft) bool { return d.New && d.Task == "two" })
		h := r.worker()
		above := r.submit(Submission{Action: "above"})
		bad := r.submit(Submission{Action: "bad"})
		good := r.submit(Submission{Action: "good"})
		h.serve(echo)
		failed := func(id flow.ID) {
			r.Helper()
			if x := r.ended(id); x.Stage != flow.Failed || x.Outcome.Error.Code != flow.CodeInternal {
				r.Errorf("%s: %s %+v", x.Action, x.Stage, x.Outcome.Error)
			}
		}
		failed(above)
		if x := r.children(above, 1)[0]; x.Stage != flow.Completed {
			r.Errorf("the workflow below: %s", x.Stage)
		}
		failed(bad)
		if x := r.ended(good); x.Stage != flow.Completed {
			r.Errorf("the workflow behind: %s %+v", x.Stage, x.Outcome.Error)
		}
	})
}

// A timer whose workflow cannot continue does not stop other timers.
func TestTimersGoOnBesideARefusedStep(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		r.define(`
name: bad
tasks:
  nap: {action: sleep, with: {for: 20ms}}
  two: {needs: [nap], action: noop}
---
name: good
tasks:
  nap: {action: sleep, with: {for: 30ms}}
  nap2: {needs: [nap], action: sleep, with: {for: 30ms}}
`)
		s.set(func(d *flow.Draft) bool { return d.New && d.Task == "two" })
		bad, good := r.submit(Submission{Action: "bad"}), r.submit(Submission{Action: "good"})
		if x := r.ended(good); x.Stage != flow.Completed {
			r.Errorf("the other workflow: %s %+v", x.Stage, x.Outcome.Error)
		}
		if x := r.ended(bad); x.Stage != flow.Failed || x.Outcome.Error.Code != flow.CodeInternal {
			r.Errorf("the workflow: %s %+v", x.Stage, x.Outcome.Error)
		}
	})
}

// A due execution that cannot be written is put aside; other due executions continue in the same round.
func TestDueBesideWhatIsRefused(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		stuck := r.submit(Submission{Action: "sleep", Input: json.RawMessage(`{"for":"500ms"}`)}) // time to set the refusal before it is due
		s.set(func(d *flow.Draft) bool { return d.ID == stuck && d.Stage == flow.Completed })
		good := r.submit(Submission{Action: "sleep", Input: json.RawMessage(`{"for":"50ms"}`)})
		if x := r.ended(good); x.Stage != flow.Completed {
			r.Errorf("the other sleep: %s", x.Stage)
		}
		r.within(patience, "what is refused has not been put aside", func() bool { return r.get(stuck).Aside != nil })
		x := r.get(stuck)
		if !strings.Contains(x.Aside.Reason, errPlanted.Error()) || x.Aside.Times != 1 || x.Stage != flow.Running {
			r.Errorf("it is %s, aside %+v", x.Stage, x.Aside)
		}
		w, err := r.e.Why(r.ctx, stuck)
		if err != nil || !strings.Contains(w.Summary, errPlanted.Error()) {
			r.Errorf("why: %+v, %v", w, err)
		}
		// It is counted after the commit of the row above.
		r.within(patience, "it is not counted", func() bool { return r.e.Stats().PutAside > 0 })
	})
}

// If putting aside is refused too, the loop continues with the others.
func TestDueBesideWhatCannotBePutAside(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		stuck := r.submit(Submission{Action: "sleep", Input: json.RawMessage(`{"for":"500ms"}`)}) // time to set the refusal before it is due
		s.set(func(d *flow.Draft) bool { return d.ID == stuck })
		for range 3 {
			good := r.submit(Submission{Action: "sleep", Input: json.RawMessage(`{"for":"30ms"}`)})
			if x := r.ended(good); x.Stage != flow.Completed {
				r.Errorf("the other sleep: %s", x.Stage)
			}
		}
		r.within(patience, "what was passed over is not counted", func() bool { return r.e.Stats().Skipped > 0 })
		s.set(func(*flow.Draft) bool { return false })
		if x := r.ended(stuck); x.Stage != flow.Completed {
			r.Errorf("after the store takes it: %s", x.Stage)
		}
	})
}

// An attempt of a lost worker that cannot be taken back hides neither its other attempts nor those of other lost workers.
func TestRecoveryBesideWhatIsRefused(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		var ids []flow.ID
		var hands []*hand
		for range 2 {
			h := r.worker()
			hands = append(hands, h)
			for range 3 {
				ids = append(ids, r.submit(Submission{Action: "noop"}))
				h.take(1)
			}
		}
		stuck := ids[0]
		s.set(func(d *flow.Draft) bool { return d.ID == stuck })
		_ = hands // no longer renewed
		for _, id := range ids[1:] {
			r.within(patience, "an attempt of a lost worker is not taken back", func() bool { return r.get(id).Attempt == 2 })
		}
		s.set(func(*flow.Draft) bool { return false })
		r.within(patience, "what was refused is not taken back later", func() bool { return r.get(stuck).Attempt == 2 })
	}, func(o *Options) { o.Lease = time.Second })
}

// A lost hand-off that cannot be taken back does not hide others.
func TestUnstartedBesideWhatIsRefused(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		h := r.worker()
		var ids []flow.ID
		for range 3 {
			ids = append(ids, r.submit(Submission{Action: "noop"}))
			h.take(1)
		}
		ctx, stop := context.WithCancel(r.ctx)
		defer stop()
		go func() {
			for ctx.Err() == nil {
				_, _ = r.e.Renew(ctx, h.session)
			}
		}()
		s.set(func(d *flow.Draft) bool { return d.ID == ids[0] })
		for _, id := range ids[1:] {
			r.within(patience, "a hand-off that never arrived is not taken back", func() bool { return r.get(id).Attempt == 2 })
		}
	}, func(o *Options) { o.Lease = time.Second })
}

// An execution in the wait list of a key that cannot be admitted does not delay others.
func TestLineBesideWhatIsRefused(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		h := r.worker()
		sub := func() flow.ID { return r.submit(Submission{Action: "noop", Key: "k", KeyLimit: 1}) }
		first, stuck, next := sub(), sub(), sub()
		s.set(func(d *flow.Draft) bool { return d.ID == stuck && d.Place != flow.Delayed })
		h.complete(h.take(1)[0], `1`)
		if x := r.get(first); x.Stage != flow.Completed {
			r.Errorf("the holder is %s", x.Stage)
		}
		r.within(patience, "the line does not go on", func() bool { return r.get(next).Place == flow.Ready })
	})
}

// Retention removes other executions beside one that cannot be removed.
func TestRetentionBesideWhatIsRefused(t *testing.T) {
	t.Parallel()
	c := &clinging{}
	r := newRig(t, func(o *Options) {
		c.Store, o.Store, o.Retention = o.Store, c, time.Hour
	})
	h := r.worker()
	var ids []flow.ID
	for range 4 {
		ids = append(ids, r.submit(Submission{Action: "noop"}))
		h.complete(h.take(1)[0], `1`)
	}
	c.to.Store(&ids[1])
	r.pass(2 * time.Hour)
	p := newPurger(r.e, time.Hour) // beside the engine's own
	if _, err := p.next(r.ctx); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		if _, err := r.store.Get(r.ctx, id); (err == nil) != (i == 1) {
			t.Errorf("execution %d: %v", i, err)
		}
	}
	if r.e.Stats().Skipped == 0 {
		t.Error("what was passed over is not counted")
	}
}

// The same for an execution that is a part of its own, such as one with 32 MB of content.
func TestRetentionBehindWhatIsRefused(t *testing.T) {
	t.Parallel()
	c := &clinging{}
	r := newRig(t, func(o *Options) { c.Store, o.Store = o.Store, c })
	h := r.worker()
	var ids []flow.ID
	for range 3 {
		ids = append(ids, r.submit(Submission{Action: "noop"}))
		h.complete(h.take(1)[0], `1`)
	}
	c.to.Store(&ids[1])
	r.pass(2 * time.Hour)
	p := newPurger(r.e, time.Hour) // the engine has no retention
	for range ids {
		p.size = 1
		if _, err := p.next(r.ctx); err != nil {
			t.Fatal(err)
		}
	}
	for i, id := range ids {
		if _, err := r.store.Get(r.ctx, id); (err == nil) != (i == 1) {
			t.Errorf("execution %d: %v", i, err)
		}
	}
}

// clinging is a store that cannot remove one execution.
type clinging struct {
	store.Store
	to atomic.Pointer[flow.ID]
}

func (c *clinging) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	return c.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return decide(ctx, &clingingTx{tx, c}) })
}

type clingingTx struct {
	store.Tx
	c *clinging
}

func (t *clingingTx) Remove(ctx context.Context, ids []flow.ID) ([]flow.ID, error) {
	if id := t.c.to.Load(); id != nil && slices.Contains(ids, *id) {
		return nil, errPlanted
	}
	return t.Tx.Remove(ctx, ids)
}

// A workflow whose definition this program cannot read waits for a program that can, and does not delay others; it can be cancelled.
func TestUnreadableDefinition(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		r.define("name: w\ntasks:\n  one: {action: noop}\n  two: {needs: [one], action: noop}\n---\nname: good\ntasks:\n  one: {action: noop}\n")
		h := r.worker()
		id := r.submit(Submission{Action: "w"})
		a := h.take(1)[0]
		s.newer.Store(true)
		r.e.catalog.Forget()
		if receipt := h.complete(a, `1`); receipt.Verdict != flow.Applied {
			r.Errorf("the report: %+v", receipt)
		}
		r.within(patience, "it has not been put aside", func() bool { return r.get(id).Aside != nil })
		if x := r.get(id); x.Stage != flow.Running || !strings.Contains(x.Aside.Reason, "definition") {
			r.Errorf("it is %s, aside %+v", x.Stage, x.Aside)
		}
		if _, err := r.e.Cancel(r.ctx, id, "enough"); err != nil {
			r.Fatal(err)
		}
		if x := r.ended(id); x.Stage != flow.Cancelled {
			r.Errorf("after its cancel: %s", x.Stage)
		}
	})
}
