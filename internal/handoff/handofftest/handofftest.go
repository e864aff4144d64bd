// Package handofftest is the conformance suite of the hand-off: every backend passes it unchanged.
package handofftest

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// Rig is a hand-off and the engine behind it.
type Rig struct {
	Handoff handoff.Handoff
	// Submit accepts one execution of the kind for the queue "default". It is a built-in kind or "resize", which is a custom one.
	Submit func(t *testing.T, kind flow.Kind, input json.RawMessage) flow.ID
	// SubmitFor accepts an instant one for that queue and workers with the labels.
	SubmitFor func(t *testing.T, labels map[string]string) flow.ID
	// Cancel asks for the end of an execution.
	Cancel func(t *testing.T, id flow.ID)
	// Feed appends a piece to the input of an execution.
	Feed func(t *testing.T, id flow.ID, piece string, last bool)
	// Reader reads committed rows.
	Reader interface {
		store.Reader
		store.Logs
	}
	// Pass advances the engine's clock.
	Pass func(d time.Duration)
}

// Exercise runs the suite; build makes a fresh Rig, which ends with its test.
func Exercise(t *testing.T, build func(t *testing.T) *Rig) {
	for name, f := range map[string]func(*testing.T, *bench){
		"Lifecycle":        lifecycle,
		"TakeWaits":        takeWaits,
		"TakeOnce":         takeOnce,
		"TakeTwice":        takeTwice,
		"TakeLabelled":     takeLabelled,
		"TakeKinds":        takeKinds,
		"HalfAWorker":      halfAWorker,
		"Declined":         declined,
		"DeclinedTooLate":  declinedTooLate,
		"Missed":           missed,
		"AssignedTwice":    assignedTwice,
		"LateWork":         lateWork,
		"ReportTwice":      reportTwice,
		"Reordered":        reordered,
		"GapHeals":         gapHeals,
		"Fenced":           fenced,
		"PoisonedBatch":    poisonedBatch,
		"Orders":           orders,
		"OrderForMore":     orderForMore,
		"Logs":             logs,
		"Input":            input,
		"InputOfOthers":    inputOfOthers,
		"Blobs":            blobs,
		"BlobsOfOthers":    blobsOfOthers,
		"BlobsInTime":      blobsInTime,
		"SessionLost":      sessionLost,
		"Close":            closed,
		"Resume":           resume,
		"ResumeLost":       resumeLost,
		"ResumeLate":       resumeLate,
		"UnknownSession":   unknownSession,
		"Failure":          failure,
		"OutputsKeepTypes": outputsKeepTypes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, &bench{Rig: build(t)})
		})
	}
}

// bench is a Rig with hands.
type bench struct{ *Rig }

const patience = 20 * time.Second

func (b *bench) ctx(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func (b *bench) open(t *testing.T, offers ...string) flow.ID {
	t.Helper()
	id, err := b.Handoff.Open(b.ctx(t), handoff.Session{Name: t.Name(), Queues: []string{"default"}, Kinds: offers, Slots: 10})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	if id.IsZero() {
		t.Fatal("the session has no id")
	}
	return id
}

// take takes exactly one execution. It renews the session first, like a worker: on a busy machine more than half a lease may have passed
// since the session was opened, and then the engine gives it no work.
func (b *bench) take(t *testing.T, session flow.ID) handoff.Assignment {
	t.Helper()
	if _, err := b.Handoff.Renew(b.ctx(t), session); err != nil {
		t.Fatalf("renew: %v", err)
	}
	work, err := b.Handoff.Take(b.ctx(t), session, 1)
	if err != nil || len(work) != 1 {
		t.Fatalf("take: %d, %v", len(work), err)
	}
	return work[0]
}

// held submits and takes one execution.
func (b *bench) held(t *testing.T) (flow.ID, handoff.Assignment) {
	t.Helper()
	session := b.open(t)
	id := b.Submit(t, flow.KindNoop, json.RawMessage(`{"a":1}`))
	a := b.take(t, session)
	if a.Execution != id {
		t.Fatalf("took %s, submitted %s", a.Execution, id)
	}
	return session, a
}

func (b *bench) get(t *testing.T, id flow.ID) *flow.Execution {
	t.Helper()
	x, err := b.Reader.Get(b.ctx(t), id)
	if err != nil {
		t.Fatalf("get %s: %v", id, err)
	}
	return x
}

func (b *bench) history(t *testing.T, id flow.ID) []flow.EventType {
	t.Helper()
	es, err := b.Reader.Events(b.ctx(t), id, 0, 1000)
	if err != nil {
		t.Fatalf("events of %s: %v", id, err)
	}
	var types []flow.EventType
	for i, e := range es {
		if e.Seq != int64(i+1) {
			t.Errorf("event %d of %s has number %d", i+1, id, e.Seq)
		}
		types = append(types, e.Type)
	}
	return types
}

func (b *bench) report(t *testing.T, session flow.ID, rs ...flow.Report) []flow.Receipt {
	t.Helper()
	out, err := b.Handoff.Report(b.ctx(t), session, rs)
	if err != nil {
		t.Fatalf("report: %v", err)
	}
	if len(out) != len(rs) {
		t.Fatalf("%d receipts for %d reports", len(out), len(rs))
	}
	for i := range out {
		if out[i].Execution != rs[i].Execution || out[i].Attempt != rs[i].Attempt {
			t.Errorf("receipt %d is of %s, attempt %d", i, out[i].Execution, out[i].Attempt)
		}
	}
	return out
}

func (b *bench) expect(t *testing.T, session flow.ID, r flow.Report, v flow.Verdict, next int64) {
	t.Helper()
	if rc := b.report(t, session, r)[0]; rc.Verdict != v || rc.Next != next {
		t.Errorf("receipt %+v, want %s and next %d", rc, v, next)
	}
}

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// said is a report of events of the given types, numbered from the worker's n-th event, counted from 0.
func said(a handoff.Assignment, n int64, types ...flow.EventType) flow.Report {
	r := flow.Report{Execution: a.Execution, Attempt: a.Attempt}
	for i, typ := range types {
		e := flow.Event{Seq: a.NextSeq + n + int64(i), Attempt: a.Attempt, Type: typ, At: at}
		switch typ {
		case flow.EvCompleted:
			e.Outcome = &flow.Outcome{Output: json.RawMessage(`{"n":1}`)}
		case flow.EvFailed, flow.EvCancelled, flow.EvTimedOut:
			e.Outcome = &flow.Outcome{Error: &flow.Error{Code: "x", Message: "y"}}
		case flow.EvProgress:
			e.Data = json.RawMessage(`{"percent":50}`)
		}
		r.Events = append(r.Events, e)
	}
	return r
}

var whole = []flow.EventType{"requested", "scheduled", "provisioning", "running", "completed"}

func lifecycle(t *testing.T, b *bench) {
	session, a := b.held(t)
	if a.Attempt != 1 || a.NextSeq != 4 || a.Kind != flow.KindNoop || string(a.Payload) != `{"a":1}` || a.ClaimedAt.IsZero() {
		t.Errorf("assignment %+v", a)
	}
	if x := b.get(t, a.Execution); x.Stage != flow.Provisioning || x.Owner != session {
		t.Errorf("%s, held by %s", x.Stage, x.Owner.Text(flow.SessionPrefix))
	}
	b.expect(t, session, said(a, 0, flow.EvRunning), flow.Applied, 5)
	if x := b.get(t, a.Execution); x.Stage != flow.Running {
		t.Errorf("%s", x.Stage)
	}
	b.expect(t, session, said(a, 0, flow.EvRunning, flow.EvProgress, flow.EvCompleted), flow.Applied, 7)
	x := b.get(t, a.Execution)
	if x.Stage != flow.Completed || string(x.Outcome.Output) != `{"n":1}` || x.FinishedAt.IsZero() {
		t.Errorf("%s, %+v", x.Stage, x.Outcome)
	}
	if h := b.history(t, a.Execution); !slices.Equal(h, []flow.EventType{"requested", "scheduled", "provisioning", "running", "progress", "completed"}) {
		t.Errorf("history %v", h)
	}
}

func reportTwice(t *testing.T, b *bench) {
	session, a := b.held(t)
	r := said(a, 0, flow.EvRunning, flow.EvCompleted)
	b.expect(t, session, r, flow.Applied, 6)
	before := b.get(t, a.Execution)
	b.expect(t, session, r, flow.Duplicate, 6)
	b.expect(t, session, said(a, 0, flow.EvRunning), flow.Duplicate, 6)
	b.expect(t, session, said(a, 1, flow.EvFailed), flow.Refused, 6)
	after := b.get(t, a.Execution)
	if after.Stage != flow.Completed || !after.FinishedAt.Equal(before.FinishedAt) || string(after.Outcome.Output) != `{"n":1}` {
		t.Errorf("a repeated report changed the end: %s, %+v", after.Stage, after.Outcome)
	}
	if h := b.history(t, a.Execution); !slices.Equal(h, whole) {
		t.Errorf("history %v", h)
	}
}

func reordered(t *testing.T, b *bench) {
	session, a := b.held(t)
	b.expect(t, session, said(a, 2, flow.EvCompleted), flow.Stored, 4)
	b.expect(t, session, said(a, 1, flow.EvProgress), flow.Stored, 4)
	if h := b.history(t, a.Execution); len(h) != 3 {
		t.Errorf("readers see beyond the gap: %v", h)
	}
	b.expect(t, session, said(a, 0, flow.EvRunning), flow.Applied, 7)
	if x := b.get(t, a.Execution); x.Stage != flow.Completed || x.Inbox != 0 || string(x.Outcome.Output) != `{"n":1}` {
		t.Errorf("%s, %d kept, %+v", x.Stage, x.Inbox, x.Outcome)
	}
}

// Every report has all unacknowledged events, so the report after a lost one closes the gap.
func gapHeals(t *testing.T, b *bench) {
	session, a := b.held(t)
	b.expect(t, session, said(a, 1, flow.EvProgress), flow.Stored, 4)
	b.expect(t, session, said(a, 0, flow.EvRunning, flow.EvProgress, flow.EvCompleted), flow.Applied, 7)
	if x := b.get(t, a.Execution); x.Stage != flow.Completed || x.Inbox != 0 {
		t.Errorf("%s, %d kept", x.Stage, x.Inbox)
	}
}

func fenced(t *testing.T, b *bench) {
	session, a := b.held(t)
	thief := b.open(t)
	b.expect(t, thief, said(a, 0, flow.EvRunning, flow.EvCompleted), flow.Fenced, 4)
	later := a
	later.Attempt = 2
	b.expect(t, session, said(later, 0, flow.EvRunning), flow.Fenced, 4)
	nobody := a
	nobody.Execution = flow.ID{1, 2, 3}
	if rc := b.report(t, session, said(nobody, 0, flow.EvRunning))[0]; rc.Verdict != flow.Unknown {
		t.Errorf("receipt %+v", rc)
	}
	if x := b.get(t, a.Execution); x.Stage != flow.Provisioning || x.Owner != session {
		t.Errorf("%s", x.Stage)
	}
	b.expect(t, session, said(a, 0, flow.EvRunning, flow.EvCompleted), flow.Applied, 6)
}

// A bad report does not affect the other reports of its call.
func poisonedBatch(t *testing.T, b *bench) {
	session := b.open(t)
	const n = 30
	for range n {
		b.Submit(t, flow.KindNoop, nil)
	}
	var reports []flow.Report
	for len(reports) < n {
		work, err := b.Handoff.Take(b.ctx(t), session, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range work {
			reports = append(reports, said(a, 0, flow.EvRunning, flow.EvCompleted))
		}
	}
	reports[3].Events[1].Type = flow.EvScheduled // not a worker's event
	reports[5].Events[1].Type = "\x00\xff"       // not a type
	reports[7].Events[1].Attempt = 9             // of another attempt
	reports[9].Events = reports[9].Events[1:]    // ahead of a gap
	reports[11].Events = nil                     // says nothing
	reports[13].Events[1].Outcome.Output = nil   // a missing output is an output too
	reports[15].Events[1].Data = json.RawMessage(`{"nul":"\u0000"}`)
	bad := map[int]bool{3: true, 5: true, 7: true, 9: true, 11: true}
	receipts := b.report(t, session, reports...)
	for i, r := range reports {
		x := b.get(t, r.Execution)
		if bad[i] == (x.Stage == flow.Completed) {
			t.Errorf("report %d: %+v, and then %s", i, receipts[i], x.Stage)
		}
		b.history(t, r.Execution)
	}
}

func orders(t *testing.T, b *bench) {
	session, a := b.held(t)
	b.report(t, session, said(a, 0, flow.EvRunning))
	got := make(chan []handoff.Order, 1)
	ctx := b.ctx(t)
	go func() {
		o, err := b.Handoff.Orders(ctx, session)
		if err != nil {
			t.Errorf("orders: %v", err)
		}
		got <- o
	}()
	b.Cancel(t, a.Execution)
	check := func(o []handoff.Order) {
		t.Helper()
		if len(o) != 1 || o[0].Execution != a.Execution || o[0].Attempt != 1 || o[0].As != flow.Cancelled || o[0].Code == "" {
			t.Errorf("orders %+v", o)
		}
	}
	check(<-got)
	r, err := b.Handoff.Renew(b.ctx(t), session)
	if err != nil {
		t.Fatalf("renew: %v", err)
	}
	check(r.Orders)
	if x := b.get(t, a.Execution); x.Stage != flow.Running {
		t.Errorf("%s before the owner has confirmed it", x.Stage)
	}
	b.expect(t, session, said(a, 1, flow.EvCancelled), flow.Applied, 6)
	if x := b.get(t, a.Execution); x.Stage != flow.Cancelled {
		t.Errorf("%s", x.Stage)
	}
	if r, err := b.Handoff.Renew(b.ctx(t), session); err != nil || len(r.Orders) > 0 {
		t.Errorf("an order that was carried out is still given: %+v, %v", r.Orders, err)
	}
}

// An answer lists all outstanding orders, whenever they came.
func orderForMore(t *testing.T, b *bench) {
	session := b.open(t)
	var ids []flow.ID
	for range 3 {
		b.Submit(t, flow.KindNoop, nil)
		ids = append(ids, b.take(t, session).Execution)
	}
	for _, id := range ids {
		b.Cancel(t, id)
	}
	for ctx := b.ctx(t); ; {
		o, err := b.Handoff.Orders(ctx, session)
		if err != nil {
			t.Fatalf("orders: %v", err)
		}
		if len(o) == 3 {
			return
		}
	}
}

func logs(t *testing.T, b *bench) {
	session, a := b.held(t)
	chunk := func(seq, offset int64, stream, text string) flow.LogChunk {
		return flow.LogChunk{Execution: a.Execution, Attempt: 1, Seq: seq, Stream: stream, Offset: offset, At: at, Data: []byte(text), Size: int64(len(text))}
	}
	first := []flow.LogChunk{chunk(1, 0, "stdout", "a\x00\xff"), chunk(2, 0, "stderr", "oops")}
	for range 2 {
		if err := b.Handoff.Log(b.ctx(t), session, first); err != nil {
			t.Fatalf("log: %v", err)
		}
	}
	if err := b.Handoff.Log(b.ctx(t), session, []flow.LogChunk{first[1], chunk(3, 3, "stdout", "b")}); err != nil {
		t.Fatalf("log: %v", err)
	}
	b.report(t, session, said(a, 0, flow.EvRunning, flow.EvCompleted))
	got, err := b.Reader.ReadLogs(b.ctx(t), store.LogQuery{Execution: a.Execution, Limit: 1 << 20})
	if err != nil {
		t.Fatalf("read logs: %v", err)
	}
	want := []string{"a\x00\xff", "oops", "b"}
	for i, c := range got {
		if i >= len(want) || string(c.Data) != want[i] || c.Seq != int64(i+1) || !c.At.Equal(at) {
			t.Errorf("chunk %d: %+v", i, c)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d chunks", len(got))
	}
}

func failure(t *testing.T, b *bench) {
	session, a := b.held(t)
	r := said(a, 0, flow.EvRunning, flow.EvFailed)
	r.Events[1].Outcome = &flow.Outcome{Output: json.RawMessage(`{"verdict":"oom"}`), Error: &flow.Error{Code: "oom", Message: "out of memory", Details: json.RawMessage(`{"exit_code":9}`)}}
	b.expect(t, session, r, flow.Applied, 6)
	x := b.get(t, a.Execution)
	if x.Stage != flow.Failed || x.Outcome.Error == nil || x.Outcome.Error.Code != "oom" || string(x.Outcome.Output) != `{"verdict":"oom"}` || string(x.Outcome.Error.Details) != `{"exit_code":9}` {
		t.Errorf("%s, %+v", x.Stage, x.Outcome)
	}
}

func outputsKeepTypes(t *testing.T, b *bench) {
	session, a := b.held(t)
	const out = `{"i":9007199254740993,"f":1.0,"s":"<&\u2028é","l":[],"n":null}`
	r := said(a, 0, flow.EvRunning, flow.EvCompleted)
	r.Events[1].Outcome.Output = json.RawMessage(out)
	b.expect(t, session, r, flow.Applied, 6)
	var got, want any
	raw := b.get(t, a.Execution).Outcome.Output
	decode := func(s []byte, into *any) {
		d := json.NewDecoder(bytes.NewReader(s))
		d.UseNumber()
		if err := d.Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	decode(raw, &got)
	decode([]byte(out), &want)
	g, _ := json.Marshal(got)
	w, _ := json.Marshal(want)
	if string(g) != string(w) {
		t.Errorf("output %s", raw)
	}
}
