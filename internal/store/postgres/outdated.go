package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var qDropOld = [...]*query{
	store.OldAsides: sql(`DELETE FROM {s}.asides a USING (SELECT kind, id FROM {s}.asides WHERE until < $1::bigint ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED) AS v
		WHERE ` + is("a.kind", "v.kind") + ` AND a.id = v.id RETURNING 1`),
	store.OldMeters: sql(`DELETE FROM {s}.meters m USING (SELECT key FROM {s}.meters WHERE tat < $1::bigint ORDER BY tat LIMIT $2 FOR UPDATE SKIP LOCKED) AS v
		WHERE ` + is("m.key", "v.key") + ` RETURNING 1`),
	store.OldShares: sql(`DELETE FROM {s}.shares s USING (SELECT key, priority, clock, who FROM {s}.shares o
			WHERE o.at < $1::bigint AND (SELECT true FROM {s}.live l WHERE l.key = o.key AND l.place = 2 LIMIT 1) IS NULL ORDER BY o.at LIMIT $2 FOR UPDATE SKIP LOCKED) AS v
		WHERE ` + is("s.key", "v.key") + ` AND s.priority = v.priority AND s.clock = v.clock AND s.who = v.who RETURNING 1`),
	store.OldTicks: sql(`DELETE FROM {s}.ticks k USING (SELECT schedule, nominal, tag FROM {s}.ticks WHERE at < $1::bigint ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED) AS v
		WHERE ` + is("k.schedule", "v.schedule") + ` AND k.nominal = v.nominal AND k.tag = v.tag RETURNING 1`),
}

var (
	qDropExpired = sql(`DELETE FROM {s}.kept k USING (SELECT hash FROM {s}.kept WHERE expires < $1::bigint ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED) AS v
		WHERE ` + is("k.hash", "v.hash") + ` RETURNING 1`)

	qTrimKept = sql(`DELETE FROM {s}.kept k USING (SELECT hash FROM {s}.kept ORDER BY expires LIMIT least($1::bigint, greatest(0, (SELECT count(*) FROM {s}.kept) - $2::bigint))
		FOR UPDATE SKIP LOCKED) AS v WHERE ` + is("k.hash", "v.hash") + ` RETURNING 1`)

	// Keys that are locked for meters and windows begin with "@", keys of executions do not. A lock row that a transaction
	// has locked is in use, and is skipped.
	qLocks = sql(`SELECT key FROM {s}.keys WHERE key > $1 AND key < 'A' AND key >= '@' ORDER BY key LIMIT $2`)

	qDropLocks = sql(`DELETE FROM {s}.keys WHERE key = ANY (ARRAY(SELECT k.key FROM {s}.keys k WHERE k.key = ANY ($1::text[])
			AND (SELECT true FROM {s}.meters m WHERE starts_with(k.key, '` + store.MeterLock + `') AND m.key = substr(k.key, ` + fmt.Sprint(len(store.MeterLock)+1) + `)) IS NULL
			AND (SELECT true FROM {s}.windows w WHERE starts_with(k.key, '` + store.WindowLock + `') AND w.rule = split_part(k.key, ':', 2)
				AND w.key = substr(k.key, ` + fmt.Sprint(len(store.WindowLock)+2) + ` + length(split_part(k.key, ':', 2)))) IS NULL
		ORDER BY k.key FOR UPDATE SKIP LOCKED))`)
)

// DropOld implements store.Cleaning.
func (t *tx) DropOld(ctx context.Context, of store.Outdated, before time.Time, n int) (int, error) {
	return t.dropped(ctx, qDropOld[of], t.args().int(row.Micros(before)).int(int64(n)))
}

// DropLocks implements store.Cleaning.
func (t *tx) DropLocks(ctx context.Context, after string, n int) (last string, err error) {
	var locks []string
	err = t.ask(ctx, qLocks, t.args().text(after).int(int64(n)), readAll(&locks, (*rows).text))
	if err == nil && len(locks) > 0 {
		err = t.ask(ctx, qDropLocks, t.args().texts(locks), nil)
	}
	if err != nil {
		return "", fmt.Errorf("drop the locks of meters and windows: %w", err)
	}
	if len(locks) < n {
		return "", nil
	}
	return locks[n-1], nil
}

// DropKept implements store.Cleaning.
func (t *tx) DropKept(ctx context.Context, before time.Time, most, n int) (int, error) {
	expired, err := t.dropped(ctx, qDropExpired, t.args().int(row.Micros(before)).int(int64(n)))
	if err != nil || expired == n {
		return expired, err
	}
	trimmed, err := t.dropped(ctx, qTrimKept, t.args().int(int64(n-expired)).int(int64(most)))
	return expired + trimmed, err
}

// dropped runs a statement that deletes rows and returns one row for each, and counts them.
func (t *tx) dropped(ctx context.Context, q *query, a *args) (n int, err error) {
	err = t.ask(ctx, q, a, func(*rows) error {
		n++
		return nil
	})
	return store.Result(n, err, "drop old rows")
}
