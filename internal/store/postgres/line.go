package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

var (
	qLockKeys = sql(`SELECT key FROM {s}.keys WHERE key = ANY ($1::text[]) ORDER BY key FOR UPDATE`)

	qMakeKeys = sql(`INSERT INTO {s}.keys (key) SELECT k FROM unnest($1::text[]) k ORDER BY k ON CONFLICT DO NOTHING RETURNING key`)

	qUse = sql(`SELECT k.key, (SELECT count(*) FROM {s}.live l WHERE l.key = k.key AND l.place IN (3, 4)),
		(SELECT count(*) FROM (SELECT FROM {s}.live l WHERE l.key = k.key AND l.place = 2 LIMIT $2) w) FROM unnest($1::text[]) AS k(key)`)

	qLine = sql(`SELECT ` + liveColumns + ` FROM {s}.live l WHERE l.key = $1 AND l.place = 2 ORDER BY l.priority DESC, l.ticket LIMIT $2 FOR UPDATE`)

	qHolders = sql(`SELECT ` + liveColumns + ` FROM {s}.live l WHERE l.key = $1 AND l.place IN (3, 4) ORDER BY l.created_at, l.id LIMIT $2 FOR UPDATE`)

	qPatience = sql(`SELECT set_config('lock_timeout', $1, true)`)
)

// LockKeys implements store.Executions. Every change of who holds a key or waits for it is decided under this lock, so
// what is counted after it stays as it is until the transaction ends.
func (t *tx) LockKeys(ctx context.Context, keys []string) (map[string]store.KeyUse, error) {
	use := make(map[string]store.KeyUse, len(keys))
	if len(keys) == 0 {
		return use, nil
	}
	keys = unique(keys)
	t.tickets = ticketBlock{} // a ticket drawn before the lock could stand before one that somebody drew under it
	locked := make(map[string]bool, len(keys))
	note := func(r *rows) error {
		locked[r.text()] = true
		return nil
	}
	count := func() {
		t.add(qUse, t.args().texts(keys).int(store.WaitingCounted), func(r *rows) error {
			use[r.text()] = store.KeyUse{Holders: int(r.int()), Waiting: int(r.int())}
			return nil
		})
	}
	t.add(qLockKeys, t.args().texts(keys), note)
	count()
	for {
		if err := t.flush(ctx); err != nil {
			return nil, fmt.Errorf("lock keys: %w", err)
		}
		missing := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return locked[k] })
		if len(missing) == 0 {
			return use, nil
		}
		// Keys that nobody has used yet. One that somebody else makes at the same moment is waited for, and locked then.
		t.add(qMakeKeys, t.args().texts(missing), note)
		t.add(qLockKeys, t.args().texts(missing), note)
		count()
	}
}

// linePatience is how long the holder of a key's lock waits for an execution of its line. The rule is execution before
// key; whoever locks a line goes against it, and so is the one that gives way and begins again.
const linePatience = "100ms"

// Line implements store.Executions.
func (t *tx) Line(ctx context.Context, key string, n int) ([]*flow.Execution, error) {
	return t.underKey(ctx, qLine, key, n)
}

// Holders implements store.Executions.
func (t *tx) Holders(ctx context.Context, key string, n int) ([]*flow.Execution, error) {
	return t.underKey(ctx, qHolders, key, n)
}

func (t *tx) underKey(ctx context.Context, q *query, key string, n int) ([]*flow.Execution, error) {
	var all []*flow.Execution
	t.add(qPatience, t.args().text(linePatience), nil)
	t.add(q, t.args().text(key).int(int64(n)), t.collect(&all, store.WithoutPayload))
	if err := t.ask(ctx, qPatience, t.args().text(fmt.Sprint(lockTimeout.Milliseconds())), nil); err != nil {
		return nil, fmt.Errorf("lock executions of key %q: %w", key, err)
	}
	return all, nil
}

// unique returns what is named, once and in order, so that everybody locks in the same order.
func unique(names []string) []string {
	if len(names) < 2 {
		return names
	}
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}
