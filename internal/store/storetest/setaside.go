package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// asides checks that a loop leaves out signals and waits that are put aside for it, until their time.
func asides(b *bench) {
	s := b.paid("a", 2)
	fresh := b.signal(func(s *flow.Signal) { s.State = flow.SignalNew })
	next := b.signal(func(s *flow.Signal) { s.State = flow.SignalNew })
	b.emit(fresh, next)
	one, first := b.awaiting("a")
	two, second := b.awaiting("a")
	first.If, second.If = "false", "false"
	must(b, b.putWaits([]*flow.Draft{one, two}, []flow.Wait{first, second}))
	b.update(func(ctx context.Context, t store.Tx) error {
		return t.Apply(ctx, store.Delta{Signals: store.SignalRows{Uncorrelated: []int64{s[0].Number, s[1].Number}}})
	})

	until := b.now.Add(time.Minute)
	aside := func(kind store.AsideKind, id flow.ID, times int) store.Aside {
		return store.Aside{Kind: kind, ID: id, Aside: flow.Aside{Until: until, Times: times, Reason: "é"}}
	}
	put := func(all ...store.Aside) {
		b.Helper()
		b.update(func(ctx context.Context, t store.Tx) error { return t.Apply(ctx, store.Delta{Asides: all}) })
	}
	found := func(now time.Time, n int) (all [3][]flow.ID) {
		b.Helper()
		signals, err := b.s.NewSignals(b.ctx(), now, store.SignalPlace{}, n)
		must(b, err)
		uncorrelated, err := b.s.UncorrelatedSignals(b.ctx(), now, 0, n)
		must(b, err)
		waits, err := b.s.UnscannedWaits(b.ctx(), now, flow.ID{}, n)
		must(b, err)
		for i := range signals {
			all[0] = append(all[0], signals[i].ID)
		}
		for i := range uncorrelated {
			all[1] = append(all[1], uncorrelated[i].ID)
		}
		for i := range waits {
			all[2] = append(all[2], waits[i].Execution)
		}
		return all
	}
	everything := [3][]flow.ID{{fresh.ID, next.ID}, {s[0].ID, s[1].ID}, {one.ID, two.ID}}
	put(aside(store.AsideCorrelation, fresh.ID, 1), aside(store.AsideScan, s[0].ID, 1), aside(store.AsideMatching, one.ID, 1))
	equal(b, "put aside for other loops", found(b.now, 10), everything)
	put(aside(store.AsideMatching, fresh.ID, 1), aside(store.AsideCorrelation, s[0].ID, 1), aside(store.AsideScan, one.ID, 1))
	put(aside(store.AsideMatching, fresh.ID, 2))
	put()
	equal(b, "put aside", found(b.now, 1), [3][]flow.ID{{next.ID}, {s[1].ID}, {two.ID}})
	equal(b, "a moment before its time", found(until.Add(-time.Microsecond), 10), [3][]flow.ID{{next.ID}, {s[1].ID}, {two.ID}})
	equal(b, "at its time", found(until, 10), everything)

	got, err := b.s.Aside(b.ctx(), store.AsideMatching, fresh.ID)
	must(b, err)
	equal(b, "what was put aside", got, flow.Aside{Until: until, Times: 2, Reason: "é"})
	_, err = b.s.Aside(b.ctx(), store.AsideMatching, next.ID)
	wantErr(b, "what was not", err, store.ErrNotFound)
	drop := func(before time.Time, n int) int {
		return inTx(b, func(ctx context.Context, t store.Tx) (int, error) { return t.DropOld(ctx, store.OldAsides, before, n) })
	}
	equal(b, "dropped too early", drop(until, 10), 0)
	equal(b, "dropped of six", drop(until.Add(time.Second), 4), 4)
	equal(b, "the others", drop(until.Add(time.Second), 4), 2)
	equal(b, "with nothing put aside", found(b.now, 10), everything)
}

// Damaged checks that a signal, or a wait, whose row cannot be decoded does not hide others, and is read with its damage. damage makes the
// details of signals or waits ("signals", "waits") undecodable, bypassing the store.
func Damaged(t *testing.T, s store.Store, damage func(table, column string, ids ...flow.ID)) {
	b := &bench{tester: t, tb: t, s: s, now: epoch}
	all := b.paid("a", 2)
	fresh := b.signal(func(s *flow.Signal) { s.State = flow.SignalNew })
	next := b.signal(func(s *flow.Signal) { s.State = flow.SignalNew })
	b.emit(fresh, next)
	b.update(func(ctx context.Context, t store.Tx) error {
		return t.Apply(ctx, store.Delta{Signals: store.SignalRows{Uncorrelated: []int64{all[0].Number, all[1].Number}}})
	})
	one, first := b.awaiting("a")
	two, second := b.awaiting("a")
	must(b, b.putWaits([]*flow.Draft{one, two}, []flow.Wait{first, second}))
	damage("signals", "id", all[0].ID, fresh.ID)
	damage("waits", "execution", one.ID)

	signals := func(what string, found []flow.Signal, err error, want ...flow.Signal) {
		b.Helper()
		must(b, err)
		for i := range found {
			if broken := found[i].ID == all[0].ID || found[i].ID == fresh.ID; broken != (found[i].Damage != "") {
				b.Errorf("%s: the damage of signal %d is %q", what, i, found[i].Damage)
			}
			found[i].Damage = ""
		}
		equal(b, what, found, want)
	}
	found, err := b.s.NewSignals(b.ctx(), b.now, store.SignalPlace{}, 10)
	signals("new", found, err, fresh, next)
	found, err = b.s.UncorrelatedSignals(b.ctx(), b.now, 0, 10)
	signals("unmet", found, err, all...)
	found, err = b.s.SignalsAbout(b.ctx(), "paid", "a", store.SignalPlace{}, 10)
	signals("about a subject", found, err, all...)
	found, err = b.s.Signals(b.ctx(), store.SignalFilter{Trigger: "paid", Limit: 10})
	signals("listed", found, err, all[1], all[0])
	signal, err := b.s.Signal(b.ctx(), fresh.ID)
	signals("by id", []flow.Signal{signal}, err, fresh)
	locked := inTx(b, func(ctx context.Context, t store.Tx) ([]flow.Signal, error) {
		return t.LockSignals(ctx, []int64{fresh.Number, next.Number})
	})
	signals("locked", locked, nil, fresh, next)

	waits := func(what string, found []flow.Wait, err error) {
		b.Helper()
		must(b, err)
		if len(found) != 2 || found[0].Execution != one.ID || found[0].Damage == "" || found[1].Damage != "" {
			b.Errorf("%s: %+v", what, found)
		}
	}
	open, err := b.s.OpenWaits(b.ctx(), "paid", "a", flow.ID{}, 10)
	waits("open", open, err)
	open, err = b.s.UnscannedWaits(b.ctx(), b.now, flow.ID{}, 10)
	waits("unlooked", open, err)
	broken, err := s.Check(b.ctx())
	must(b, err)
	if !slices.ContainsFunc(broken, func(v store.Violation) bool { return v.Invariant == 32 && v.Execution == one.ID }) {
		b.Errorf("Check found %v, want the wait of %s", broken, one.ID)
	}
}
