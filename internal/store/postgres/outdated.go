package postgres

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/store"
)

var (
	// Keys that are locked for meters and windows begin with "@"; keys of executions do not. A lock row that a transaction has locked is in
	// use, and is skipped.
	qLocks = sql(`SELECT key FROM {s}.keys WHERE key > $1 AND key < 'A' AND key >= '@' ORDER BY key LIMIT $2`)

	qDropLocks = sql(`DELETE FROM {s}.keys WHERE key = ANY (ARRAY(SELECT k.key FROM {s}.keys k WHERE k.key = ANY ($1::text[])
			AND (SELECT true FROM {s}.meters m WHERE starts_with(k.key, '` + store.MeterLock + `') AND m.key = substr(k.key, ` + fmt.Sprint(len(store.MeterLock)+1) + `)) IS NULL
			AND (SELECT true FROM {s}.windows w WHERE starts_with(k.key, '` + store.WindowLock + `') AND w.rule = split_part(k.key, ':', 2)
				AND w.key = substr(k.key, ` + fmt.Sprint(len(store.WindowLock)+2) + ` + length(split_part(k.key, ':', 2)))) IS NULL
		ORDER BY k.key FOR UPDATE SKIP LOCKED))`)
)

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
