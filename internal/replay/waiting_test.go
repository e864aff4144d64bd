package replay

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
)

// began begins a record at noon of the first of March 2026.
func began(r flow.Request) *life {
	g := newGenerator(1)
	r.CreatedAt = g.now
	if r.Queue == "" {
		r.Queue = "default"
	}
	d := flow.Submit(g.id(), r)
	return &life{g: g, rec: &Record{Execution: d.Execution, Events: d.Events}, x: d.Execution}
}

// after advances the clock, and then decides.
func (l *life) after(d time.Duration, decide func(*flow.Draft) error) *life {
	l.g.now = l.g.now.Add(d)
	l.do(decide)
	l.rec.Execution = l.x
	return l
}

func (l *life) schedule(d *flow.Draft) error { return d.Schedule(1, l.g.now) }

func (l *life) claim(d *flow.Draft) error { return d.Claim(holder, "box-1", l.g.now) }

// report makes the worker report an event.
func (l *life) report(after time.Duration, e flow.EventType, o *flow.Outcome) *life {
	return l.after(after, func(d *flow.Draft) error {
		d.Report(holder, flow.Report{Execution: d.ID, Attempt: d.Attempt, Events: []flow.Event{{Seq: d.NextSeq, Attempt: d.Attempt, Type: e, At: l.g.now, Outcome: o}}}, nil, nil, l.g.now, 0)
		return nil
	})
}

// waited is a record of a workflow in which a has ended, and two of b's three items.
func waited(t *testing.T) *Record {
	t.Helper()
	const document = `
name: w
tasks:
  a: {action: noop}
  b: {action: noop, needs: [a], foreach: "${{ [1, 2, 3] }}"}
  c: {action: noop, needs: [b]}
  d: {action: noop, needs: [a, c]}
`
	l := began(flow.Request{Kind: flow.KindWorkflow, Action: "w", Version: 1, Input: json.RawMessage(`{}`)})
	w := &Workflow{Definition: workflowOf(t, document), Request: childRequest}
	l.rec.Workflow = w
	child := func(task string, index int, after time.Duration, ended bool) {
		c := flow.Submit(l.g.id(), flow.Request{Parent: l.x.ID, ParentAttempt: 1, Task: task, Index: index, Kind: flow.KindNoop, Action: "noop", CreatedAt: l.g.now}).Execution
		if ended {
			c.Stage, c.Place, c.FinishedAt, c.Outcome = flow.Completed, flow.Finished, l.g.now.Add(after), &flow.Outcome{Output: json.RawMessage(`1`)}
		}
		w.Children = append(w.Children, c)
	}
	step := func(a orchestration.Advance) func(d *flow.Draft) error {
		return func(d *flow.Draft) error {
			data, err := json.Marshal(a)
			if err != nil {
				return err
			}
			return d.Advance(data, l.g.now)
		}
	}
	l.after(0, l.schedule)
	child("a", 0, time.Second, true)
	l.after(0, step(orchestration.Advance{Started: map[string]int{"a": 1}}))
	l.g.now = l.g.now.Add(2 * time.Second)
	child("b", 0, time.Second, true)
	child("b", 1, time.Hour, true)
	child("b", 2, 0, false)
	l.after(0, step(orchestration.Advance{Started: map[string]int{"b": 3}, Expanded: map[string]int{"b": 3}}))
	l.after(2*time.Second, func(d *flow.Draft) error {
		return d.Pause(flow.Pause{Until: l.g.now.Add(time.Hour), By: "ann", Reason: "the disk is full"}, l.g.now)
	})
	return l.rec
}

// At each event, the replay explains what the execution waited for, and reports what is not in the history as unknown.
func TestWaiting(t *testing.T) {
	t.Parallel()
	const noon = "2026-03-01 12:0"
	boom := &flow.Outcome{Error: &flow.Error{Code: "boom", Message: "it fell over"}}
	code := flow.Request{Kind: flow.KindCode, Action: "code", Queue: flow.RoutingKey("gpu", "sandbox", "gpu=a100"),
		Settings: flow.Settings{Timeout: time.Minute, QueueTimeout: time.Hour, TotalTimeout: 2 * time.Hour},
		Retry:    flow.Retry{MaxAttempts: 2, Delay: 10 * time.Second}}
	failing := began(code)
	failing.after(0, failing.schedule).after(12*time.Second, failing.claim).report(time.Second, flow.EvRunning, nil).report(time.Second, flow.EvFailed, boom)
	lost := began(code)
	lost.after(0, lost.schedule).after(0, lost.claim).after(time.Second, func(d *flow.Draft) error { return d.HandBack(flow.ReasonShutDown, lost.g.now) })
	keyed := began(flow.Request{Kind: flow.KindNoop, Key: "db", KeyLimit: 2})
	keyed.after(0, func(d *flow.Draft) error { return d.Wait(1, keyed.g.now) }).after(time.Minute+time.Second, keyed.schedule)
	timed := began(flow.Request{Kind: flow.KindNoop, NotBefore: time.Date(2026, 3, 1, 12, 5, 0, 0, time.UTC)})
	rated := began(flow.Request{Kind: flow.KindNoop, Rate: flow.Rate{Key: "mail", Limit: 10, Per: time.Minute}})
	rated.x.SlotAt = rated.g.now.Add(6 * time.Second)
	rated.after(6*time.Second, rated.schedule)
	held := began(flow.Request{Kind: flow.KindSleep, Action: "nap"})
	held.rec.Sleeps = time.Minute
	held.after(0, func(d *flow.Draft) error { return d.EnqueueSuspended(1, held.g.now) }).after(time.Minute,
		func(d *flow.Draft) error { return d.Begin(held.g.now) }).
		after(time.Second, func(d *flow.Draft) error {
			return d.Finish(flow.Cancelled, flow.Outcome{Error: &flow.Error{Code: flow.CodeCancelled, Message: "enough"}}, held.g.now, 0)
		})
	still := began(flow.Request{Kind: flow.KindSleep, Action: "nap"})
	still.rec.Sleeps = time.Minute
	still.after(0, still.schedule).after(20*time.Second, func(d *flow.Draft) error {
		return d.Pause(flow.Pause{Until: still.g.now.Add(time.Hour), By: "ann", Reason: "the disk is full", Stops: true}, still.g.now)
	}).after(30*time.Minute, func(d *flow.Draft) error { return d.Resume("bob", "", still.g.now) })
	late := began(flow.Request{Kind: flow.KindNoop})
	late.after(time.Minute, late.schedule)
	byEngine := func(k flow.Kind, payload string) *Record {
		l := began(flow.Request{Kind: k, Action: string(k), Input: json.RawMessage(payload)})
		return l.after(0, l.schedule).rec
	}
	flowed := waited(t)
	without := *flowed
	without.Workflow, without.Without = nil, "its definition cannot be read"

	for _, c := range []struct {
		name    string
		rec     *Record
		at      int64
		want    string
		summary string
		until   string
		facts   []string // expected facts, in this order, at the front
		unknown string
	}{
		{"accepted", failing.rec, 1, WaitNothing, "nothing: it had been accepted", "", []string{"event 2, scheduled, came in the same moment"}, ""},
		{"accepted, and left alone", late.rec, 1, WaitNotKnown, "it had been accepted; what kept it out of its queue is not known", "", []string{"event 2, scheduled, came 1m0s later"}, "whether no server was running, or the engine had put it aside"},
		{"in its queue", failing.rec, 2, WaitQueue, `waited in queue "gpu" for a worker with a free slot that has sandbox and the label gpu=a100`, "",
			[]string{"it would have timed out at " + "2026-03-01 13:00:00Z unless a worker took it (queue_timeout 1h0m0s)", "it had to end by 2026-03-01 14:00:00Z (total_timeout 2h0m0s)", "event 3, provisioning by box-1, came 12s later"},
			"its place in the line, which workers there were, and whether the queue, the action or a worker was paused"},
		{"on a worker", failing.rec, 4, WaitWorker, "running on worker box-1 since " + noon + "0:12Z", noon + "1:12Z", []string{"the attempt would have timed out at " + noon + "1:12Z (timeout 1m0s)"}, ""},
		{"failed, in the middle of a commit", failing.rec, 5, WaitNothing, "nothing: attempt 1 had ended as failed (boom: it fell over)", "", []string{"event 6, requested, came in the same moment"}, ""},
		{"a retry", failing.rec, 6, WaitRetry, "waited for attempt 2, which was to start at " + noon + "0:24Z (10s later), after the one before failed (boom: it fell over)", noon + "0:24Z",
			[]string{"it would have timed out at 2026-03-01 13:00:24Z unless a worker took it (queue_timeout 1h0m0s)"}, ""},
		{"lost", lost.rec, 4, WaitNothing, "nothing: attempt 1 was taken back from worker box-1 (the worker was shut down)", "", []string{"event 5, requested, came in the same moment"}, ""},
		{"tried again at once", lost.rec, 5, WaitNotKnown, "attempt 2 was due at once, after the one before was taken back from its worker (the worker was shut down); what kept it out of its queue is not known", "", nil, "whether no server was running, or the engine had put it aside"},
		{"a key", keyed.rec, 2, WaitKey, `waited in line for concurrency key "db" (limit 2)`, "", []string{"event 3, scheduled, came 1m1s later"}, "which executions held the key then, and its place in the line"},
		{"its time", timed.rec, 1, WaitTime, "waited for its time: it was to start at " + noon + "5:00Z (5m0s later)", noon + "5:00Z", []string{"no event has followed yet"}, ""},
		{"a rate", rated.rec, 1, WaitRate, `waited for the rate of key "mail" (10 in 1m0s), which let it begin at ` + noon + "0:06Z (6s later)", noon + "0:06Z", []string{"event 2, scheduled, came 6s later"}, ""},
		{"a paused action", held.rec, 2, WaitPaused, `action "nap" was paused`, "", []string{"event 3, provisioning by engine, came 1m0s later"}, "who had paused the action, why and until when"},
		{"a sleep that was cancelled later", held.rec, 4, WaitSleep, "slept until " + noon + "2:00Z", noon + "2:00Z", []string{"event 5, cancelled, came 1s later"}, "whether its end (cancelled, event 5) had been ordered by then"},
		{"a sleep", still.rec, 4, WaitSleep, "slept until " + noon + "1:00Z", noon + "1:00Z", []string{"event 5, paused, came 20s later"}, ""},
		{"a sleep that stood still", still.rec, 5, WaitPaused, "paused by ann since " + noon + "0:20Z until 2026-03-01 13:00:20Z (the disk is full): its sleep stood still, with 40s left", "2026-03-01 13:00:20Z",
			[]string{"event 6, resumed, came 30m0s later"}, ""},
		{"a sleep that goes on", still.rec, 6, WaitSleep, "slept until 2026-03-01 12:31:00Z", "2026-03-01 12:31:00Z", []string{"no event has followed yet"}, ""},
		{"cancelled", held.rec, 5, WaitNothing, "nothing: it had ended as cancelled (cancelled: enough)", "", nil, ""},
		{"an answer", byEngine(flow.KindAsk, `{"title":"Ship it?","assignees":["ada","group:ops"],"expires":"1h"}`), 4, WaitAnswer, `waited for an answer to "Ship it?" by ada, group:ops`, "",
			[]string{"the question expires 1h0m0s after it was first asked"}, "which answers had been refused by then"},
		{"a question that cannot be read", byEngine(flow.KindAsk, `{"assignees":7}`), 4, WaitAnswer, "waited for an answer", "", nil, "what was asked: the question cannot be read"},
		{"a signal", byEngine(flow.KindWait, `{"signal":"paid","subject":"order-7","timeout":"1h"}`), 4, WaitSignal, "waited for a signal paid about order-7", "", []string{"it waits 1h0m0s at most"}, "which signals had come by then and did not fit"},
		{"a workflow that begins", flowed, 4, WaitChildren, "no task was open: its next step was being decided", "", []string{"task b had not begun: it needs a", "task c had not begun: it needs b", "task d had not begun: it needs a and c"}, ""},
		{"its first task", flowed, 5, WaitChildren, "waited for a", "", []string{"task b had not begun: it needs a"}, ""},
		{"items of a task", flowed, 6, WaitChildren, "waited for b (3 of 3 open)", "", []string{"task c had not begun: it needs b", "task d had not begun: it needs c", "event 7, paused, came 2s later"}, ""},
		{"a paused workflow", flowed, 7, WaitPaused, "paused by ann since " + noon + "0:04Z until 2026-03-01 13:00:04Z (the disk is full): it started no tasks", "2026-03-01 13:00:04Z",
			[]string{"it waited for b (2 of 3 open)", "task c had not begun: it needs b"}, ""},
		{"a workflow without a definition", &without, 6, WaitChildren, "waited for its tasks", "", nil, "for which of its tasks: its definition cannot be read"},
	} {
		v := Replay(c.rec, c.at).State.Why
		if v.Waiting != c.want || v.Summary != c.summary {
			t.Errorf("%s: it waited for %q: %s\nwant %q: %s", c.name, v.Waiting, v.Summary, c.want, c.summary)
		}
		if until := v.Until; until.IsZero() != (c.until == "") || !until.IsZero() && moment(until) != c.until {
			t.Errorf("%s: until %s, want %s", c.name, until, c.until)
		}
		if len(v.Facts) < len(c.facts) || !slices.Equal(v.Facts[:len(c.facts)], c.facts) {
			t.Errorf("%s: the facts %q, want %q", c.name, v.Facts, c.facts)
		}
		if got := strings.Join(v.NotKnown, "; "); got != c.unknown {
			t.Errorf("%s: not known is %q, want %q", c.name, got, c.unknown)
		}
	}
}

// Every event of any history has an answer of a known kind; a wait's deadline is later than the event.
func TestWaitingAtEveryEvent(t *testing.T) {
	t.Parallel()
	field, _ := reflect.TypeFor[api.ReplayWhy]().FieldByName("Waiting")
	documented := strings.Split(field.Tag.Get("enum"), ",")
	g, seen := newGenerator(17), map[string]bool{}
	for i := range 400 {
		r := g.single()
		if i%2 == 1 {
			r = g.workflow()
		}
		for n := range r.Events {
			s := Replay(r, int64(n+1)).State
			v := s.Why
			seen[v.Waiting] = true
			if !slices.Contains(documented, v.Waiting) || v.Summary == "" {
				t.Fatalf("at event %d: %+v\n%s", n+1, v, describe(r, &Result{}))
			}
			if (v.Waiting == WaitTime || v.Waiting == WaitRetry) && !v.Until.After(s.At) {
				t.Fatalf("at event %d, %s: it waits until %s\n%s", n+1, clock(s.At), clock(v.Until), describe(r, &Result{}))
			}
		}
	}
	for _, w := range []string{WaitNothing, WaitTime, WaitRetry, WaitKey, WaitQueue, WaitPaused, WaitWorker, WaitChildren, WaitSleep} {
		if !seen[w] {
			t.Errorf("no generated history waits for %q", w)
		}
	}
}
