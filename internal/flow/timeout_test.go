package flow

import (
	"errors"
	"testing"
	"time"
)

// runningWorkflow is a workflow in its first attempt, which the engine runs.
func runningWorkflow(t *testing.T, r Request) *Draft {
	t.Helper()
	r.Action, r.Kind, r.CreatedAt = "w", KindWorkflow, t0
	d := Submit(ID{1}, r)
	if err := d.Schedule(1, t0); err != nil {
		t.Fatal(err)
	}
	return d
}

// The timeout of a workflow is for one attempt: first its tasks are ordered to end; when they have ended, the attempt has timed out and the
// next one follows as after every other timeout.
func TestWorkflowTimeoutIsRetried(t *testing.T) {
	d := runningWorkflow(t, Request{Settings: Settings{Timeout: time.Minute}, Retry: Retry{MaxAttempts: 3, Delay: time.Second, On: []string{CodeTimeout}}})
	at := t0.Add(time.Minute)
	if err := d.Cancel(TimedOut, CodeTimeout, "too long", at); err != nil {
		t.Fatal(err)
	}
	if d.State.Cancel == nil || d.Stage != Running {
		t.Fatalf("%s, order %+v: the order comes before the end", d.Stage, d.State.Cancel)
	}
	if err := d.Finish(TimedOut, Outcome{Error: &Error{Code: CodeTimeout}}, at, 0); err != nil {
		t.Fatal(err)
	}
	if d.Attempt != 2 || d.Stage != Requested || d.Place != Delayed || d.State.Cancel != nil || !d.WakeAt.Equal(at.Add(time.Second)) {
		t.Errorf("attempt %d, %s, %s, order %+v, wakes %s", d.Attempt, d.Stage, d.Place, d.State.Cancel, d.WakeAt)
	}
}

// An order to end the execution replaces an order to end one attempt: no attempt follows.
func TestCancelTakesThePlaceOfATimeout(t *testing.T) {
	retry := Retry{MaxAttempts: 3, Delay: time.Second}
	for _, c := range []struct {
		as   Stage
		code string
	}{{Cancelled, CodeCancelled}, {TimedOut, CodeTotalTimeout}, {Cancelled, CodeSuperseded}, {Cancelled, CodeTimeout}} {
		d := runningWorkflow(t, Request{Settings: Settings{Timeout: time.Minute, TotalTimeout: time.Hour}, Retry: retry})
		at := t0.Add(time.Minute)
		if err := errors.Join(d.Cancel(TimedOut, CodeTimeout, "too long", at), d.Cancel(c.as, c.code, "enough", at.Add(time.Second))); err != nil {
			t.Fatal(err)
		}
		if o := d.State.Cancel; o.As != c.as || o.Code != c.code {
			t.Errorf("%s after a timeout: the order is %+v", c.code, o)
		}
		if err := errors.Join(d.Cancel(TimedOut, CodeTimeout, "too long", at), d.Finish(c.as, Outcome{Error: &Error{Code: c.code}}, at.Add(time.Second), 0)); err != nil {
			t.Fatal(err)
		}
		if d.Stage != c.as || d.Attempt != 1 {
			t.Errorf("%s: it is %s in attempt %d", c.code, d.Stage, d.Attempt)
		}
	}
	d := runningWorkflow(t, Request{Settings: Settings{Timeout: time.Minute, TotalTimeout: 2 * time.Minute}, Retry: retry})
	if err := d.Cancel(TimedOut, CodeTimeout, "too long", t0.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got, want := d.Wake(), t0.Add(2*time.Minute); !got.Equal(want) {
		t.Errorf("it wakes at %s: its total timeout is at %s", got, want)
	}
}
