package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// windows are the columns of the windows of rules.
var windows = relation[*store.Window, *store.Window]{
	{"rule", func(s *stmt, x *store.Window) { s.text(x.Rule) }, func(s *stmt, x *store.Window) { x.Rule = s.getText() }},
	{"key", func(s *stmt, x *store.Window) { s.text(x.Key) }, func(s *stmt, x *store.Window) { x.Key = s.getText() }},
	{"opened", func(s *stmt, x *store.Window) { s.time(x.Opened) }, func(s *stmt, x *store.Window) { x.Opened = s.getTime() }},
	{"wake", func(s *stmt, x *store.Window) { s.time(x.Wake) }, func(s *stmt, x *store.Window) { x.Wake = s.getTime() }},
	{"count", func(s *stmt, x *store.Window) { s.int(int64(x.Count)) }, func(s *stmt, x *store.Window) { x.Count = int(s.getInt()) }},
	{"bytes", func(s *stmt, x *store.Window) { s.int(x.Bytes) }, func(s *stmt, x *store.Window) { x.Bytes = s.getInt() }},
	{"first", func(s *stmt, x *store.Window) { s.int(x.First) }, func(s *stmt, x *store.Window) { x.First = s.getInt() }},
	{"last", func(s *stmt, x *store.Window) { s.int(x.Last) }, func(s *stmt, x *store.Window) { x.Last = s.getInt() }},
}

var (
	qWindow     = sql(`SELECT ` + windows.names("") + ` FROM windows WHERE rule = ? AND key = ?`)
	qPutWindow  = sql(windows.replace("windows"))
	qDueWindows = sql(`SELECT ` + windows.names("") + ` FROM windows WHERE wake <= ? ORDER BY wake LIMIT ?`)
	qNextWindow = sql(`SELECT min(wake) FROM windows WHERE wake > ?`)
	qCloseHeld  = sql(`UPDATE enforcements SET state = ?, execution = ?, reason = ? WHERE signal = ? AND rule = ? AND held_in = ? AND state = 2`)
	qFoldHeld   = sql(`UPDATE enforcements SET state = ?, execution = ?, reason = ? WHERE rule = ? AND held_in = ? AND state = 2`)
	qHeldIn     = sql(`SELECT at, signal FROM enforcements WHERE rule = ? AND held_in = ? AND state = 2 ORDER BY at, signal LIMIT ?`)
	qHeld       = sql(`SELECT ` + signals.names("") + ` FROM (SELECT signal, at AS held_at FROM enforcements WHERE rule = ? AND held_in = ? AND state = 2 ORDER BY at, signal LIMIT ?)
		JOIN signals ON n = signal ORDER BY held_at, n`)
	qDropWindow = sql(`DELETE FROM windows WHERE rule = ? AND key = ?`)
)

// Windows implements store.Windows.
func (t *tx) Windows(_ context.Context, keys []store.WindowKey) (map[store.WindowKey]store.Window, error) {
	all := make(map[store.WindowKey]store.Window, len(keys))
	for _, k := range keys {
		found, err := rowsOf(t.c.use(qWindow).text(k.Rule).text(k.Key), windows)
		if err != nil {
			return nil, fmt.Errorf("read window %q of rule %s: %w", k.Key, k.Rule, err)
		}
		if len(found) > 0 {
			all[k] = found[0]
		}
	}
	return all, nil
}

// putWindows writes windows, and deletes others.
func (t *tx) putWindows(d *store.Delta) error {
	for _, w := range d.Windows {
		if err := windows.bind(t.c.use(qPutWindow), &w).run(); err != nil {
			return fmt.Errorf("write window %q of rule %s: %w", w.Key, w.Rule, err)
		}
	}
	for _, k := range d.DroppedWindows {
		if err := t.c.use(qDropWindow).text(k.Rule).text(k.Key).run(); err != nil {
			return fmt.Errorf("drop window %q of rule %s: %w", k.Key, k.Rule, err)
		}
	}
	return nil
}

// HeldIn implements store.Windows.
func (t *tx) HeldIn(_ context.Context, key store.WindowKey, n int) (all []store.SignalPlace, err error) {
	s := t.c.use(qHeldIn).text(key.Rule).text(key.Key).int(int64(n))
	for s.next() {
		all = append(all, store.SignalPlace{At: row.FromMicros(s.getInt()), Number: s.getInt()})
	}
	err = s.done()
	return store.Result(all, err, "read what window %q of rule %s holds", key.Key, key.Rule)
}

func (t *tx) closeWindow(k *store.Closing) error {
	one := func(number int64, state flow.EnforcementState) error {
		err := t.c.use(qCloseHeld).int(int64(state)).id(k.Execution).textOrNull(row.Reason(&k.Reason)).int(number).text(k.Rule).text(k.Key).run()
		if err == nil && t.c.changes() == 0 {
			err = fmt.Errorf("%w: signal number %d is not held", store.ErrConflict, number)
		}
		return err
	}
	if err := one(k.Lead, k.State); err != nil {
		return err
	}
	others := row.StateOfFolded(k.State)
	for _, number := range k.Signals {
		if number == k.Lead {
			continue
		}
		if err := one(number, others); err != nil {
			return err
		}
	}
	if k.Signals == nil {
		if err := t.c.use(qFoldHeld).int(int64(others)).id(k.Execution).textOrNull(row.Reason(&k.Reason)).text(k.Rule).text(k.Key).run(); err != nil {
			return err
		}
	}
	if k.Rest != nil {
		return windows.bind(t.c.use(qPutWindow), k.Rest).run()
	}
	return t.c.use(qDropWindow).text(k.Rule).text(k.Key).run()
}

// Window implements store.WindowReader.
func (s *Store) Window(ctx context.Context, key store.WindowKey) (store.Window, error) {
	return one(ctx, s, func(c *conn) ([]store.Window, error) {
		return rowsOf(c.use(qWindow).text(key.Rule).text(key.Key), windows)
	}, "window %q of rule %s", key.Key, key.Rule)
}

// HeldSignals implements store.WindowReader.
func (s *Store) HeldSignals(ctx context.Context, key store.WindowKey, n int) (all []flow.Signal, err error) {
	return list(ctx, s, func(c *conn) ([]flow.Signal, error) {
		return c.use(qHeld).text(key.Rule).text(key.Key).int(int64(n)).signals()
	}, "read what window %q of rule %s holds", key.Key, key.Rule)
}

// DueWindows implements store.WindowReader.
func (s *Store) DueWindows(ctx context.Context, now time.Time, n int) (all []store.Window, next time.Time, err error) {
	return due(ctx, s, qDueWindows, qNextWindow, windows, now, n, "look for due windows")
}
