package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// An attempt whose claim the rules refuse is put aside, and the worker gets the next one.
func TestClaimBesideWhatTheRulesRefuse(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		bad, good := r.submit(Submission{Action: "noop"}), r.submit(Submission{Action: "noop"})
		s.garbled.Store(&bad)
		h := r.worker()
		if work := h.take(1); len(work) != 1 || work[0].Execution != good {
			r.Errorf("took %+v", work)
		}
		if x := r.get(bad); x.Aside == nil || x.Place == flow.Ready {
			r.Errorf("what the rules refuse is %s, aside %+v", x.Place, x.Aside)
		}
		s.garbled.Store(nil)
		r.comeUp(bad)
		work := h.take(1)
		if len(work) != 1 || work[0].Execution != bad {
			r.Fatalf("when its time had come: took %+v", work)
		}
		h.complete(work[0], `1`)
		if x := r.ended(bad); x.Stage != flow.Completed {
			r.Errorf("what was put aside in its queue is %s", x.Stage)
		}
		if got := fmt.Sprint(r.types(bad)); got != "[requested scheduled provisioning running completed]" {
			r.Errorf("its history: %s", got)
		}
	})
}

// comeUp ends the time of something that was put aside. On a slow machine it may have ended by itself.
func (r *rig) comeUp(id flow.ID) { r.tryAgainIn(0, id) }

// stayAside moves the next try of something that is, or is about to be, put aside to an hour from now.
func (r *rig) stayAside(id flow.ID) {
	r.Helper()
	r.within(time.Minute, "it has not been put aside", func() bool { return r.tryAgainIn(time.Hour, id) })
}

// tryAgainIn changes when something put aside is tried again; false: it is not put aside.
func (r *rig) tryAgainIn(d time.Duration, id flow.ID) bool {
	r.Helper()
	aside, err := inBatch(r.ctx, r.e, []flow.ID{id}, func(_ context.Context, t *transaction) (bool, error) {
		x := t.Draft(id)
		if x.Aside == nil {
			return false, nil
		}
		until := t.now.Add(d)
		if x.WakeAt.Equal(x.Aside.Until) {
			x.WakeAt = until
		}
		a := *x.Aside
		a.Until, x.Aside = until, &a
		t.Changed(x)
		return true, nil
	})
	if err != nil {
		r.Fatal(err)
	}
	return aside
}

// An execution put aside in its queue has lost the slot of its key. If the key is full when its time comes, it joins the wait list like a
// newcomer: it goes before later ones, even if the wait list never empties.
func TestPutAsideWithAKey(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		keyed := Submission{Action: "noop", Key: "k", KeyLimit: 1}
		bad := r.submit(keyed)
		next, before := r.submit(keyed), r.submit(keyed)
		s.garbled.Store(&bad)
		h := r.worker()
		work := h.take(1) // it looks again once the refused one is moved
		if len(work) != 1 || work[0].Execution != next {
			r.Fatalf("took %+v", work)
		}
		s.garbled.Store(nil)
		r.comeUp(bad)
		r.within(patience, "it does not wait for its key", func() bool { return r.get(bad).Place == flow.Waiting })
		if x := r.get(bad); x.Stage != flow.Scheduled || x.Aside != nil {
			r.Errorf("it is %s, aside %+v", x.Stage, x.Aside)
		}
		if w := r.why(bad, `key "k"`); w.Waiting != "key" {
			r.Errorf("it waits for %+v", w)
		}
		after := r.submit(keyed)
		for _, want := range []flow.ID{before, bad, after} {
			r.submit(keyed) // the wait list is never empty
			h.complete(work[0], `1`)
			if work = h.take(1); len(work) != 1 || work[0].Execution != want {
				r.Fatalf("took %+v, want %s", work, want)
			}
		}
		if x := r.ended(bad); x.Stage != flow.Completed {
			r.Errorf("it is %s", x.Stage)
		}
		if got := fmt.Sprint(r.types(bad)); got != "[requested scheduled provisioning running completed]" {
			r.Errorf("its history: %s", got)
		}
	})
}

// An execution put aside in its queue gets a slot of its key again if one is free when its time comes.
func TestPutAsideWithAFreeKey(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		keyed := Submission{Action: "noop", Key: "k", KeyLimit: 1}
		bad := r.submit(keyed)
		s.garbled.Store(&bad)
		h := r.worker()
		got := h.begin(1)
		r.within(patience, "it has not been put aside", func() bool { return r.get(bad).Aside != nil })
		s.garbled.Store(nil)
		r.comeUp(bad)
		if work := <-got; len(work) != 1 || work[0].Execution != bad {
			r.Fatalf("took %+v", work)
		}
	})
}

// With cancel_oldest, an execution put aside in its queue ends if another has its slot: it would undo the work of the other.
func TestPutAsideWithAKeyForTheLatest(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		keyed := Submission{Action: "noop", Key: "k", KeyLimit: 1, WhenFull: flow.WhenFullCancelOldest}
		old := r.submit(keyed)
		s.garbled.Store(&old)
		h := r.worker()
		got := h.begin(1)
		r.stayAside(old)
		s.garbled.Store(nil)
		latest := r.submit(keyed)
		work := <-got
		if len(work) != 1 || work[0].Execution != latest {
			r.Fatalf("took %+v", work)
		}
		r.comeUp(old)
		if x := r.ended(old); x.Stage != flow.Cancelled || x.Outcome.Error.Code != flow.CodeSuperseded {
			r.Errorf("it ended as %s, %+v", x.Stage, x.Outcome)
		}
		h.complete(work[0], `1`)
		r.ended(latest)
	})
}

// A delayed start that is refused at its time is tried again, and starts.
func TestDelayedStartPutAside(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		s.set(func(d *flow.Draft) bool { return d.Stage == flow.Scheduled })
		id := r.submit(Submission{Action: "noop", StartIn: 300 * time.Millisecond})
		r.within(patience, "what is refused has not been put aside", func() bool { return r.get(id).Aside != nil })
		if x := r.get(id); x.Place != flow.Delayed || x.Stage != flow.Requested {
			r.Errorf("it is %s, %s", x.Place, x.Stage)
		}
		s.set(func(*flow.Draft) bool { return false })
		r.comeUp(id)
		h := r.worker()
		work := h.take(1)
		if len(work) != 1 || work[0].Execution != id {
			r.Fatalf("took %+v", work)
		}
	})
}
