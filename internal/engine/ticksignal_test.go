package engine

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// A tick makes a signal only if a rule listens to its schedule; the rule runs once for it.
func TestTicksAreSignals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.toTheHour()
	r.define("kind: schedule\nname: s\nevery: 1h\noverlap: allow\nrun: {action: noop}\n---\nkind: schedule\nname: quiet\nevery: 1h\noverlap: allow\nrun: {action: noop}\n" +
		"---\nkind: rule\nname: after\non: [schedule.s]\nif: signal.data.why == \"on_time\"\nrun: {action: noop, input: {of: '${{ signal.data.execution }}'}, labels: {by: rule}}\n")
	r.tick(time.Minute + time.Second)
	fired := r.schedule("s").Execution
	var started []*flow.Execution
	r.within(patience, "the rule's execution", func() bool {
		page, err := store.List(r.ctx, r.store, store.Filter{Labels: map[string]string{"by": "rule"}, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		started = page
		return len(started) > 0
	})
	var input struct{ Of string }
	if err := json.Unmarshal(r.get(started[0].ID).Input, &input); err != nil || input.Of != fired.String() || len(started) != 1 {
		t.Errorf("%d started with %s, want %s (%v)", len(started), r.get(started[0].ID).Input, fired, err)
	}
	signals, err := r.store.Signals(r.ctx, store.SignalFilter{Limit: 10})
	if err != nil || len(signals) != 1 || signals[0].Trigger != "schedule.s" || signals[0].Source != "schedule:s" || signals[0].Key != r.schedule("s").Last.Format(time.RFC3339) {
		t.Errorf("%+v, %v", signals, err)
	}
	if _, err := r.e.FireSchedule(r.ctx, "s"); err != nil {
		t.Fatal(err)
	}
	if signals, err = r.store.Signals(r.ctx, store.SignalFilter{Limit: 10}); err != nil || len(signals) != 1 {
		t.Errorf("firing by hand is a signal: %+v, %v", signals, err)
	}
	r.verify()
}
