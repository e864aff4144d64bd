package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

const (
	line    = ` FROM {s}.live l WHERE l.key = $1 AND l.place = 2 ORDER BY l.priority DESC, l.ticket LIMIT $2`
	holders = ` FROM {s}.live l WHERE l.key = $1 AND l.place IN (3, 4) ORDER BY l.created_at, l.id LIMIT $2`
)

var (
	// As an INSERT, the statement locks existing and new rows in one order. Its condition is never true, so an existing row is locked without
	// being changed.
	qLockKeys = sql(`INSERT INTO {s}.keys (key) SELECT k FROM unnest($1::text[]) k ORDER BY k
		ON CONFLICT (key) DO UPDATE SET key = excluded.key WHERE false`)

	qTryKeys = sql(`SELECT key FROM {s}.keys WHERE key = ANY ($1::text[]) ORDER BY key FOR UPDATE SKIP LOCKED`)

	qUse = sql(`SELECT k.key, (SELECT count(*) FROM {s}.live l WHERE l.key = k.key AND l.place IN (3, 4)),
		(SELECT count(*) FROM (SELECT FROM {s}.live l WHERE l.key = k.key AND l.place = 2 LIMIT $2) w) FROM unnest($1::text[]) AS k(key)`)

	qWaitList   = sql(`SELECT ` + liveColumns + line + ` FOR UPDATE SKIP LOCKED`)
	qWaitListOf = sql(`SELECT l.id` + line)

	qHolders   = sql(`SELECT ` + liveColumns + holders + ` FOR UPDATE SKIP LOCKED`)
	qHoldersOf = sql(`SELECT l.id` + holders)
)

// LockKeys implements store.WaitLists. Every change of a key's holders and of its wait list is decided under this lock, so the counts are
// valid until the transaction ends.
func (t *tx) LockKeys(ctx context.Context, keys []string) (map[string]store.KeyUse, error) {
	use := make(map[string]store.KeyUse, len(keys))
	if len(keys) == 0 {
		return use, nil
	}
	keys = unique(keys)
	t.asked = append(t.asked, locks{keys: keys})
	if fresh := t.notLocked(keys); len(fresh) > 0 {
		t.addLockKeys(fresh)
	}
	t.add(qUse, t.args().texts(keys).int(store.WaitingCounted), func(r *rows) error {
		use[r.text()] = store.KeyUse{Holders: int(r.int()), Waiting: int(r.int())}
		return nil
	})
	// The ticket is drawn under the lock. A ticket drawn before it could be lower than one that another transaction has given out under the
	// lock.
	t.add(qTickets, t.args().int(1), func(r *rows) error {
		t.tickets = blockOf(r.int())
		return nil
	})
	if err := t.flush(ctx); err != nil {
		return nil, fmt.Errorf("lock keys: %w", err)
	}
	if len(t.notLocked(keys)) > 0 {
		return nil, t.giveUp() // another transaction has locked one of them, or one has no row yet
	}
	return use, nil
}

// addLockKeys queues the lock of keys. It waits for them if their place in the order allows it; otherwise it only tries.
func (t *tx) addLockKeys(keys []string) {
	if !t.mayWaitForKeys(keys) {
		t.add(qTryKeys, t.args().texts(keys), func(r *rows) error {
			t.lockedKey(r.text())
			return nil
		})
		return
	}
	t.add(qLockKeys, t.args().texts(keys), nil)
	for _, k := range keys {
		t.lockedKey(k) // unless the statement fails, and the transaction with it
	}
}

func (t *tx) notLocked(keys []string) []string {
	var fresh []string
	for _, k := range keys {
		if !t.keys[k] {
			fresh = append(fresh, k)
		}
	}
	return fresh
}

func (t *tx) WaitList(ctx context.Context, key string, n int) ([]*flow.Execution, error) {
	return t.underKey(ctx, qWaitList, qWaitListOf, key, n)
}

func (t *tx) Holders(ctx context.Context, key string, n int) ([]*flow.Execution, error) {
	return t.underKey(ctx, qHolders, qHoldersOf, key, n)
}

// underKey locks executions after their key. That is against the order, so it never waits for them.
func (t *tx) underKey(ctx context.Context, q, of *query, key string, n int) ([]*flow.Execution, error) {
	var all []*flow.Execution
	var want locks
	t.add(q, t.args().text(key).int(t.s.limit(n)), t.collectReadable(&all))
	if err := t.ask(ctx, of, t.args().text(key).int(t.s.limit(n)), readAll(&want.executions, (*rows).id)); err != nil {
		return nil, fmt.Errorf("lock executions of key %q: %w", key, err)
	}
	t.asked = append(t.asked, want)
	for _, id := range want.executions {
		if _, locked := t.runs[id]; !locked {
			return nil, t.giveUp()
		}
	}
	return all[:min(n, len(all))], nil
}

// unique returns the names sorted and without duplicates, so that every transaction locks them in the same order.
func unique(names []string) []string {
	if len(names) < 2 {
		return names
	}
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}
