package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// Transactions cannot deadlock, because all of them wait for locks in one order: executions by id, the highest first; then schedules by
// name; then concurrency keys by name. A transaction waits for a lock only if the lock comes after every lock that it holds. Ids grow with
// time, so with the highest id first an execution comes before its workflow, which is the order that a report needs. A lock may still be
// needed out of order: clocks differ, a cancel goes from the workflow to its tasks, one decision leads to the next. Then the transaction
// only tries to lock. If another transaction holds the lock, this one gives up all its locks and is decided again; its next run begins by
// locking, in order, everything that the last run had locked or tried to lock.
//
// A lock with SKIP LOCKED never waits. Claims from a queue use it, and so do the locks of sessions, unless the transaction has no lock yet.
// A definition is written at once, and waits for a transaction that writes the same version; after that the transaction waits only for
// further definitions, which a decision writes sorted by name. Idempotency keys, signals, enforcements and switches come last, with the
// commit, each sorted.

// locks are the locks that a transaction has or needs.
type locks struct {
	executions []flow.ID
	schedules  []string
	keys       []string
	sessions   []flow.ID
	seats      seatLock
}

type seatLock uint8

const (
	// claiming: any number of transactions claim for a session, even while another one renews it. If claims blocked renewals, a lease would
	// expire under a flood of claims: PostgreSQL lets further transactions share a lock while another one waits for it exclusively.
	claiming seatLock = iota
	renewing          // one transaction renews it
	leaving           // its lease ends, or it is dropped: no transaction claims for it or renews it at the same time
)

// outOfOrder is the error of a transaction that would otherwise have to wait for a lock out of order.
type outOfOrder struct{ want locks }

func (*outOfOrder) Error() string {
	return "another transaction has locked rows for which this one may not wait"
}

// Unwrap makes it a conflict for callers that do not know this error.
func (*outOfOrder) Unwrap() error { return store.ErrConflict }

// order has the locks of a transaction, and so determines for which others it may still wait.
type order struct {
	asked []locks // one element for each request

	preLocked map[flow.ID]bool // locked by hold, before the decision began; those that it has read since are also in runs
	lowest    flow.ID          // the lowest of the locked executions; zero: none
	// schedules and keys are the locked ones; schedule and key are the last of them.
	schedules     map[string]bool
	schedule, key string
	keys          map[string]bool
	unordered     bool // it has a lock that is not part of the order
}

const holdSessions = `SELECT id FROM {s}.sessions WHERE id = ANY ($1::uuid[]) ORDER BY id `

var (
	qLockExecutions = sql(`SELECT l.id FROM {s}.live l WHERE l.id = ANY ($1::uuid[]) ORDER BY l.id DESC FOR UPDATE`)

	qLockSessions = [...]*query{
		claiming: sql(holdSessions + `FOR KEY SHARE`), renewing: sql(holdSessions + `FOR NO KEY UPDATE`), leaving: sql(holdSessions + `FOR UPDATE`),
	}

	qAlive = sql(`SELECT 1 FROM {s}.live l WHERE l.id = ANY ($1::uuid[]) LIMIT 1`)
)

// hold begins a transaction by taking locks in order.
func (t *tx) hold(ctx context.Context, l *locks) error {
	t.asked = append(t.asked, *l)
	if len(l.sessions) > 0 {
		t.add(qLockSessions[l.seats], t.args().ids(l.sessions), nil)
	}
	if len(l.executions) > 0 {
		t.preLocked = make(map[flow.ID]bool, len(l.executions))
		t.add(qLockExecutions, t.args().ids(l.executions), func(r *rows) error {
			id := r.id()
			t.preLocked[id] = true
			t.lockedExecution(id)
			return nil
		})
	}
	if len(l.schedules) > 0 {
		t.add(qLockSchedules, t.args().texts(unique(l.schedules)), func(r *rows) error {
			t.lockedSchedule(r.text())
			return nil
		})
	}
	if len(l.keys) > 0 {
		t.addLockKeys(unique(l.keys))
	}
	if err := t.flush(ctx); err != nil {
		return fmt.Errorf("lock in order: %w", err)
	}
	t.nowUnread = false // the clock was read before the wait
	return nil
}

func (t *tx) LockKnown(ids []flow.ID) {
	if !t.mayWaitFor(ids) {
		_ = t.giveUp() // the next flush returns it
		return
	}
	t.asked = append(t.asked, locks{executions: ids})
	t.add(qLockExecutions, t.args().ids(ids), nil)
	t.known = make(map[flow.ID]bool, len(ids))
	for _, id := range ids {
		t.known[id] = true
		t.lockedExecution(id)
	}
}

func (t *tx) lockedExecution(id flow.ID) {
	if t.lowest.IsZero() || bytes.Compare(id[:], t.lowest[:]) < 0 {
		t.lowest = id
	}
}

func (t *tx) lockedSchedule(name string) {
	if t.schedules == nil {
		t.schedules = make(map[string]bool)
	}
	t.schedules[name] = true
	t.schedule = max(t.schedule, name)
}

func (t *tx) lockedKey(key string) {
	if t.keys == nil {
		t.keys = make(map[string]bool)
	}
	t.keys[key] = true
	t.key = max(t.key, key)
}

// mayWaitFor reports whether the order allows waiting for executions: those that are not locked yet must come after every lock of the
// transaction.
func (t *tx) mayWaitFor(ids []flow.ID) bool {
	behind := t.schedules != nil || t.keys != nil || t.unordered
	if t.lowest.IsZero() && !behind {
		return true
	}
	for _, id := range ids {
		_, read := t.runs[id]
		if read || t.preLocked[id] {
			continue
		}
		if behind || bytes.Compare(id[:], t.lowest[:]) >= 0 {
			return false
		}
	}
	return true
}

// mayWaitForSchedules is mayWaitFor for sorted schedules that are not locked yet.
func (t *tx) mayWaitForSchedules(fresh []string) bool {
	return t.keys == nil && !t.unordered && (t.schedules == nil || fresh[0] > t.schedule)
}

// mayWaitForKeys is mayWaitFor for sorted concurrency keys that are not locked yet.
func (t *tx) mayWaitForKeys(fresh []string) bool {
	return !t.unordered && (t.keys == nil || fresh[0] > t.key)
}

// giveUp ends the transaction. Its next run begins by locking everything that it has asked for.
func (t *tx) giveUp() error {
	var all locks
	for _, l := range t.asked {
		all.executions = append(all.executions, l.executions...)
		all.schedules = append(all.schedules, l.schedules...)
		all.keys = append(all.keys, l.keys...)
		all.sessions = append(all.sessions, l.sessions...)
		all.seats = max(all.seats, l.seats)
	}
	slices.SortFunc(all.executions, func(a, b flow.ID) int { return bytes.Compare(a[:], b[:]) })
	all.executions = slices.Compact(all.executions)
	t.failed = &outOfOrder{want: all}
	return t.failed
}

// wanted returns the locks with which a transaction that gave up must begin its next run. It is nil for any other error.
func wanted(err error) *locks {
	if o, ok := errors.AsType[*outOfOrder](err); ok {
		return &o.want
	}
	return nil
}
