package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var qDropOld = [...]*query{
	store.OldAsides: sql(`DELETE FROM asides WHERE (kind, id) IN (SELECT kind, id FROM asides WHERE until < ? ORDER BY until LIMIT ?)`),
	store.OldMeters: sql(`DELETE FROM meters WHERE key IN (SELECT key FROM meters WHERE tat < ? ORDER BY tat LIMIT ?)`),
	store.OldShares: sql(`DELETE FROM shares WHERE (key, priority, clock, who) IN (SELECT key, priority, clock, who FROM shares s
		WHERE s.at < ? AND NOT EXISTS (SELECT 1 FROM live l WHERE l.key = s.key AND l.place = 2) ORDER BY s.at LIMIT ?)`),
	store.OldTicks: sql(`DELETE FROM ticks WHERE (schedule, nominal, tag) IN (SELECT schedule, nominal, tag FROM ticks WHERE at < ? ORDER BY at LIMIT ?)`),
}

var (
	qDropExpired = sql(`DELETE FROM kept WHERE hash IN (SELECT hash FROM kept WHERE expires < ? ORDER BY expires LIMIT ?)`)

	qTrimKept = sql(`DELETE FROM kept WHERE hash IN (SELECT hash FROM kept ORDER BY expires LIMIT min(?, max(0, (SELECT count(*) FROM kept) - ?)))`)
)

// DropOld implements store.Cleaning.
func (t *tx) DropOld(_ context.Context, of store.Outdated, before time.Time, n int) (int, error) {
	return t.dropped(t.c.use(qDropOld[of]).int(row.Micros(before)).int(int64(n)))
}

// DropLocks implements store.Cleaning. There is one transaction at a time, and no row for a lock.
func (t *tx) DropLocks(context.Context, string, int) (string, error) { return "", nil }

// DropKept implements store.Cleaning.
func (t *tx) DropKept(_ context.Context, before time.Time, most, n int) (int, error) {
	expired, err := t.dropped(t.c.use(qDropExpired).int(row.Micros(before)).int(int64(n)))
	if err != nil || expired == n {
		return expired, err
	}
	trimmed, err := t.dropped(t.c.use(qTrimKept).int(int64(n - expired)).int(int64(most)))
	return expired + trimmed, err
}

func (t *tx) dropped(s *stmt) (int, error) {
	if err := s.run(); err != nil {
		return 0, fmt.Errorf("drop old rows: %w", err)
	}
	return t.c.changes(), nil
}
