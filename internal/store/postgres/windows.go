package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var windows = relation[*store.Window, *store.Window]{
	{"rule", oidText, func(c *column, w *store.Window) { c.text(w.Rule) }, func(r *rows, w *store.Window) { w.Rule = r.text() }},
	{"key", oidText, func(c *column, w *store.Window) { c.text(w.Key) }, func(r *rows, w *store.Window) { w.Key = r.text() }},
	{"opened", oidInt8, func(c *column, w *store.Window) { c.int(row.Micros(w.Opened)) }, func(r *rows, w *store.Window) { w.Opened = r.time() }},
	{"wake", oidInt8, func(c *column, w *store.Window) { c.int(row.Micros(w.Wake)) }, func(r *rows, w *store.Window) { w.Wake = r.time() }},
	{"count", oidInt4, func(c *column, w *store.Window) { c.int(int64(w.Count)) }, func(r *rows, w *store.Window) { w.Count = int(r.int()) }},
	{"first", oidInt8, func(c *column, w *store.Window) { c.int(w.First) }, func(r *rows, w *store.Window) { w.First = r.int() }},
	{"last", oidInt8, func(c *column, w *store.Window) { c.int(w.Last) }, func(r *rows, w *store.Window) { w.Last = r.int() }},
}

var windowKeys = relation[store.WindowKey, none]{
	{"rule", oidText, func(c *column, k store.WindowKey) { c.text(k.Rule) }, nil},
	{"key", oidText, func(c *column, k store.WindowKey) { c.text(k.Key) }, nil},
}

// closings are windows that close, each with what becomes of the signal that leads.
var closings = relation[*store.Closing, none]{
	{"rule", oidText, func(c *column, k *store.Closing) { c.text(k.Rule) }, nil},
	{"key", oidText, func(c *column, k *store.Closing) { c.text(k.Key) }, nil},
	{"lead", oidInt8, func(c *column, k *store.Closing) { c.int(k.Lead) }, nil},
	{"state", oidInt2, func(c *column, k *store.Closing) { c.int(int64(k.State)) }, nil},
	{"execution", oidUUID, func(c *column, k *store.Closing) { c.idOrNull(k.Execution) }, nil},
	{"reason", oidJSON, func(c *column, k *store.Closing) { c.textOrNull(row.Reason(&k.Reason)) }, nil},
}

var (
	qWindows = sql(`SELECT ` + windows.names("w.") + ` FROM ` + windowKeys.rows() + ` AS v
		JOIN LATERAL (SELECT * FROM {s}.windows w WHERE w.rule = v.rule AND w.key = v.key OFFSET 0) w ON true`)

	qPutWindows = sql(windows.insert("windows") + `
		ON CONFLICT (rule, key) DO UPDATE SET opened = excluded.opened, wake = excluded.wake, count = excluded.count, first = excluded.first, last = excluded.last`)

	qDueWindows = sql(`SELECT ` + windows.names("") + ` FROM {s}.windows WHERE wake <= $1::bigint ORDER BY wake LIMIT $2`)
	qNextWindow = sql(`SELECT wake FROM {s}.windows WHERE wake > $1::bigint ORDER BY wake LIMIT 1`)

	qLeadHeld = sql(`WITH v AS ` + closings.rows() + `,
		led AS (UPDATE {s}.enforcements e SET state = v.state, execution = v.execution, reason = v.reason FROM v
			WHERE ` + is("e.signal", "v.lead") + ` AND ` + is("e.rule", "v.rule") + ` AND e.held_in = v.key AND e.state + 0 = 2 RETURNING 1)
		SELECT {s}.expect((SELECT count(*) FROM led), cardinality($1), 'PW409', 'signals are not held any more')`)

	qFoldHeld = sql(`UPDATE {s}.enforcements e SET state = $3::bigint, execution = $4::uuid, reason = $5::json WHERE e.rule = $1 AND e.held_in = $2 AND e.state = 2`)

	qDropWindows = sql(`DELETE FROM {s}.windows w USING ` + windowKeys.rows() + ` AS v WHERE ` + is("w.rule", "v.rule") + ` AND ` + is("w.key", "v.key"))
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

// PutWindows implements store.Windows.
func (t *tx) PutWindows(ctx context.Context, all []store.Window) error {
	var cols columns
	windows.begin(&cols)
	for i := range all {
		windows.add(&cols, &all[i])
	}
	if cols.rows() == 0 {
		return nil
	}
	if err := t.ask(ctx, qPutWindows, t.args().columns(&cols), nil); err != nil {
		return fmt.Errorf("write %d windows: %w", len(all), err)
	}
	return nil
}

// closeWindows puts the ends of windows in line.
func (t *tx) closeWindows(all []store.Closing) {
	for i := range all {
		k := &all[i]
		t.put(qLeadHeld, closings.columns(k))
		a := t.args().text(k.Rule).text(k.Key).int(int64(row.StateOfFolded(k.State)))
		if a = a.id(k.Execution); k.Execution.IsZero() {
			a.params[len(a.params)-1] = nil
		}
		if reason := row.Reason(&k.Reason); reason == "" {
			a = a.null()
		} else {
			a = a.text(reason)
		}
		t.add(qFoldHeld, a, nil)
		t.put(qDropWindows, windowKeys.columns(k.WindowKey))
	}
}

// DueWindows implements store.WindowReader.
func (s *Store) DueWindows(ctx context.Context, now time.Time, n int) (all []store.Window, next time.Time, err error) {
	var due, later args
	err = s.read(ctx, call{q: qDueWindows, params: due.int(row.Micros(now)).int(int64(n)).params, read: readInto(&all, windows)},
		call{q: qNextWindow, params: later.int(row.Micros(now)).params, read: func(r *rows) error {
			next = r.time()
			return nil
		}})
	if err != nil {
		return nil, next, fmt.Errorf("look for due windows: %w", err)
	}
	return all, next, nil
}
