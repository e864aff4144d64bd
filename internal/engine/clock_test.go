package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// A jump of the database's clock, which workers do not notice, does not take their leases: all get one more lease, and workers that are
// really gone are recovered after it. That holds if a PostgreSQL server's clock is set forwards or back or the server sleeps. On SQLite,
// where leases do not run by the wall clock, it holds if that clock is set.
func TestDatabaseClockJumps(t *testing.T) {
	for name, jump := range map[string]func(*clockwork){
		"forwards":          func(c *clockwork) { c.jump(time.Hour) },
		"back":              func(c *clockwork) { c.jump(-time.Hour) },
		"the wall clock":    func(c *clockwork) { c.move(0, time.Hour, 0) },
		"within the bounds": func(c *clockwork) { c.jump(handoff.Lease / 3) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			recover := func() {
				t.Helper()
				if err := errors.Join(r.e.recoverExpired(r.ctx), r.recoverUnstarted()); err != nil {
					t.Fatal(err)
				}
			}
			h := r.worker()
			running, claimed := r.submit(Submission{Action: "noop"}), r.submit(Submission{Action: "noop"})
			for _, a := range h.take(2) {
				if a.Execution == running {
					h.report(a, ev(&a, 0, flow.EvRunning, nil))
				}
			}
			recover()
			jump(r.clock)
			for range 3 {
				recover()
			}
			for _, id := range []flow.ID{running, claimed} {
				if x := r.get(id); x.Attempt != 1 || x.Owner != h.session {
					t.Errorf("attempt %d of %s, held by %s", x.Attempt, id, x.Owner)
				}
			}
			if _, err := r.e.Renew(r.ctx, h.session); err != nil {
				t.Errorf("renew after the jump: %v", err)
			}
			again := r.submit(Submission{Action: "noop"})
			if work := h.take(1); len(work) != 1 || work[0].Execution != again {
				t.Errorf("take after the jump: %+v", work)
			}
			for range 4 { // often, because SQLite's clock, set back, stands still until it has caught up
				r.lapse(handoff.Lease / 3)
				recover()
			}
			if x := r.get(running); x.Attempt != 2 || !x.Owner.IsZero() {
				t.Errorf("a lease after the jump: attempt %d, held by %s", x.Attempt, x.Owner)
			}
		})
	}
}

// A worker that renews its session before the recovery has noticed the jump keeps it, and its call of Take does not end the session either.
func TestRenewalAfterClockJump(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	if err := r.e.recoverExpired(r.ctx); err != nil {
		t.Fatal(err)
	}
	r.clock.jump(time.Hour)
	r.submit(Submission{Action: "noop"})
	if work, err := r.e.Take(r.ctx, h.session, 1); err != nil && !errors.Is(err, handoff.ErrUnavailable) { // nil: the sweep was first
		t.Errorf("take before the renewal: %+v, %v", work, err)
	}
	if _, err := r.e.Renew(r.ctx, h.session); err != nil {
		t.Fatalf("renew: %v", err)
	}
	r.submit(Submission{Action: "noop"})
	if work := h.take(1); len(work) != 1 {
		t.Errorf("took %+v", work)
	}
	r.lapse(handoff.Lease + time.Second)
	if _, err := r.e.Renew(r.ctx, h.session); !errors.Is(err, handoff.ErrSessionLost) {
		t.Errorf("renew a lease later: %v", err)
	}
}

// The recovery and a renewal can notice the same jump at once. The second one must not restart the leases again: a worker that has gone
// meanwhile would hold its work for another lease.
func TestOneJumpRestartsLeasesOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	if err := r.e.recoverExpired(r.ctx); err != nil {
		t.Fatal(err)
	}
	r.clock.jump(time.Hour)
	shown, err := inBatchFromSession(r.ctx, r.e, func(ctx context.Context, t *transaction) (clockReading, error) { return t.readClock(ctx) })
	if err != nil {
		t.Fatal(err)
	}
	if err := r.e.restartLeases(r.ctx, shown); err != nil {
		t.Fatal(err)
	}
	r.lapse(handoff.Lease + time.Second)
	if err := r.e.restartLeases(r.ctx, shown); err != nil {
		t.Fatal(err)
	}
	if _, err := r.e.Renew(r.ctx, h.session); !errors.Is(err, handoff.ErrSessionLost) {
		t.Errorf("renew a lease after the jump: %v", err)
	}
}

// Lost hand-offs are found by the age of their claim, which is wrong after a jump: they are searched for a lease later.
func TestUndeliveredAfterClockJump(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	id := r.submit(Submission{Action: "noop"})
	h.take(1)
	if err := r.e.recoverExpired(r.ctx); err != nil {
		t.Fatal(err)
	}
	r.clock.jump(time.Hour)
	for i, want := range []int{1, 1, 2} {
		if err := errors.Join(r.e.recoverExpired(r.ctx), r.recoverUnstarted()); err != nil {
			t.Fatal(err)
		}
		if x := r.get(id); x.Attempt != want {
			t.Errorf("look %d: attempt %d, want %d", i+1, x.Attempt, want)
		}
		r.pass(handoff.Lease/2 + time.Second) // its worker renews its session, and the attempt does not begin
	}
}
