package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// There is only one write transaction at a time, so the rows that it has read are locked.

var (
	// Statements use the numbers of places and stages. Of the places (flow.Place), 2 waits in its key's wait list, 3 is ready in its queue, 4
	// is held by a worker or the engine. Executions in 3 and 4 hold a key's slots.

	qReady = sql(`SELECT n, priority, ticket FROM live WHERE place = 3 AND queue = ? ORDER BY priority DESC, ticket LIMIT ?`)

	qHolders = sql(`SELECT count(*) FROM live WHERE key = ? AND place IN (3, 4)`)

	qWaiting = sql(`SELECT count(*) FROM (SELECT 1 FROM live WHERE key = ? AND place = 2 LIMIT ?)`)

	qWaitList = sql(`SELECT n FROM live WHERE key = ? AND place = 2 ORDER BY priority DESC, ticket LIMIT ?`)

	qHolding = sql(`SELECT l.n FROM live l JOIN executions e ON e.n = l.n WHERE l.key = ? AND l.place IN (3, 4)
		ORDER BY e.created_at, l.n LIMIT ?`)

	qProvisioning = sql(`SELECT l.n FROM live l JOIN executions e ON e.n = l.n WHERE l.owner IS NOT NULL AND l.stage = ? AND (l.owner, e.id) > (?, ?)
		ORDER BY l.owner, e.id LIMIT ?`)

	qDue = sql(`SELECT n, wake FROM live WHERE wake IS NOT NULL ORDER BY wake LIMIT ?`)

	qSubmitted = sql(`SELECT e.id, i.hash FROM idempotency i JOIN executions e ON e.n = i.n WHERE i.key = ?`)
)

func (t *tx) Lock(_ context.Context, ids []flow.ID, p store.Payload) ([]*flow.Execution, error) {
	all := make([]*flow.Execution, 0, len(ids))
	for i, id := range ids {
		if len(ids) < 16 && slices.Contains(ids[:i], id) || len(ids) >= 16 && t.seen(i, id) {
			continue
		}
		n, ok, err := t.number(id)
		if err != nil {
			return nil, fmt.Errorf("lock executions: %w", err)
		}
		if !ok {
			continue
		}
		x, err := t.c.load(n, p)
		if err != nil {
			return nil, fmt.Errorf("lock executions: %w", err)
		}
		if x != nil {
			all = append(all, x)
		}
	}
	return all, nil
}

// seen reports whether the id occurs earlier in the argument of Lock.
func (t *tx) seen(i int, id flow.ID) bool {
	if i == 0 {
		clear(t.met)
	}
	if _, ok := t.met[id]; ok {
		return true
	}
	t.met[id] = struct{}{}
	return false
}

func (t *tx) Take(_ context.Context, queues []string, n int) ([]*flow.Execution, error) {
	type place struct {
		n, priority, ticket int64
	}
	var found []place
	for _, q := range queues {
		s := t.c.use(qReady).text(q).int(t.s.limit(n))
		for s.next() {
			if p := (place{s.getInt(), s.getInt(), s.getInt()}); !t.s.unreadable.Has(p.n) {
				found = append(found, p)
			}
		}
		if err := s.done(); err != nil {
			return nil, fmt.Errorf("take from queue %q: %w", q, err)
		}
	}
	if len(queues) > 1 {
		slices.SortFunc(found, func(a, b place) int {
			return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.ticket, b.ticket))
		})
		found = slices.CompactFunc(found, func(a, b place) bool { return a.n == b.n })
	}
	found = found[:min(n, len(found))]
	numbers := make([]int64, len(found))
	for i, p := range found {
		numbers[i] = p.n
	}
	all, err := t.c.loadWithin(numbers, store.TakeBytes)
	if err != nil {
		return nil, t.unread(numbers, len(all), err)
	}
	t.remember(numbers, all)
	return all, nil
}

// known loads unfinished executions, and stores their numbers.
func (t *tx) known(numbers []int64, p store.Payload) ([]*flow.Execution, error) {
	all, err := t.c.loadAll(numbers, p)
	if err != nil {
		return nil, t.unread(numbers, len(all), err)
	}
	if len(all) == len(numbers) {
		t.remember(numbers, all)
	}
	return all, nil
}

// unread records the first row that was not read, if the error says that it cannot be decoded.
func (t *tx) unread(numbers []int64, read int, err error) error {
	if errors.Is(err, row.ErrDamaged) && read < len(numbers) {
		t.s.unreadable.Add(numbers[read])
	}
	return fmt.Errorf("load executions: %w", err)
}

// remember stores the numbers of executions, which are in the same order.
func (t *tx) remember(numbers []int64, all []*flow.Execution) {
	for i, x := range all {
		t.numbers[x.ID] = numbers[i]
	}
}

// chosen loads the first n executions whose numbers a statement returns.
func (t *tx) chosen(s *stmt, n int) ([]*flow.Execution, error) {
	numbers, err := s.numbers()
	if err != nil {
		return nil, fmt.Errorf("load executions: %w", err)
	}
	numbers = slices.DeleteFunc(numbers, t.s.unreadable.Has)
	return t.known(numbers[:min(n, len(numbers))], store.WithoutPayload)
}

func (t *tx) Tickets(_ context.Context, n int) (int64, error) {
	first, err := t.s.tickets.draw(t.c, int64(n))
	return store.Result(first, err, "draw tickets")
}

func (t *tx) LockKeys(_ context.Context, keys []string) (map[string]store.KeyUse, error) {
	use := make(map[string]store.KeyUse, len(keys))
	for _, k := range keys {
		if _, ok := use[k]; ok {
			continue
		}
		var u store.KeyUse
		for q, to := range map[*query]*int{qHolders: &u.Holders, qWaiting: &u.Waiting} {
			s := t.c.use(q).text(k)
			if q == qWaiting {
				s.int(store.WaitingCounted)
			}
			if s.next() {
				*to = int(s.getInt())
			}
			if err := s.done(); err != nil {
				return nil, fmt.Errorf("lock key %q: %w", k, err)
			}
		}
		use[k] = u
	}
	return use, nil
}

func (t *tx) WaitList(_ context.Context, key string, n int) ([]*flow.Execution, error) {
	return t.chosen(t.c.use(qWaitList).text(key).int(t.s.limit(n)), n)
}

func (t *tx) Holders(_ context.Context, key string, n int) ([]*flow.Execution, error) {
	return t.chosen(t.c.use(qHolding).text(key).int(t.s.limit(n)), n)
}

func (t *tx) Due(_ context.Context, now time.Time, n int) ([]*flow.Execution, time.Time, error) {
	var numbers []int64
	var beyond time.Time
	limit := row.Micros(now)
	s := t.c.use(qDue).int(t.s.limit(n) + 1)
	for s.next() {
		number, wake := s.getInt(), s.getInt()
		if t.s.unreadable.Has(number) {
			continue
		}
		if wake > limit || len(numbers) == n {
			beyond = row.FromMicros(wake)
			break
		}
		numbers = append(numbers, number)
	}
	if err := s.done(); err != nil {
		return nil, beyond, fmt.Errorf("find due executions: %w", err)
	}
	all, err := t.known(numbers, store.WithoutPayload)
	return all, beyond, err
}

func (t *tx) Applied(_ context.Context, id flow.ID, from, to int64) ([]flow.Event, error) {
	n, ok, err := t.number(id)
	if err != nil || !ok {
		return nil, err
	}
	all, err := t.c.events(n, from, to, -1, nil)
	return store.Result(all, err, "read events of %s", id)
}

func (t *tx) Inbox(_ context.Context, id flow.ID) ([]flow.Event, error) {
	n, ok, err := t.number(id)
	if err != nil || !ok {
		return nil, err
	}
	all, err := t.c.inbox(n)
	return store.Result(all, err, "read kept events of %s", id)
}

func (t *tx) Submitted(_ context.Context, keys []string) (map[string]store.IdempotencyKey, error) {
	found := make(map[string]store.IdempotencyKey)
	for _, key := range keys {
		s := t.c.use(qSubmitted).text(key)
		if s.next() {
			k := store.IdempotencyKey{Key: key, Execution: s.getID()}
			copy(k.Hash[:], s.peekBlob())
			found[key] = k
		}
		if err := s.done(); err != nil {
			return nil, fmt.Errorf("look up idempotency keys: %w", err)
		}
	}
	return found, nil
}
