package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// newSignals checks that new signals, which were not matched with rules yet, are found, locked, and become matched once.
func newSignals(b *bench) {
	var all []flow.Signal
	for i := range 4 {
		b.later(time.Second)
		all = append(all, b.signal(func(s *flow.Signal) {
			if i != 1 {
				s.State = flow.SignalNew
			}
		}))
	}
	b.emit(all...)
	read := func(n int, after store.SignalPlace) []flow.Signal {
		found, err := b.s.NewSignals(b.ctx(), b.now, after, n)
		must(b, err)
		return found
	}
	equal(b, "new", read(10, store.SignalPlace{}), []flow.Signal{all[0], all[2], all[3]})
	equal(b, "after a place", read(10, store.PlaceOf(&all[0])), []flow.Signal{all[2], all[3]})
	equal(b, "the oldest", read(1, store.SignalPlace{}), []flow.Signal{all[0]})
	locked := inTx(b, func(ctx context.Context, t store.Tx) ([]flow.Signal, error) {
		return t.LockSignals(ctx, []int64{all[1].Number, all[2].Number, 99})
	})
	equal(b, "locked", locked, []flow.Signal{all[2]})
	b.delta(store.Delta{Signals: store.SignalRows{Matched: []int64{all[2].Number}}, Rules: store.RuleRows{Enforcements: []flow.Enforcement{b.enforcement(all[2], "r")}}})
	equal(b, "left", read(10, store.SignalPlace{}), []flow.Signal{all[0], all[3]})
	wantErr(b, "matched again", b.try(store.Delta{Signals: store.SignalRows{Matched: []int64{all[0].Number, all[2].Number}}}), store.ErrConflict)
	equal(b, "left by that", read(10, store.SignalPlace{}), []flow.Signal{all[0], all[3]})
	b.delta(store.Delta{Signals: store.SignalRows{Matched: []int64{all[0].Number, all[3].Number}}})
	got, err := b.s.Signal(b.ctx(), all[0].ID)
	must(b, err)
	equal(b, "state", got.State, flow.SignalMatched)
}

// enforcement returns an enforcement that ran an execution; change sets what the test needs.
func (b *bench) enforcement(s flow.Signal, rule string, change ...func(*flow.Enforcement)) flow.Enforcement {
	e := flow.Enforcement{Signal: s.ID, Number: s.Number, Rule: rule, Version: 1, State: flow.EnforcementRan, Execution: b.id(), At: b.now}
	for _, c := range change {
		c(&e)
	}
	return e
}

func failing(e *flow.Enforcement) {
	e.State, e.Execution, e.Reason = flow.EnforcementFailed, flow.ID{}, flow.Reason{Code: flow.ReasonIf, Message: "é", Path: "if"}
}

// enforcements checks that enforcements are stored once, listed by rule, state and signal, and dropped with their signals.
func enforcements(b *bench) {
	var signals []flow.Signal
	var all []flow.Enforcement // in the order of lists
	for range 3 {
		s := b.signal()
		b.emit(s)
		signals = append(signals, s)
		of := []flow.Enforcement{b.enforcement(s, "b"), b.enforcement(s, "a", failing)}
		b.delta(store.Delta{Rules: store.RuleRows{Enforcements: of}})
		all = append(append([]flow.Enforcement{}, of...), all...)
		b.later(time.Minute)
	}
	pick := func(want func(*flow.Enforcement) bool) (some []flow.Enforcement) {
		for i := range all {
			if want(&all[i]) {
				some = append(some, all[i])
			}
		}
		return some
	}
	for what, c := range map[string]struct {
		f    store.EnforcementFilter
		want func(*flow.Enforcement) bool
	}{
		"all":            {store.EnforcementFilter{}, func(*flow.Enforcement) bool { return true }},
		"rule":           {store.EnforcementFilter{Rule: "a"}, func(e *flow.Enforcement) bool { return e.Rule == "a" }},
		"failed":         {store.EnforcementFilter{State: flow.EnforcementFailed}, func(e *flow.Enforcement) bool { return e.Rule == "a" }},
		"ran":            {store.EnforcementFilter{State: flow.EnforcementRan}, func(e *flow.Enforcement) bool { return e.Rule == "b" }},
		"signal":         {store.EnforcementFilter{Signal: signals[1].Number}, func(e *flow.Enforcement) bool { return e.Signal == signals[1].ID }},
		"rule and state": {store.EnforcementFilter{Rule: "b", State: flow.EnforcementFailed}, func(*flow.Enforcement) bool { return false }},
	} {
		for _, limit := range []int{1, 100} {
			var got []flow.Enforcement
			for c.f.Limit, c.f.BeforeSignal, c.f.BeforeRule = limit, 0, ""; ; {
				page, err := b.s.Enforcements(b.ctx(), c.f)
				must(b, err)
				if len(page) == 0 {
					break
				}
				got = append(got, page...)
				c.f.BeforeSignal, c.f.BeforeRule = page[len(page)-1].Number, page[len(page)-1].Rule
			}
			equal(b, fmt.Sprintf("%s by pages of %d", what, limit), got, pick(c.want))
		}
	}
	known := inTx(b, func(ctx context.Context, t store.Tx) (map[int64][]string, error) {
		return t.Enforced(ctx, []int64{signals[0].Number, 99})
	})
	equal(b, "enforced", known, map[int64][]string{signals[0].Number: {"a", "b"}})

	wantErr(b, "the same rule again", b.try(store.Delta{Rules: store.RuleRows{Enforcements: []flow.Enforcement{b.enforcement(signals[0], "a", failing)}}}), store.ErrConflict)
	twice := b.enforcement(signals[0], "c", func(e *flow.Enforcement) { e.Execution = all[0].Execution })
	wantErr(b, "the same execution again", b.try(store.Delta{Rules: store.RuleRows{Enforcements: []flow.Enforcement{twice}}}), store.ErrConflict)
	twice.State = flow.EnforcementFolded
	b.delta(store.Delta{Rules: store.RuleRows{Enforcements: []flow.Enforcement{twice}}})
	for what, bad := range map[string]func(*flow.Enforcement){
		"no execution":     func(e *flow.Enforcement) { e.Execution = flow.ID{} },
		"no reason":        func(e *flow.Enforcement) { failing(e); e.Reason = flow.Reason{} },
		"an unknown state": func(e *flow.Enforcement) { failing(e); e.State = 9 },
	} {
		err := b.try(store.Delta{Rules: store.RuleRows{Enforcements: []flow.Enforcement{b.enforcement(signals[2], "x", bad)}}})
		if err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnavailable) {
			b.Errorf("%s: %v", what, err)
		}
	}
	equal(b, "dropped", inTx(b, func(ctx context.Context, t store.Tx) (int, error) {
		return t.DropSignals(ctx, "alert", signals[2].At, 10)
	}), 2)
	left, err := b.s.Enforcements(b.ctx(), store.EnforcementFilter{Limit: 10})
	must(b, err)
	equal(b, "left", left, pick(func(e *flow.Enforcement) bool { return e.Signal == signals[2].ID }))
}

// retriedEnforcements checks that a failed enforcement is replaced, once, and that one that started something is not.
func retriedEnforcements(b *bench) {
	s := b.signal()
	b.emit(s)
	bad := b.enforcement(s, "r", failing)
	refused := b.enforcement(s, "q", failing, func(e *flow.Enforcement) { e.State = flow.EnforcementRefused })
	b.delta(store.Delta{Rules: store.RuleRows{Enforcements: []flow.Enforcement{bad, refused, b.enforcement(s, "p")}}})
	locked := inTx(b, func(ctx context.Context, t store.Tx) (flow.Enforcement, error) {
		return t.LockEnforcement(ctx, s.Number, "r")
	})
	locked.Signal = s.ID
	equal(b, "locked", locked, bad)
	err := b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
		_, err := t.LockEnforcement(ctx, s.Number, "nobody")
		return err
	})
	wantErr(b, "one that is not there", err, store.ErrNotFound)

	bad.At, bad.Version, bad.Reason.Message = b.later(time.Second), 2, "again"
	b.delta(store.Delta{Rules: store.RuleRows{Retried: []flow.Enforcement{bad}}})
	d := b.submit(startedByRule(s, "q"))
	ran := b.enforcement(s, "q", func(e *flow.Enforcement) { e.Execution, e.Version = d.ID, 3 })
	b.delta(store.Delta{Drafts: []*flow.Draft{d}, Rules: store.RuleRows{Retried: []flow.Enforcement{ran}}})
	wantErr(b, "what has run", b.try(store.Delta{Rules: store.RuleRows{Retried: []flow.Enforcement{ran}}}), store.ErrConflict)
	wantErr(b, "what is not there", b.try(store.Delta{Rules: store.RuleRows{Retried: []flow.Enforcement{b.enforcement(s, "nobody", failing)}}}), store.ErrConflict)
	all, err := b.s.Enforcements(b.ctx(), store.EnforcementFilter{Signal: s.Number, Limit: 10})
	must(b, err)
	equal(b, "tried again", all[:2], []flow.Enforcement{bad, ran})
	w := store.Window{WindowKey: store.WindowKey{Rule: "r", Key: ""}, Opened: b.now, Wake: b.now, Count: 1, Bytes: bufferedBytes(s),
		First: s.Number, Last: s.Number}
	b.windowed(w)
	b.delta(store.Delta{Rules: store.RuleRows{Retried: []flow.Enforcement{b.enforcement(s, "r", holding(""))}}})
}

// racingEnforcements lets eight writers enforce a rule for a signal concurrently: there is one execution and one enforcement.
func racingEnforcements(b *bench) {
	for round := range 5 {
		raceEnforcement(b, fmt.Sprint(round), func(int) store.Store { return b.s })
	}
}

// doubleEnforcement is racingEnforcements with two stores.
func doubleEnforcement(s *shared) {
	for round := range 5 {
		raceEnforcement(s.bench, fmt.Sprint(round), func(i int) store.Store { return s.both[i%2] })
	}
}

func raceEnforcement(b *bench, round string, on func(int) store.Store) {
	const n = 8
	s := b.signal(func(s *flow.Signal) { s.State = flow.SignalNew })
	b.emit(s)
	drafts := make([]*flow.Draft, n)
	all := make([]flow.Enforcement, n)
	for i := range drafts {
		drafts[i] = b.submit(named("enforced "+round), startedByRule(s, "r"))
		all[i] = b.enforcement(s, "r", func(e *flow.Enforcement) { e.Execution = drafts[i].ID })
	}
	won := b.winners(n, func(i int) error {
		return on(i).Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
			d := *drafts[i]
			delta := store.Delta{Drafts: []*flow.Draft{&d}, Rules: store.RuleRows{Enforcements: all[i : i+1]}}
			if i%2 == 0 { // the others replay, and do not change the signal's state
				delta.Signals.Matched = []int64{s.Number}
			}
			return t.Apply(ctx, delta)
		})
	})
	made, err := store.List(b.ctx(), b.s, store.Filter{Action: "enforced " + round, Limit: n})
	must(b, err)
	found, err := b.s.Enforcements(b.ctx(), store.EnforcementFilter{Signal: s.Number, Limit: n})
	must(b, err)
	if won != 1 || len(made) != 1 || len(found) != 1 || found[0].Execution != made[0].ID {
		b.Errorf("round %s: %d of %d writers, %d executions, enforcements %+v", round, won, n, len(made), found)
	}
	if one, err := b.s.Signal(b.ctx(), s.ID); err == nil && one.State == flow.SignalNew {
		b.delta(store.Delta{Signals: store.SignalRows{Matched: []int64{s.Number}}})
	}
}

// startedByRule makes a request that of an execution that a rule started for a signal.
func startedByRule(s flow.Signal, rule string) func(*flow.Request) {
	return func(r *flow.Request) { r.Signal, r.Rules = s.ID, []string{rule} }
}

// ruleViolations plants rows that no engine writes.
func ruleViolations(b *bench) {
	s := b.signal()
	right, again := b.submit(startedByRule(s, "r")), b.submit(func(r *flow.Request) { r.Rules = []string{"r"} })
	b.delta(store.Delta{Drafts: []*flow.Draft{right, again}, Signals: store.SignalRows{New: []flow.Signal{s}}, Rules: store.RuleRows{Enforcements: []flow.Enforcement{b.enforcement(s, "r", func(e *flow.Enforcement) { e.Execution = right.ID }),
		b.enforcement(s, "gone")}}}) // retention may remove an execution before its signal
	b.clean()

	alone := b.submit(startedByRule(s, "x"))
	b.apply(alone)
	b.broken(39, "an execution without its enforcement", alone.ID)
	b.delta(store.Delta{Rules: store.RuleRows{Enforcements: []flow.Enforcement{b.enforcement(s, "x", func(e *flow.Enforcement) { e.Execution = alone.ID })}}})
	b.clean()

	plain := b.submit()
	b.delta(store.Delta{Drafts: []*flow.Draft{plain}, Rules: store.RuleRows{Enforcements: []flow.Enforcement{b.enforcement(s, "y", func(e *flow.Enforcement) { e.Execution = plain.ID })}}})
	b.broken(39, "an enforcement of what nothing says a rule has started", plain.ID)

	other := b.signal()
	wrong := b.submit(startedByRule(s, "z"))
	enforcement := b.enforcement(other, "z", func(e *flow.Enforcement) { e.Execution = wrong.ID })
	b.delta(store.Delta{Drafts: []*flow.Draft{wrong}, Signals: store.SignalRows{New: []flow.Signal{other}},
		Rules: store.RuleRows{Enforcements: []flow.Enforcement{enforcement}}})
	b.broken(39, "an enforcement of another signal", wrong.ID)

	orphan := b.signal()
	lost := b.enforcement(orphan, "r")
	b.delta(store.Delta{Rules: store.RuleRows{Enforcements: []flow.Enforcement{lost}}})
	b.broken(39, "an enforcement of a signal that is not there", lost.Execution)

	folded := b.enforcement(other, "q", func(e *flow.Enforcement) { e.State, e.Execution = flow.EnforcementFolded, right.ID })
	b.delta(store.Delta{Rules: store.RuleRows{Enforcements: []flow.Enforcement{folded}}})
	b.broken(39, "folded into what another rule has started", right.ID)
}

// switches checks that each generation is used once, and that the versions in force at each can be read.
func switches(b *bench) {
	add := func(all ...store.Switch) error {
		return b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
			return t.Apply(ctx, store.Delta{Rules: store.RuleRows{Switches: all}})
		})
	}
	generation := func() int64 {
		n, err := b.s.Generation(b.ctx())
		must(b, err)
		return n
	}
	equal(b, "without any", generation(), int64(0))
	first := store.Switch{Generation: 1, Name: "rule:b", Version: 1, At: b.now}
	second := store.Switch{Generation: 2, Name: "rule:a", Version: 3, At: b.later(time.Second)}
	third := store.Switch{Generation: 3, Name: "rule:b", Version: 1, Paused: true, At: b.later(time.Second), Reason: "é"}
	must(b, add(first, second))
	must(b, add(third))
	wantErr(b, "a generation again", add(store.Switch{Generation: 3, Name: "rule:c", Version: 1, At: b.now}), store.ErrConflict)
	equal(b, "generation", generation(), int64(3))
	for at, want := range map[int64][]store.Switch{0: nil, 1: {first}, 2: {second, first}, 3: {second, third}, 9: {second, third}} {
		got, err := b.s.SwitchesAt(b.ctx(), at)
		must(b, err)
		equal(b, fmt.Sprintf("at %d", at), got, want)
	}
	b.update(func(ctx context.Context, t store.Tx) error {
		found, last, err := t.LatestSwitches(ctx, []string{"rule:b", "rule:x"})
		equal(b, "latest", found, map[string]store.Switch{"rule:b": third})
		equal(b, "the last generation", last, int64(3))
		return err
	})
	// Concurrent writers of the next generation all succeed in the end, with different generations.
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			err := decided(b.ctx(), b.s, func(ctx context.Context, t store.Tx) error {
				_, last, err := t.LatestSwitches(ctx, nil)
				if err != nil {
					return err
				}
				return t.Apply(ctx, store.Delta{Rules: store.RuleRows{Switches: []store.Switch{{Generation: last + 1, Name: fmt.Sprint("rule:race", i), Version: 1, At: b.now}}}})
			})
			if err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	equal(b, "after a race", generation(), int64(11))
}
