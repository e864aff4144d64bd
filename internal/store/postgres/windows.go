package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var windows = relation[*store.Window, *store.Window]{
	{"rule", oidText, func(c *column, w *store.Window) { c.text(w.Rule) }, func(r *rows, w *store.Window) { w.Rule = r.text() }},
	{"key", oidText, func(c *column, w *store.Window) { c.text(w.Key) }, func(r *rows, w *store.Window) { w.Key = r.text() }},
	{"opened", oidInt8, func(c *column, w *store.Window) { c.int(row.Micros(w.Opened)) }, func(r *rows, w *store.Window) { w.Opened = r.time() }},
	{"wake", oidInt8, func(c *column, w *store.Window) { c.int(row.Micros(w.Wake)) }, func(r *rows, w *store.Window) { w.Wake = r.time() }},
	{"count", oidInt4, func(c *column, w *store.Window) { c.int(int64(w.Count)) }, func(r *rows, w *store.Window) { w.Count = int(r.int()) }},
	{"bytes", oidInt8, func(c *column, w *store.Window) { c.int(w.Bytes) }, func(r *rows, w *store.Window) { w.Bytes = r.int() }},
	{"first", oidInt8, func(c *column, w *store.Window) { c.int(w.First) }, func(r *rows, w *store.Window) { w.First = r.int() }},
	{"last", oidInt8, func(c *column, w *store.Window) { c.int(w.Last) }, func(r *rows, w *store.Window) { w.Last = r.int() }},
}

var windowKeys = relation[store.WindowKey, none]{
	{"rule", oidText, func(c *column, k store.WindowKey) { c.text(k.Rule) }, nil},
	{"key", oidText, func(c *column, k store.WindowKey) { c.text(k.Key) }, nil},
}

var (
	qWindows = sql(`SELECT ` + windows.names("w.") + ` FROM ` + windowKeys.rows() + ` AS v
		JOIN LATERAL (SELECT * FROM {s}.windows w WHERE w.rule = v.rule AND w.key = v.key OFFSET 0) w ON true`)

	qPutWindows = sql(windows.insert("windows") + `
		ON CONFLICT (rule, key) DO UPDATE SET opened = excluded.opened, wake = excluded.wake, count = excluded.count, bytes = excluded.bytes, first = excluded.first, last = excluded.last`)

	qDueWindows = sql(`SELECT ` + windows.names("") + ` FROM {s}.windows WHERE wake <= $1::bigint ORDER BY wake LIMIT $2`)
	qNextWindow = sql(`SELECT wake FROM {s}.windows WHERE wake > $1::bigint ORDER BY wake LIMIT 1`)

	qFoldHeld = sql(`UPDATE {s}.enforcements e SET state = $3::bigint, execution = $4::uuid, reason = $5::json WHERE e.rule = $1 AND e.held_in = $2 AND e.state = 2`)

	qCloseHeld = sql(`WITH v AS ` + numbered.rows() + `,
		led AS (UPDATE {s}.enforcements e SET state = $4::bigint, execution = $5::uuid, reason = $6::json FROM v
			WHERE ` + is("e.signal", "v.n") + ` AND e.rule || '' = $2 AND e.held_in = $3 AND e.state + 0 = 2 RETURNING 1)
		SELECT {s}.expect((SELECT count(*) FROM led), cardinality($1), 'PW409', 'signals are not held any more')`)

	qHeldIn = sql(`SELECT at, signal FROM {s}.enforcements WHERE rule = $1 AND held_in = $2 AND state = 2 ORDER BY at, signal LIMIT $3`)

	qHeldSignals = sql(signalPage(`SELECT s.* FROM (SELECT * FROM {s}.enforcements WHERE rule = $1 AND held_in = $2 AND state = 2 ORDER BY at, signal LIMIT $3) e
		JOIN LATERAL (SELECT * FROM {s}.signals s WHERE s.n = e.signal OFFSET 0) s ON true ORDER BY e.at, e.signal`))

	qWindow = sql(`SELECT ` + windows.names("") + ` FROM {s}.windows WHERE rule = $1 AND key = $2`)

	qDropWindows = sql(`DELETE FROM {s}.windows w USING ` + windowKeys.rows() + ` AS v WHERE ` + is("w.rule", "v.rule") + ` AND w.key = v.key`)
)

// Windows implements store.Windows.
func (t *tx) Windows(ctx context.Context, keys []store.WindowKey) (map[store.WindowKey]store.Window, error) {
	var found []store.Window
	if err := t.ask(ctx, qWindows, t.args().columns(windowKeys.columns(keys...)), readInto(&found, windows)); err != nil {
		return nil, fmt.Errorf("read %d windows: %w", len(keys), err)
	}
	all := make(map[store.WindowKey]store.Window, len(found))
	for _, w := range found {
		all[w.WindowKey] = w
	}
	return all, nil
}

// HeldIn implements store.Windows.
func (t *tx) HeldIn(ctx context.Context, key store.WindowKey, n int) (all []store.SignalPlace, err error) {
	err = t.ask(ctx, qHeldIn, t.args().text(key.Rule).text(key.Key).int(int64(n)), func(r *rows) error {
		all = append(all, store.SignalPlace{At: r.time(), Number: r.int()})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the signals that window %q of rule %s holds: %w", key.Key, key.Rule, err)
	}
	for i := range t.enforced { // enforcements of this transaction that are not written yet
		if e := &t.enforced[i]; heldIn(e, key) {
			all = append(all, store.SignalPlace{At: e.At, Number: e.Number})
		}
	}
	slices.SortFunc(all, func(a, b store.SignalPlace) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Number, b.Number)) })
	return all[:min(n, len(all))], nil
}

func heldIn(e *flow.Enforcement, key store.WindowKey) bool {
	return e.State == flow.EnforcementHeld && e.Rule == key.Rule && e.Window == key.Key
}

// closeWindows queues the statements that close windows.
func (t *tx) closeWindows(all []store.Closing) {
	for i := range all {
		k := &all[i]
		others := row.StateOfFolded(k.State)
		fold := slices.DeleteFunc(slices.Clone(k.Signals), func(n int64) bool { return n == k.Lead })
		lead := []int64{k.Lead}
		for i := range t.enforced { // held in this transaction, and not written yet
			e := &t.enforced[i]
			if !heldIn(e, k.WindowKey) || k.Signals != nil && !slices.Contains(k.Signals, e.Number) {
				continue
			}
			e.State, e.Execution, e.Reason = others, k.Execution, k.Reason
			if e.Number == k.Lead {
				e.State, lead = k.State, nil
			}
			fold = slices.DeleteFunc(fold, func(n int64) bool { return n == e.Number })
		}
		t.closeHeld(k, k.State, lead)
		t.closeHeld(k, others, fold)
		if k.Signals == nil {
			t.add(qFoldHeld, closed(t.args().text(k.Rule).text(k.Key), k, others), nil)
		}
		if k.Rest == nil {
			t.put(qDropWindows, windowKeys.columns(k.WindowKey))
		} else {
			t.put(qPutWindows, windows.columns(k.Rest))
		}
	}
}

// closeHeld queues the statement that sets the state of some of the signals that a window holds.
func (t *tx) closeHeld(k *store.Closing, state flow.EnforcementState, numbers []int64) {
	if len(numbers) > 0 {
		t.add(qCloseHeld, closed(t.args().columns(numbered.columns(numbers...)).text(k.Rule).text(k.Key), k, state), nil)
	}
}

// closed adds the new state of signals to the parameters of a call.
func closed(a *args, k *store.Closing, state flow.EnforcementState) *args {
	a = a.int(int64(state))
	if k.Execution.IsZero() {
		a = a.null()
	} else {
		a = a.id(k.Execution)
	}
	return a.textOrNull(row.Reason(&k.Reason))
}

// DueWindows implements store.WindowReader.
func (s *Store) DueWindows(ctx context.Context, now time.Time, n int) (all []store.Window, next time.Time, err error) {
	return due(ctx, s, qDueWindows, qNextWindow, windows, now, n, "look for due windows")
}

// Window implements store.WindowReader.
func (s *Store) Window(ctx context.Context, key store.WindowKey) (store.Window, error) {
	return one(ctx, s, qWindow, new(args).text(key.Rule).text(key.Key), windows, "window %q of rule %s", key.Key, key.Rule)
}

// HeldSignals implements store.WindowReader.
func (s *Store) HeldSignals(ctx context.Context, key store.WindowKey, n int) (all []flow.Signal, err error) {
	return list(ctx, s, qHeldSignals, new(args).text(key.Rule).text(key.Key).int(int64(n)), signals, "read what window %q of rule %s holds", key.Key, key.Rule)
}
