package sqlite

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	qPutAside = sql(`INSERT OR REPLACE INTO asides (kind, id, until, times, reason) VALUES (?, ?, ?, ?, ?)`)
	qAside    = sql(`SELECT until, times, reason FROM asides WHERE kind = ? AND id = ?`)
)

// putAsides writes which signals and waits are put aside.
func (t *tx) putAsides(d *store.Delta) error {
	for i := range d.Asides {
		a := &d.Asides[i]
		if err := t.c.use(qPutAside).int(int64(a.Kind)).id(a.ID).int(row.Micros(a.Until)).int(int64(a.Times)).text(a.Reason).run(); err != nil {
			return fmt.Errorf("put %s aside: %w", a.ID, err)
		}
	}
	return nil
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
	return a, store.Failed(err, "look whether %s is put aside", id)
}
