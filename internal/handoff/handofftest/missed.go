package handofftest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

func (b *bench) missed(t *testing.T, session flow.ID, have ...flow.AttemptID) []handoff.Assignment {
	t.Helper()
	work, err := b.Handoff.Missed(b.ctx(t), session, have)
	if err != nil {
		t.Fatalf("missed: %v", err)
	}
	return work
}

// Missed returns attempts that a session holds and does not know: not at once, because the answer may still come, and not when they are
// about to be recovered.
func missed(t *testing.T, b *bench) {
	began := time.Now()
	session, known := b.held(t)
	_, others := b.held(t)
	b.Submit(t, flow.KindNoop, json.RawMessage(`{"b":2}`))
	lost := b.take(t, session)
	b.Submit(t, flow.KindNoop, nil)
	begun := b.take(t, session)
	b.report(t, session, said(begun, 0, flow.EvRunning))
	// An answer has a second to arrive. If the machine took longer for the calls above, it may be missed.
	if work := b.missed(t, session); len(work) > 0 && time.Since(began) < time.Second {
		t.Errorf("missed at once: %+v", work)
	}
	b.Pass(3 * time.Second)
	work := b.missed(t, session, attemptOf(known), attemptOf(begun))
	if len(work) != 1 || work[0].Execution != lost.Execution || work[0].Attempt != lost.Attempt || work[0].NextSeq != lost.NextSeq ||
		string(work[0].Payload) != `{"b":2}` || !work[0].ClaimedAt.Equal(lost.ClaimedAt) {
		t.Fatalf("missed %+v, lost was %+v", work, lost)
	}
	if work := b.missed(t, session); len(work) != 2 || work[0].Execution == others.Execution || work[1].Execution == others.Execution {
		t.Errorf("missed %+v", work)
	}
	if _, err := b.Handoff.Renew(b.ctx(t), session); err != nil {
		t.Fatal(err)
	}
	b.Pass(2*handoff.Lease/3 - 2*time.Second)
	if work := b.missed(t, session); len(work) > 0 {
		t.Errorf("missed two thirds of a lease after its claim: %+v", work)
	}
	b.expect(t, session, said(lost, 0, flow.EvRunning, flow.EvCompleted), flow.Applied, 6)
	if _, err := b.Handoff.Missed(b.ctx(t), flow.ID{9, 9}, nil); !errors.Is(err, handoff.ErrSessionLost) {
		t.Errorf("an unknown session: %v", err)
	}
}

// An attempt that arrives a second time is the same attempt: reports about both are recorded once.
func assignedTwice(t *testing.T, b *bench) {
	session, a := b.held(t)
	b.Pass(3 * time.Second)
	work := b.missed(t, session)
	if len(work) != 1 || work[0].Execution != a.Execution || work[0].Attempt != a.Attempt || work[0].NextSeq != a.NextSeq {
		t.Fatalf("handed over as %+v and as %+v", a, work)
	}
	b.expect(t, session, said(a, 0, flow.EvRunning, flow.EvCompleted), flow.Applied, 6)
	b.expect(t, session, said(work[0], 0, flow.EvRunning, flow.EvCompleted), flow.Duplicate, 6)
	if work := b.missed(t, session); len(work) > 0 {
		t.Errorf("what has ended is handed over again: %+v", work)
	}
	if x := b.get(t, a.Execution); x.Attempt != 1 || x.Stage != flow.Completed {
		t.Errorf("%s in attempt %d", x.Stage, x.Attempt)
	}
}

// Work claimed for a call whose caller has gone is not lost: the session gets it by its next call or by Missed. The work stays the
// session's, which may give it back.
func lateWork(t *testing.T, b *bench) {
	session := b.open(t)
	ctx, leave := context.WithCancel(t.Context())
	answered := make(chan []handoff.Assignment, 1)
	go func() {
		work, _ := b.Handoff.Take(ctx, session, 1) // the error is that of leave
		answered <- work
	}()
	id := b.Submit(t, flow.KindNoop, nil)
	leave()
	held := <-answered
	for ctx := b.ctx(t); len(held) == 0; {
		b.Pass(time.Second)
		if _, err := b.Handoff.Renew(ctx, session); err != nil {
			t.Fatal(err)
		}
		if held = b.missed(t, session); len(held) > 0 {
			break
		}
		asking, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		held, _ = b.Handoff.Take(asking, session, 1) // it may have been claimed for the call that was given up
		cancel()
	}
	if len(held) != 1 || held[0].Execution != id || held[0].Attempt != 1 {
		t.Fatalf("got %+v", held)
	}
	if err := b.Handoff.Decline(b.ctx(t), session, []flow.AttemptID{attemptOf(held[0])}); err != nil {
		t.Fatal(err)
	}
	if x := b.get(t, id); x.Attempt != 2 || x.Spent() != 1 {
		t.Errorf("in attempt %d, of which %d count", x.Attempt, x.Spent())
	}
}
