package flow

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	t0      = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	session = ID{1}
	other   = ID{2}
)

// held is an execution in its first attempt that session holds.
func held(t interface{ Fatalf(string, ...any) }, r Request) *Draft {
	r.CreatedAt = t0
	d := Submit(ID{9}, r)
	if err := d.Schedule(1, t0); err != nil {
		t.Fatalf("schedule: %v", err)
	}
	if err := d.Claim(session, "w", t0); err != nil {
		t.Fatalf("claim: %v", err)
	}
	return reload(d)
}

// reload is the draft as the next decision reads it from the store.
func reload(d *Draft) *Draft {
	x := *d.Execution
	return Load(&x)
}

func event(d *Draft, seq int64, typ EventType) Event {
	e := Event{Seq: seq, Attempt: d.Attempt, Type: typ}
	if typ == EvCompleted {
		e.Outcome = &Outcome{Output: json.RawMessage(`1`)}
	}
	if typ == EvFailed {
		e.Outcome = &Outcome{Error: &Error{Code: "nonzero_exit", Message: "exit 1", Details: json.RawMessage(`{"exit_code":1}`)}}
	}
	return e
}

func TestHappyPathPassesEveryStage(t *testing.T) {
	d := Submit(ID{9}, Request{Kind: KindNoop, CreatedAt: t0})
	if !d.Due(t0) {
		t.Fatal("a new execution without a start time is not due")
	}
	if err := d.Schedule(1, t0); err != nil {
		t.Fatal(err)
	}
	if err := d.Claim(session, "w", t0); err != nil {
		t.Fatal(err)
	}
	r := Report{Execution: d.ID, Attempt: 1, Events: []Event{event(d, 4, EvRunning), event(d, 5, EvCompleted)}}
	rc := d.Report(session, r, nil, nil, t0.Add(time.Second), 0)
	if rc.Verdict != Applied || rc.Next != 6 {
		t.Fatalf("receipt %+v", rc)
	}
	var types []EventType
	for i, e := range d.Events {
		if e.Seq != int64(i+1) || e.Attempt != 1 {
			t.Errorf("event %d is %+v", i, e)
		}
		types = append(types, e.Type)
	}
	want := []EventType{EvRequested, EvScheduled, EvProvisioning, EvRunning, EvCompleted}
	if !slices.Equal(types, want) {
		t.Errorf("history %v, want %v", types, want)
	}
	if d.Stage != Completed || d.Place != Finished || string(d.Outcome.Output) != "1" || !d.Ended() {
		t.Errorf("ended as %+v", d.State)
	}
}

func TestThereIsNoShortcut(t *testing.T) {
	d := held(t, Request{})
	rc := d.Report(session, Report{Execution: d.ID, Attempt: 1, Events: []Event{event(d, 4, EvCompleted)}}, nil, nil, t0, 0)
	if rc.Verdict != Refused || d.Stage != Provisioning {
		t.Fatalf("provisioning → completed gave %+v, stage %s", rc, d.Stage)
	}
}

func TestNothingCompletesWithAnError(t *testing.T) {
	d := held(t, Request{})
	end := event(d, 5, EvCompleted)
	end.Outcome = &Outcome{Error: &Error{Code: "c", Message: "m"}}
	rc := d.Report(session, Report{Execution: d.ID, Attempt: 1, Events: []Event{event(d, 4, EvRunning), end}}, nil, nil, t0, 0)
	if rc.Verdict != Refused || d.Ended() {
		t.Fatalf("completed with an error gave %+v, stage %s", rc, d.Stage)
	}
}

func TestRetryOpensTheNextAttemptLater(t *testing.T) {
	d := held(t, Request{Key: "k", KeyLimit: 1, Retry: Retry{MaxAttempts: 2, Delay: time.Minute, On: []string{"exit:1"}}})
	rc := d.Report(session, Report{Execution: d.ID, Attempt: 1, Events: []Event{event(d, 4, EvRunning), event(d, 5, EvFailed)}}, nil, nil, t0, 0)
	if rc.Verdict != Applied || d.Attempt != 2 || d.Stage != Requested || d.Place != Delayed || !d.WakeAt.Equal(t0.Add(time.Minute)) {
		t.Fatalf("%+v %+v", rc, d.State)
	}
	if !d.FreedKey() {
		t.Error("the key is held while the retry waits")
	}
	if d.Due(t0) || !d.Due(t0.Add(time.Minute)) || !d.Wake().Equal(d.WakeAt) {
		t.Error("the attempt is not due exactly at its time")
	}
	d = reload(d)
	if err := d.Schedule(2, t0); err != nil {
		t.Fatal(err)
	}
	if err := d.Claim(session, "w", t0); err != nil {
		t.Fatal(err)
	}
	late := Report{Execution: d.ID, Attempt: 1, Events: []Event{{Seq: 6, Attempt: 1, Type: EvCompleted}}}
	if rc := d.Report(session, late, map[int64]Event{6: {Seq: 6, Attempt: 2, Type: EvRequested}}, nil, t0, 0); rc.Verdict != Fenced {
		t.Fatalf("a late report of attempt 1 got %+v", rc)
	}
	rc = d.Report(session, Report{Execution: d.ID, Attempt: 2, Events: []Event{event(d, d.NextSeq, EvRunning), event(d, d.NextSeq+1, EvFailed)}}, nil, nil, t0, 0)
	if d.Stage != Failed || d.Place != Finished || d.Outcome.Error.Code != "nonzero_exit" {
		t.Fatalf("attempts are spent but the execution is %+v (%+v)", d.State, rc)
	}
}

func TestRetryPolicy(t *testing.T) {
	r := Retry{MaxAttempts: 5, Delay: time.Second, MaxDelay: 3 * time.Second, On: []string{"oom", "exit:75"}}
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second} {
		if got := r.Pause(i+1, 0.5); got != want {
			t.Errorf("pause after attempt %d: %s, want %s", i+1, got, want)
		}
	}
	r.Jitter, r.Backoff = 0.5, Constant
	if got := r.Pause(3, 0.5); got != 750*time.Millisecond {
		t.Errorf("jittered pause %s", got)
	}
	for _, c := range []struct {
		code string
		exit int
		want bool
	}{{"oom", 0, true}, {"nonzero_exit", 75, true}, {"nonzero_exit", 1, false}, {"timeout", 0, false}, {CodeWorkerLost, 0, true}} {
		if got := r.Matches(c.code, c.exit); got != c.want {
			t.Errorf("Matches(%q, %d) = %t", c.code, c.exit, got)
		}
	}
}

// The table of codes is right about what a retry policy does with each.
func TestErrorCodesAreRetriedAsTheySay(t *testing.T) {
	for _, c := range ErrorCodes() {
		code := c.Code
		if code == CodeHTTP {
			code = "http_503"
		}
		if named, known := ErrorCodeOf(code); !known || named.Code != c.Code || c.Meaning == "" {
			t.Errorf("%s: %+v, %t", code, named, known)
		}
		if c.Stage == Cancelled || c.Retry == RetryAlways { // the one is never retried, the other before its end
			if c.Stage == Cancelled && c.Retry != RetryNever {
				t.Errorf("%s ends cancelled, and is said to be tried again", code)
			}
			continue
		}
		d := held(t, Request{Retry: Retry{MaxAttempts: 3, On: []string{code}}})
		if got := d.retries(&Error{Code: code}, t0); got != (c.Retry == RetryOn) {
			t.Errorf("%s: tried again is %t", code, got)
		}
	}
	r := Retry{MaxAttempts: 2, On: []string{CodeConnectionFailed}}
	if !r.Matches(CodeDNSFailed, 0) || !r.Matches(CodeConnectionFailed, 0) || r.Matches(CodeTimeout, 0) {
		t.Error("connection_failed stands for the faults of connections")
	}
	for _, code := range []string{CodeHTTP, "http_", "http_99", "http_600", "http_5xx", "Timeout", ""} {
		if c, known := ErrorCodeOf(code); known {
			t.Errorf("%q is %+v", code, c)
		}
	}
}

func TestCancelBeforeTheHandOffIsImmediate(t *testing.T) {
	d := Submit(ID{9}, Request{CreatedAt: t0, NotBefore: t0.Add(time.Hour)})
	if err := d.Cancel(Cancelled, CodeCancelled, "no longer wanted", t0); err != nil {
		t.Fatal(err)
	}
	if d.Stage != Cancelled || d.Outcome.Error.Message != "no longer wanted" || !d.Wake().IsZero() {
		t.Fatalf("%+v", d.State)
	}
	if err := d.Cancel(Cancelled, CodeCancelled, "again", t0); !errors.Is(err, ErrFinished) {
		t.Fatalf("cancelling what has finished: %v", err)
	}
}

func TestCancelAfterTheHandOffIsAnOrder(t *testing.T) {
	d := held(t, Request{Retry: Retry{MaxAttempts: 9}})
	if err := d.Cancel(Cancelled, CodeCancelled, "stop", t0); err != nil {
		t.Fatal(err)
	}
	if d.Stage.Terminal() || d.State.Cancel == nil {
		t.Fatalf("recorded before the owner confirmed: %+v", d.State)
	}
	d = reload(d)
	rc := d.Report(session, Report{Execution: d.ID, Attempt: 1, Events: []Event{event(d, 4, EvRunning), event(d, 5, EvFailed)}}, nil, nil, t0, 0)
	if d.Stage != Failed || d.Attempt != 1 {
		t.Fatalf("a new attempt was opened after a cancel: %+v (%+v)", d.State, rc)
	}
}

// The tasks of a timed-out workflow are ordered to end with its code, and end finally.
func TestOrderOfATimedOutWorkflowIsFollowedByNoAttempt(t *testing.T) {
	d := held(t, Request{Retry: Retry{MaxAttempts: 9}})
	if err := d.Cancel(Cancelled, CodeTimeout, "the workflow was not finished within timeout 1s", t0); err != nil {
		t.Fatal(err)
	}
	d = reload(d)
	d.Report(session, Report{Execution: d.ID, Attempt: 1, Events: []Event{event(d, 4, EvRunning), event(d, 5, EvFailed)}}, nil, nil, t0, 0)
	if d.Stage != Failed || d.Attempt != 1 {
		t.Fatalf("a new attempt was opened: %+v", d.State)
	}
}

func TestLostOwner(t *testing.T) {
	d := held(t, Request{})
	for attempt := 1; attempt <= lostAttempts; attempt++ {
		if d.Attempt != attempt {
			t.Fatalf("attempt %d, want %d", d.Attempt, attempt)
		}
		if err := d.Lose("gone", t0, 0); err != nil {
			t.Fatal(err)
		}
		d = reload(d)
		if attempt == lostAttempts {
			break
		}
		if d.Stage != Requested || d.Place != Delayed {
			t.Fatalf("after loss %d: %+v", attempt, d.State)
		}
		if err := d.Schedule(1, t0); err != nil {
			t.Fatal(err)
		}
		if err := d.Claim(session, "w", t0); err != nil {
			t.Fatal(err)
		}
		d = reload(d)
	}
	if d.Stage != Failed || d.Outcome.Error.Code != CodeWorkerLost {
		t.Fatalf("%+v %+v", d.State, d.Outcome)
	}
	for name, over := range map[string]func(*Draft) error{
		"lost":        func(d *Draft) error { return d.Lose("gone", t0, 0) },
		"handed back": func(d *Draft) error { return d.HandBack("shut down", t0) },
		"crashed":     func(d *Draft) error { return d.LoseWithServer("w"+ReasonCrashed, t0, 0) },
	} {
		d = held(t, Request{})
		if err := errors.Join(d.Cancel(Cancelled, CodeCancelled, "stop", t0), over(d)); err != nil {
			t.Fatal(err)
		}
		if d.Stage != Cancelled {
			t.Fatalf("cancelled, then %s: %s", name, d.Stage)
		}
	}
}

// After an attempt that its host ended, the next one begins, even with max_attempts 1, and the policy does not count it: ten times at most.
func TestTakenByHost(t *testing.T) {
	reasons := []string{HostNodeLost, HostNodeShutdown, HostPreempted, HostEvicted, HostDeleted}
	end := func(d *Draft, details string) *Draft {
		t.Helper()
		failed := event(d, d.NextSeq+1, EvFailed)
		failed.Outcome = &Outcome{Error: &Error{Code: CodeInfraError, Message: "gone", Details: json.RawMessage(details)}}
		rc := d.Report(session, Report{Execution: d.ID, Attempt: d.Attempt, Events: []Event{event(d, d.NextSeq, EvRunning), failed}}, nil, nil, t0, 0)
		if rc.Verdict != Applied {
			t.Fatalf("%+v", rc)
		}
		return reload(d)
	}
	d := held(t, Request{Retry: Retry{MaxAttempts: 1}})
	for n := 1; n <= freeLosses; n++ {
		reason := reasons[n%len(reasons)]
		attempt := d.Attempt
		d = end(d, `{"reason":"`+reason+`"}`)
		if d.Stage != Requested || d.Attempt != attempt+1 || d.Spent() != 1 || d.HandedBack != n || !d.WakeAt.After(d.EventAt) || d.WakeAt.After(d.EventAt.Add(time.Minute)) {
			t.Fatalf("after loss %d by %s: %+v", n, reason, d.State)
		}
		if err := errors.Join(d.Schedule(1, d.WakeAt), d.Claim(session, "w", d.WakeAt)); err != nil {
			t.Fatal(err)
		}
		d = reload(d)
	}
	if d = end(d, `{"reason":"node_lost"}`); d.Stage != Failed || d.Outcome.Error.Code != CodeInfraError {
		t.Errorf("after one loss more: %+v", d.State)
	}
	for _, details := range []string{`{"reason":"of its own"}`, `{"reason":7}`, `[]`, ``} {
		if d := end(held(t, Request{}), details); d.Stage != Failed || d.HandedBack != 0 {
			t.Errorf("%s: %+v", details, d.State)
		}
	}
	d = held(t, Request{})
	if err := d.Cancel(Cancelled, CodeCancelled, "stop", t0); err != nil {
		t.Fatal(err)
	}
	if d = end(reload(d), `{"reason":"node_lost"}`); d.Stage != Failed || d.Attempt != 1 {
		t.Errorf("cancelled and then lost: %+v", d.State)
	}
}

// If the server's process dies of something else, the attempt is not charged: ten times at most.
func TestLoseWithServer(t *testing.T) {
	d := held(t, Request{Retry: Retry{MaxAttempts: 1}})
	lose := func() {
		t.Helper()
		if err := d.LoseWithServer("w"+ReasonCrashed, t0, 0); err != nil {
			t.Fatal(err)
		}
		d = reload(d)
	}
	for n := 1; n <= freeLosses; n++ {
		if lose(); d.Stage != Requested || d.Attempt != n+1 || d.Spent() != 1 || !d.WakeAt.After(d.EventAt) || d.WakeAt.After(d.EventAt.Add(time.Minute)) {
			t.Fatalf("after loss %d: %+v", n, d.State)
		}
		if err := errors.Join(d.Schedule(1, d.WakeAt), d.Claim(session, "w", d.WakeAt)); err != nil {
			t.Fatal(err)
		}
		d = reload(d)
	}
	if lose(); d.Stage != Failed || d.Outcome.Error.Code != CodeWorkerLost {
		t.Errorf("after one loss more: %+v", d.State)
	}
}

// The last event of an attempt has the results of its cases, the error, and the reason that takenByHost reads.
func TestEndData(t *testing.T) {
	gone := &Error{Code: CodeInfraError, Message: `the "node" was lost`, Details: json.RawMessage(`{"reason":"node_lost"}`)}
	for _, c := range []struct {
		err   *Error
		cases string
		want  string
	}{
		{nil, ``, ``}, {nil, `{"total":1}`, `{"cases":{"total":1}}`},
		{gone, ``, `{"code":"infra_error","message":"the \"node\" was lost","reason":"node_lost"}`},
		{gone, `{"total":1}`, `{"code":"infra_error","message":"the \"node\" was lost","reason":"node_lost","cases":{"total":1}}`},
		{&Error{Code: "wrong_answer"}, `{"total":1}`, `{"code":"wrong_answer","message":"","cases":{"total":1}}`},
	} {
		var cases json.RawMessage
		if c.cases != "" {
			cases = json.RawMessage(c.cases)
		}
		got := EndData(c.err, cases)
		if string(got) != c.want || c.want != "" && !json.Valid(got) {
			t.Errorf("%v with cases %q: %s, want %s", c.err, c.cases, got, c.want)
		}
		if c.err == gone && HostTook(gone.Code, got) != HostNodeLost {
			t.Errorf("%s does not say that the host took it", got)
		}
	}
}

// However often its workers are shut down, an execution keeps the attempts of its policy, and continues at once.
func TestHandedBack(t *testing.T) {
	d := held(t, Request{Retry: Retry{MaxAttempts: 2, Delay: time.Minute}})
	again := func() {
		t.Helper()
		if err := errors.Join(d.Schedule(1, t0), d.Claim(session, "w", t0)); err != nil {
			t.Fatal(err)
		}
		d = reload(d)
	}
	for attempt := 1; attempt <= 5; attempt++ {
		if d.Attempt != attempt || d.Spent() != 1 {
			t.Fatalf("attempt %d, of which %d count; want attempt %d", d.Attempt, d.Spent(), attempt)
		}
		if err := d.HandBack("shut down", t0); err != nil {
			t.Fatal(err)
		}
		d = reload(d)
		if !d.Due(t0) {
			t.Fatalf("handed back, and not due at once: %+v", d.State)
		}
		again()
	}
	for spent := 1; spent <= 2; spent++ {
		if d.Spent() != spent {
			t.Fatalf("%d attempts count, want %d: %+v", d.Spent(), spent, d.State)
		}
		if err := d.Lose("gone", t0, 0); err != nil {
			t.Fatal(err)
		}
		d = reload(d)
		if spent == 1 {
			if d.WakeAt != t0.Add(time.Minute) {
				t.Errorf("the pause after the first attempt that counts ends at %s", d.WakeAt)
			}
			again()
		}
	}
	if d.Stage != Failed || d.Outcome.Error.Code != CodeWorkerLost {
		t.Fatalf("%+v %+v", d.State, d.Outcome)
	}
}

// TestSameEndAfterALossIsFenced makes the engine take an attempt back and end it exactly as its late owner does: the owner's events before
// that end are not recorded, so its report must not be acknowledged.
func TestSameEndAfterALossIsFenced(t *testing.T) {
	d := held(t, Request{})
	if err := d.Cancel(Cancelled, CodeCancelled, "stop", t0); err != nil {
		t.Fatal(err)
	}
	if err := d.Lose("gone", t0, 0); err != nil {
		t.Fatal(err)
	}
	past := map[int64]Event{}
	for _, e := range d.Events {
		past[e.Seq] = e
	}
	end := past[5]
	if past[4].Type != EvLost || end.Type != EvCancelled {
		t.Fatalf("%+v", d.Events)
	}
	d = reload(d)
	r := Report{Execution: d.ID, Attempt: 1, Events: []Event{{Seq: 5, Attempt: 1, Type: end.Type, Data: end.Data}}}
	if rc := d.Report(session, r, past, nil, t0, 0); rc.Verdict != Fenced || d.Changed() {
		t.Fatalf("%+v", rc)
	}
}

func TestSomebodyElsesReportIsFenced(t *testing.T) {
	d := held(t, Request{})
	r := Report{Execution: d.ID, Attempt: 1, Events: []Event{event(d, 4, EvRunning)}}
	if rc := d.Report(other, r, nil, nil, t0, 0); rc.Verdict != Fenced || d.Changed() {
		t.Fatalf("%+v", rc)
	}
	r.Attempt, r.Events[0].Attempt = 2, 2
	if rc := d.Report(session, r, nil, nil, t0, 0); rc.Verdict != Fenced || d.Changed() {
		t.Fatalf("%+v", rc)
	}
	r = Report{Execution: d.ID, Attempt: 1, Events: []Event{{Seq: 4, Attempt: 1, Type: EvScheduled}}}
	if rc := d.Report(session, r, nil, nil, t0, 0); rc.Verdict != Refused || d.Changed() {
		t.Fatalf("a worker authored %q: %+v", EvScheduled, rc)
	}
}

func TestSameNumberOtherContentIsRefused(t *testing.T) {
	d := held(t, Request{})
	running := event(d, 4, EvRunning)
	r := Report{Execution: d.ID, Attempt: 1, Events: []Event{running}}
	if rc := d.Report(session, r, nil, nil, t0, 0); rc.Verdict != Applied {
		t.Fatalf("%+v", rc)
	}
	d = reload(d)
	past := map[int64]Event{4: running}
	if rc := d.Report(session, r, past, nil, t0, 0); rc.Verdict != Duplicate || rc.Duplicates != 1 || d.Changed() {
		t.Fatalf("the same again: %+v", rc)
	}
	r.Events[0].Data = json.RawMessage(`{"x":1}`)
	if rc := d.Report(session, r, past, nil, t0, 0); rc.Verdict != Refused || d.Changed() {
		t.Fatalf("other content: %+v", rc)
	}
}

// However the events of an attempt are split into reports, repeated, reordered and delayed, the history and the outcome are the same: they
// depend on the numbers, not on the arrival.
func TestAnyDeliveryGivesTheSameHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := held(t, Request{})
		n := rapid.IntRange(0, 12).Draw(t, "progress")
		events := []Event{event(d, 4, EvRunning)}
		for i := range n {
			e := event(d, int64(5+i), EvProgress)
			e.Data = json.RawMessage{byte('0' + i%10)}
			events = append(events, e)
		}
		events = append(events, event(d, int64(5+n), EvCompleted))

		applied := map[int64]Event{}
		var inbox []Event
		deliver := func(es []Event) {
			past := map[int64]Event{}
			for _, e := range es {
				if old, ok := applied[e.Seq]; ok {
					past[e.Seq] = old
				}
			}
			next := d.NextSeq
			rc := d.Report(session, Report{Execution: d.ID, Attempt: 1, Events: es}, past, slices.Clone(inbox), t0, 0)
			if rc.Verdict == Refused || rc.Verdict == Fenced {
				t.Fatalf("%v refused: %+v", es, rc)
			}
			for _, e := range d.Events {
				if e.Seq != next {
					t.Fatalf("event %d applied where %d was due", e.Seq, next)
				}
				next++
				applied[e.Seq] = e
			}
			inbox = append(inbox, d.InboxAdd...)
			inbox = slices.DeleteFunc(inbox, func(e Event) bool { return e.Seq < d.InboxBelow })
			if len(inbox) != int(d.Inbox) {
				t.Fatalf("inbox holds %d, the state says %d", len(inbox), d.Inbox)
			}
			if (d.Inbox > 0) == d.GapSince.IsZero() {
				t.Fatalf("inbox %d and gap since %v", d.Inbox, d.GapSince)
			}
			d = reload(d)
		}
		for range rapid.IntRange(0, 20).Draw(t, "deliveries") {
			from := rapid.IntRange(0, len(events)-1).Draw(t, "from")
			to := rapid.IntRange(from+1, len(events)).Draw(t, "to")
			deliver(events[from:to])
		}
		deliver(events)
		if d.Stage != Completed || d.Inbox != 0 || d.NextSeq != int64(6+n) || len(applied) != len(events) {
			t.Fatalf("ended as %+v with %d of %d events", d.State, len(applied), len(events))
		}
		deliver(events) // and once more, after the end
	})
}

// With any decisions in any order, stages and attempts only grow, numbers are dense, and the end is final.
func TestNothingGoesBackwards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := t0
		d := Submit(ID{9}, Request{CreatedAt: now, Retry: Retry{MaxAttempts: rapid.IntRange(1, 4).Draw(t, "max")}})
		var seq int64
		var ended *Outcome
		stage, attempt := Stage(0), 0
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			for _, e := range d.Events {
				seq++
				to, _, err := Next(stage, e.Type)
				if e.Seq != seq || err != nil || e.Attempt < attempt {
					t.Fatalf("event %d (%s, attempt %d) after %d (%s, attempt %d): %v", e.Seq, e.Type, e.Attempt, seq-1, stage, attempt, err)
				}
				stage, attempt = to, e.Attempt
			}
			if d.Spent() > max(d.Retry.MaxAttempts, 1) && d.Retry.MaxAttempts > 0 {
				t.Fatalf("attempt %d of %d", d.Spent(), d.Retry.MaxAttempts)
			}
			if ended != nil && (d.Outcome != ended || len(d.Events) > 0) {
				t.Fatal("changed after its end")
			}
			if d.Place == Finished {
				ended = d.Outcome
			}
			if (d.Place == Finished) != d.Stage.Terminal() {
				t.Fatalf("%s in place %s", d.Stage, d.Place)
			}
			d = reload(d)
			now = now.Add(time.Second)
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0:
				_ = d.Schedule(1, now)
			case 1:
				_ = d.Claim(session, "w", now)
			case 2:
				_ = d.Lose("gone", now, 0)
			case 3:
				_ = d.Cancel(Cancelled, CodeCancelled, "stop", now)
			case 4:
				typ := rapid.SampledFrom([]EventType{EvRunning, EvCompleted, EvFailed, EvCancelled, EvTimedOut, EvProgress}).Draw(t, "type")
				d.Report(session, Report{Execution: d.ID, Attempt: d.Attempt, Events: []Event{event(d, d.NextSeq, typ)}}, nil, nil, now, 0)
			case 5:
				_ = d.Finish(TimedOut, Outcome{Error: &Error{Code: CodeQueueTimeout}}, now, 0)
			case 6:
				_ = d.Wait(1, now)
			case 7:
				_ = d.HandBack("shut down", now)
			}
		}
	})
}

// Whatever the clocks of decisions and workers say, times do not decrease within a history, and the times of the state are those of its
// events.
func TestTimesNeverRunBackwards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		skewed := func(what string) time.Time {
			return t0.Add(time.Duration(rapid.IntRange(-5000, 5000).Draw(t, what)) * time.Millisecond)
		}
		d := Submit(ID{9}, Request{CreatedAt: t0, Settings: Settings{TotalTimeout: time.Second}, Retry: Retry{MaxAttempts: rapid.IntRange(1, 4).Draw(t, "max")}})
		var last, claimed, started time.Time
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			for _, e := range d.Events {
				if e.At.Before(last) {
					t.Fatalf("%s at %s comes after an event at %s", e.Type, e.At, last)
				}
				switch last = e.At; {
				case e.Type == EvProvisioning:
					claimed = e.At
				case e.Type == EvRequested:
					claimed = time.Time{}
				case e.Type == EvRunning && started.IsZero():
					started = e.At
				}
			}
			if !d.ClaimedAt.Equal(claimed) || !d.StartedAt.Equal(started) {
				t.Fatalf("claimed at %s and started at %s: the events say %s and %s", d.ClaimedAt, d.StartedAt, claimed, started)
			}
			if d.Place == Finished {
				if !d.FinishedAt.Equal(last) {
					t.Fatalf("finished at %s: the last event says %s", d.FinishedAt, last)
				}
				if o := d.Outcome.Error; o != nil && o.Code == CodeTotalTimeout && d.FinishedAt.Before(d.TotalDeadline()) {
					t.Fatalf("finished at %s, before its deadline %s", d.FinishedAt, d.TotalDeadline())
				}
				return
			}
			if !d.EventAt.Equal(last) {
				t.Fatalf("the state says that the latest event was at %s: it was at %s", d.EventAt, last)
			}
			d = reload(d)
			switch now := skewed("now"); rapid.IntRange(0, 7).Draw(t, "step") {
			case 0:
				_ = d.Schedule(1, now)
			case 1:
				_ = d.Claim(session, "w", now)
			case 2:
				_ = d.Lose("gone", now, 0)
			case 3:
				_ = d.Cancel(TimedOut, CodeTotalTimeout, "too late", t0.Add(time.Second).Add(now.Sub(t0).Abs()))
			case 4:
				typ := rapid.SampledFrom([]EventType{EvRunning, EvCompleted, EvFailed, EvCancelled, EvTimedOut, EvProgress}).Draw(t, "type")
				e := event(d, d.NextSeq, typ)
				e.At = skewed("worker's now")
				d.Report(session, Report{Execution: d.ID, Attempt: d.Attempt, Events: []Event{e}}, nil, nil, now, 0)
				for _, got := range d.Events[:min(1, len(d.Events))] {
					if got.At.After(now) && got.At.After(last) && (d.Before.Cancel == nil || got.At.After(d.Before.Cancel.At)) {
						t.Fatalf("%s is recorded at %s: it is %s", got.Type, got.At, now)
					}
				}
			case 5:
				_ = d.Finish(Cancelled, Outcome{Error: &Error{Code: CodeCancelled}}, now, 0)
			case 6:
				_ = d.Wait(1, now)
			case 7:
				_ = d.HandBack("shut down", now)
			}
		}
	})
}

func FuzzReport(f *testing.F) {
	f.Add([]byte{4, 1, 0, 5, 1, 2})
	f.Add([]byte{5, 1, 2, 4, 1, 0})
	types := []EventType{EvRunning, EvProgress, EvCompleted, EvFailed, EvCancelled, EvTimedOut, EvRequested, "nonsense"}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := held(t, Request{Retry: Retry{MaxAttempts: 2}})
		next := d.NextSeq
		for c := range slices.Chunk(b, 3) {
			if len(c) < 3 {
				break
			}
			e := Event{Seq: int64(c[0]), Attempt: int(c[1]), Type: types[int(c[2])%len(types)]}
			d.Report(session, Report{Execution: d.ID, Attempt: int(c[1]), Events: []Event{e}}, nil, nil, t0, 0)
			for _, e := range d.Events {
				if e.Seq != next {
					t.Fatalf("event %d where %d was due", e.Seq, next)
				}
				next++
			}
			d = reload(d)
		}
	})
}

func TestIDText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var id ID
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		if id.IsZero() {
			return
		}
		got, err := ParseID(ExecutionPrefix, id.String())
		if err != nil || got != id {
			t.Fatalf("%v → %q → %v, %v", id[:], id.String(), got, err)
		}
	})
	for _, bad := range []string{
		"", "ex_", "ws_00000000000000000000000000", "ex_0000000000000000000000000l", "ex_000000000000000000000000000",
		"ex_06h046hghdy05eez0wrabts6g1",  // 26 characters are 130 bits: the last two are 0
		"ex_06h046hghdy05eez0wrabts6\n0", // line breaks mean nothing to base32
	} {
		if _, err := ParseID(ExecutionPrefix, bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// The ids that begin with a text lie between the first and the last id, and no others do.
func TestIDsWith(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var id, other ID
		binary.BigEndian.PutUint64(id[:], random.Uint64())
		binary.BigEndian.PutUint64(id[8:], random.Uint64())
		other = id
		other[random.IntN(len(other))] ^= 1 << random.IntN(8)
		text := id.String()[:len(ExecutionPrefix)+1+random.IntN(26)]
		first, last, err := IDsWith(ExecutionPrefix, text)
		within := func(id ID) bool { return bytes.Compare(first[:], id[:]) <= 0 && bytes.Compare(id[:], last[:]) <= 0 }
		if err != nil || !within(id) || within(other) != strings.HasPrefix(other.String(), text) {
			t.Fatalf("%s: from %s to %s with %s and %s, %v", text, first, last, id, other, err)
		}
		if before := first.Before(); !first.IsZero() && (within(before) || before.After() != first) {
			t.Fatalf("%s comes before %s", before, first)
		}
		if after := last.After(); within(after) || !after.IsZero() && after.Before() != last {
			t.Fatalf("%s comes after %s", after, last)
		}
	}
	for _, bad := range []string{"", "ex_", "ws_0", "0193", "ex_l", "ex_0193!", "ex_" + strings.Repeat("0", 27), exampleID.String()[:28] + "z"} {
		if first, last, err := IDsWith(ExecutionPrefix, bad); err == nil {
			t.Errorf("%q: from %s to %s", bad, first, last)
		}
	}
}

// An ordered end records the time of the order, whatever data the owner of the attempt sends, and the owner's report may be repeated.
func TestCancelledSaysWhenItWasOrdered(t *testing.T) {
	t.Parallel()
	const member = `"ordered_at":"2026-11-21T08:00:03.000000Z"}`
	for said, want := range map[string]string{
		"": "{" + member, "{}": "{" + member, `{"code":"cancelled"}`: `{"code":"cancelled",` + member, `[1]`: "[1]",
		`{"ordered_at":"before"}`: `{"ordered_at":"before",` + member,
	} {
		d := held(t, Request{})
		if err := d.Cancel(Cancelled, CodeCancelled, "enough", t0.Add(3*time.Second)); err != nil {
			t.Fatal(err)
		}
		d = reload(d)
		r := Report{Execution: d.ID, Attempt: 1, Events: []Event{{Seq: d.NextSeq, Attempt: 1, Type: EvRunning, At: t0.Add(time.Second)},
			{Seq: d.NextSeq + 1, Attempt: 1, Type: EvCancelled, At: t0.Add(4 * time.Second), Data: json.RawMessage(said)}}}
		if rc := d.Report(session, r, nil, nil, t0.Add(5*time.Second), 0); rc.Verdict != Applied || d.Stage != Cancelled {
			t.Fatalf("%q: %+v", said, rc)
		}
		last := d.Events[len(d.Events)-1]
		if string(last.Data) != want {
			t.Errorf("%q: %s, want %s", said, last.Data, want)
		}
		past := map[int64]Event{}
		for _, e := range d.Events {
			past[e.Seq] = e
		}
		d = reload(d)
		if rc := d.Report(session, r, past, nil, t0.Add(9*time.Second), 0); rc.Verdict != Duplicate {
			t.Errorf("%q again: %+v", said, rc)
		}
	}
	d := Submit(ID{9}, Request{CreatedAt: t0})
	if err := d.Cancel(Cancelled, CodeCancelled, "enough", t0); err != nil || bytes.Contains(d.Events[len(d.Events)-1].Data, []byte(orderedAt)) {
		t.Errorf("nothing was ordered: %s, %v", d.Events[len(d.Events)-1].Data, err)
	}
}
