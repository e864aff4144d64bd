package relational

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/store"
)

var shares = Relation[store.Share]{
	text("key", func(k *store.Share) *string { return &k.Key }),
	number("priority", Int4, func(k *store.Share) *int { return &k.Priority }),
	{"clock", Int2, func(a Args, k *store.Share) { a.Int(isClock(k)) }, nil},
	text("who", func(k *store.Share) *string { return &k.By }),
	number("tag", Int8, func(k *store.Share) *int64 { return &k.Tag }),
	moment("at", func(k *store.Share) *time.Time { return &k.At }),
}

func isClock(k *store.Share) int64 {
	if k.Clock {
		return 1
	}
	return 0
}

var (
	qShares = same(`SELECT clock, tag FROM {s}.shares WHERE key = $1 AND priority = $2::bigint AND clock = 1 AND who = ''
		UNION ALL SELECT clock, tag FROM {s}.shares WHERE key = $1 AND priority = $2::bigint AND clock = 0 AND who = $3`)

	qPutShares  = sql(func(d dialect) string { return shares.upsert(d, "shares", "key", "priority", "clock", "who") })
	qDropShares = sql(func(d dialect) string { return `DELETE FROM {s}.shares WHERE ` + d.in("key", Text) })
)

func (t Tx) Shares(ctx context.Context, key string, priority int, by string) (clock, last int64, err error) {
	err = t.Run(ctx, Call{Statement: qShares, Args: []any{key, priority, by}, Read: func(r Row) error {
		of := &last
		if r.Int() == 1 {
			of = &clock
		}
		*of = r.Int()
		return nil
	}})
	return clock, last, store.Failed(err, "read the shares of key %q", key)
}
