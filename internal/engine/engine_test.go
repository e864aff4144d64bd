package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

func TestSubmitClaimFinish(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	id := r.submit(Submission{Action: "noop", Input: json.RawMessage(`{"x":1}`), Labels: map[string]string{"a": "b"}})
	work := h.take(10)
	if len(work) != 1 || work[0].Execution != id || string(work[0].Payload) != `{"x":1}` || work[0].NextSeq != 4 {
		t.Fatalf("took %+v", work)
	}
	if rc := h.complete(work[0], `{"y":2}`); rc.Verdict != flow.Applied || rc.Next != 6 {
		t.Fatalf("receipt %+v", rc)
	}
	x := r.get(id)
	if x.Stage != flow.Completed || string(x.Outcome.Output) != `{"y":2}` || x.FinishedAt.IsZero() || x.StartedAt.IsZero() {
		t.Fatalf("%+v", x)
	}
	want := []flow.EventType{flow.EvRequested, flow.EvScheduled, flow.EvProvisioning, flow.EvRunning, flow.EvCompleted}
	if got := r.history(id); !slices.Equal(got, want) {
		t.Fatalf("history %v", got)
	}
	if rc := h.complete(work[0], `{"y":2}`); rc.Verdict != flow.Duplicate {
		t.Errorf("the same report again: %+v", rc)
	}
	if rc := h.fail(work[0], "x"); rc.Verdict != flow.Refused {
		t.Errorf("another end for the same attempt: %+v", rc)
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.worker().serve(echo)
	const clients, each = 20, 25
	var wg sync.WaitGroup
	ids := make([][]flow.ID, clients)
	for c := range clients {
		wg.Go(func() {
			for range each {
				out, err := r.e.Submit(r.ctx, []Submission{{Action: "noop"}})
				if err != nil || out[0].Err != nil {
					t.Errorf("submit: %v %v", err, out)
					return
				}
				ids[c] = append(ids[c], out[0].Execution)
			}
		})
	}
	wg.Wait()
	for _, some := range ids {
		for _, id := range some {
			if x := r.ended(id); x.Stage != flow.Completed {
				t.Fatalf("%s: %s", id, x.Stage)
			}
			if n := len(r.history(id)); n != 5 {
				t.Fatalf("%s: %d events", id, n)
			}
		}
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := Submission{Action: "noop", Input: json.RawMessage(`{"a": 1}`), IdempotencyKey: "k"}
	id := r.submit(s)
	again := s
	again.Input = json.RawMessage(`{"a":1}`)
	out, err := r.e.Submit(r.ctx, []Submission{again, again})
	if err != nil || out[0].Execution != id || !out[0].Existing || out[1].Execution != id {
		t.Fatalf("%v %+v", err, out)
	}
	again.Input = json.RawMessage(`{"a":2}`)
	out, err = r.e.Submit(r.ctx, []Submission{again})
	if err != nil || !errors.Is(out[0].Err, ErrIdempotencyMismatch) {
		t.Fatalf("%v %+v", err, out)
	}
	// A concurrency key does not change that.
	both := Submission{Action: "noop", IdempotencyKey: "both", Key: "tenant", KeyLimit: 1}
	if first, second := r.submit(both), r.submit(both); first != second {
		t.Errorf("%s and %s", first, second)
	}
	// Two new submissions with one key in one batch are one execution, too.
	twin := Submission{Action: "noop", IdempotencyKey: "twin"}
	out, err = r.e.Submit(r.ctx, []Submission{twin, twin})
	if err != nil || out[0].Execution != out[1].Execution || out[0].Err != nil || out[1].Err != nil {
		t.Fatalf("%v %+v", err, out)
	}
}

func TestBadSubmissions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	high := 5000
	for _, c := range []struct {
		s    Submission
		path string
	}{
		{Submission{}, "action"},
		{Submission{Action: "nope"}, "action"},
		{Submission{Action: "nope@x"}, "action"},
		{Submission{Action: "noop", Queue: "gpuu"}, "queue"},
		{Submission{Action: "noop", Input: json.RawMessage(`{`)}, "input"},
		{Submission{Action: "noop", Input: json.RawMessage("\"\xff\"")}, "input"},
		{Submission{Action: "noop", Priority: &high}, "priority"},
		{Submission{Action: "noop", Settings: flow.Settings{Timeout: -1}}, "timeout"},
		{Submission{Action: "noop", Key: "k"}, "concurrency.limit"},
		{Submission{Action: "noop", Key: "k\x00", KeyLimit: 1}, "concurrency.key"},
		{Submission{Action: "noop", Labels: map[string]string{"a": strings.Repeat("x", 300)}}, "labels.a"},
		{Submission{Action: "noop", Labels: map[string]string{"": "x"}}, "labels"},
		{Submission{Action: "sleep", Input: json.RawMessage(`{"for":"soon"}`)}, "input"},
	} {
		good := Submission{Action: "noop"}
		out, err := r.e.Submit(r.ctx, []Submission{c.s, good})
		if err != nil {
			t.Fatalf("%+v: %v", c.s, err)
		}
		var v *fault.Invalid
		if !errors.As(out[0].Err, &v) || v.Problems[0].Path != c.path {
			t.Errorf("%+v: %v", c.s, out[0].Err)
		}
		if out[1].Err != nil {
			t.Errorf("its neighbour: %v", out[1].Err)
		}
	}
}

func TestQueuesBecomeKnownWhenServed(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Queues = []string{"declared"} })
	r.submit(Submission{Action: "noop", Queue: "declared"})
	r.worker("gpu")
	id := r.submit(Submission{Action: "noop", Queue: "gpu"})
	w, err := r.e.Why(r.ctx, id)
	if err != nil || w.Waiting != "queue" || w.Position != 1 {
		t.Fatalf("%v %+v", err, w)
	}
}

func TestWhySaysThatAWorkflowLocksItselfOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(`
name: w
concurrency: {key: k, limit: 1}
tasks:
  a: {action: noop, concurrency: {key: k, limit: 1}}
`)
	id := r.submit(Submission{Action: "w"})
	children, err := r.store.Children(r.ctx, store.WorkflowAttempt{ID: id, Attempt: 1}, "", -1, 10)
	if err != nil || len(children) != 1 {
		t.Fatalf("%v %+v", err, children)
	}
	w, err := r.e.Why(r.ctx, children[0].Execution)
	if err != nil || w.Waiting != "key" || len(w.Facts) != 1 || !strings.Contains(w.Facts[0], "holds the key itself") {
		t.Fatalf("%v %+v", err, w)
	}
}

func TestWhenFull(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	full := func(w flow.WhenFull) Submission {
		return Submission{Action: "noop", Key: "k", KeyLimit: 1, WhenFull: w}
	}
	first := r.submit(full(flow.WhenFullQueue))
	refused := r.submit(full(flow.WhenFullCancelNew))
	if x := r.get(refused); x.Stage != flow.Cancelled || x.Outcome.Error.Code != flow.CodeKeyFull {
		t.Fatalf("%s %+v", x.Stage, x.Outcome)
	}
	// The first is not held yet, so superseding it is immediate and the newcomer is admitted.
	second := r.submit(full(flow.WhenFullCancelOldest))
	if x := r.get(first); x.Stage != flow.Cancelled || x.Outcome.Error.Code != flow.CodeSuperseded {
		t.Fatalf("%s %+v", x.Stage, x.Outcome)
	}
	work := h.take(5)
	if len(work) != 1 || work[0].Execution != second {
		t.Fatalf("took %+v", work)
	}
	// A worker holds the second: it is ordered to end, and the third waits for that.
	third := r.submit(full(flow.WhenFullCancelOldest))
	orders, err := h.e.Orders(h.ctx, h.session)
	if err != nil || len(orders) != 1 || orders[0].Execution != second || orders[0].As != flow.Cancelled {
		t.Fatalf("%v %+v", err, orders)
	}
	if x := r.get(third); x.Place != flow.Waiting {
		t.Fatalf("the third is %s", x.Place)
	}
	a := work[0]
	h.report(a, ev(&a, 0, flow.EvCancelled, &flow.Outcome{Error: &flow.Error{Code: orders[0].Code, Message: orders[0].Reason}}))
	if work := h.take(5); len(work) != 1 || work[0].Execution != third {
		t.Fatalf("took %+v", work)
	}
}

func TestPriority(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	low, high := -1, 7
	var want []flow.ID
	a := r.submit(Submission{Action: "noop", Priority: &low})
	b := r.submit(Submission{Action: "noop"})
	c := r.submit(Submission{Action: "noop", Priority: &high})
	want = append(want, c, b, a)
	h := r.worker()
	var got []flow.ID
	for range 3 {
		got = append(got, h.take(1)[0].Execution)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("order %v, want %v", got, want)
	}
}

func TestRetryWaitsAndThenRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	id := r.submit(Submission{Action: "noop", Key: "k", KeyLimit: 1, Retry: &flow.Retry{MaxAttempts: 2, Delay: time.Hour}})
	h.fail(h.take(1)[0], "oom")
	w, err := r.e.Why(r.ctx, id)
	if err != nil || w.Waiting != "retry" || !strings.Contains(w.Summary, "attempt 2 of 2") || !strings.Contains(w.Summary, "oom") {
		t.Fatalf("%v %+v", err, w)
	}
	// Its key is free while it waits.
	r.submit(Submission{Action: "noop", Key: "k", KeyLimit: 1})
	h.complete(h.take(1)[0], "1")
	r.pass(time.Hour)
	work := h.take(1)
	if work[0].Execution != id || work[0].Attempt != 2 {
		t.Fatalf("took %+v", work)
	}
	h.fail(work[0], "oom")
	if x := r.get(id); x.Stage != flow.Failed || x.Attempt != 2 || x.Outcome.Error.Code != "oom" {
		t.Fatalf("%s %+v", x.Stage, x.Outcome)
	}
	want := []flow.EventType{"requested", "scheduled", "provisioning", "running", "failed", "requested", "scheduled", "provisioning", "running", "failed"}
	if got := r.history(id); !slices.Equal(got, want) {
		t.Fatalf("history %v", got)
	}
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	later := r.submit(Submission{Action: "noop", NotBefore: time.Now().Add(time.Minute)})
	queue := r.submit(Submission{Action: "noop", Settings: flow.Settings{QueueTimeout: 10 * time.Minute}})
	total := r.submit(Submission{Action: "noop", Settings: flow.Settings{TotalTimeout: 20 * time.Minute}, NotBefore: time.Now().Add(time.Hour)})
	nap := r.submit(Submission{Action: "sleep", Input: json.RawMessage(`{"for":"5m"}`)})
	if w, err := r.e.Why(r.ctx, later); err != nil || w.Waiting != "time" {
		t.Fatalf("%v %+v", err, w)
	}
	if w, err := r.e.Why(r.ctx, nap); err != nil || w.Waiting != "sleep" {
		t.Fatalf("%v %+v", err, w)
	}
	r.pass(2 * time.Minute)
	if x := r.get(later); x.Place != flow.Ready {
		t.Fatalf("its time has come but it is %s", x.Place)
	}
	if x := r.get(nap); x.Stage != flow.Running {
		t.Fatalf("woke early: %s", x.Stage)
	}
	r.pass(4 * time.Minute)
	if x := r.get(nap); x.Stage != flow.Completed {
		t.Fatalf("still asleep: %s", x.Stage)
	}
	r.pass(5 * time.Minute)
	if x := r.get(queue); x.Stage != flow.TimedOut || x.Outcome.Error.Code != flow.CodeQueueTimeout {
		t.Fatalf("%s %+v", x.Stage, x.Outcome)
	}
	r.pass(10 * time.Minute)
	if x := r.get(total); x.Stage != flow.TimedOut || x.Outcome.Error.Code != flow.CodeTotalTimeout {
		t.Fatalf("%s %+v", x.Stage, x.Outcome)
	}
}

// A later announced moment does not delay an earlier one.
func TestEarliestMomentWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Options{Store: noStore{}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		go func() {
			<-time.After(time.Millisecond)
			e.dueAt(began.Add(time.Second))
			synctest.Wait()
			e.dueAt(began.Add(time.Minute))
		}()
		if !e.nextDue.sleepUntil(t.Context(), began.Add(time.Hour)) {
			t.Fatal("ended by the context")
		}
		if d := time.Since(began); d != time.Second {
			t.Fatalf("woke after %s", d)
		}
	})
}

// noStore is for tests that never use the store.
type noStore struct{ store.Store }

func TestTotalTimeoutOrdersTheOwner(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	id := r.submit(Submission{Action: "noop", Settings: flow.Settings{TotalTimeout: 10 * time.Second}, Retry: &flow.Retry{MaxAttempts: 5}})
	a := h.take(1)[0]
	r.pass(12 * time.Second)
	orders, err := h.e.Orders(h.ctx, h.session)
	if err != nil || len(orders) != 1 || orders[0].As != flow.TimedOut || orders[0].Code != flow.CodeTotalTimeout {
		t.Fatalf("%v %+v", err, orders)
	}
	if x := r.get(id); x.Stage.Terminal() {
		t.Fatal("recorded before the owner confirmed")
	}
	h.report(a, ev(&a, 0, flow.EvTimedOut, &flow.Outcome{Error: &flow.Error{Code: orders[0].Code, Message: orders[0].Reason}}))
	if x := r.get(id); x.Stage != flow.TimedOut || x.Attempt != 1 {
		t.Fatalf("%s attempt %d", x.Stage, x.Attempt)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	waiting := r.submit(Submission{Action: "noop"})
	if x, err := r.e.Cancel(r.ctx, waiting, "changed my mind"); err != nil || x.Stage != flow.Cancelled {
		t.Fatalf("%v %+v", err, x)
	}
	if x, err := r.e.Cancel(r.ctx, waiting, ""); err != nil || x.Stage != flow.Cancelled || x.Outcome.Error.Message != "changed my mind" {
		t.Fatalf("sent again after a lost answer: %v %+v", err, x)
	}
	if _, err := r.e.Cancel(r.ctx, flow.ID{7}, ""); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("cancelling what is not: %v", err)
	}
	h := r.worker()
	held := r.submit(Submission{Action: "noop"})
	a := h.take(1)[0]
	if a.Execution != held {
		t.Fatal("the worker was given what had been cancelled")
	}
	x, err := r.e.Cancel(r.ctx, held, "stop")
	if err != nil || x.Stage.Terminal() || x.State.Cancel == nil {
		t.Fatalf("%v %+v", err, x)
	}
	if w, err := r.e.Why(r.ctx, held); err != nil || w.Waiting != "cancel" || w.Worker != "hand" {
		t.Fatalf("%v %+v", err, w)
	}
	n, err := h.e.Renew(h.ctx, h.session)
	if err != nil || len(n.Orders) != 1 || n.Orders[0].AtOnce {
		t.Fatalf("%v %+v", err, n)
	}
	h.report(a, ev(&a, 0, flow.EvCancelled, nil))
	if x := r.get(held); x.Stage != flow.Cancelled {
		t.Fatalf("%s", x.Stage)
	}
	if x, err := r.e.Cancel(r.ctx, held, "stop"); err != nil || x.Stage != flow.Cancelled {
		t.Fatalf("sent again after the worker's confirmation: %v %+v", err, x)
	}
}

// A second cancel, or a kill, ends the grace: the worker gets that order.
func TestOrdersWithoutGrace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	for name, end := range map[string]func(flow.ID) error{
		"kill": func(id flow.ID) error { _, err := r.e.Kill(r.ctx, id, "now"); return err },
		"cancel twice": func(id flow.ID) error {
			for range 2 {
				if _, err := r.e.Cancel(r.ctx, id, "please"); err != nil {
					return err
				}
			}
			return nil
		},
		"cancel and kill": func(id flow.ID) error {
			_, err1 := r.e.Cancel(r.ctx, id, "please")
			_, err2 := r.e.Kill(r.ctx, id, "now")
			return errors.Join(err1, err2)
		},
	} {
		id := r.submit(Submission{Action: "noop"})
		a := h.take(1)[0]
		if err := end(id); err != nil {
			t.Fatal(name, err)
		}
		if orders, err := h.e.Orders(h.ctx, h.session); err != nil || len(orders) != 1 || !orders[0].AtOnce {
			t.Errorf("%s: %v %+v", name, err, orders)
		}
		h.report(a, ev(&a, 0, flow.EvCancelled, nil))
	}
}

// An execution that ended otherwise than by a cancel cannot be cancelled any more.
func TestCancelOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	completed, failed := r.submit(Submission{Action: "noop"}), r.submit(Submission{Action: "noop"})
	work := h.take(2)
	h.complete(work[0], "1")
	h.fail(work[1], "boom")
	r.submit(Submission{Action: "noop", Key: "k", KeyLimit: 1})
	full := r.submit(Submission{Action: "noop", Key: "k", KeyLimit: 1, WhenFull: flow.WhenFullCancelNew})
	late := r.submit(Submission{Action: "sleep", Input: json.RawMessage(`{"for": 3600}`), Settings: flow.Settings{TotalTimeout: time.Second}})
	r.pass(2 * time.Second)
	r.ended(late)
	for _, id := range []flow.ID{completed, failed, full, late} {
		if _, err := r.e.Cancel(r.ctx, id, ""); !errors.Is(err, flow.ErrFinished) {
			t.Errorf("%s: %v", r.get(id).Stage, err)
		}
	}
}

func TestRetryByHandIsANewExecution(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	id := r.submit(Submission{Action: "noop", Input: json.RawMessage(`7`)})
	if _, err := r.e.Retry(r.ctx, id, ""); err == nil {
		t.Fatal("retried what has not ended")
	}
	h.fail(h.take(1)[0], "x")
	again, err := r.e.Retry(r.ctx, id, "")
	if err != nil || again.Execution == id || again.Existing {
		t.Fatalf("%v %+v", err, again)
	}
	if work := h.take(1); work[0].Execution != again.Execution || string(work[0].Payload) != "7" {
		t.Fatalf("took %+v", work)
	}
}

// A repeated call for a retry, after a lost answer, returns the same execution.
func TestRetryOnceForAKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	one, other := r.submit(Submission{Action: "noop"}), r.submit(Submission{Action: "noop"})
	for _, a := range h.take(2) {
		h.fail(a, "x")
	}
	first, err := r.e.Retry(r.ctx, one, "k")
	if err != nil || first.Existing {
		t.Fatalf("%+v %v", first, err)
	}
	again, err := r.e.Retry(r.ctx, one, "k")
	if err != nil || !again.Existing || again.Execution != first.Execution {
		t.Errorf("sent again: %+v %v", again, err)
	}
	if _, err := r.e.Retry(r.ctx, other, "k"); !errors.Is(err, ErrIdempotencyMismatch) {
		t.Errorf("for another execution: %v", err)
	}
	if out, err := r.e.Submit(r.ctx, []Submission{{Action: "noop", IdempotencyKey: "k"}}); err != nil || !errors.Is(out[0].Err, ErrIdempotencyMismatch) {
		t.Errorf("a submission under the key: %v %+v", err, out)
	}
	if _, err := r.e.Retry(r.ctx, one, "a\x00b"); err == nil {
		t.Error("a key that no store can keep")
	}
}

func TestNobodyWritesAnothersLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h, thief := r.worker(), r.worker("other")
	id := r.submit(Submission{Action: "noop"})
	a := h.take(1)[0]
	chunk := flow.LogChunk{Execution: id, Attempt: a.Attempt, Seq: 1, Stream: "stdout", Data: []byte("x"), Size: 1}
	for _, session := range []flow.ID{thief.session, h.session} {
		if err := r.e.Log(r.ctx, session, []flow.LogChunk{chunk}); err != nil {
			t.Fatal(err)
		}
		chunk.Seq++
		chunk.Offset++
	}
	got, err := r.store.ReadLogs(r.ctx, store.LogQuery{Execution: id, Limit: 100})
	if err != nil || len(got) != 1 || got[0].Seq != 2 {
		t.Fatalf("%v %+v", err, got)
	}
}

func TestGapHealsOrEndsTheAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	heals, stays := r.submit(Submission{Action: "noop"}), r.submit(Submission{Action: "noop"})
	work := h.take(2)
	for _, a := range work {
		if rc := h.report(a, ev(&a, 1, flow.EvCompleted, &flow.Outcome{Output: json.RawMessage(`5`)})); rc.Verdict != flow.Stored {
			t.Fatalf("%+v", rc)
		}
	}
	i := slices.IndexFunc(work, func(a handoff.Assignment) bool { return a.Execution == heals })
	if rc := h.report(work[i], ev(&work[i], 0, flow.EvRunning, nil)); rc.Verdict != flow.Applied || rc.Next != 6 {
		t.Fatalf("%+v", rc)
	}
	if x := r.get(heals); x.Stage != flow.Completed || string(x.Outcome.Output) != "5" {
		t.Fatalf("%s %+v", x.Stage, x.Outcome)
	}
	if x := r.get(stays); x.Stage != flow.Provisioning || x.Inbox != 1 {
		t.Fatalf("%s inbox %d", x.Stage, x.Inbox)
	}
	r.pass(flow.GapTimeout + time.Second)
	if x := r.get(stays); x.Attempt != 2 || x.Inbox != 0 {
		t.Fatalf("attempt %d inbox %d", x.Attempt, x.Inbox)
	}
}

func TestPoisonHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	a, b := r.submit(Submission{Action: "noop"}), r.submit(Submission{Action: "noop"})
	work := h.take(2)
	var reports []flow.Report
	for _, w := range work {
		e := ev(&w, 0, flow.EvRunning, nil)
		if w.Execution == a {
			e.Data = json.RawMessage("{\"x\":\"\xff\"}")
		}
		reports = append(reports, flow.Report{Execution: w.Execution, Attempt: 1, Events: []flow.Event{e}})
	}
	rs, err := r.e.Report(r.ctx, h.session, reports)
	if err != nil {
		t.Fatal(err)
	}
	for i, rc := range rs {
		want := flow.Applied
		if reports[i].Execution == a {
			want = flow.Refused
		}
		if rc.Verdict != want {
			t.Errorf("%+v, want %s", rc, want)
		}
	}
	if x := r.get(b); x.Stage != flow.Running {
		t.Errorf("the neighbour is %s", x.Stage)
	}
	// Its worker was told to stop, so the attempt is over: no other event would end it.
	if x := r.get(a); x.Attempt != 2 || x.Place != flow.Delayed {
		t.Errorf("the poisoned one is %s in attempt %d", x.Place, x.Attempt)
	}
}

func TestTakersWaitAndAreReleased(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	ctx, cancel := context.WithCancel(r.ctx)
	result := make(chan error, 1)
	go func() {
		_, err := r.e.Take(ctx, h.session, 1)
		result <- err
	}()
	for r.e.Stats().Takers == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	id := r.submit(Submission{Action: "noop"})
	if work := h.take(1); work[0].Execution != id {
		t.Fatalf("%+v", work)
	}
}

const diamond = `
name: diamond
input: {type: object, properties: {n: {type: integer, default: 3}}}
tasks:
  start: {action: noop, with: {n: "${{ input.n }}"}}
  left: {needs: [start], action: noop, with: {v: "${{ tasks.start.output.n + 1 }}"}}
  right:
    needs: [start]
    foreach: ${{ [1, 2, 3] }}
    concurrency: 2
    action: noop
    with: {v: "${{ item * input.n }}"}
  end: {needs: [left, right], action: noop, with: {l: "${{ tasks.left.output.v }}", r: "${{ tasks.right.output }}"}}
outputs: {l: "${{ tasks.end.output.l }}", r: "${{ tasks.end.output.r }}"}
`

func TestWorkflow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(diamond)
	r.worker().serve(echo)
	x := r.ended(r.submit(Submission{Action: "diamond", Input: json.RawMessage(`{"n":2}`)}))
	if x.Stage != flow.Completed || string(x.Outcome.Output) != `{"l":3,"r":[{"v":2},{"v":4},{"v":6}]}` {
		t.Fatalf("%s %+v", x.Stage, x.Outcome)
	}
	children, err := r.store.Children(r.ctx, store.WorkflowAttempt{ID: x.ID, Attempt: 1}, "", -1, 100)
	if err != nil || len(children) != 6 {
		t.Fatalf("%v %+v", err, children)
	}
	for _, c := range children {
		if c.Stage != flow.Completed {
			t.Errorf("%+v", c)
		}
	}
	r.history(x.ID)
}

func TestWorkflowFailsFastAndHandlesFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(`
name: f
tasks:
  bad: {action: noop, with: {v: bad}}
  after: {needs: [bad], action: noop, with: {v: after}}
  rescue: {needs: [bad], if: failed(), action: noop, with: {v: "${{ tasks.bad.error.code }}"}}
---
name: g
tasks:
  bad: {action: noop, with: {v: bad}, continue_on_error: true}
  after: {needs: [bad], action: noop, with: {v: "${{ tasks.bad.status }}"}}
outputs: {seen: "${{ tasks.after.output.v }}"}
`)
	var mu sync.Mutex
	ran := map[string]string{}
	r.worker().serve(func(a handoff.Assignment) (string, *flow.Error) {
		mu.Lock()
		defer mu.Unlock()
		ran[a.Task] = string(a.Payload)
		if a.Task == "bad" {
			return "", &flow.Error{Code: "boom", Message: "it broke"}
		}
		return string(a.Payload), nil
	})
	x := r.ended(r.submit(Submission{Action: "f"}))
	if x.Stage != flow.Failed || x.Outcome.Error.Code != flow.CodeTaskFailed || !strings.Contains(x.Outcome.Error.Message, "boom") {
		t.Fatalf("%s %+v", x.Stage, x.Outcome.Error)
	}
	mu.Lock()
	if _, did := ran["after"]; did || ran["rescue"] != `{"v":"boom"}` {
		t.Errorf("ran %v", ran)
	}
	mu.Unlock()
	x = r.ended(r.submit(Submission{Action: "g"}))
	if x.Stage != flow.Completed || string(x.Outcome.Output) != `{"seen":"failed"}` {
		t.Fatalf("%s %s", x.Stage, x.Outcome.Output)
	}
}

func TestCancelWorkflow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(`
name: w
tasks:
  many: {foreach: "${{ [1, 2, 3, 4] }}", action: noop}
  nap: {action: sleep, with: {for: 1h}}
  after: {needs: [many, nap], action: noop}
`)
	h := r.worker()
	id := r.submit(Submission{Action: "w"})
	a := h.take(1)[0]
	x, err := r.e.Cancel(r.ctx, id, "enough")
	if err != nil || x.Stage.Terminal() {
		t.Fatalf("a terminal workflow with a running task: %v %+v", err, x.State)
	}
	orders, err := h.e.Orders(h.ctx, h.session)
	if err != nil || len(orders) != 1 || orders[0].Execution != a.Execution {
		t.Fatalf("%v %+v", err, orders)
	}
	h.report(a, ev(&a, 0, flow.EvCancelled, nil))
	if x := r.get(id); x.Stage != flow.Cancelled || x.Outcome.Error.Message != "enough" {
		t.Fatalf("%s %+v", x.Stage, x.Outcome)
	}
}

func TestSubWorkflow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(`
name: child
input: {type: object, required: [x], properties: {x: {type: integer}}}
tasks:
  a: {action: noop, with: {v: "${{ input.x + 1 }}"}}
outputs: {y: "${{ tasks.a.output.v }}"}
---
name: parent
tasks:
  one: {action: child, with: {x: 1}}
  two: {needs: [one], action: workflow, with: {name: child, input: {x: "${{ tasks.one.output.y }}"}}}
  bad: {needs: [two], action: child, with: {x: "${{ string(1) }}"}, continue_on_error: true}
outputs: {y: "${{ tasks.two.output.y }}", bad: "${{ tasks.bad.error.code }}"}
`)
	r.worker().serve(echo)
	x := r.ended(r.submit(Submission{Action: "parent"}))
	if x.Stage != flow.Completed || string(x.Outcome.Output) != `{"bad":"invalid_input","y":3}` {
		t.Fatalf("%s %s %+v", x.Stage, x.Outcome.Output, x.Outcome.Error)
	}
}

// The first step of a new workflow is handed to a waiting worker, with all its marks.
func TestFirstStepForAWaitingWorker(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(`
name: w
tasks:
  each: {foreach: "${{ [1, 2, 3] }}", action: noop, with: {v: "${{ item }}"}}
  never: {if: "${{ false }}", action: noop}
`)
	h := r.worker()
	taken := make(chan []handoff.Assignment, 1)
	go func() { taken <- h.take(10) }()
	awaitTakers(t, r.e, 1)
	r.settled()
	id := r.submit(Submission{Action: "w", IdempotencyKey: "once"})
	work := <-taken
	if len(work) != 3 {
		t.Errorf("%d of 3 tasks were handed over", len(work))
	}
	for _, a := range work {
		h.complete(a, "1")
	}
	if x := r.ended(id); x.Stage != flow.Completed {
		t.Errorf("%s %+v", x.Stage, x.Outcome)
	}
	r.history(id)
}

// A task that ends as soon as it is created makes its workflow take a step in the same transaction, which has just created sub-workflows:
// the step must see them.
func TestSubWorkflowsBesideARefusedTask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(`
name: child
input: {type: object, required: [x], properties: {x: {type: integer}}}
tasks:
  a: {action: noop, with: {v: "${{ input.x + 1 }}"}}
outputs: {y: "${{ tasks.a.output.v }}"}
---
name: goes-on
input: {type: object, properties: {items: {type: array}}}
tasks:
  each: {foreach: "${{ input.items }}", action: child, with: {x: "${{ item }}"}, concurrency: 2, continue_on_error: true}
outputs: {n: "${{ size(tasks.each.output) }}"}
---
name: gives-up
tasks:
  bad: {action: child, with: {x: "${{ string(1) }}"}}
  good: {action: child, with: {x: 1}}
`)
	r.worker().serve(echo)
	x := r.ended(r.submit(Submission{Action: "goes-on", Input: json.RawMessage(`{"items":[1,"no",3,"no",5]}`)}))
	if x.Stage != flow.Completed || string(x.Outcome.Output) != `{"n":5}` {
		t.Errorf("%s %s %+v", x.Stage, x.Outcome.Output, x.Outcome.Error)
	}
	x = r.ended(r.submit(Submission{Action: "gives-up"}))
	children, err := r.store.Children(r.ctx, store.WorkflowAttempt{ID: x.ID, Attempt: 1}, "", -1, 100)
	if x.Stage != flow.Failed || err != nil || len(children) != 2 {
		t.Errorf("%s %+v %v", x.Stage, children, err)
	}
	for _, c := range children {
		if !c.Stage.Terminal() {
			t.Errorf("the workflow has ended and its task %s is %s", c.Task, c.Stage)
		}
	}
	if n := r.e.Stats().Conflicts; n > 0 {
		t.Errorf("%d conflicts with one writer", n)
	}
}

func TestWorkflowRetryStartsAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(`
name: w
retry: {max_attempts: 2, delay: 1h}
tasks:
  a: {action: noop}
`)
	var mu sync.Mutex
	tries := 0
	r.worker().serve(func(handoff.Assignment) (string, *flow.Error) {
		mu.Lock()
		defer mu.Unlock()
		if tries++; tries == 1 {
			return "", &flow.Error{Code: "boom", Message: "once"}
		}
		return "1", nil
	})
	id := r.submit(Submission{Action: "w"})
	for r.get(id).Attempt == 1 {
		runtime.Gosched()
	}
	r.pass(time.Hour)
	if x := r.ended(id); x.Stage != flow.Completed || x.Attempt != 2 {
		t.Fatalf("%s attempt %d %+v", x.Stage, x.Attempt, x.Outcome)
	}
}

func TestWideFanOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Rows = 100 }) // so that it takes several transactions
	const n = 217
	r.define(`
name: wide
input: {type: object, properties: {items: {type: array}}}
tasks:
  each: {foreach: "${{ input.items }}", action: noop, with: {v: "${{ item }}"}}
  all: {needs: [each], action: noop, with: {n: "${{ size(tasks.each.output) }}"}}
outputs: {n: "${{ tasks.all.output.n }}"}
`)
	r.worker().serve(echo)
	awaitTakers(t, r.e, 1) // so that the first items go to a worker in the transaction that creates them
	items := make([]int, n)
	input, err := json.Marshal(map[string]any{"items": items})
	if err != nil {
		t.Fatal(err)
	}
	x := r.ended(r.submit(Submission{Action: "wide", Input: input}))
	if want := fmt.Sprintf(`{"n":%d}`, n); x.Stage != flow.Completed || string(x.Outcome.Output) != want {
		t.Fatalf("%s %s %+v", x.Stage, x.Outcome.Output, x.Outcome.Error)
	}
}

func TestDefineChecksReferences(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	defs, err := definition.Parse("t.yaml", []byte("name: w\ntasks:\n  a: {action: nobody}\n  b: {action: noop, queue: nowhere}\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.e.Define(r.ctx, defs)
	var ps definition.Problems
	if !errors.As(err, &ps) || len(ps) != 2 || ps[0].Line != 3 {
		t.Fatalf("%v", err)
	}
}

// What is started of an action with an input that it refuses, or with two concurrency keys, is refused when the definition is applied.
func TestDefineChecksWhatIsStarted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: strict\naction: noop\ninput: {type: object, required: [n], properties: {n: {type: integer}, m: {default: 1}}}\n" +
		"---\nname: keyed\naction: noop\nconcurrency: {key: k, limit: 1}\n" +
		"---\nname: sub\ninput: {type: object, required: [n]}\ntasks: {a: {action: noop}}\n")
	const hourly = "kind: schedule\nname: s\nevery: 1h\n"
	for src, want := range map[string]string{
		"name: w\ntasks: {a: {action: strict, with: {n: x}}}\n":                                                      "tasks.a.with.n",
		"name: w\ntasks: {a: {action: strict}}\n":                                                                    "tasks.a.with",
		"name: w\ntasks: {a: {action: strict, with: {n: 1}}}\n":                                                      "",
		"name: w\ntasks: {a: {action: strict, with: {n: '${{ 1 + 1 }}'}}}\n":                                         "",
		"name: w\ntasks: {a: {action: strict, with: '${{ {\"n\": 1} }}'}}\n":                                         "",
		"name: w\ntasks: {a: {action: workflow, with: {name: sub, input: {m: 1}}}}\n":                                "tasks.a.with.input",
		"name: w\ntasks: {a: {action: workflow, with: {name: sub}}}\n":                                               "tasks.a.with.input",
		"name: w\ntasks: {a: {action: workflow, with: {name: sub, input: '${{ input }}'}}}\n":                        "",
		"name: w\ntasks: {a: {action: here}}\n---\nname: here\naction: noop\ninput: {type: object, required: [n]}\n": "tasks.a.with",
		hourly + "run: {action: strict, input: {n: 1.5}}\n":                                                          "run.input.n",
		hourly + "run: {action: strict}\n":                                                                           "run.input",
		hourly + "run: {action: strict, input: {n: '${{ 1 + 1 }}'}}\n":                                               "",
		"kind: rule\nname: r\non: x.y\nrun: {action: strict, input: {n: x}}\n":                                       "run.input.n",
		hourly + "overlap: queue\nrun: {action: keyed}\n":                                                            "overlap",
		hourly + "overlap: queue_one\nrun: {action: keyed}\n":                                                        "overlap",
		hourly + "overlap: cancel_running\nrun: {action: keyed}\n":                                                   "overlap",
		hourly + "overlap: allow\nrun: {action: keyed}\n":                                                            "",
		hourly + "overlap: queue\nrun: {action: sub, input: {n: 1}}\n":                                               "",
	} {
		defs, err := definition.Parse("t.yaml", []byte(src))
		if err != nil {
			t.Fatalf("%s%v", src, err)
		}
		var ps definition.Problems
		err = r.e.Check(r.ctx, defs)
		if errors.As(err, &ps) != (want != "") || want != "" && (len(ps) != 1 || ps[0].Path != want || ps[0].Line == 0) {
			t.Errorf("%s%v, want a problem with %q", src, err, want)
		}
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Retention = time.Hour })
	h := r.worker()
	old := r.submit(Submission{Action: "noop"})
	h.complete(h.take(1)[0], "1")
	p := newPurger(r.e, r.e.opts.Retention) // beside the engine's own
	purged := func() bool {
		t.Helper()
		if _, err := p.next(r.ctx); err != nil {
			t.Fatal(err)
		}
		_, err := r.store.Get(r.ctx, old)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		return err != nil
	}
	if purged() {
		t.Error("it was removed before its time")
	}
	r.pass(time.Hour + time.Second)
	if !purged() {
		t.Error("it was not removed")
	}
}

// With a short retention the passes follow one another quickly.
func TestShortRetention(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Retention = time.Second })
	h := r.worker()
	old := r.submit(Submission{Action: "noop"})
	h.complete(h.take(1)[0], "1")
	r.within(patience, "it has not been removed", func() bool {
		_, err := r.store.Get(r.ctx, old)
		return errors.Is(err, store.ErrNotFound)
	})
}

// An execution that ends in the transaction that first wrote it is counted once.
func TestEndsAreCountedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: w\ntasks:\n  never: {if: \"${{ false }}\", action: noop}\n")
	for i, key := range []string{"", "k"} {
		s := Submission{Action: "w"}
		if key != "" {
			s.Key, s.KeyLimit = key, 1
		}
		r.ended(r.submit(s))
		if n := r.e.Stats().Finished; n != int64(i+1) {
			t.Errorf("with the key %q: %d of %d have finished", key, n, i+1)
		}
	}
}
