package handofftest

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

func (b *bench) resume(t *testing.T, before flow.ID, keep ...flow.AttemptID) (flow.ID, []handoff.Assignment) {
	t.Helper()
	id, work, err := b.Handoff.Resume(b.ctx(t), handoff.Session{Name: t.Name() + " again", Queues: []string{"default"}, Slots: 10}, before, keep)
	if err != nil {
		t.Fatalf("resume: %v", err)
	}
	if id.IsZero() || id == before {
		t.Fatalf("the session is %s", id.Text(flow.SessionPrefix))
	}
	return id, work
}

func attemptOf(a handoff.Assignment) flow.AttemptID {
	return flow.AttemptID{Execution: a.Execution, Attempt: a.Attempt}
}

// The next process of a worker continues the attempts that it keeps; the others are recovered at once, and late messages of the dead
// process are refused.
func resume(t *testing.T, b *bench) {
	session := b.open(t)
	var held []handoff.Assignment
	for range 4 {
		b.Submit(t, flow.KindNoop, json.RawMessage(`{"a":1}`))
		held = append(held, b.take(t, session))
	}
	going, unbegun, dropped, gap := held[0], held[1], held[2], held[3]
	b.expect(t, session, said(going, 0, flow.EvRunning, flow.EvProgress), flow.Applied, 6)
	b.expect(t, session, said(dropped, 0, flow.EvRunning), flow.Applied, 5)
	b.expect(t, session, said(gap, 1, flow.EvProgress), flow.Stored, 4)
	chunk := func(seq, offset int64, stream, text string) flow.LogChunk {
		return flow.LogChunk{Execution: going.Execution, Attempt: 1, Seq: seq, Stream: stream, Offset: offset, At: at, Data: []byte(text), Size: int64(len(text))}
	}
	if err := b.Handoff.Log(b.ctx(t), session, []flow.LogChunk{chunk(1, 0, "stdout", "one\n"), chunk(2, 0, "stderr", "oops"), chunk(3, 4, "stdout", "t\xff")}); err != nil {
		t.Fatal(err)
	}
	b.Pass(5 * time.Second)
	elsewhere := attemptOf(going)
	elsewhere.Execution[0] ^= 0xff
	later := attemptOf(dropped)
	later.Attempt = 2
	next, work := b.resume(t, session, attemptOf(going), attemptOf(unbegun), attemptOf(gap), elsewhere, later)
	if len(work) != 2 {
		t.Fatalf("kept %+v", work)
	}
	slices.SortFunc(work, func(x, y handoff.Assignment) int { return int(y.NextSeq - x.NextSeq) })
	a := work[0]
	r := a.Resumed
	if a.Execution != going.Execution || a.Attempt != 1 || a.NextSeq != 6 || string(a.Payload) != `{"a":1}` || a.Kind != flow.KindNoop || r == nil ||
		!r.Running || r.Elapsed < 5*time.Second || r.LogSeq < 3 || !maps.Equal(r.Logs, map[string]int64{"stdout": 6, "stderr": 4}) {
		t.Errorf("kept as %+v, %+v", a, r)
	}
	if a := work[1]; a.Execution != unbegun.Execution || a.NextSeq != 4 || a.Resumed == nil || a.Resumed.Running || a.Resumed.LogSeq < 0 || len(a.Resumed.Logs) > 0 {
		t.Errorf("kept as %+v, %+v", a, a.Resumed)
	}
	for _, lost := range []handoff.Assignment{dropped, gap} {
		if x := b.get(t, lost.Execution); x.Attempt != 2 || !x.Owner.IsZero() {
			t.Errorf("not recovered at once: %s in attempt %d", x.Stage, x.Attempt)
		}
	}

	// Late messages of the dead process: an end, another event, a log, a claim.
	for _, late := range []flow.Report{said(going, 2, flow.EvFailed), said(going, 2, flow.EvProgress), said(unbegun, 0, flow.EvRunning, flow.EvFailed)} {
		if out, err := b.Handoff.Report(b.ctx(t), session, []flow.Report{late}); err == nil && out[0].Verdict != flow.Fenced {
			t.Errorf("a late report: %+v", out)
		} else if err != nil && !errors.Is(err, handoff.ErrSessionLost) {
			t.Errorf("a late report: %v", err)
		}
	}
	if err := b.Handoff.Log(b.ctx(t), session, []flow.LogChunk{chunk(4, 6, "stdout", "late")}); !errors.Is(err, handoff.ErrSessionLost) {
		t.Errorf("a late log: %v", err)
	}
	if _, err := b.Handoff.Take(b.ctx(t), session, 1); !errors.Is(err, handoff.ErrSessionLost) {
		t.Errorf("a late take: %v", err)
	}
	if _, err := b.Handoff.Renew(b.ctx(t), session); !errors.Is(err, handoff.ErrSessionLost) {
		t.Errorf("a late renewal: %v", err)
	}

	c := chunk(r.LogSeq+1, 6, "stdout", "wo\n")
	if err := b.Handoff.Log(b.ctx(t), next, []flow.LogChunk{c}); err != nil {
		t.Fatal(err)
	}
	b.expect(t, next, said(work[0], 0, flow.EvCompleted), flow.Applied, 7)
	b.expect(t, next, said(work[1], 0, flow.EvRunning, flow.EvCompleted), flow.Applied, 6)
	if h := b.history(t, going.Execution); !slices.Equal(h, []flow.EventType{"requested", "scheduled", "provisioning", "running", "progress", "completed"}) {
		t.Errorf("history %v", h)
	}
	chunks, err := b.Reader.ReadLogs(b.ctx(t), store.LogQuery{Execution: going.Execution, Attempt: 1, Stream: "stdout", Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for _, c := range chunks {
		text = append(text, c.Data...)
	}
	if string(text) != "one\nt\xffwo\n" {
		t.Errorf("log %q", text)
	}
	if _, err := b.Handoff.Renew(b.ctx(t), next); err != nil {
		t.Errorf("renew: %v", err)
	}
}

// An order that came while there was no process is not lost.
func resumeLate(t *testing.T, b *bench) {
	session, a := b.held(t)
	b.report(t, session, said(a, 0, flow.EvRunning))
	b.Cancel(t, a.Execution)
	next, work := b.resume(t, session, attemptOf(a))
	if len(work) != 1 {
		t.Fatalf("kept %+v", work)
	}
	r, err := b.Handoff.Renew(b.ctx(t), next)
	if err != nil || len(r.Orders) != 1 || r.Orders[0].Execution != a.Execution || r.Orders[0].As != flow.Cancelled {
		t.Errorf("orders %+v, %v", r.Orders, err)
	}
	b.expect(t, next, said(work[0], 0, flow.EvCancelled), flow.Applied, 6)
}

// A session with an expired lease keeps nothing, nor does a closed one.
func resumeLost(t *testing.T, b *bench) {
	session, a := b.held(t)
	b.report(t, session, said(a, 0, flow.EvRunning))
	b.Pass(handoff.Lease + time.Second)
	s := handoff.Session{Name: t.Name(), Queues: []string{"default"}, Slots: 10}
	next, work, err := b.Handoff.Resume(b.ctx(t), s, session, []flow.AttemptID{attemptOf(a)})
	if errors.Is(err, handoff.ErrSessionLost) {
		next = b.open(t)
	} else if err != nil || len(work) > 0 {
		t.Fatalf("resumed after the lease: %+v, %v", work, err)
	}
	again := b.take(t, next)
	if again.Execution != a.Execution || again.Attempt != 2 || again.Resumed != nil {
		t.Errorf("took %+v", again)
	}
	if err := b.Handoff.Close(b.ctx(t), next); err != nil {
		t.Fatal(err)
	}
	if _, work, err := b.Handoff.Resume(b.ctx(t), s, next, []flow.AttemptID{attemptOf(again)}); err != nil && !errors.Is(err, handoff.ErrSessionLost) || len(work) > 0 {
		t.Errorf("resumed what was closed: %+v, %v", work, err)
	}
	if x := b.get(t, a.Execution); x.Attempt != 3 {
		t.Errorf("%s in attempt %d", x.Stage, x.Attempt)
	}
}
