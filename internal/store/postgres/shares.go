package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var shares = relation[*store.Share, none]{
	{"key", oidText, func(c *column, k *store.Share) { c.text(k.Key) }, nil},
	{"priority", oidInt4, func(c *column, k *store.Share) { c.int(int64(k.Priority)) }, nil},
	{"clock", oidInt2, func(c *column, k *store.Share) { c.int(isClock(k)) }, nil},
	{"who", oidText, func(c *column, k *store.Share) { c.text(k.By) }, nil},
	{"tag", oidInt8, func(c *column, k *store.Share) { c.int(k.Tag) }, nil},
	{"at", oidInt8, func(c *column, k *store.Share) { c.int(row.Micros(k.At)) }, nil},
}

func isClock(k *store.Share) int64 {
	if k.Clock {
		return 1
	}
	return 0
}

var (
	qShares = sql(`SELECT clock, tag FROM {s}.shares WHERE key = $1 AND priority = $2::bigint AND clock = 1 AND who = ''
		UNION ALL SELECT clock, tag FROM {s}.shares WHERE key = $1 AND priority = $2::bigint AND clock = 0 AND who = $3`)

	qPutShares = sql(shares.insert("shares") + ` ON CONFLICT (key, priority, clock, who) DO UPDATE SET tag = excluded.tag, at = excluded.at`)

	qDropShares = sql(`DELETE FROM {s}.shares WHERE key = ANY ($1::text[])`)

	qDropOldShares = sql(`DELETE FROM {s}.shares s USING (SELECT key, priority, clock, who FROM {s}.shares o
			WHERE o.at < $1::bigint AND (SELECT true FROM {s}.live l WHERE l.key = o.key AND l.place = 2 LIMIT 1) IS NULL ORDER BY o.at LIMIT $2 FOR UPDATE SKIP LOCKED) AS v
		WHERE ` + is("s.key", "v.key") + ` AND s.priority = v.priority AND s.clock = v.clock AND ` + is("s.who", "v.who") + ` RETURNING 1`)
)

// Shares implements store.Shares.
func (t *tx) Shares(ctx context.Context, key string, priority int, by string) (clock, last int64, err error) {
	err = t.ask(ctx, qShares, t.args().text(key).int(int64(priority)).text(by), func(r *rows) error {
		of := &last
		if r.int() == 1 {
			of = &clock
		}
		*of = r.int()
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("read the shares of key %q: %w", key, err)
	}
	return clock, last, nil
}

// PutShares implements store.Shares.
func (t *tx) PutShares(ctx context.Context, all []store.Share) error {
	if len(all) == 0 {
		return nil
	}
	var cols columns
	shares.begin(&cols)
	for i := range all {
		shares.add(&cols, &all[i])
	}
	if err := t.ask(ctx, qPutShares, t.args().columns(&cols), nil); err != nil {
		return fmt.Errorf("write %d shares: %w", len(all), err)
	}
	return nil
}

// DropShares implements store.Shares.
func (t *tx) DropShares(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	if err := t.ask(ctx, qDropShares, t.args().texts(keys), nil); err != nil {
		return fmt.Errorf("drop the shares of %d keys: %w", len(keys), err)
	}
	return nil
}

// DropOldShares implements store.Shares.
func (t *tx) DropOldShares(ctx context.Context, before time.Time, n int) (dropped int, err error) {
	err = t.ask(ctx, qDropOldShares, t.args().int(row.Micros(before)).int(int64(n)), func(*rows) error {
		dropped++
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("drop old shares: %w", err)
	}
	return dropped, nil
}
