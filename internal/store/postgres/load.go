package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// The columns that readers load. An external payload is in the table "payloads" (p); the condition of the join skips the look-up for other
// executions.
var (
	liveColumns    = liveRead.names("l.") + `, octet_length(l.history)`
	endedColumns   = endedRead.names("d.")
	outcomeColumns = `, ` + outcome.names("d.")
)

const (
	livePayload  = `, coalesce(l.input, p.input), coalesce(l.payload, p.payload)`
	endedPayload = `, coalesce(d.input, p.input), coalesce(d.payload, p.payload)`
	joinLive     = ` LEFT JOIN LATERAL (SELECT * FROM {s}.payloads p WHERE p.id = CASE WHEN l.payload_external THEN l.id END OFFSET 0) p ON true`
	joinEnded    = ` LEFT JOIN LATERAL (SELECT * FROM {s}.payloads p WHERE p.id = CASE WHEN d.payload_external THEN d.id END OFFSET 0) p ON true`
)

var (
	lockLive    = `SELECT ` + liveColumns + ` FROM {s}.live l WHERE l.id = ANY ($1::uuid[]) ORDER BY l.id DESC FOR UPDATE OF l`
	lockPayload = `SELECT ` + liveColumns + livePayload + ` FROM {s}.live l` + joinLive +
		` WHERE l.id = ANY ($1::uuid[]) ORDER BY l.id DESC FOR UPDATE OF l`

	payloadSize = `(coalesce(octet_length(l.input), 0) + coalesce(octet_length(l.payload), 0) + coalesce(octet_length(p.input), 0) +
		coalesce(octet_length(p.payload), 0))`
)

// smallOnly returns the columns of a payload, and whether it was left out because it has more than "most" bytes; most is a parameter.
func smallOnly(most string) string {
	return `, CASE WHEN ` + payloadSize + ` <= ` + most + `::bigint THEN coalesce(l.input, p.input) END,
		CASE WHEN ` + payloadSize + ` <= ` + most + `::bigint THEN coalesce(l.payload, p.payload) END, ` + payloadSize + ` > ` + most + `::bigint`
}

var lockSmall = `SELECT ` + liveColumns + smallOnly(`$2`) + ` FROM {s}.live l` + joinLive + ` WHERE l.id = ANY ($1::uuid[]) ORDER BY l.id DESC FOR UPDATE OF l`

// payload selects whether an execution's payload is loaded.
type payload uint8

const (
	noPayload    payload = iota
	wholePayload         // of any size
	smallPayload         // unless it has more than store.SmallPayload bytes
)

func payloadOf(p store.Payload) payload {
	if p {
		return wholePayload
	}
	return noPayload
}

var (
	qLock        = sql(lockLive)
	qTryLock     = sql(lockLive + ` SKIP LOCKED`)
	qLockPayload = sql(lockPayload)
	qTryPayload  = sql(lockPayload + ` SKIP LOCKED`)
	qLockSmall   = sql(lockSmall)
	qTrySmall    = sql(lockSmall + ` SKIP LOCKED`)

	qEnded = sql(`SELECT ` + endedColumns + ` FROM {s}.ended d WHERE d.id = ANY ($1::uuid[])`)

	qEndedPayload = sql(`SELECT ` + endedColumns + outcomeColumns + endedPayload + ` FROM {s}.ended d` + joinEnded + ` WHERE d.id = ANY ($1::uuid[])`)

	qDue = sql(`SELECT ` + liveColumns + ` FROM {s}.live l WHERE l.wake <= $1 ORDER BY l.wake LIMIT $2 FOR UPDATE SKIP LOCKED`)

	qNextWake = sql(`SELECT min(wake) FROM {s}.live WHERE wake > $1`)

	qWakeBeyond = sql(`SELECT l.wake FROM {s}.live l WHERE l.wake >= $1 AND NOT l.id = ANY ($2::uuid[]) ORDER BY l.wake LIMIT 1`)

	qInbox = sql(`SELECT seq, event FROM {s}.inbox WHERE id = $1 ORDER BY seq`)

	qSubmitted = sql(`SELECT ` + idempotency.names("") + ` FROM {s}.idempotency WHERE key = ANY ($1::text[])`)
)

// collect returns a reader of locked live rows. It appends them to all, and records the length of the history in each row.
func (t *tx) collect(all *[]*flow.Execution, p payload) func(*rows) error {
	return func(r *rows) error {
		x, size, err := r.live(p != noPayload)
		if err != nil {
			t.unread(x.ID, err)
			return err
		}
		if p == smallPayload && r.bool() {
			t.leftOut[x.ID] = true
		}
		t.locked(all, x, size)
		return nil
	}
}

// collectReadable is like collect without payload, but leaves out rows that could not be decoded before.
func (t *tx) collectReadable(all *[]*flow.Execution) func(*rows) error {
	return func(r *rows) error {
		x, size, err := r.live(false)
		if err != nil {
			return t.passOver(x.ID, err)
		}
		t.locked(all, x, size)
		return nil
	}
}

// unread records a row if the error says that it cannot be decoded. It reports whether the row was already recorded.
func (t *tx) unread(id flow.ID, err error) (known bool) {
	if !errors.Is(err, row.ErrDamaged) {
		return false
	}
	known = t.s.unreadable.Has(id)
	t.s.unreadable.Add(id)
	return known
}

// passOver leaves out a row that could not be decoded before; the row stays locked. The first failure is returned as an error, because the
// statement's limit did not include the row.
func (t *tx) passOver(id flow.ID, err error) error {
	if !t.unread(id, err) {
		return err
	}
	t.runs[id] = 0
	t.lockedExecution(id)
	return nil
}

// collectSmall is like collectReadable with small payloads. Executions whose payload was left out are passed to large.
func (t *tx) collectSmall(all *[]*flow.Execution, large func(*flow.Execution)) func(*rows) error {
	return func(r *rows) error {
		x, size, err := r.live(true)
		if err != nil {
			return t.passOver(x.ID, err)
		}
		if r.bool() {
			large(x)
		}
		t.locked(all, x, size)
		return nil
	}
}

func (t *tx) locked(all *[]*flow.Execution, x *flow.Execution, history int) {
	t.runs[x.ID] = history
	t.lockedExecution(x.ID)
	*all = append(*all, x)
}

// lockQuery returns the statement that locks executions by their ids, the highest first. It waits for all of them, or skips those that
// another transaction has locked.
func lockQuery(wait bool, p payload) *query {
	switch {
	case wait && p == smallPayload:
		return qLockSmall
	case p == smallPayload:
		return qTrySmall
	case wait && p == wholePayload:
		return qLockPayload
	case wait:
		return qLock
	case p == wholePayload:
		return qTryPayload
	}
	return qTryLock
}

func (t *tx) Lock(ctx context.Context, ids []flow.ID, p store.Payload) ([]*flow.Execution, error) {
	if len(ids) == 0 && len(t.workflowsToRead) == 0 {
		return nil, nil
	}
	var done func()
	all, err := t.lock(ctx, ids, payloadOf(p), func() { done = t.lockExpected(ids) })
	if err == nil {
		done()
	}
	return all, err
}

// lock locks executions. The function behind queues statements that read more after the rows are locked.
func (t *tx) lock(ctx context.Context, ids []flow.ID, p payload, behind func()) ([]*flow.Execution, error) {
	all := make([]*flow.Execution, 0, len(ids))
	wait := t.mayWaitFor(ids)
	q := lockQuery(wait, p)
	if len(ids) > 0 {
		t.asked = append(t.asked, locks{executions: ids})
		a := t.args().ids(ids)
		if p == smallPayload {
			a = a.int(store.SmallPayload)
		}
		t.add(q, a, t.collect(&all, p))
	}
	behind()
	if err := t.flush(ctx); err != nil {
		return nil, fmt.Errorf("lock executions: %w", err)
	}
	if len(all) == len(ids) {
		return all, nil
	}
	// The missing ones have ended, perhaps while the statement waited for their rows, or are given twice, or do not exist. An ended execution
	// does not change any more.
	found := make(map[flow.ID]bool, len(all))
	for _, x := range all {
		found[x.ID] = true
	}
	var missing []flow.ID
	for _, id := range ids {
		if !found[id] {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return all, nil
	}
	if !wait {
		busy := false
		err := t.ask(ctx, qAlive, t.args().ids(missing), func(*rows) error {
			busy = true
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("lock executions: %w", err)
		}
		if busy {
			return nil, t.giveUp()
		}
	}
	q, more := qEnded, executions(nil)
	if p == wholePayload {
		q, more = qEndedPayload, complete
	}
	err := t.ask(ctx, q, t.args().ids(missing), func(r *rows) error {
		x, err := r.ended(more)
		if err == nil {
			all = append(all, x)
		}
		return err
	})
	return store.Result(all, err, "load executions")
}

func (t *tx) Due(ctx context.Context, now time.Time, n int) ([]*flow.Execution, time.Time, error) {
	var all []*flow.Execution
	var beyond time.Time
	at := readTo(&beyond, (*rows).time)
	t.add(qDue, t.args().int(row.Micros(now)).int(t.s.limit(n)), t.collectReadable(&all))
	if err := t.ask(ctx, qNextWake, t.args().int(row.Micros(now)), at); err != nil {
		return nil, beyond, fmt.Errorf("find due executions: %w", err)
	}
	if len(all) < n || n == 0 {
		return all, beyond, nil
	}
	all = all[:n]
	ids := make([]flow.ID, n)
	for i, x := range all {
		ids[i] = x.ID
	}
	if err := t.ask(ctx, qWakeBeyond, t.args().int(row.Micros(all[n-1].Wake())).ids(ids), at); err != nil {
		return nil, beyond, fmt.Errorf("find due executions: %w", err)
	}
	return all, beyond, nil
}

func (t *tx) Applied(ctx context.Context, id flow.ID, from, to int64) ([]flow.Event, error) {
	var all []flow.Event
	err := t.ask(ctx, qHistory, t.args().id(id).int(from), func(r *rows) (err error) {
		created, first := r.int(), r.int()
		all, err = row.DecodeHistory(all, r.peek(), first, from, to, created, nil)
		return err
	})
	return store.Result(all, err, "read events of %s", id)
}

func (t *tx) Inbox(ctx context.Context, id flow.ID) ([]flow.Event, error) {
	var all []flow.Event
	err := t.ask(ctx, qInbox, t.args().id(id), func(r *rows) error {
		e, err := row.DecodeKept(r.int(), r.peek())
		all = append(all, e)
		return err
	})
	return store.Result(all, err, "read kept events of %s", id)
}

func (t *tx) Submitted(ctx context.Context, keys []string) (map[string]store.IdempotencyKey, error) {
	found := make(map[string]store.IdempotencyKey)
	for _, k := range t.idem { // keys of this transaction that are not written yet
		if slices.Contains(keys, k.Key) {
			found[k.Key] = k
		}
	}
	if len(keys) == 0 {
		return found, nil
	}
	err := t.ask(ctx, qSubmitted, t.args().texts(keys), func(r *rows) error {
		var k store.IdempotencyKey
		err := idempotency.read(r, &k)
		found[k.Key] = k
		return err
	})
	return store.Result(found, err, "look up idempotency keys")
}
