package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

const windowColumns = `rule, key, opened, wake, count, first, last`

var (
	qWindow     = sql(`SELECT ` + windowColumns + ` FROM windows WHERE rule = ? AND key = ?`)
	qPutWindow  = sql(`INSERT OR REPLACE INTO windows (` + windowColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?)`)
	qDueWindows = sql(`SELECT ` + windowColumns + ` FROM windows WHERE wake <= ? ORDER BY wake LIMIT ?`)
	qNextWindow = sql(`SELECT min(wake) FROM windows WHERE wake > ?`)
	qLeadHeld   = sql(`UPDATE enforcements SET state = ?, execution = ?, reason = ? WHERE signal = ? AND rule = ? AND held_in = ? AND state = 2`)
	qFoldHeld   = sql(`UPDATE enforcements SET state = ?, execution = ?, reason = ? WHERE rule = ? AND held_in = ? AND state = 2`)
	qDropWindow = sql(`DELETE FROM windows WHERE rule = ? AND key = ?`)
)

// windows reads rows of windowColumns.
func (s *stmt) windows() ([]store.Window, error) {
	var all []store.Window
	for s.next() {
		all = append(all, store.Window{WindowKey: store.WindowKey{Rule: s.getText(), Key: s.getText()}, Opened: row.FromMicros(s.getInt()), Wake: row.FromMicros(s.getInt()),
			Count: int(s.getInt()), First: s.getInt(), Last: s.getInt()})
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

// PutWindows implements store.Windows.
func (t *tx) PutWindows(_ context.Context, all []store.Window) error {
	for _, w := range all {
		err := t.c.use(qPutWindow).text(w.Rule).text(w.Key).int(row.Micros(w.Opened)).int(row.Micros(w.Wake)).int(int64(w.Count)).int(w.First).int(w.Last).run()
		if err != nil {
			return fmt.Errorf("write window %q of rule %s: %w", w.Key, w.Rule, err)
		}
	}
	return nil
}

func (t *tx) closeWindow(k *store.Closing) error {
	err := t.c.use(qLeadHeld).int(int64(k.State)).id(k.Execution).textOrNull(row.Reason(&k.Reason)).int(k.Lead).text(k.Rule).text(k.Key).run()
	if err == nil && t.c.changes() == 0 {
		err = fmt.Errorf("%w: its signal is not held", store.ErrConflict)
	}
	if err != nil {
		return err
	}
	others := row.StateOfFolded(k.State)
	if err := t.c.use(qFoldHeld).int(int64(others)).id(k.Execution).textOrNull(row.Reason(&k.Reason)).text(k.Rule).text(k.Key).run(); err != nil {
		return err
	}
	return t.c.use(qDropWindow).text(k.Rule).text(k.Key).run()
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
