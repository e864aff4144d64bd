package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// say emits a signal.
func (r *rig) say(trigger, subject, data string) flow.ID {
	r.Helper()
	out, err := r.e.Emit(r.ctx, []Emission{{Trigger: trigger, Subject: subject, Data: json.RawMessage(data)}})
	if err == nil {
		err = out[0].Err
	}
	if err != nil {
		r.Fatalf("emit: %v", err)
	}
	return out[0].Signal
}

// took is the number n in the signal with which an execution ended; -1 for null.
func (r *rig) took(id flow.ID) int {
	r.Helper()
	x := r.ended(id)
	if x.Stage != flow.Completed {
		r.Fatalf("%s is %s: %+v", id, x.Stage, x.Outcome)
	}
	if string(x.Outcome.Output) == "null" {
		return -1
	}
	var out struct {
		ID, Trigger, Subject string
		Data                 struct{ N int }
	}
	if err := json.Unmarshal(x.Outcome.Output, &out); err != nil || !strings.HasPrefix(out.ID, "sg_") || out.Trigger != "paid" {
		r.Fatalf("output %s, %v", x.Outcome.Output, err)
	}
	return out.Data.N
}

const paid = "kind: trigger\nname: paid\nwaits: true\n---\nkind: trigger\nname: deaf\n"

func (r *rig) waiting(with string) flow.ID {
	r.Helper()
	return r.submit(Submission{Action: "wait", Input: json.RawMessage(with)})
}

func TestAwait(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(paid)
		r.say("paid", "a", `{"n":1}`)
		r.say("paid", "b", `{"n":2}`)
		r.say("paid", "a", `{"n":3}`)
		if n := r.took(r.waiting(`{"signal":"paid","subject":"a","since":"1h"}`)); n != 1 {
			r.Errorf("the oldest before: took %d", n)
		}
		if n := r.took(r.waiting(`{"signal":"paid","subject":"a","since":"1h","vars":{"n":3},"if":"signal.data.n == vars.n"}`)); n != 3 {
			r.Errorf("the oldest that fits: took %d", n)
		}
		later := r.waiting(`{"signal":"paid","subject":"a","since":"now","if":"signal.data.n > 3"}`)
		w, err := r.e.Why(r.ctx, later)
		if err != nil || !strings.Contains(strings.Join(w.Facts, "\n"), "came too early: this wait takes those from") {
			r.Errorf("why of a wait after the signals: %+v, %v", w, err)
		}
		r.say("paid", "a", `{"n":3}`)
		r.say("paid", "b", `{"n":9}`)
		r.say("paid", "a", `{"m":9}`)
		r.until(func() bool {
			unmet, err := r.store.UncorrelatedSignals(r.ctx, time.Now(), 0, 10)
			return err == nil && len(unmet) == 0
		})
		w, err = r.e.Why(r.ctx, later)
		if err != nil || w.Waiting != "signal" || !strings.Contains(w.Summary, "waits for a signal paid about a") || len(w.Facts) == 0 || !strings.Contains(w.Facts[0], "2 since") || !strings.Contains(w.Facts[0], "differs in signal.data.n > 3") {
			r.Errorf("why: %+v, %v", w, err)
		}
		r.say("paid", "a", `{"n":4}`)
		if n := r.took(later); n != 4 {
			r.Errorf("one that comes later: took %d", n)
		}
	})
}

// A workflow's waits take different signals, in their order; its next attempt takes them again.
func TestAwaitInAWorkflow(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(paid + `---
name: pay
retry: {max_attempts: 2, delay: 1ms}
tasks:
  one: {action: wait, with: {signal: paid}}
  two: {needs: [one], action: wait, with: {signal: paid}}
  fail: {needs: [two], action: sleep, with: {for: "${{ string(tasks.one.output.data.n) + '/' + string(tasks.two.output.data.n) }}"}}
`)
		id := r.submit(Submission{Action: "pay"})
		for n := range 2 {
			if _, err := r.e.EmitTo(r.ctx, id, Emission{Trigger: "paid", Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n+1))}); err != nil {
				r.Fatal(err)
			}
		}
		x := r.ended(id)
		if x.Attempt != 2 || !strings.Contains(x.Outcome.Error.Message, `"1/2"`) {
			r.Errorf("attempt %d: %+v", x.Attempt, x.Outcome.Error)
		}
		if _, err := r.e.EmitTo(r.ctx, id, Emission{Trigger: "paid"}); !errors.Is(err, flow.ErrFinished) {
			r.Errorf("to what has ended: %v", err)
		}
		if _, err := r.e.EmitTo(r.ctx, flow.ID{9}, Emission{Trigger: "paid"}); !errors.Is(err, store.ErrNotFound) {
			r.Errorf("to nothing: %v", err)
		}
	})
}

func TestAwaitTimesOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(paid)
	fails := r.waiting(`{"signal":"paid","timeout":"1h"}`)
	null := r.waiting(`{"signal":"paid","timeout":"1h","on_timeout":null}`)
	for _, id := range []flow.ID{fails, null} {
		if w, err := r.e.Why(r.ctx, id); err != nil || !strings.Contains(w.Unblock[0].Command, "pawl emit paid --to "+id.String()) {
			t.Errorf("why: %+v, %v", w, err)
		}
	}
	r.pass(2 * time.Hour)
	if x := r.ended(fails); x.Stage != flow.TimedOut || !strings.Contains(x.Outcome.Error.Message, "no signal paid about") {
		t.Errorf("%s %+v", x.Stage, x.Outcome)
	}
	if n := r.took(null); n != -1 {
		t.Errorf("took %d", n)
	}
	cancelled := r.waiting(`{"signal":"paid","subject":"x"}`)
	if _, err := r.e.Cancel(r.ctx, cancelled, ""); err != nil {
		t.Fatal(err)
	}
	r.say("paid", "x", `{}`)
	if open, err := r.store.OpenWaits(r.ctx, "paid", "x", flow.ID{}, 10); err != nil || len(open) != 0 {
		t.Errorf("waits of what was cancelled: %+v, %v", open, err)
	}
}

func TestBadWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(paid)
	for input, path := range map[string]string{
		`{}`:                                                "input.signal",
		`{"signal":"Paid"}`:                                 "input.signal",
		`{"signal":"unknown"}`:                              "input.signal",
		`{"signal":"deaf"}`:                                 "input.signal",
		`{"signal":"paid","since":"soon"}`:                  "input.since",
		`{"signal":"paid","if":"answer.x"}`:                 "input.if",
		`{"signal":"paid","if":"size(vars)"}`:               "input.if",
		`{"signal":"paid","on_timeout":null}`:               "input.on_timeout",
		`{"signal":"paid","timeout":"1h","on_timeout":"x"}`: "input.on_timeout",
	} {
		out, err := r.e.Submit(r.ctx, []Submission{{Action: "wait", Input: json.RawMessage(input)}})
		var refused *fault.Invalid
		if err != nil || !errors.As(out[0].Err, &refused) || refused.Problems[0].Path != path {
			t.Errorf("%s: %v %v, want a problem at %s", input, err, out[0].Err, path)
		}
	}
}

// Waits that begin while signals arrive miss none, and take each once.
func TestWaitsRaceSignals(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(paid)
		const rounds = 60
		var wg sync.WaitGroup
		ids := make([]flow.ID, rounds)
		for n := range rounds {
			wg.Go(func() { ids[n] = r.waiting(fmt.Sprintf(`{"signal":"paid","subject":"s%d","since":"1h"}`, n)) })
			wg.Go(func() { r.say("paid", fmt.Sprint("s", n), fmt.Sprintf(`{"n":%d}`, n)) })
		}
		wg.Wait()
		for n, id := range ids {
			if got := r.took(id); got != n {
				r.Errorf("wait %d took %d", n, got)
			}
		}
	})
}

// After a process died, the next one finds its unscanned wait and its uncorrelated signal.
func TestWaitsAreRecovered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(paid)
	id := r.waiting(`{"signal":"paid","subject":"x","since":"1h"}`)
	r.until(func() bool {
		w, err := r.store.Wait(r.ctx, id)
		return err == nil && w.Scanned
	})
	// As if the process had died between the commit of the signal and its correlation: the row exists, and no wait has been resumed.
	now := r.clock.now()
	err := r.store.Update(r.ctx, func(ctx context.Context, tx store.Tx) error {
		s := flow.Signal{ID: r.e.opts.NewID(), Number: 1 << 40, Trigger: "paid", Subject: "x", Source: "api", At: now, State: flow.SignalMatched, Data: json.RawMessage(`{"n":7}`)}
		if err := tx.Apply(ctx, store.Delta{Signals: store.SignalRows{New: []flow.Signal{s}}}); err != nil {
			return err
		}
		return tx.Apply(ctx, store.Delta{Signals: store.SignalRows{Uncorrelated: []int64{s.Number}}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := r.took(id); n != 7 {
		t.Errorf("took %d", n)
	}
}
