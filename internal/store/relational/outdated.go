package relational

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/store"
)

var qDropOld = map[store.Outdated]*Statement{
	store.OldAsides: dropOld("asides", `until < $1::bigint`, "until", "kind", "id"),
	store.OldMeters: dropOld("meters", `tat < $1::bigint`, "tat", "key"),
	store.OldShares: dropOld("shares", `at < $1::bigint
		AND (SELECT true FROM {s}.live l WHERE l.key = o.key AND l.place = 2 LIMIT 1) IS NULL`, "at",
		"key", "priority", "clock", "who"),
	store.OldTicks: dropOld("ticks", `at < $1::bigint`, "at", "schedule", "nominal", "tag"),
}

func dropOld(table, where, order string, key ...string) *Statement {
	return sql(func(d dialect) string { return d.dropOldest(table, key, "WHERE "+where, order, "$2") })
}

func (t Tx) DropOld(ctx context.Context, of store.Outdated, before time.Time, n int) (int, error) {
	return t.dropped(ctx, qDropOld[of], before, n)
}

// dropped runs a statement that deletes rows and returns one row for each, and returns their number.
func (t Tx) dropped(ctx context.Context, q *Statement, args ...any) (n int, err error) {
	err = t.Run(ctx, Call{Statement: q, Args: args, Read: func(Row) error {
		n++
		return nil
	}})
	return store.Result(n, err, "drop old rows")
}
