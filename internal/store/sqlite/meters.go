package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	qMeter    = sql(`SELECT tat FROM meters WHERE key = ?`)
	qPutMeter = sql(`INSERT OR REPLACE INTO meters (key, tat) VALUES (?, ?)`)
)

// Meters implements store.Meters. There is one transaction at a time, so reading locks them.
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

// putMeters writes meters.
func (t *tx) putMeters(d *store.Delta) error {
	for key, tat := range d.Meters {
		if err := t.c.use(qPutMeter).text(key).int(row.Micros(tat)).run(); err != nil {
			return fmt.Errorf("write the meter of %q: %w", key, err)
		}
	}
	return nil
}
