package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// awaiting returns an execution that waits for a signal, and its wait; neither is stored.
func (b *bench) awaiting(subject string, change ...func(*flow.Request)) (*flow.Draft, flow.Wait) {
	b.Helper()
	d := b.submit(append(change, func(r *flow.Request) { r.Action, r.Kind = "wait", flow.KindWait })...)
	must(b, d.Schedule(1, b.now))
	w := flow.Wait{Execution: d.ID, Workflow: d.ID, Trigger: "paid", Subject: subject, Since: b.now}
	if !d.Parent.IsZero() {
		w.Workflow, w.Attempt = d.Parent, d.ParentAttempt
	}
	return d, w
}

// putWaits stores waits, and drafts if there are any.
func (b *bench) putWaits(drafts []*flow.Draft, all []flow.Wait, drop ...flow.ID) error {
	return b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
		if len(drafts) > 0 {
			if err := t.Apply(ctx, store.Delta{Drafts: drafts}); err != nil {
				return err
			}
		}
		return t.Apply(ctx, store.Delta{Waits: store.WaitRows{Written: all, Dropped: drop}})
	})
}

// paid stores n signals about a subject and returns them.
func (b *bench) paid(subject string, n int) (all []flow.Signal) {
	b.Helper()
	for range n {
		b.later(time.Millisecond)
		all = append(all, b.signal(triggered("paid"), about(subject)))
	}
	b.delta(store.Delta{Signals: store.SignalRows{New: all}})
	return all
}

// takeSignal ends an execution by the signal that its wait takes.
func (b *bench) takeSignal(w flow.Wait, signal int64) error {
	b.Helper()
	d := b.load(w.Execution)
	if err := d.Finish(flow.Completed, flow.Outcome{Output: json.RawMessage(`{}`)}, b.now, 0); err != nil {
		return errors.Join(store.ErrConflict, err)
	}
	w.Signal, w.Scanned = signal, true
	return b.putWaits([]*flow.Draft{d}, []flow.Wait{w})
}

// waits checks that waits are stored, found by the signals for which they wait, and that a signal serves one wait of a workflow's attempt.
func waits(b *bench) {
	wf := b.workflow()
	one, first := b.awaiting("a", under(wf, "one", 0))
	first.WaitDetail = flow.WaitDetail{If: `signal.data.x < "é"`, Vars: json.RawMessage(`{"v":"<"}`), Null: true, Timeout: time.Hour}
	two, second := b.awaiting("a", under(wf, "two", 0))
	alone, third := b.awaiting("b")
	must(b, b.putWaits([]*flow.Draft{one, two, alone}, []flow.Wait{first, second, third}))
	got, err := b.s.Wait(b.ctx(), one.ID)
	must(b, err)
	equal(b, "a wait", got, first)
	_, err = b.s.Wait(b.ctx(), b.id())
	wantErr(b, "a wait that is not there", err, store.ErrNotFound)
	open := func(subject string, after flow.ID, n int) []flow.Wait {
		b.Helper()
		all, err := b.s.OpenWaits(b.ctx(), "paid", subject, after, n)
		must(b, err)
		return all
	}
	unscanned := func(after flow.ID, n int) []flow.Wait {
		b.Helper()
		all, err := b.s.UnscannedWaits(b.ctx(), b.now, after, n)
		must(b, err)
		return all
	}
	equal(b, "open about a", open("a", flow.ID{}, 10), []flow.Wait{first, second})
	equal(b, "the second page", open("a", one.ID, 1), []flow.Wait{second})
	equal(b, "open about c", len(open("c", flow.ID{}, 10)), 0)
	equal(b, "unlooked", unscanned(flow.ID{}, 2), []flow.Wait{first, second})
	equal(b, "the second page of the unlooked", unscanned(first.Execution, 1), []flow.Wait{second})
	second.Scanned = true
	must(b, b.putWaits(nil, []flow.Wait{second}))
	equal(b, "unlooked", unscanned(flow.ID{}, 10), []flow.Wait{first, third})

	s := b.paid("a", 2)
	must(b, b.takeSignal(first, s[0].Number))
	wantErr(b, "a signal that is taken", b.takeSignal(second, s[0].Number), store.ErrConflict)
	taken := inTx(b, func(ctx context.Context, t store.Tx) ([]int64, error) {
		return t.Taken(ctx, store.WorkflowAttempt{ID: wf, Attempt: 1}, []int64{s[0].Number, s[1].Number})
	})
	equal(b, "taken", taken, []int64{s[0].Number})
	other := inTx(b, func(ctx context.Context, t store.Tx) ([]int64, error) {
		return t.Taken(ctx, store.WorkflowAttempt{ID: wf, Attempt: 2}, []int64{s[0].Number})
	})
	equal(b, "taken by the next attempt", len(other), 0)
	must(b, b.takeSignal(second, s[1].Number))
	equal(b, "open", len(open("a", flow.ID{}, 10)), 0)
	of := inTx(b, func(ctx context.Context, t store.Tx) ([]flow.Wait, error) {
		return t.WaitsOf(ctx, []flow.ID{alone.ID, b.id()})
	})
	equal(b, "of an execution", of, []flow.Wait{third})
	d := b.load(alone.ID)
	must(b, d.Cancel(flow.Cancelled, flow.CodeCancelled, "x", b.now))
	must(b, b.putWaits([]*flow.Draft{d}, nil, alone.ID))
	_, err = b.s.Wait(b.ctx(), alone.ID)
	wantErr(b, "a wait that was deleted", err, store.ErrNotFound)
	removed := inTx(b, func(ctx context.Context, t store.Tx) ([]flow.ID, error) { return t.Remove(ctx, []flow.ID{one.ID}) })
	equal(b, "removed", removed, []flow.ID{one.ID})
	_, err = b.s.Wait(b.ctx(), one.ID)
	wantErr(b, "the wait of what was removed", err, store.ErrNotFound)
}

// uncorrelatedSignals checks the list of signals for which open waits must be checked.
func uncorrelatedSignals(b *bench) {
	s := b.paid("a", 3)
	read := func(after int64, n int) (numbers []int64) {
		b.Helper()
		all, err := b.s.UncorrelatedSignals(b.ctx(), b.now, after, n)
		must(b, err)
		for i := range all {
			numbers = append(numbers, all[i].Number)
		}
		return numbers
	}
	b.update(func(ctx context.Context, t store.Tx) error {
		return t.Apply(ctx, store.Delta{Signals: store.SignalRows{Uncorrelated: []int64{s[2].Number, s[0].Number, s[1].Number, s[0].Number}}})
	})
	equal(b, "unmet", read(0, 10), []int64{s[0].Number, s[1].Number, s[2].Number})
	equal(b, "the second page", read(s[0].Number, 1), []int64{s[1].Number})
	equal(b, "the first", read(0, 2), []int64{s[0].Number, s[1].Number})
	b.update(func(ctx context.Context, t store.Tx) error {
		return t.Apply(ctx, store.Delta{Signals: store.SignalRows{Correlated: []int64{s[1].Number, s[0].Number}}})
	})
	equal(b, "left", read(0, 10), []int64{s[2].Number})
	b.update(func(ctx context.Context, t store.Tx) error {
		// rows of signals that do not exist any more
		return t.Apply(ctx, store.Delta{Signals: store.SignalRows{Uncorrelated: []int64{s[0].Number - 1<<20, s[0].Number - 1<<20 + 1}}})
	})
	equal(b, "behind what is gone", read(0, 1), []int64{s[2].Number})
}

// racingWaits lets eight waits of a workflow take one signal concurrently: one of them succeeds.
func racingWaits(b *bench) {
	for range 5 {
		wf := b.workflow()
		s := b.paid("a", 1)[0]
		const n = 8
		all := make([]flow.Wait, n)
		for i := range n {
			var d *flow.Draft
			d, all[i] = b.awaiting("a", under(wf, string(rune('a'+i)), 0))
			all[i].Since = s.At
			all[i].If = "false"
			must(b, b.putWaits([]*flow.Draft{d}, []flow.Wait{all[i]}))
		}
		drafts := make([]*flow.Draft, n)
		for i := range n {
			drafts[i] = b.load(all[i].Execution)
		}
		won := b.winners(n, func(i int) error {
			d, w := drafts[i], all[i]
			if err := d.Finish(flow.Completed, flow.Outcome{Output: json.RawMessage(`{}`)}, b.now, 0); err != nil {
				return err
			}
			w.Signal, w.Scanned = s.Number, true
			return b.putWaits([]*flow.Draft{d}, []flow.Wait{w})
		})
		equal(b, "waits that took it", won, 1)
	}
}

// waitViolations plants rows that no engine writes.
func waitViolations(b *bench) {
	b.clean()
	d, w := b.awaiting("a")
	w.Vars = json.RawMessage(`{"v":"\u0000"}`)
	b.apply(d)
	b.broken(44, "waiting without a wait", d.ID)
	must(b, b.putWaits(nil, []flow.Wait{w}))
	b.clean()
	s := b.paid("a", 1)[0]
	b.clean() // it has not searched yet
	w.Scanned, w.If = true, "false"
	must(b, b.putWaits(nil, []flow.Wait{w}))
	b.clean() // the store cannot evaluate the wait's condition
	w.If = ""
	w.Scanned = true
	must(b, b.putWaits(nil, []flow.Wait{w}))
	b.broken(43, "a signal fits, and it waits", d.ID)
	b.update(func(ctx context.Context, t store.Tx) error {
		return t.Apply(ctx, store.Delta{Signals: store.SignalRows{Uncorrelated: []int64{s.Number}}})
	})
	b.clean()
	w.Signal = s.Number
	must(b, b.putWaits(nil, []flow.Wait{w}))
	b.broken(44, "it has taken a signal, and waits", d.ID)
	d = b.load(d.ID)
	must(b, d.Finish(flow.Completed, flow.Outcome{Output: json.RawMessage(`{}`)}, b.now, 0))
	b.apply(d)
	b.clean()
	w.Subject = "b"
	must(b, b.putWaits(nil, []flow.Wait{w}))
	b.broken(42, "it has taken another signal", d.ID)
	w.Signal = 0
	must(b, b.putWaits(nil, []flow.Wait{w}))
	b.broken(44, "it has ended, and its wait is open", d.ID)
	gone := w
	gone.Execution = b.id()
	must(b, b.putWaits(nil, []flow.Wait{gone}, w.Execution))
	b.broken(44, "a wait of an execution that is not there", gone.Execution)
}
