package postgres

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// waitRow is a wait with the value of its column "detail" encoded.
type waitRow struct {
	*flow.Wait
	detail []byte
}

var waits = relation[*waitRow, *flow.Wait]{
	{"execution", oidUUID, func(c *column, w *waitRow) { c.id(w.Execution) }, func(r *rows, w *flow.Wait) { w.Execution = r.id() }},
	{"workflow", oidUUID, func(c *column, w *waitRow) { c.id(w.Workflow) }, func(r *rows, w *flow.Wait) { w.Workflow = r.id() }},
	{"attempt", oidInt4, func(c *column, w *waitRow) { c.int(int64(w.Attempt)) }, func(r *rows, w *flow.Wait) { w.Attempt = int(r.int()) }},
	{"trigger", oidText, func(c *column, w *waitRow) { c.text(w.Trigger) }, func(r *rows, w *flow.Wait) { w.Trigger = r.text() }},
	{"subject", oidText, func(c *column, w *waitRow) { c.text(w.Subject) }, func(r *rows, w *flow.Wait) { w.Subject = r.text() }},
	{"since", oidInt8, func(c *column, w *waitRow) { c.int(row.Micros(w.Since)) }, func(r *rows, w *flow.Wait) { w.Since = r.time() }},
	{"looked", oidBool, func(c *column, w *waitRow) { c.bool(w.Looked) }, func(r *rows, w *flow.Wait) { w.Looked = r.bool() }},
	{"signal", oidInt8, func(c *column, w *waitRow) { c.intOrNull(w.Signal) }, func(r *rows, w *flow.Wait) { w.Signal = r.int() }},
	{"detail", oidJSON, func(c *column, w *waitRow) { c.bytes(w.detail) }, func(r *rows, w *flow.Wait) { row.DecodeWaitDetail(w, r.peek()) }},
}

var waitColumns = waits.names("")

var (
	qWait          = sql(`SELECT ` + waitColumns + ` FROM {s}.waits WHERE execution = $1`)
	qWaitsOf       = sql(`SELECT ` + waitColumns + ` FROM {s}.waits WHERE execution = ANY ($1::uuid[])`)
	qUnlookedWaits = sql(`SELECT ` + waitColumns + ` FROM {s}.waits w WHERE NOT looked AND signal IS NULL AND execution > $1
		AND ` + notAside(store.AsideLooking, "w.execution", "$2") + ` ORDER BY execution LIMIT $3`)
	qOpenWaits = sql(`SELECT ` + waitColumns + ` FROM {s}.waits WHERE trigger = $1 AND subject = $2 AND signal IS NULL AND execution > $3 ORDER BY execution LIMIT $4`)
	qTaken     = sql(`SELECT signal FROM {s}.waits WHERE workflow = $1 AND attempt = $2::bigint AND signal = ANY ($3::bigint[])`)

	// Rows are written one after the other, in the order given.
	qPutWaits = sql(waits.insert("waits") + ` ON CONFLICT (execution) DO UPDATE SET workflow = excluded.workflow, attempt = excluded.attempt,
		trigger = excluded.trigger, subject = excluded.subject, since = excluded.since, looked = excluded.looked, signal = excluded.signal, detail = excluded.detail`)
	qDeleteWaits = sql(`DELETE FROM {s}.waits WHERE execution = ANY ($1::uuid[])`)

	qPutUnmet     = sql(`INSERT INTO {s}.unmet (signal) SELECT unnest($1::bigint[]) ON CONFLICT DO NOTHING`)
	qDropUnmet    = sql(`DELETE FROM {s}.unmet WHERE signal = ANY ($1::bigint[])`)
	qUnmetSignals = sql(signalPage(`SELECT s.* FROM (SELECT signal FROM {s}.unmet WHERE signal > $3 ORDER BY signal) u
		CROSS JOIN LATERAL (SELECT ` + signalColumns + ` FROM {s}.signals s WHERE s.n = u.signal AND ` + notAside(store.AsideMeeting, "s.id", "$1") + ` OFFSET 0) s
		ORDER BY u.signal LIMIT $2`))
)

// WaitsOf implements store.Waits.
func (t *tx) WaitsOf(ctx context.Context, executions []flow.ID) (all []flow.Wait, err error) {
	err = t.ask(ctx, qWaitsOf, t.args().ids(executions), readInto(&all, waits))
	return store.Result(all, err, "look for the waits of %d executions", len(executions))
}

// Taken implements store.Waits.
func (t *tx) Taken(ctx context.Context, of store.WorkflowAttempt, signals []int64) (taken []int64, err error) {
	a := t.args().id(of.ID).int(int64(of.Attempt)).columns(numbered.columns(signals...))
	err = t.ask(ctx, qTaken, a, readAll(&taken, (*rows).int))
	return store.Result(taken, err, "look who took %d signals", len(signals))
}

// putWaits writes waits, and deletes those of the executions in drop. Taking a signal waits for a transaction that is taking
// the same one.
func (t *tx) putWaits(all []flow.Wait, drop []flow.ID) error {
	if len(all)+len(drop) == 0 {
		return nil
	}
	all = slices.SortedFunc(slices.Values(all), func(a, b flow.Wait) int {
		return cmp.Or(bytes.Compare(a.Workflow[:], b.Workflow[:]), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Signal, b.Signal), bytes.Compare(a.Execution[:], b.Execution[:]))
	})
	var put columns
	waits.begin(&put)
	for i := range all {
		detail, err := row.WaitDetail(&all[i].WaitDetail)
		if err != nil {
			return fmt.Errorf("write the wait of %s: %w", all[i].Execution, err)
		}
		waits.add(&put, &waitRow{&all[i], detail})
	}
	t.put(qPutWaits, &put)
	if len(drop) > 0 {
		t.add(qDeleteWaits, t.args().ids(drop), nil)
	}
	return nil
}

// Wait implements store.WaitReader.
func (s *Store) Wait(ctx context.Context, execution flow.ID) (flow.Wait, error) {
	var a args
	all, err := s.readWaits(ctx, qWait, a.id(execution))
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("the wait of %s: %w", execution, store.ErrNotFound)
	}
	if err != nil {
		return flow.Wait{}, err
	}
	return all[0], nil
}

// UnlookedWaits implements store.WaitReader.
func (s *Store) UnlookedWaits(ctx context.Context, now time.Time, after flow.ID, n int) ([]flow.Wait, error) {
	var a args
	return s.readWaits(ctx, qUnlookedWaits, a.id(after).int(row.Micros(now)).int(int64(n)))
}

// OpenWaits implements store.WaitReader.
func (s *Store) OpenWaits(ctx context.Context, trigger, subject string, after flow.ID, n int) ([]flow.Wait, error) {
	var a args
	return s.readWaits(ctx, qOpenWaits, a.text(trigger).text(subject).id(after).int(int64(n)))
}

func (s *Store) readWaits(ctx context.Context, q *query, a *args) (all []flow.Wait, err error) {
	return list(ctx, s, q, a, waits, "read waits")
}

// UnmetSignals implements store.WaitReader.
func (s *Store) UnmetSignals(ctx context.Context, now time.Time, after int64, n int) (all []flow.Signal, err error) {
	return list(ctx, s, qUnmetSignals, new(args).int(row.Micros(now)).int(int64(n)).int(after), signals, "look for signals that have met no waits")
}
