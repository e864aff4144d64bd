package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// Missed finds the attempts that a session is missing beside any other attempts, with their input, also over several pages.
func TestMissed(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		h, other := r.worker(), r.worker()
		const all = unstartedPage + 10
		want := map[flow.ID]string{}
		var have []flow.AttemptID
		for i := range all {
			r.submit(Submission{Action: "noop", Input: fmt.Appendf(nil, `{"i":%d}`, i)})
		}
		for len(want)+len(have) < all {
			for _, a := range h.take(all) {
				if len(have) < 5 {
					have = append(have, flow.AttemptID{Execution: a.Execution, Attempt: a.Attempt})
					continue
				}
				want[a.Execution] = string(a.Payload)
			}
		}
		r.submit(Submission{Action: "noop"})
		other.take(1)
		var missed []handoff.Assignment
		for began := time.Now(); len(missed) == 0 && time.Since(began) < 20*time.Second; {
			var err error
			if missed, err = r.e.Missed(r.ctx, h.session, have); err != nil {
				r.Fatal(err)
			}
		}
		if len(missed) != len(want) {
			r.Fatalf("%d are missed, not %d", len(missed), len(want))
		}
		for _, a := range missed {
			if want[a.Execution] != string(a.Payload) {
				r.Errorf("missed %s with %s", a.Execution, a.Payload)
			}
			delete(want, a.Execution)
		}
	})
}

// Reports that are still in the broker when a lease has expired are recorded before the recovery.
func TestRecoveryWaitsForLateReports(t *testing.T) {
	t.Parallel()
	var late atomic.Pointer[func() error]
	r := newRig(t, func(o *Options) {
		o.DrainBroker = func(context.Context) error {
			if f := late.Load(); f != nil {
				return (*f)()
			}
			return nil
		}
	})
	h := r.worker()
	id := r.submit(Submission{Action: "noop"})
	a := h.take(1)[0]
	h.report(a, ev(&a, 0, flow.EvRunning, nil))
	arrive := func() error {
		_, err := r.e.Report(r.ctx, h.session, []flow.Report{{Execution: id, Attempt: 1, Events: []flow.Event{ev(&a, 1, flow.EvCompleted, nil)}}})
		return err
	}
	late.Store(&arrive)
	r.lapse(handoff.Lease + time.Second)
	r.e.awaitLate(r.ctx, new(time.Time))
	if err := r.e.recoverExpired(r.ctx); err != nil {
		t.Fatal(err)
	}
	if x := r.get(id); x.Stage != flow.Completed || x.Attempt != 1 {
		t.Errorf("%s in attempt %d", x.Stage, x.Attempt)
	}
}

// Recovery waits for late reports for a lease and no longer, and not for a broker that does not answer.
func TestRecoveryWaitsNoLongerThanALease(t *testing.T) {
	t.Parallel()
	calls := 0
	wait := func(ctx context.Context) error {
		calls++
		<-ctx.Done()
		return ctx.Err()
	}
	e, err := New(Options{Store: newRig(t).store, Lease: time.Second, DrainBroker: func(ctx context.Context) error { return wait(ctx) }})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		began, until := time.Now(), time.Time{}
		e.awaitLate(t.Context(), &until)
		if took := time.Since(began); took != time.Second || !until.Equal(time.Now().Add(time.Second)) {
			t.Errorf("waited %s, and the next time from %s on", took, until)
		}
		e.awaitLate(t.Context(), &until)
		if calls != 1 {
			t.Errorf("waited again at once: %d", calls)
		}
		until = time.Time{}
		wait = func(context.Context) error { return errors.New("the broker does not answer") }
		if e.awaitLate(t.Context(), &until); !until.IsZero() {
			t.Errorf("the next time from %s on", until)
		}
	})
}
