package postgres

import (
	"context"

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
	return clock, last, store.Failed(err, "read the shares of key %q", key)
}
