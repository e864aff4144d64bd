package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// holding is an enforcement that is held in a window.
func holding(key string) func(*flow.Enforcement) {
	return func(e *flow.Enforcement) { e.State, e.Execution, e.Window = flow.EnforcementHeld, flow.ID{}, key }
}

// windowed writes a window under its lock, with what it holds.
func (b *bench) windowed(w store.Window, all ...flow.Enforcement) {
	b.Helper()
	b.update(func(ctx context.Context, t store.Tx) error {
		if _, err := t.LockKeys(ctx, []string{w.Lock()}); err != nil {
			return err
		}
		if err := t.PutWindows(ctx, []store.Window{w}); err != nil {
			return err
		}
		return t.Apply(ctx, store.Delta{Enforcements: all})
	})
}

// heldWindows checks that windows are kept, found when they are due, and close once with all that they hold.
func heldWindows(b *bench) {
	at := func(minutes int) time.Time { return b.now.Add(time.Duration(minutes) * time.Minute) }
	s := []flow.Signal{b.signal(), b.signal(), b.signal(), b.signal()}
	b.emit(s...)
	x := store.Window{WindowKey: store.WindowKey{Rule: "r", Key: ""}, Opened: at(0), Wake: at(5), Count: 3, First: s[0].Number, Last: s[2].Number}
	y := store.Window{WindowKey: store.WindowKey{Rule: "r", Key: "é"}, Opened: at(0), Wake: at(3), Count: 1, First: s[3].Number, Last: s[3].Number}
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

	d := b.submit(led(s[2], "r"))
	closing := store.Closing{WindowKey: x.WindowKey, Lead: s[2].Number, State: flow.EnforcementRan, Execution: d.ID}
	close := func() error {
		return b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
			if _, err := t.LockKeys(ctx, []string{x.Lock()}); err != nil {
				return err
			}
			d := *d
			return t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{&d}, Closed: []store.Closing{closing}})
		})
	}
	must(b, close())
	wantErr(b, "closed again", close(), store.ErrConflict)
	all, err := b.s.Enforcements(b.ctx(), store.EnforcementFilter{Rule: "r", Limit: 10})
	must(b, err)
	var states []string
	for _, e := range all {
		states = append(states, e.State.String()+" "+e.Window)
		if e.State != flow.EnforcementHeld && e.Execution != d.ID {
			b.Errorf("%+v, want execution %s", e, d.ID)
		}
	}
	equal(b, "what was held", states, []string{"held é", "ran ", "folded ", "folded "})
	bad := store.Closing{WindowKey: y.WindowKey, Lead: s[3].Number, State: flow.EnforcementFailed, Reason: flow.Reason{Code: "input", Message: "m"}}
	b.delta(store.Delta{Closed: []store.Closing{bad}})
	one, err := b.s.Enforcements(b.ctx(), store.EnforcementFilter{Signal: s[3].Number, Limit: 1})
	must(b, err)
	equal(b, "failed", []any{one[0].State, one[0].Reason}, []any{flow.EnforcementFailed, bad.Reason})
	equal(b, "no window is left", due(at(99), 10), []any{[]store.Window(nil), time.Time{}})
}

// windowViolations plants what no engine writes.
func windowViolations(b *bench) {
	wants := func(what string) {
		b.Helper()
		found, err := b.s.Check(b.ctx())
		must(b, err)
		if !slices.ContainsFunc(found, func(v store.Violation) bool { return v.Invariant == 48 && v.Say != "" }) {
			b.Errorf("%s: Check found %v, want invariant 48 broken", what, found)
		}
	}
	s := b.signal()
	b.emit(s)
	w := store.Window{WindowKey: store.WindowKey{Rule: "r", Key: "k"}, Opened: b.now, Wake: b.now, Count: 1, First: s.Number, Last: s.Number}
	b.windowed(w)
	wants("a window that holds nothing")
	b.delta(store.Delta{Enforcements: []flow.Enforcement{b.enforcement(s, "r", holding("k"))}})
	b.clean()
	b.delta(store.Delta{Enforcements: []flow.Enforcement{b.enforcement(s, "q", holding("k"))}})
	wants("a signal that is held in no window")
}
