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
	qLockKeys = sql(`SELECT key FROM {s}.keys WHERE key = ANY ($1::text[]) ORDER BY key FOR UPDATE`)

	qTryKeys = sql(`SELECT key FROM {s}.keys WHERE key = ANY ($1::text[]) ORDER BY key FOR UPDATE SKIP LOCKED`)

	qKnownKeys = sql(`SELECT key FROM {s}.keys WHERE key = ANY ($1::text[])`)

	qMakeKeys = sql(`INSERT INTO {s}.keys (key) SELECT k FROM unnest($1::text[]) k ORDER BY k ON CONFLICT DO NOTHING`)

	qUse = sql(`SELECT k.key, (SELECT count(*) FROM {s}.live l WHERE l.key = k.key AND l.place IN (3, 4)),
		(SELECT count(*) FROM (SELECT FROM {s}.live l WHERE l.key = k.key AND l.place = 2 LIMIT $2) w) FROM unnest($1::text[]) AS k(key)`)

	qLine   = sql(`SELECT ` + liveColumns + line + ` FOR UPDATE SKIP LOCKED`)
	qLineOf = sql(`SELECT l.id` + line)

	qHolders   = sql(`SELECT ` + liveColumns + holders + ` FOR UPDATE SKIP LOCKED`)
	qHoldersOf = sql(`SELECT l.id` + holders)
)

// LockKeys implements store.Executions. Every change of who holds a key or waits for it is decided under this lock, so
// what is counted after it stays as it is until the transaction ends.
func (t *tx) LockKeys(ctx context.Context, keys []string) (map[string]store.KeyUse, error) {
	use := make(map[string]store.KeyUse, len(keys))
	if len(keys) == 0 {
		return use, nil
	}
	keys = unique(keys)
	t.asked = append(t.asked, locks{keys: keys})
	for {
		fresh := t.notLocked(keys)
		if len(fresh) > 0 {
			q := qTryKeys
			if t.mayWaitForKeys(fresh) {
				q = qLockKeys
			}
			t.add(q, t.args().texts(fresh), func(r *rows) error {
				t.lockedKey(r.text())
				return nil
			})
		}
		t.add(qUse, t.args().texts(keys).int(store.WaitingCounted), func(r *rows) error {
			use[r.text()] = store.KeyUse{Holders: int(r.int()), Waiting: int(r.int())}
			return nil
		})
		// A ticket drawn before the lock could stand before one that somebody drew under it.
		t.add(qTickets, t.args().int(1), func(r *rows) error {
			t.tickets = blockOf(r.int())
			return nil
		})
		if err := t.flush(ctx); err != nil {
			return nil, fmt.Errorf("lock keys: %w", err)
		}
		if fresh = t.notLocked(keys); len(fresh) == 0 {
			return use, nil
		}
		if err := t.makeKeys(ctx, fresh); err != nil {
			return nil, err
		}
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

// makeKeys makes rows for keys that nobody has used yet. They are made beside the transaction: one that somebody else is
// making at the same moment is waited for, whatever this transaction has locked.
func (t *tx) makeKeys(ctx context.Context, keys []string) error {
	known := 0
	err := t.ask(ctx, qKnownKeys, t.args().texts(keys), func(*rows) error {
		known++
		return nil
	})
	if err != nil {
		return fmt.Errorf("look up keys: %w", err)
	}
	if known > 0 {
		return t.giveUp() // somebody has locked one, or has just made it
	}
	var a args
	if err := t.s.read(ctx, call{q: qMakeKeys, params: a.texts(keys).params}); err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	return nil
}

// Line implements store.Executions.
func (t *tx) Line(ctx context.Context, key string, n int) ([]*flow.Execution, error) {
	return t.underKey(ctx, qLine, qLineOf, key, n)
}

// Holders implements store.Executions.
func (t *tx) Holders(ctx context.Context, key string, n int) ([]*flow.Execution, error) {
	return t.underKey(ctx, qHolders, qHoldersOf, key, n)
}

// underKey locks executions after their key, which is against the order: they are not waited for.
func (t *tx) underKey(ctx context.Context, q, of *query, key string, n int) ([]*flow.Execution, error) {
	var all []*flow.Execution
	var want locks
	t.add(q, t.args().text(key).int(int64(n)), t.collect(&all, store.WithoutPayload))
	if err := t.ask(ctx, of, t.args().text(key).int(int64(n)), readID(&want.executions)); err != nil {
		return nil, fmt.Errorf("lock executions of key %q: %w", key, err)
	}
	t.asked = append(t.asked, want)
	for _, id := range want.executions {
		if _, locked := t.runs[id]; !locked {
			return nil, t.giveUp()
		}
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
