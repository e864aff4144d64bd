package handofftest

import (
	"context"
	"errors"
	"strings"
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
	// Executions claimed before an abandoned take is noticed belong to its session; no other session gets them.
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

// Executions with labels are claimed by sessions that offer all of them, and by no others; those sessions claim other executions as well.
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

// Executions of a custom kind are claimed by sessions that name the kind, and by no others; sessions that name only that kind claim nothing
// else.
func takeKinds(t *testing.T, b *bench) {
	plain, other, able := b.open(t), b.open(t, "crop"), b.open(t, "resize")
	custom := b.Submit(t, "resize", nil)
	usual := b.Submit(t, flow.KindNoop, nil)
	ctx, cancel := context.WithCancel(b.ctx(t))
	none := make(chan []handoff.Assignment, 1)
	go func() {
		work, _ := b.Handoff.Take(ctx, other, 5) // the error is that of cancel
		none <- work
	}()
	if a := b.take(t, plain); a.Execution != usual {
		t.Errorf("a session that names no kind took %s, which is of a custom one", a.Execution)
	}
	if a := b.take(t, able); a.Execution != custom {
		t.Errorf("a session of a custom kind took %s, which is not of that", a.Execution)
	}
	cancel()
	if work := <-none; len(work) > 0 {
		t.Errorf("a session of another custom kind took %+v", work)
	}
}

// A session with only some of the built-in kinds could get an execution of the others.
func halfAWorker(t *testing.T, b *bench) {
	_, err := b.Handoff.Open(b.ctx(t), handoff.Session{Name: t.Name(), Queues: []string{"default"}, Kinds: []string{"noop", "resize"}, Slots: 1})
	if err == nil || !strings.Contains(err.Error(), "all of the built-in kinds or none") {
		t.Errorf("%v", err)
	}
}

// Declined work gets another attempt after a pause; the declined one does not count, and the history has the reason.
func declined(t *testing.T, b *bench) {
	session, a := b.held(t)
	attempt := flow.AttemptID{Execution: a.Execution, Attempt: a.Attempt}
	for range 2 { // the second time there is nothing to decline
		if err := b.Handoff.Decline(b.ctx(t), session, []flow.AttemptID{attempt, {Execution: flow.ID{9}, Attempt: 1}}); err != nil {
			t.Fatalf("decline: %v", err)
		}
		x := b.get(t, a.Execution)
		if x.Attempt != 2 || x.Spent() != 1 || x.Stage != flow.Requested || !x.Owner.IsZero() || !x.WakeAt.After(x.EventAt) {
			t.Errorf("%s in attempt %d, of which %d count, held by %s, until %s", x.Stage, x.Attempt, x.Spent(), x.Owner, x.WakeAt)
		}
	}
	events, err := b.Reader.Events(b.ctx(t), a.Execution, 0, 100)
	if err != nil || len(events) != 5 || events[3].Type != flow.EvLost || !strings.Contains(string(events[3].Data), "declined") {
		t.Errorf("history %+v, %v", events, err)
	}
	next := b.take(t, b.open(t))
	if next.Execution != a.Execution || next.Attempt != 2 {
		t.Errorf("took %+v", next)
	}
	b.expect(t, session, said(a, 0, flow.EvRunning), flow.Fenced, next.NextSeq)
}

// Attempts that have begun, or belong to another session, cannot be declined; cancelled ones end.
func declinedTooLate(t *testing.T, b *bench) {
	session, begun := b.held(t)
	b.report(t, session, said(begun, 0, flow.EvRunning))
	others, held := b.held(t)
	mine := b.Submit(t, flow.KindNoop, nil)
	cancelled := b.take(t, session)
	b.Cancel(t, mine)
	err := b.Handoff.Decline(b.ctx(t), session, []flow.AttemptID{{Execution: begun.Execution, Attempt: 1}, {Execution: held.Execution, Attempt: 1}, {Execution: cancelled.Execution, Attempt: 1}})
	if err != nil {
		t.Fatalf("decline: %v", err)
	}
	if x := b.get(t, begun.Execution); x.Stage != flow.Running || x.Owner != session {
		t.Errorf("what has begun: %s, held by %s", x.Stage, x.Owner)
	}
	if x := b.get(t, held.Execution); x.Stage != flow.Provisioning || x.Owner != others {
		t.Errorf("another session's: %s, held by %s", x.Stage, x.Owner)
	}
	if x := b.get(t, mine); x.Stage != flow.Cancelled {
		t.Errorf("what was cancelled: %s", x.Stage)
	}
	if err := b.Handoff.Decline(b.ctx(t), flow.ID{9, 9}, nil); !errors.Is(err, handoff.ErrSessionLost) {
		t.Errorf("an unknown session: %v", err)
	}
}

// With any number of sessions, each execution is handed off once.
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

// If a session may have several calls at once, each gets different work.
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
