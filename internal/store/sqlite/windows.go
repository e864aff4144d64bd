package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

const windowColumns = `rule, key, opened, wake, count, bytes, first, last`

var (
	qWindow     = sql(`SELECT ` + windowColumns + ` FROM windows WHERE rule = ? AND key = ?`)
	qPutWindow  = sql(`INSERT OR REPLACE INTO windows (` + windowColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)
	qDueWindows = sql(`SELECT ` + windowColumns + ` FROM windows WHERE wake <= ? ORDER BY wake LIMIT ?`)
	qNextWindow = sql(`SELECT min(wake) FROM windows WHERE wake > ?`)
	qCloseHeld  = sql(`UPDATE enforcements SET state = ?, execution = ?, reason = ? WHERE signal = ? AND rule = ? AND held_in = ? AND state = 2`)
	qFoldHeld   = sql(`UPDATE enforcements SET state = ?, execution = ?, reason = ? WHERE rule = ? AND held_in = ? AND state = 2`)
	qHeldIn     = sql(`SELECT at, signal FROM enforcements WHERE rule = ? AND held_in = ? AND state = 2 ORDER BY at, signal LIMIT ?`)
	qHeld       = sql(`SELECT ` + signalColumns + ` FROM (SELECT signal, at AS held_at FROM enforcements WHERE rule = ? AND held_in = ? AND state = 2 ORDER BY at, signal LIMIT ?)
		JOIN signals ON n = signal ORDER BY held_at, n`)
	qDropWindow = sql(`DELETE FROM windows WHERE rule = ? AND key = ?`)
)

// windows reads rows of windowColumns.
func (s *stmt) windows() ([]store.Window, error) {
	var all []store.Window
	for s.next() {
		all = append(all, store.Window{WindowKey: store.WindowKey{Rule: s.getText(), Key: s.getText()}, Opened: row.FromMicros(s.getInt()), Wake: row.FromMicros(s.getInt()),
			Count: int(s.getInt()), Bytes: s.getInt(), First: s.getInt(), Last: s.getInt()})
	}
	return all, s.done()
}

// Windows implements store.Windows.
func (t *tx) Windows(_ context.Context, keys []store.WindowKey) (map[store.WindowKey]store.Window, error) {
	all := make(map[store.WindowKey]store.Window, len(keys))
	for _, k := range keys {
		found, err := t.c.use(qWindow).text(k.Rule).text(k.Key).windows()
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
func (t *tx) putWindows(all []store.Window, drop []store.WindowKey) error {
	for _, w := range all {
		if err := t.putWindow(&w); err != nil {
			return fmt.Errorf("write window %q of rule %s: %w", w.Key, w.Rule, err)
		}
	}
	for _, k := range drop {
		if err := t.c.use(qDropWindow).text(k.Rule).text(k.Key).run(); err != nil {
			return fmt.Errorf("drop window %q of rule %s: %w", k.Key, k.Rule, err)
		}
	}
	return nil
}

func (t *tx) putWindow(w *store.Window) error {
	return t.c.use(qPutWindow).text(w.Rule).text(w.Key).int(row.Micros(w.Opened)).int(row.Micros(w.Wake)).int(int64(w.Count)).int(w.Bytes).int(w.First).int(w.Last).run()
}

// HeldIn implements store.Windows.
func (t *tx) HeldIn(_ context.Context, key store.WindowKey, n int) (all []store.SignalPlace, err error) {
	s := t.c.use(qHeldIn).text(key.Rule).text(key.Key).int(int64(n))
	for s.next() {
		all = append(all, store.SignalPlace{At: row.FromMicros(s.getInt()), Number: s.getInt()})
	}
	if err := s.done(); err != nil {
		return nil, fmt.Errorf("read what window %q of rule %s holds: %w", key.Key, key.Rule, err)
	}
	return all, nil
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
		return t.putWindow(k.Rest)
	}
	return t.c.use(qDropWindow).text(k.Rule).text(k.Key).run()
}

// Window implements store.WindowReader.
func (s *Store) Window(ctx context.Context, key store.WindowKey) (store.Window, error) {
	return one(ctx, s, func(c *conn) ([]store.Window, error) { return c.use(qWindow).text(key.Rule).text(key.Key).windows() }, "window %q of rule %s", key.Key, key.Rule)
}

// HeldSignals implements store.WindowReader.
func (s *Store) HeldSignals(ctx context.Context, key store.WindowKey, n int) (all []flow.Signal, err error) {
	return list(ctx, s, func(c *conn) ([]flow.Signal, error) {
		return c.use(qHeld).text(key.Rule).text(key.Key).int(int64(n)).signals()
	}, "read what window %q of rule %s holds", key.Key, key.Rule)
}

// DueWindows implements store.WindowReader.
func (s *Store) DueWindows(ctx context.Context, now time.Time, n int) (all []store.Window, next time.Time, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		if all, err = c.use(qDueWindows).int(row.Micros(now)).int(int64(n)).windows(); err != nil {
			return err
		}
		k := c.use(qNextWindow).int(row.Micros(now))
		if k.next() {
			next = row.FromMicros(k.getInt())
		}
		return k.done()
	})
	if err != nil {
		return nil, next, fmt.Errorf("look for due windows: %w", err)
	}
	return all, next, nil
}
