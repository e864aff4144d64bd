package storetest

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// pending checks that Pending reports exactly the kinds of work that exist.
func pending(b *bench) {
	var want store.Pending
	check := func(say string, change func(*store.Pending)) {
		b.Helper()
		if change != nil {
			change(&want)
		}
		before := inTx(b, func(ctx context.Context, t store.Tx) (time.Time, error) { return t.Now(ctx) })
		p, err := b.s.Pending(b.ctx(), b.now)
		must(b, err)
		after := inTx(b, func(ctx context.Context, t store.Tx) (time.Time, error) { return t.Now(ctx) })
		if p.Now.Before(before) || p.Now.After(after) {
			b.Errorf("%s: the clock says %s between %s and %s", say, p.Now, before, after)
		}
		p.Now = time.Time{}
		equal(b, say, p, want)
	}
	check("nothing", nil)

	b.session(flow.ID{1}, time.Hour)
	b.ready(1)
	running := b.claimed(flow.ID{1})
	check("work of workers", nil)
	b.ranOut(b.session(flow.ID{3}, brief).ID)
	check("a lease that has run out", func(p *store.Pending) { p.Expired = true })
	b.update(func(ctx context.Context, t store.Tx) error {
		_, err := t.EndLeases(ctx, []flow.ID{{3}})
		return err
	})
	check("a lease that was ended", nil)
	b.update(func(ctx context.Context, t store.Tx) error { return t.DropSession(ctx, flow.ID{3}) })
	check("a session that was forgotten", func(p *store.Pending) { p.Expired = false })
	b.finishSubmitted(running)

	for _, wait := range []time.Duration{time.Minute, time.Second, time.Hour} {
		b.apply(b.submit(func(r *flow.Request) { r.NotBefore = b.now.Add(wait) }))
	}
	check("executions that wait", func(p *store.Pending) { p.Wake = b.now.Add(time.Second) })

	b.put(store.Schedule{Name: "a", Version: 1, Next: b.now, PausedAt: b.now}, store.Schedule{Name: "b", Version: 1})
	check("schedules that are never due", nil)
	b.put(store.Schedule{Name: "c", Version: 1, Next: b.now, Due: b.now.Add(time.Hour)}, store.Schedule{Name: "d", Version: 1, Next: b.now, Due: b.now.Add(-time.Hour)})
	check("schedules", func(p *store.Pending) { p.Schedule = b.now.Add(-time.Hour) })

	must(b, b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
		return t.Apply(ctx, store.Delta{Rules: store.RuleRows{Switches: []store.Switch{{Generation: 1, Name: "rule:b", Version: 1, At: b.now}, {Generation: 2, Name: "rule:a", Version: 3, At: b.now}}}})
	}))
	check("rules", func(p *store.Pending) { p.Generation = 2 })

	held, matched := b.signal(), b.signal()
	b.emit(held, matched)
	check("signals about which rules were asked", nil)
	b.windowed(store.Window{WindowKey: store.WindowKey{Rule: "r"}, Opened: b.now, Wake: b.now.Add(time.Minute), Count: 1,
		Bytes: bufferedBytes(held), First: held.Number, Last: held.Number},
		b.enforcement(held, "r", holding("")))
	check("a window", func(p *store.Pending) { p.Window = b.now.Add(time.Minute) })

	aside := func(kind store.AsideKind, id flow.ID) {
		b.Helper()
		b.update(func(ctx context.Context, t store.Tx) error {
			return t.Apply(ctx, store.Delta{Asides: []store.Aside{{Kind: kind, ID: id, Aside: flow.Aside{Until: b.now.Add(time.Second), Times: 1, Reason: "é"}}}})
		})
	}
	fresh := b.signal(func(s *flow.Signal) { s.State = flow.SignalNew })
	b.emit(fresh)
	check("a new signal", func(p *store.Pending) { p.Signals = true })
	aside(store.AsideMatching, fresh.ID)
	check("a new signal that is put aside", func(p *store.Pending) { p.Signals = false })

	d, w := b.awaiting("a")
	w.If = "false"
	must(b, b.putWaits([]*flow.Draft{d}, []flow.Wait{w}))
	check("a wait that has not looked", func(p *store.Pending) { p.Correlations = true })
	aside(store.AsideScan, w.Execution)
	check("a wait that is put aside", func(p *store.Pending) { p.Correlations = false })
	uncorrelated := b.paid("a", 1)
	b.update(func(ctx context.Context, t store.Tx) error {
		return t.Apply(ctx, store.Delta{Signals: store.SignalRows{Uncorrelated: []int64{uncorrelated[0].Number}}})
	})
	check("an unmet signal", func(p *store.Pending) { p.Correlations = true })
	aside(store.AsideCorrelation, uncorrelated[0].ID)
	check("a signal that is put aside", func(p *store.Pending) { p.Correlations = false })
	b.later(time.Second)
	check("what was put aside, at its time", func(p *store.Pending) { p.Signals, p.Correlations = true, true })
}
