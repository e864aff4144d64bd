package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	qPutAside   = sql(`INSERT OR REPLACE INTO asides (kind, id, until, times, reason) VALUES (?, ?, ?, ?, ?)`)
	qAside      = sql(`SELECT until, times, reason FROM asides WHERE kind = ? AND id = ?`)
	qDropAsides = sql(`DELETE FROM asides WHERE (kind, id) IN (SELECT kind, id FROM asides WHERE until < ? ORDER BY until LIMIT ?)`)
)

// PutAsides implements store.Asides.
func (t *tx) PutAsides(_ context.Context, all []store.Aside) error {
	for i := range all {
		a := &all[i]
		if err := t.c.use(qPutAside).int(int64(a.Kind)).id(a.ID).int(row.Micros(a.Until)).int(int64(a.Times)).text(a.Reason).run(); err != nil {
			return fmt.Errorf("put %s aside: %w", a.ID, err)
		}
	}
	return nil
}

// DropAsides implements store.Asides.
func (t *tx) DropAsides(_ context.Context, before time.Time, n int) (int, error) {
	if err := t.c.use(qDropAsides).int(row.Micros(before)).int(int64(n)).run(); err != nil {
		return 0, fmt.Errorf("forget what was put aside: %w", err)
	}
	return t.c.changes(), nil
}

// Aside implements store.AsideReader.
func (s *Store) Aside(ctx context.Context, kind store.AsideKind, id flow.ID) (a flow.Aside, err error) {
	found := false
	err = s.read(ctx, func(c *conn) error {
		k := c.use(qAside).int(int64(kind)).id(id)
		if found = k.next(); found {
			a = flow.Aside{Until: row.FromMicros(k.getInt()), Times: int(k.getInt()), Reason: k.getText()}
		}
		return k.done()
	})
	if err == nil && !found {
		err = store.ErrNotFound
	}
	if err != nil {
		return a, fmt.Errorf("look whether %s is put aside: %w", id, err)
	}
	return a, nil
}
