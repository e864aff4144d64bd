package handofftest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

func takeWaits(t *testing.T, b *bench) {
	session := b.open(t)
	short, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if work, err := b.Handoff.Take(short, session, 1); err == nil || len(work) > 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("an abandoned take gave %d, %v", len(work), err)
	}
	// What is claimed before an abandoned take is noticed belongs to its session; another one has nothing to do with it.
	if err := b.Handoff.Close(b.ctx(t), session); err != nil {
		t.Fatalf("close: %v", err)
	}
	session = b.open(t)
	type taken struct {
		work []handoff.Assignment
		err  error
	}
	got := make(chan taken, 1)
	ctx := b.ctx(t)
	go func() {
		work, err := b.Handoff.Take(ctx, session, 5)
		got <- taken{work, err}
	}()
	id := b.Submit(t, flow.KindNoop, nil)
	if r := <-got; r.err != nil || len(r.work) != 1 || r.work[0].Execution != id {
		t.Errorf("took %+v, %v", r.work, r.err)
	}
}

// What asks for labels is taken by sessions that offer all of them, and by no others; those take the rest as well.
func takeLabelled(t *testing.T, b *bench) {
	offers := flow.OfferLabels(map[string]string{"gpu": "a100", "example.com/zone": "eu"})
	plain, half, able := b.open(t), b.open(t, offers[:1]...), b.open(t, offers...)
	special := b.SubmitFor(t, map[string]string{"example.com/zone": "eu", "gpu": "a100"})
	for _, session := range []flow.ID{plain, half} {
		usual := b.Submit(t, flow.KindNoop, nil)
		if a := b.take(t, session); a.Execution != usual {
			t.Errorf("took %s, which asks for labels", a.Execution)
		}
	}
	if a := b.take(t, able); a.Execution != special {
		t.Errorf("took %s, not what asks for its labels", a.Execution)
	}
	usual := b.Submit(t, flow.KindNoop, nil)
	if a := b.take(t, able); a.Execution != usual {
		t.Errorf("took %s, not what asks for no labels", a.Execution)
	}
}

// However many sessions take at once, each execution is handed off once.
func takeOnce(t *testing.T, b *bench) {
	const sessions, all = 4, 100
	ids := map[flow.ID]bool{}
	for range all {
		ids[b.Submit(t, flow.KindNoop, nil)] = true
	}
	ctx, cancel := context.WithCancel(b.ctx(t))
	defer cancel()
	got := make(chan flow.ID, 2*all)
	for range sessions {
		session := b.open(t)
		go func() {
			for ctx.Err() == nil {
				work, _ := b.Handoff.Take(ctx, session, 7)
				for _, a := range work {
					got <- a.Execution
				}
			}
		}()
	}
	for range all {
		select {
		case id := <-got:
			if !ids[id] {
				t.Fatalf("%s was taken twice, or never submitted", id)
			}
			delete(ids, id)
		case <-ctx.Done():
			t.Fatalf("%d were never taken", len(ids))
		}
	}
}

// Where a session may have several calls under way, each is given work of its own.
func takeTwice(t *testing.T, b *bench) {
	calls := handoff.Calls(b.Handoff)
	if calls == 1 {
		t.Skip("sessions of this hand-off have one call of Take under way at a time")
	}
	session := b.open(t)
	ctx := b.ctx(t)
	got := make(chan handoff.Assignment, calls)
	for range calls {
		go func() {
			work, err := b.Handoff.Take(ctx, session, 1)
			if err != nil || len(work) != 1 {
				t.Errorf("took %+v, %v", work, err)
			}
			for _, a := range work {
				got <- a
			}
		}()
	}
	ids := map[flow.ID]bool{}
	for range calls {
		ids[b.Submit(t, flow.KindNoop, nil)] = true
	}
	for range calls {
		select {
		case a := <-got:
			if !ids[a.Execution] {
				t.Errorf("%s was taken twice, or never submitted", a.Execution)
			}
			delete(ids, a.Execution)
		case <-ctx.Done():
			t.Fatalf("%d were never taken", len(ids))
		}
	}
}
