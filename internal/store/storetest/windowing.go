package storetest

import (
	"cmp"
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// holding makes an enforcement one that is buffered in a window.
func holding(key string) func(*flow.Enforcement) {
	return func(e *flow.Enforcement) { e.State, e.Execution, e.Window = flow.EnforcementBuffered, flow.ID{}, key }
}

// windowed writes a window under its lock, with its enforcements.
func (b *bench) windowed(w store.Window, all ...flow.Enforcement) {
	b.Helper()
	b.update(func(ctx context.Context, t store.Tx) error {
		if _, err := t.LockKeys(ctx, []string{w.Lock()}); err != nil {
			return err
		}
		if err := t.Apply(ctx, store.Delta{Windows: store.WindowRows{Open: []store.Window{w}}}); err != nil {
			return err
		}
		return t.Apply(ctx, store.Delta{Rules: store.RuleRows{Enforcements: all}})
	})
}

// bufferedBytes returns the size of the data of signals.
func bufferedBytes(all ...flow.Signal) (n int64) {
	for i := range all {
		n += int64(len(all[i].Data))
	}
	return n
}

// bufferWindows checks that windows are stored, found when they are due, and close once with everything that they buffer.
func bufferWindows(b *bench) {
	at := func(minutes int) time.Time { return b.now.Add(time.Duration(minutes) * time.Minute) }
	s := []flow.Signal{b.signal(), b.signal(), b.signal(), b.signal()}
	b.emit(s...)
	x := store.Window{WindowKey: store.WindowKey{Rule: "r", Key: ""}, Opened: at(0), Wake: at(5), Count: 3, Bytes: bufferedBytes(s[:3]...),
		First: s[0].Number, Last: s[2].Number}
	y := store.Window{WindowKey: store.WindowKey{Rule: "r", Key: "é"}, Opened: at(0), Wake: at(3), Count: 1, Bytes: bufferedBytes(s[3]),
		First: s[3].Number, Last: s[3].Number}
	b.windowed(x, b.enforcement(s[0], "r", holding("")), b.enforcement(s[1], "r", holding("")), b.enforcement(s[2], "r", holding("")))
	b.windowed(y, b.enforcement(s[3], "r", holding("é")))
	found := inTx(b, func(ctx context.Context, t store.Tx) (map[store.WindowKey]store.Window, error) {
		return t.Windows(ctx, []store.WindowKey{x.WindowKey, y.WindowKey, {Rule: "q", Key: ""}})
	})
	equal(b, "windows", found, map[store.WindowKey]store.Window{x.WindowKey: x, y.WindowKey: y})
	due := func(now time.Time, n int) []any {
		all, next, err := b.s.DueWindows(b.ctx(), now, n)
		must(b, err)
		return []any{all, next}
	}
	equal(b, "none is due", due(at(2), 10), []any{[]store.Window(nil), at(3)})
	equal(b, "one is due", due(at(3), 10), []any{[]store.Window{y}, at(5)})
	equal(b, "the first that is due", due(at(9), 1), []any{[]store.Window{y}, time.Time{}})
	y.Wake, y.Count = at(4), 1
	b.windowed(y)
	equal(b, "it wakes later", due(at(4), 10), []any{[]store.Window{y}, at(5)})

	d := b.submit(startedByRule(s[2], "r"))
	closing := store.Closing{WindowKey: x.WindowKey, Lead: s[2].Number, State: flow.EnforcementRan, Execution: d.ID}
	close := func() error {
		return b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
			if _, err := t.LockKeys(ctx, []string{x.Lock()}); err != nil {
				return err
			}
			d := *d
			return t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{&d}, Windows: store.WindowRows{Closed: []store.Closing{closing}}})
		})
	}
	must(b, close())
	wantErr(b, "closed again", close(), store.ErrConflict)
	all, err := b.s.Enforcements(b.ctx(), store.EnforcementFilter{Rule: "r", Limit: 10})
	must(b, err)
	var states []string
	for _, e := range all {
		states = append(states, e.State.String()+" "+e.Window)
		if e.State != flow.EnforcementBuffered && e.Execution != d.ID {
			b.Errorf("%+v, want execution %s", e, d.ID)
		}
	}
	equal(b, "what was held", states, []string{"held é", "ran ", "folded ", "folded "})
	bad := store.Closing{WindowKey: y.WindowKey, Lead: s[3].Number, State: flow.EnforcementFailed, Reason: flow.Reason{Code: "input", Message: "m"}}
	b.delta(store.Delta{Windows: store.WindowRows{Closed: []store.Closing{bad}}})
	one, err := b.s.Enforcements(b.ctx(), store.EnforcementFilter{Signal: s[3].Number, Limit: 1})
	must(b, err)
	equal(b, "failed", []any{one[0].State, one[0].Reason}, []any{flow.EnforcementFailed, bad.Reason})
	equal(b, "no window is left", due(at(99), 10), []any{[]store.Window(nil), time.Time{}})
}

// windowViolations plants rows that no engine writes.
func windowViolations(b *bench) {
	s := b.signal()
	b.emit(s)
	w := store.Window{WindowKey: store.WindowKey{Rule: "r", Key: "k"}, Opened: b.now, Wake: b.now, Count: 1, Bytes: bufferedBytes(s),
		First: s.Number, Last: s.Number}
	b.windowed(w)
	b.broken(48, "a window that holds nothing")
	b.delta(store.Delta{Rules: store.RuleRows{Enforcements: []flow.Enforcement{b.enforcement(s, "r", holding("k"))}}})
	b.clean()
	b.delta(store.Delta{Rules: store.RuleRows{Enforcements: []flow.Enforcement{b.enforcement(s, "q", holding("k"))}}})
	b.broken(48, "a signal that is held in no window")
	w.Bytes++
	b.windowed(w)
	b.broken(48, "a window that counts other bytes")
}

// closingParts checks that windows close for some of their signals, in the order in which they were buffered, and that signals that one
// transaction buffers and closes are closed.
func closingParts(b *bench) {
	var s []flow.Signal
	for range 5 {
		s = append(s, b.signal())
	}
	b.emit(s...)
	key := store.WindowKey{Rule: "r", Key: "k"}
	w := store.Window{WindowKey: key, Opened: b.now, Wake: b.now, Count: 4, Bytes: bufferedBytes(s[:4]...), First: s[0].Number,
		Last: s[3].Number}
	places := make([]store.SignalPlace, len(s))
	all := make([]flow.Enforcement, len(s))
	for i := range s {
		all[i] = b.enforcement(s[i], "r", holding("k"))
		if i == 2 { // buffered before the others, by a transaction that began earlier
			all[i].At = b.now.Add(-time.Second)
		}
		places[i] = store.SignalPlace{At: all[i].At, Number: s[i].Number}
	}
	b.windowed(w, all[:4]...)
	got, err := b.s.Window(b.ctx(), key)
	must(b, err)
	equal(b, "the window", got, w)
	_, err = b.s.Window(b.ctx(), store.WindowKey{Rule: "r", Key: "other"})
	wantErr(b, "no window", err, store.ErrNotFound)
	signals := func(n int) []flow.Signal {
		found, err := b.s.BufferedSignals(b.ctx(), key, n)
		must(b, err)
		return found
	}
	equal(b, "held", signals(10), []flow.Signal{s[2], s[0], s[1], s[3]})
	equal(b, "the first of them", signals(2), []flow.Signal{s[2], s[0]})

	close := func(lead, other flow.Signal, rest *store.Window, before ...flow.Enforcement) error {
		d := b.submit(startedByRule(lead, "r"))
		return b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
			if _, err := t.LockKeys(ctx, []string{w.Lock()}); err != nil {
				return err
			}
			if err := t.Apply(ctx, store.Delta{Rules: store.RuleRows{Enforcements: before}}); err != nil {
				return err
			}
			if len(before) > 0 {
				held, err := t.BufferedIn(ctx, key, 10)
				must(b, err)
				equal(b, "held in the transaction", held, []store.SignalPlace{places[1], places[3], places[4]})
			}
			d := *d
			closed := store.Closing{
				WindowKey: key, Lead: lead.Number, Signals: []int64{lead.Number, other.Number}, State: flow.EnforcementRan, Execution: d.ID, Rest: rest,
			}
			return t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{&d}, Windows: store.WindowRows{Closed: []store.Closing{closed}}})
		})
	}
	rest := store.Window{WindowKey: key, Opened: b.now, Wake: b.later(time.Second), Count: 2, Bytes: bufferedBytes(s[1], s[3]),
		First: s[1].Number, Last: s[3].Number}
	must(b, close(s[2], s[0], &rest))
	wantErr(b, "signals that are not held any more", close(s[2], s[0], &rest), store.ErrConflict)
	wantErr(b, "one that is not held any more", close(s[1], s[0], &rest), store.ErrConflict)
	got, err = b.s.Window(b.ctx(), key)
	must(b, err)
	equal(b, "the rest", got, rest)
	equal(b, "held by the rest", signals(10), []flow.Signal{s[1], s[3]})
	b.clean()

	all[4].At = b.now
	places[4].At = b.now
	last := store.Window{WindowKey: key, Opened: b.now, Wake: b.now, Count: 1, Bytes: bufferedBytes(s[1]), First: s[1].Number,
		Last: s[1].Number}
	must(b, close(s[3], s[4], &last, all[4]))
	equal(b, "held in the end", signals(10), []flow.Signal{s[1]})
	must(b, b.try(store.Delta{Windows: store.WindowRows{Closed: []store.Closing{{WindowKey: key, Lead: s[1].Number, Signals: []int64{s[1].Number}, State: flow.EnforcementFailed, Reason: flow.Reason{Code: flow.ReasonInput, Message: "m"}}}}}))
	found, err := b.s.Enforcements(b.ctx(), store.EnforcementFilter{Rule: "r", Limit: 10})
	must(b, err)
	var states []string
	for _, e := range found {
		states = append(states, e.State.String())
	}
	equal(b, "what was held", states, []string{"folded", "ran", "ran", "failed", "folded"})

	none := store.Window{WindowKey: store.WindowKey{Rule: "r", Key: "none"}, Opened: b.now, Wake: b.now, Count: 1, First: s[1].Number, Last: s[1].Number}
	must(b, b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
		_, err := t.LockKeys(ctx, []string{none.Lock()})
		return cmp.Or(err, t.Apply(ctx, store.Delta{Windows: store.WindowRows{Open: []store.Window{none}}}))
	}))
	must(b, b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
		_, err := t.LockKeys(ctx, []string{none.Lock()})
		return cmp.Or(err, t.Apply(ctx, store.Delta{Windows: store.WindowRows{Dropped: []store.WindowKey{none.WindowKey}}}))
	}))
	_, err = b.s.Window(b.ctx(), none.WindowKey)
	wantErr(b, "a window that was dropped", err, store.ErrNotFound)

	// A window that one transaction opens, adds to and closes.
	x := b.signal()
	b.emit(x)
	d := b.submit(startedByRule(x, "q"))
	b.update(func(ctx context.Context, t store.Tx) error {
		if _, err := t.LockKeys(ctx, []string{store.WindowKey{Rule: "q", Key: "k"}.Lock()}); err != nil {
			return err
		}
		if err := t.Apply(ctx, store.Delta{Rules: store.RuleRows{Enforcements: []flow.Enforcement{b.enforcement(x, "q", holding("k"))}}}); err != nil {
			return err
		}
		d := *d
		return t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{&d}, Windows: store.WindowRows{Closed: []store.Closing{{WindowKey: store.WindowKey{Rule: "q", Key: "k"}, Lead: x.Number, State: flow.EnforcementRan, Execution: d.ID}}}})
	})
	one, err := b.s.Enforcements(b.ctx(), store.EnforcementFilter{Rule: "q", Limit: 10})
	must(b, err)
	equal(b, "held and closed in one transaction", []any{one[0].State, one[0].Execution}, []any{flow.EnforcementRan, d.ID})
}

// racingClosings lets eight writers close the same part of a window concurrently: one succeeds, and the rest stays buffered.
func racingClosings(b *bench) {
	const n = 8
	key := store.WindowKey{Rule: "r", Key: "k"}
	s := []flow.Signal{b.signal(), b.signal(), b.signal()}
	b.emit(s...)
	w := store.Window{WindowKey: key, Opened: b.now, Wake: b.now, Count: 3, Bytes: bufferedBytes(s...), First: s[0].Number, Last: s[2].Number}
	b.windowed(w, b.enforcement(s[0], "r", holding("k")), b.enforcement(s[1], "r", holding("k")), b.enforcement(s[2], "r", holding("k")))
	rest := store.Window{WindowKey: key, Opened: b.now, Wake: b.now, Count: 1, Bytes: bufferedBytes(s[2]), First: s[2].Number,
		Last: s[2].Number}
	drafts := make([]*flow.Draft, n)
	for i := range drafts {
		drafts[i] = b.submit(named("closed"), startedByRule(s[0], "r"))
	}
	won := b.winners(n, func(i int) error {
		return b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
			if i%2 == 0 { // the others have not locked it, which no engine does
				if _, err := t.LockKeys(ctx, []string{key.Lock()}); err != nil {
					return err
				}
			}
			d := *drafts[i]
			return t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{&d}, Windows: store.WindowRows{Closed: []store.Closing{{WindowKey: key, Lead: s[0].Number,
				Signals: []int64{s[0].Number, s[1].Number}, State: flow.EnforcementRan, Execution: d.ID, Rest: &rest}}}})
		})
	})
	made, err := store.List(b.ctx(), b.s, store.Filter{Action: "closed", Limit: n})
	must(b, err)
	if won != 1 || len(made) != 1 {
		b.Fatalf("%d of %d writers, %d executions", won, n, len(made))
	}
	found, err := b.s.Enforcements(b.ctx(), store.EnforcementFilter{Rule: "r", Limit: n})
	must(b, err)
	var states []string
	for _, e := range found {
		states = append(states, e.State.String()+" "+e.Execution.String())
	}
	equal(b, "what was held", states, []string{"held ", "folded " + made[0].ID.String(), "ran " + made[0].ID.String()})
	left, err := b.s.Window(b.ctx(), key)
	must(b, err)
	equal(b, "the rest", left, rest)
}
