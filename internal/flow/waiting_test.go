package flow

import (
	"testing"
	"time"
)

// Every place has a word, orders and pauses come first, and an ended execution waits for nothing.
func TestWaitsFor(t *testing.T) {
	t.Parallel()
	soon := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	of := func(kind Kind, s State) string {
		x := Execution{State: s}
		x.Kind = kind
		return x.WaitsFor()
	}
	for _, c := range []struct {
		kind Kind
		s    State
		want string
	}{
		{KindNoop, State{Stage: Requested, Place: Delayed, Attempt: 1, WakeAt: soon}, "time"},
		{KindNoop, State{Stage: Requested, Place: Delayed, Attempt: 1, WakeAt: soon, SlotAt: soon}, "rate"},
		{KindNoop, State{Stage: Requested, Place: Delayed, Attempt: 2, WakeAt: soon, SlotAt: soon}, "retry"},
		{KindWorkflow, State{Stage: Requested, Place: Delayed, Attempt: 1, WakeAt: soon, Pause: &Pause{Stops: true}}, "paused"},
		{KindWorkflow, State{Stage: Requested, Place: Delayed, Attempt: 1, WakeAt: soon, SlotAt: soon, Pause: &Pause{Stops: true}}, "rate"},
		{KindNoop, State{Stage: Requested, Place: Waiting, Attempt: 1}, "key"},
		{KindNoop, State{Stage: Scheduled, Place: Waiting, Attempt: 1}, "key"},
		{KindNoop, State{Stage: Scheduled, Place: Ready, Attempt: 1}, "queue"},
		{KindNoop, State{Stage: Running, Place: Held, Attempt: 1}, "worker"},
		{KindWorkflow, State{Stage: Running, Place: Held, Attempt: 1}, "children"},
		{KindWorkflow, State{Stage: Running, Place: Held, Attempt: 1, Pause: &Pause{}}, "paused"},
		{KindWorkflow, State{Stage: Requested, Place: Waiting, Attempt: 1, Pause: &Pause{}}, "key"},
		{KindNoop, State{}, ""},
		{KindSleep, State{Stage: Running, Place: Held, Attempt: 1}, "sleep"},
		{KindAsk, State{Stage: Running, Place: Held, Attempt: 1}, "answer"},
		{KindWait, State{Stage: Running, Place: Held, Attempt: 1}, "signal"},
		{KindNoop, State{Stage: Running, Place: Held, Attempt: 1, Cancel: &CancelOrder{}}, "cancel"},
		{KindNoop, State{Stage: Scheduled, Place: Delayed, Attempt: 1, Aside: &Aside{}}, "aside"},
		{KindNoop, State{Stage: Completed, Place: Finished, Attempt: 2}, ""},
	} {
		if got := of(c.kind, c.s); got != c.want {
			t.Errorf("%s %s %s, attempt %d: %q, want %q", c.kind, c.s.Stage, c.s.Place, c.s.Attempt, got, c.want)
		}
	}
}
