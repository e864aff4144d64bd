package sqlite

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	qShares     = sql(`SELECT clock, tag FROM shares WHERE key = ? AND priority = ? AND ((clock = 1 AND who = '') OR (clock = 0 AND who = ?))`)
	qPutShare   = sql(`INSERT OR REPLACE INTO shares (key, priority, clock, who, tag, at) VALUES (?, ?, ?, ?, ?, ?)`)
	qDropShares = sql(`DELETE FROM shares WHERE key = ?`)
)

// Shares implements store.Shares.
func (t *tx) Shares(_ context.Context, key string, priority int, by string) (clock, last int64, err error) {
	s := t.c.use(qShares).text(key).int(int64(priority)).text(by)
	for s.next() {
		of := &last
		if s.getInt() == 1 {
			of = &clock
		}
		*of = s.getInt()
	}
	err = s.done()
	return clock, last, store.Failed(err, "read the shares of key %q", key)
}

// putShares deletes the shares of keys, and writes others.
func (t *tx) putShares(d *store.Delta) error {
	for _, key := range d.DroppedShares {
		if err := t.c.use(qDropShares).text(key).run(); err != nil {
			return fmt.Errorf("drop the shares of key %q: %w", key, err)
		}
	}
	for i := range d.Shares {
		k := &d.Shares[i]
		clock := int64(0)
		if k.Clock {
			clock = 1
		}
		if err := t.c.use(qPutShare).text(k.Key).int(int64(k.Priority)).int(clock).text(k.By).int(k.Tag).int(row.Micros(k.At)).run(); err != nil {
			return fmt.Errorf("write a share of key %q: %w", k.Key, err)
		}
	}
	return nil
}
