package storetest

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

func (b *bench) events(id flow.ID, after int64, n int) []flow.Event {
	b.Helper()
	all, err := b.s.Events(b.ctx(), id, after, n)
	must(b, err)
	return all
}

// history checks that events come back complete, in order, in pages.
func history(b *bench) {
	other := b.ready(1)
	id := b.claimed(flow.ID{1})
	d := b.load(id)
	said := []flow.Event{
		{Seq: 4, Attempt: 1, Type: flow.EvRunning, At: b.later(time.Second)},
		{Seq: 5, Attempt: 1, Type: flow.EvProgress, At: b.now.Add(-time.Hour), Data: raw(`{"say": "half \u0000"}`)}, // a worker's clock is behind
		{Seq: 6, Attempt: 1, Type: flow.EvProgress, At: b.later(time.Microsecond), Data: raw(`null`)},
		{Seq: 7, Attempt: 1, Type: flow.EvCompleted, At: b.now},
	}
	reported := append([]flow.Event(nil), said...)
	reported[3].Outcome = &flow.Outcome{Output: raw(`1`)}
	if rc := d.Report(flow.ID{1}, flow.Report{Execution: id, Attempt: 1, Events: reported}, nil, nil, b.now, 0); rc.Verdict != flow.Applied {
		b.Fatalf("report: %+v", rc)
	}
	b.apply(d)
	said[1].At = said[0].At // times do not go backwards
	all := b.events(id, 0, 100)
	if len(all) != 7 {
		b.Fatalf("%d events, want 7", len(all))
	}
	equal(b, "the worker's events", all[3:], said)
	for i, typ := range []flow.EventType{flow.EvRequested, flow.EvScheduled, flow.EvProvisioning} {
		equal(b, "type", all[i].Type, typ)
		equal(b, "number", all[i].Seq, int64(i+1))
		equal(b, "attempt", all[i].Attempt, 1)
	}
	equal(b, "data of the hand-off", string(all[2].Data), `{"worker":"worker"}`)
	var paged []flow.Event
	for after := int64(0); ; {
		page := b.events(id, after, 2)
		if len(page) == 0 {
			break
		}
		paged = append(paged, page...)
		after = page[len(page)-1].Seq
	}
	equal(b, "in pages", paged, all)
	equal(b, "of an execution beside it", len(b.events(other, 0, 100)), 2)
	equal(b, "of an unknown one", len(b.events(b.id(), 0, 100)), 0)
	applied := inTx(b, func(ctx context.Context, t store.Tx) ([]flow.Event, error) { return t.Applied(ctx, id, 3, 6) })
	equal(b, "applied", applied, all[2:5])
}

// inbox checks events that arrive before earlier ones.
func inbox(b *bench) {
	session := flow.ID{1}
	id := b.claimed(session)
	kept := func() []flow.Event {
		return inTx(b, func(ctx context.Context, t store.Tx) ([]flow.Event, error) { return t.Inbox(ctx, id) })
	}
	say := func(verdict flow.Verdict, events ...flow.Event) {
		b.Helper()
		d := b.load(id)
		past := map[int64]flow.Event{}
		for _, e := range b.events(id, 0, 100) {
			past[e.Seq] = e
		}
		if rc := d.Report(session, flow.Report{Execution: id, Attempt: 1, Events: events}, past, kept(), b.later(time.Second), 0); rc.Verdict != verdict {
			b.Fatalf("report: %+v, want %s", rc, verdict)
		}
		b.apply(d)
	}
	running := flow.Event{Seq: 4, Attempt: 1, Type: flow.EvRunning, At: b.now}
	five := flow.Event{Seq: 5, Attempt: 1, Type: flow.EvProgress, At: b.now, Data: raw(`5`)}
	six := flow.Event{Seq: 6, Attempt: 1, Type: flow.EvProgress, At: b.now, Data: raw(`{"n":6}`)}
	end := flow.Event{Seq: 8, Attempt: 1, Type: flow.EvFailed, At: b.now, Data: raw(`{"why":8}`), Outcome: &flow.Outcome{Output: raw(`[8]`),
		Error: &flow.Error{Code: "nonzero_exit", Message: "exit 1", Details: raw(`{"exit_code":1}`)}}}
	say(flow.Stored, six, end)
	equal(b, "kept", kept(), []flow.Event{six, end})
	x := b.get(id)
	equal(b, "counted", int(x.Inbox), 2)
	equal(b, "gap since", x.GapSince, b.now)
	equal(b, "readers see the prefix", len(b.events(id, 0, 100)), 3)
	say(flow.Stored, five)
	say(flow.Applied, running)
	equal(b, "kept beyond the next gap", kept(), []flow.Event{end})
	equal(b, "readers see the longer prefix", len(b.events(id, 0, 100)), 6)
	say(flow.Applied, flow.Event{Seq: 7, Attempt: 1, Type: flow.EvProgress, At: b.now})
	equal(b, "kept at the end", len(kept()), 0)
	x = b.get(id)
	equal(b, "stage", x.Stage, flow.Failed)
	equal(b, "outcome that waited", x.Outcome, end.Outcome)
	equal(b, "history", len(b.events(id, 0, 100)), 8)
}

// retry checks that attempts follow one another in one history.
func retry(b *bench) {
	s1, s2 := flow.ID{1}, flow.ID{2}
	id := b.claimed(s1, attempts(3))
	d := b.load(id)
	must(b, d.Lose("lease ran out", b.later(time.Minute), 0))
	b.apply(d)
	x := b.get(id)
	equal(b, "after the loss", []any{x.Attempt, x.Stage, x.Place, x.Owner, x.Outcome == nil}, []any{2, flow.Requested, flow.Delayed, flow.ID{}, true})
	d = b.load(id)
	must(b, d.Schedule(77, b.later(time.Hour)))
	must(b, d.Claim(s2, "w2", b.now))
	b.apply(d)
	b.report(id, flow.EvRunning, flow.EvFailed)
	x = b.get(id)
	equal(b, "after the failure", []any{x.Attempt, x.Stage, x.Place}, []any{3, flow.Requested, flow.Delayed})
	d = b.load(id)
	must(b, d.Schedule(78, b.later(time.Hour)))
	must(b, d.Claim(s2, "w2", b.now))
	b.apply(d)
	b.report(id, flow.EvRunning, flow.EvFailed)
	x = b.get(id)
	equal(b, "at the end", []any{x.Attempt, x.Stage, x.Place}, []any{3, flow.Failed, flow.Finished})
	for i, e := range b.events(id, 0, 100) {
		equal(b, "number", e.Seq, int64(i+1))
	}
}
