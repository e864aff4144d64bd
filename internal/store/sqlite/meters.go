package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	qMeter      = sql(`SELECT tat FROM meters WHERE key = ?`)
	qPutMeter   = sql(`INSERT OR REPLACE INTO meters (key, tat) VALUES (?, ?)`)
	qDropMeters = sql(`DELETE FROM meters WHERE key IN (SELECT key FROM meters WHERE tat < ? ORDER BY tat LIMIT ?)`)
)

// Meters implements store.Meters. There is one transaction at a time, so they are locked by reading them.
func (t *tx) Meters(_ context.Context, keys []string) (map[string]time.Time, error) {
	all := make(map[string]time.Time, len(keys))
	for _, key := range keys {
		s := t.c.use(qMeter).text(key)
		if s.next() {
			all[key] = row.FromMicros(s.getInt())
		}
		if err := s.done(); err != nil {
			return nil, fmt.Errorf("read the meter of %q: %w", key, err)
		}
	}
	return all, nil
}

// PutMeters implements store.Meters.
func (t *tx) PutMeters(_ context.Context, all map[string]time.Time) error {
	for key, tat := range all {
		if err := t.c.use(qPutMeter).text(key).int(row.Micros(tat)).run(); err != nil {
			return fmt.Errorf("write the meter of %q: %w", key, err)
		}
	}
	return nil
}

// DropMeters implements store.Meters.
func (t *tx) DropMeters(_ context.Context, before time.Time, n int) (int, error) {
	if err := t.c.use(qDropMeters).int(row.Micros(before)).int(int64(n)).run(); err != nil {
		return 0, fmt.Errorf("drop meters: %w", err)
	}
	return int(t.c.changes()), nil
}

// DropLocks implements store.Meters. There is one transaction at a time, and no row for a lock.
func (t *tx) DropLocks(context.Context, string, int) (string, error) { return "", nil }
