package engine

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// Two workers that wait when a batch of work arrives get different pieces of it, in one transaction.
func TestWaitingWorkersShareABatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	taken := make(chan []handoff.Assignment, 2)
	hands := []*hand{r.worker(), r.worker()}
	for _, h := range hands {
		go func() {
			work, err := r.e.Take(r.ctx, h.session, 2)
			if err != nil {
				t.Errorf("take: %v", err)
			}
			taken <- work
		}()
	}
	for deadline := time.Now().Add(10 * time.Second); r.e.Stats().Takers < 2; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d workers wait, not 2", r.e.Stats().Takers)
		}
	}
	out, err := r.e.Submit(r.ctx, []Submission{{Action: "noop"}, {Action: "noop"}, {Action: "noop"}, {Action: "noop"}})
	if err != nil || len(out) != 4 {
		t.Fatalf("submit: %v", err)
	}
	owner := map[flow.ID]bool{}
	for range hands {
		for _, a := range <-taken {
			if owner[a.Execution] {
				t.Errorf("%s was handed to both", a.Execution)
			}
			owner[a.Execution] = true
		}
	}
	if len(owner) != 4 {
		t.Errorf("%d of 4 were handed over", len(owner))
	}
}

// A worker with new work is expected back for a moment. Later it may be gone for good, and then no transaction may lock its session.
func TestWhoIsExpected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	expected := func(want flow.ID) {
		t.Helper()
		if session, queues := r.e.expected(); session != want || (len(queues) > 0) == want.IsZero() {
			t.Errorf("%s is expected in %v, not %s", session, queues, want)
		}
	}
	expected(flow.ID{})
	h := r.worker()
	r.submit(Submission{Action: "noop"})
	a := h.take(1)[0]
	expected(h.session)
	r.e.mu.Lock()
	r.e.claimers.servedAt = r.e.claimers.servedAt.Add(-returnsWithin)
	r.e.mu.Unlock()
	expected(flow.ID{})
	other := r.worker("elsewhere")
	go func() { _, _ = r.e.Take(r.ctx, other.session, 1) }() // it ends with the test
	awaitTakers(t, r.e, 1)
	r.settled()
	expected(other.session)
	h.complete(a, "1")
}

// A waiting worker gets the execution with the highest priority, and of equal ones the first.
func TestPriorityOfWhatIsHandedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	taken := make(chan []handoff.Assignment, 1)
	go func() { taken <- h.take(2) }()
	awaitTakers(t, r.e, 1)
	r.settled()
	low, high := 0, 5
	out, err := r.e.Submit(r.ctx, []Submission{
		{Action: "noop", Priority: &low}, {Action: "noop"}, {Action: "noop", Priority: &high}, {Action: "noop", Priority: &high}, {Action: "noop", Priority: &high},
	})
	if err != nil {
		t.Fatal(err)
	}
	if work := <-taken; len(work) != 2 || work[0].Execution != out[2].Execution || work[1].Execution != out[3].Execution {
		t.Errorf("of %+v, %+v were handed over", out, work)
	}
}

// A call of Take that comes during a transaction is served by it if its queues may hold work: it does not cost its own commit.
func TestClaimDuringATransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	id := r.submit(Submission{Action: "noop"})
	before := r.e.Stats()
	taken := make(chan []handoff.Assignment, 1)
	err := r.e.do(r.ctx, nil, func(context.Context, *transaction) error {
		go func() { taken <- h.take(1) }()
		awaitTakers(t, r.e, 1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if work := <-taken; len(work) != 1 || work[0].Execution != id {
		t.Fatalf("%+v was handed over, not %s", work, id)
	}
	after := r.e.Stats()
	if commits, requests := after.Commits-before.Commits, after.Requests-before.Requests; commits > requests {
		t.Errorf("%d commits for %d requests: one of them was for the claim alone", commits, requests)
	}
}
