package flow

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// again is the pause before an execution is retried after a failure; 0 if it has ended.
func again(t *testing.T, r Request, e Error) time.Duration {
	t.Helper()
	d := held(t, r)
	failed := Event{Seq: 5, Attempt: 1, Type: EvFailed, Outcome: &Outcome{Error: &e}}
	rc := d.Report(session, Report{Execution: d.ID, Attempt: 1, Events: []Event{event(d, 4, EvRunning), failed}}, nil, nil, t0, 0)
	if rc.Verdict != Applied {
		t.Fatalf("%+v", rc)
	}
	if d.Stage.Terminal() {
		return 0
	}
	return d.WakeAt.Sub(t0)
}

// A pause that the other side of a call asks for is kept, up to a day; it does not shorten the policy's own.
func TestAskedPause(t *testing.T) {
	r := Request{Retry: Retry{MaxAttempts: 2, Delay: time.Minute}}
	for details, want := range map[string]time.Duration{
		`{"retry_in":90}`: 90 * time.Second, `{"retry_in":0.5}`: time.Minute, `{"retry_in":-5}`: time.Minute, `{"retry_in":1e300}`: MostAskedPause,
		`{"retry_in":"90"}`: time.Minute, `[]`: time.Minute, ``: time.Minute,
	} {
		if got := again(t, r, Error{Code: "http_503", Details: []byte(details)}); got != want {
			t.Errorf("%s: tried again after %s, want %s", details, got, want)
		}
	}
	if got := again(t, Request{}, Error{Code: "http_503", Details: []byte(`{"retry_in":90}`)}); got != 0 {
		t.Errorf("without a policy it is tried again after %s", got)
	}
}

// A webhook is retried for about two days, and never again once its receiver has answered 410.
func TestDeliveries(t *testing.T) {
	r := Request{Kind: KindWebhook, Retry: KindWebhook.Retry()}
	if got := again(t, r, Error{Code: "http_500"}); got != 5*time.Minute {
		t.Errorf("tried again after %s", got)
	}
	if got := again(t, r, Error{Code: CodeGone}); got != 0 {
		t.Errorf("tried again after %s though its receiver is gone", got)
	}
	for random, least := range map[float64]time.Duration{0: 40 * time.Hour, 0.999: 30 * time.Hour} {
		whole := time.Duration(0)
		for i := 1; i < r.Retry.MaxAttempts; i++ {
			whole += r.Retry.Pause(i, random)
		}
		if r.Retry.MaxAttempts != 10 || whole < least || whole > 50*time.Hour {
			t.Errorf("%d attempts over %s", r.Retry.MaxAttempts, whole)
		}
	}
}

// A workflow that its timeout has ordered to end, and that waits for the ends of its tasks, keeps that deadline when it is paused: the
// history allows the end that follows.
func TestPauseOfWhatIsOrderedToEnd(t *testing.T) {
	d := Submit(ID{1}, Request{Kind: KindWorkflow, CreatedAt: t0, Settings: Settings{Timeout: time.Minute}})
	if err := d.Schedule(1, t0); err != nil {
		t.Fatal(err)
	}
	if err := d.Cancel(TimedOut, CodeTimeout, "late", t0.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := d.Pause(Pause{By: "ann", Stops: true}, t0.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if p, err := PauseOf(&d.Events[len(d.Events)-1]); err != nil || p.Stops || d.StandsStill() || !d.EngineDeadline().Equal(t0.Add(time.Minute)) {
		t.Errorf("%+v, %v: its deadline is %s", p, err, d.EngineDeadline())
	}
}

// A workflow that leaves its key's wait list while its timers are stopped has still waited: the resume gives back the whole pause.
func TestPauseGivesBackTheWaitForAKey(t *testing.T) {
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	d := Submit(ID{1}, Request{Kind: KindWorkflow, Key: "k", KeyLimit: 1, CreatedAt: t0, Settings: Settings{QueueTimeout: time.Minute}})
	for _, decide := range []func() error{
		func() error { return d.Wait(1, t0) },
		func() error { return d.Pause(Pause{By: "ann", Stops: true}, at(10)) },
		func() error { return d.EnqueueSuspended(2, at(40)) }, // its action is paused as well
		func() error { return d.Resume("ann", "", at(100)) },
	} {
		if err := decide(); err != nil {
			t.Fatal(err)
		}
	}
	if got := d.QueueDeadline(); !got.Equal(at(150)) { // 60 s of waiting, and 90 of stopped timers
		t.Errorf("it may wait until %s after it was accepted, want 2m30s", got.Sub(t0))
	}
}

// PausedSince counts the part of each pause after the moment, if the pause stops timers.
func TestStoodSince(t *testing.T) {
	begin := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }
	paused := func(minute int, until int, timers string) Event {
		data := pauseData{Timers: timers}
		if until > 0 {
			data.Until = at(until)
		}
		text, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		return Event{Type: EvPaused, At: at(minute), Data: text}
	}
	resumed := func(minute int) Event { return Event{Type: EvResumed, At: at(minute), Data: json.RawMessage("{}")} }
	for name, c := range map[string]struct {
		events []Event
		since  int
		want   int
	}{
		"none":                     {nil, 5, 0},
		"all of it":                {[]Event{paused(10, 0, timersStop), resumed(30)}, 5, 20},
		"from the moment on":       {[]Event{paused(10, 0, timersStop), {Type: EvAdvanced, At: at(12)}, resumed(30)}, 15, 15},
		"before it":                {[]Event{paused(10, 0, timersStop), resumed(30)}, 40, 0},
		"over by itself":           {[]Event{paused(10, 20, timersStop), resumed(30)}, 15, 5},
		"over before it":           {[]Event{paused(10, 20, timersStop), resumed(30)}, 25, 0},
		"timers run on":            {[]Event{paused(10, 0, ""), resumed(30)}, 5, 0},
		"replaced":                 {[]Event{paused(10, 0, timersStop), paused(20, 0, timersStop), resumed(30)}, 15, 15},
		"replaced, timers run on":  {[]Event{paused(10, 0, timersStop), paused(20, 0, ""), resumed(30)}, 15, 5},
		"replaced, timers stop":    {[]Event{paused(10, 0, ""), paused(20, 0, timersStop), resumed(30)}, 15, 10},
		"one after the other":      {[]Event{paused(10, 0, timersStop), resumed(20), paused(40, 0, timersStop), resumed(45)}, 15, 10},
		"its beginning is unknown": {[]Event{resumed(20), paused(40, 0, timersStop), resumed(45)}, 30, 5},
	} {
		if got, err := PausedSince(c.events, at(c.since)); err != nil || got != time.Duration(c.want)*time.Minute {
			t.Errorf("%s: %s, want %d minutes (%v)", name, got, c.want, err)
		}
	}
}

// An execution with a slot of a rate begins in it: a pause that stops timers delays it neither while it lasts nor afterwards.
func TestPauseKeepsTheSlotOfARate(t *testing.T) {
	at := func(minutes int) time.Time { return t0.Add(time.Duration(minutes) * time.Minute) }
	d := Submit(ID{1}, Request{Kind: KindWorkflow, CreatedAt: t0, Rate: Rate{Key: "k", Limit: 1, Per: time.Hour}, Settings: Settings{QueueTimeout: time.Hour, TotalTimeout: 24 * time.Hour}})
	d.SetSlot(at(60), t0)
	for _, p := range []Pause{{Stops: true}, {Stops: true, Until: at(50)}} {
		if err := d.Pause(p, at(10)); err != nil {
			t.Fatal(err)
		}
		wake := at(60)
		if !p.Until.IsZero() {
			wake = p.Until
		}
		if !d.Wake().Equal(wake) || d.Due(at(59)) || !d.Due(at(60)) {
			t.Errorf("paused until %s it wakes at %s, and is due at 59 minutes: %t, at 60: %t", p.Until, d.Wake(), d.Due(at(59)), d.Due(at(60)))
		}
	}
	if err := d.Resume("", "", at(40)); err != nil {
		t.Fatal(err)
	}
	if !d.WakeAt.Equal(at(60)) || !d.QueueDeadline().Equal(at(120)) || !d.TotalDeadline().Equal(at(24*60+30)) {
		t.Errorf("resumed, it begins at %s, must have begun by %s and have ended by %s", d.WakeAt, d.QueueDeadline(), d.TotalDeadline())
	}
}

// Times in the data of events have six digits of a second, like other times, so that they sort as texts.
func TestTimesInDataOfEvents(t *testing.T) {
	d := Submit(ID{1}, Request{Kind: KindWorkflow, CreatedAt: t0})
	if err := d.Schedule(1, t0); err != nil {
		t.Fatal(err)
	}
	if err := d.Pause(Pause{By: "ann", Until: t0.Add(time.Hour)}, t0); err != nil {
		t.Fatal(err)
	}
	retried := held(t, Request{Retry: Retry{MaxAttempts: 2, Delay: time.Minute}})
	failed := Event{Seq: 5, Attempt: 1, Type: EvFailed, Outcome: &Outcome{Error: &Error{Code: "x"}}}
	retried.Report(session, Report{Execution: retried.ID, Attempt: 1, Events: []Event{event(retried, 4, EvRunning), failed}}, nil, nil, t0, 0)
	for what, data := range map[string]json.RawMessage{
		"until": d.Events[len(d.Events)-1].Data, "not_before": retried.Events[len(retried.Events)-1].Data, "ordered_at": withOrder(nil, t0),
	} {
		var all map[string]any
		if err := json.Unmarshal(data, &all); err != nil || len(fmt.Sprint(all[what])) != len("2026-11-21T08:00:00.000000Z") {
			t.Errorf("%s: %s, %v", what, data, err)
		}
	}
	if at := orderIn(withOrder(nil, t0)); !at.Equal(t0) {
		t.Errorf("the order was given at %s", at)
	}
}
