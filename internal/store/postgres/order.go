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

// No transactions wait in a circle, because all wait in one order: executions by id, the highest first; then schedules by name; then
// concurrency keys by name. A transaction waits for a lock only when that stands behind every lock it holds.
// Executions come before their workflows that way, as reports need them, for ids grow; where clocks differ, or a cancel
// goes from the workflow to its tasks, or one decision leads to the next, a lock may be wanted out of order. Then it is
// tried, and if another one has it the transaction gives up all it has and is decided again; the next run begins with
// everything that the last one had and wanted, in order.
//
// A lock with SKIP LOCKED never waits: neither does a claim from a queue, nor the lock of a session, which only a
// transaction that has nothing else yet waits for. A definition is written at once, and waits for a transaction that writes the same
// version: one that has written a definition waits for nothing but other definitions, which a decision writes in the order of their names.
// Last, with the commit, come idempotency keys, signals, enforcements and switches, each sorted.

// locks are what a transaction has locked or wants to lock.
type locks struct {
	executions []flow.ID
	schedules  []string
	keys       []string
	sessions   []flow.ID
	changed    bool // the sessions are to be: otherwise others may have them as well
}

// outOfOrder ends a transaction that would have had to wait out of order.
type outOfOrder struct{ want locks }

func (*outOfOrder) Error() string { return "rows are in use that may not be waited for now" }

// Unwrap makes it a conflict for callers that do not know of it.
func (*outOfOrder) Unwrap() error { return store.ErrConflict }

// order is how far along the order a transaction is.
type order struct {
	asked []locks // in parts, as they were asked for

	first  map[flow.ID]bool // locked before the decision began: not read yet
	lowest flow.ID          // of the executions; zero: none
	// schedules and keys are those that are locked, schedule and key the last of them.
	schedules     map[string]bool
	schedule, key string
	keys          map[string]bool
	free          bool // something is locked that stands in no order
}

const holdSessions = `SELECT id FROM {s}.sessions WHERE id = ANY ($1::uuid[]) ORDER BY id `

var (
	qHold = sql(`SELECT l.id FROM {s}.live l WHERE l.id = ANY ($1::uuid[]) ORDER BY l.id DESC FOR UPDATE`)

	qHoldSessions = sql(holdSessions + `FOR UPDATE`)

	qShareSessions = sql(holdSessions + `FOR SHARE`)

	qAlive = sql(`SELECT 1 FROM {s}.live l WHERE l.id = ANY ($1::uuid[]) LIMIT 1`)
)

// hold begins a transaction with locks in order.
func (t *tx) hold(ctx context.Context, l *locks) error {
	t.asked = append(t.asked, *l)
	if len(l.sessions) > 0 {
		q := qShareSessions
		if l.changed {
			q = qHoldSessions
		}
		t.add(q, t.args().ids(l.sessions), nil)
	}
	if len(l.executions) > 0 {
		t.first = make(map[flow.ID]bool, len(l.executions))
		t.add(qHold, t.args().ids(l.executions), func(r *rows) error {
			id := r.id()
			t.first[id] = true
			t.lockedExecution(id)
			return nil
		})
	}
	if len(l.schedules) > 0 {
		t.add(qHoldSchedules, t.args().texts(unique(l.schedules)), func(r *rows) error {
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
	t.nowUnread = false // that was before the wait
	return nil
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

// mayWaitFor reports whether executions may be waited for: all that are not locked yet stand behind everything that is.
func (t *tx) mayWaitFor(ids []flow.ID) bool {
	behind := t.schedules != nil || t.keys != nil || t.free
	if t.lowest.IsZero() && !behind {
		return true
	}
	for _, id := range ids {
		_, read := t.runs[id]
		if read || t.first[id] {
			continue
		}
		if behind || bytes.Compare(id[:], t.lowest[:]) >= 0 {
			return false
		}
	}
	return true
}

// mayWaitForSchedules reports the same for schedules that are not locked yet, in order.
func (t *tx) mayWaitForSchedules(fresh []string) bool {
	return t.keys == nil && !t.free && (t.schedules == nil || fresh[0] > t.schedule)
}

// mayWaitForKeys reports the same for keys that are not locked yet, in order.
func (t *tx) mayWaitForKeys(fresh []string) bool {
	return !t.free && (t.keys == nil || fresh[0] > t.key)
}

// giveUp ends the transaction: it is to be run again with all that it has asked for locked from the start.
func (t *tx) giveUp() error {
	var all locks
	for _, l := range t.asked {
		all.executions = append(all.executions, l.executions...)
		all.schedules = append(all.schedules, l.schedules...)
		all.keys = append(all.keys, l.keys...)
		all.sessions = append(all.sessions, l.sessions...)
		all.changed = all.changed || l.changed
	}
	slices.SortFunc(all.executions, func(a, b flow.ID) int { return bytes.Compare(a[:], b[:]) })
	all.executions = slices.Compact(all.executions)
	t.failed = &outOfOrder{want: all}
	return t.failed
}

// wanted returns what a transaction that gave up wants locked when it is run again; nil when err is something else.
func wanted(err error) *locks {
	var o *outOfOrder
	if errors.As(err, &o) {
		return &o.want
	}
	return nil
}
