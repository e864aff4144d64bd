package relational

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

// waitRow is a wait; for writing, its detail is encoded.
type waitRow struct {
	flow.Wait
	detail string
}

var waits = Relation[waitRow]{
	id("execution", func(w *waitRow) *flow.ID { return &w.Execution }),
	id("workflow", func(w *waitRow) *flow.ID { return &w.Workflow }),
	number("attempt", Int4, func(w *waitRow) *int { return &w.Attempt }),
	text("trigger", func(w *waitRow) *string { return &w.Trigger }),
	text("subject", func(w *waitRow) *string { return &w.Subject }),
	moment("since", func(w *waitRow) *time.Time { return &w.Since }),
	truth("looked", func(w *waitRow) *bool { return &w.Scanned }),
	orNull(number("signal", Int8, func(w *waitRow) *int64 { return &w.Signal }), func(w *waitRow) bool { return w.Signal == 0 }),
	{"detail", JSON, func(a Args, w *waitRow) { a.Text(w.detail) }, func(r Row, w *waitRow) error {
		row.DecodeWaitDetail(&w.Wait, r.Peek())
		return nil
	}},
}

var (
	qWaits = sql(func(d dialect) string {
		return `SELECT ` + waits.names("") + ` FROM {s}.waits WHERE ` + d.in("execution", UUID)
	})
	qUnscannedWaits = sql(func(d dialect) string {
		return `SELECT ` + waits.names("") + ` FROM {s}.waits w WHERE ` + d.not("looked") + ` AND signal IS NULL AND execution > $1
			AND ` + NotAside(store.AsideScan, "w.execution", "$2") + ` ORDER BY execution LIMIT $3`
	})
	qOpenWaits = same(`SELECT ` + waits.names("") + ` FROM {s}.waits WHERE trigger = $1 AND subject = $2 AND signal IS NULL
		AND execution > $3 ORDER BY execution LIMIT $4`)
	qTaken = sql(func(d dialect) string {
		return `SELECT signal FROM {s}.waits WHERE ` + d.in("signal", Int8) + ` AND workflow = $2 AND attempt = $3::bigint`
	})

	qPutWaits  = sql(func(d dialect) string { return waits.upsert(d, "waits", "execution") })
	qDropWaits = sql(func(d dialect) string { return `DELETE FROM {s}.waits WHERE ` + d.in("execution", UUID) })

	qPutUncorrelated     = sql(func(d dialect) string { return uncorrelatedRows.insert(d, "unmet") + ` ON CONFLICT DO NOTHING` })
	qDropUncorrelated    = sql(func(d dialect) string { return `DELETE FROM {s}.unmet WHERE ` + d.in("signal", Int8) })
	qUncorrelatedSignals = sql(func(d dialect) string {
		notAside := NotAside(store.AsideCorrelation, "s.id", "$2")
		if d == sqlite {
			return `SELECT ` + signals.names("s.") + ` FROM unmet u CROSS JOIN signals s ON s.n = u.signal WHERE u.signal > ?1
				AND ` + notAside + ` ORDER BY u.signal LIMIT $3`
		}
		return signalPage(d, `SELECT s.* FROM (SELECT signal FROM {s}.unmet WHERE signal > $1 ORDER BY signal) u
			CROSS JOIN LATERAL (SELECT `+signalColumns+` FROM {s}.signals s WHERE s.n = u.signal AND `+notAside+` OFFSET 0) s
				ORDER BY u.signal LIMIT $3`)
	})
)

// uncorrelatedRows are signals for which open waits must still be checked.
var uncorrelatedRows = Relation[int64]{number("signal", Int8, func(n *int64) *int64 { return n })}

func readWaits(ctx context.Context, q Querier, c Call, what string, in ...any) ([]flow.Wait, error) {
	rows, err := list(ctx, q, c, waits, what, in...)
	if len(rows) == 0 {
		return nil, err
	}
	all := make([]flow.Wait, len(rows))
	for i := range rows {
		all[i] = rows[i].Wait
	}
	return all, err
}

// WaitsFor reads the waits of executions.
func WaitsFor(ctx context.Context, q Querier, executions []flow.ID) ([]flow.Wait, error) {
	return readWaits(ctx, q, Call{Statement: qWaits, Rows: ids.input(executions)}, "look for the waits of %d executions", len(executions))
}

func (t Tx) WaitsOf(ctx context.Context, executions []flow.ID) ([]flow.Wait, error) {
	return WaitsFor(ctx, t, executions)
}

func (t Tx) Taken(ctx context.Context, of store.WorkflowAttempt, numbers []int64) (taken []int64, err error) {
	err = t.Run(ctx, Call{Statement: qTaken, Rows: numbered.input(numbers), Args: []any{of.ID, of.Attempt}, Read: func(r Row) error {
		taken = append(taken, r.Int())
		return nil
	}})
	return store.Result(taken, err, "look who took %d signals", len(numbers))
}

// putWaits writes waits, and deletes those of the executions in drop. The waits are sorted, because taking a signal waits for a transaction
// that is taking the same one.
func (t Tx) putWaits(ctx context.Context, all []flow.Wait, drop []flow.ID) error {
	if len(all)+len(drop) == 0 {
		return nil
	}
	all = slices.SortedFunc(slices.Values(all), func(a, b flow.Wait) int {
		return cmp.Or(bytes.Compare(a.Workflow[:], b.Workflow[:]), cmp.Compare(a.Attempt, b.Attempt),
			cmp.Compare(a.Signal, b.Signal), bytes.Compare(a.Execution[:], b.Execution[:]))
	})
	put := make([]waitRow, len(all))
	for i := range all {
		detail, err := row.WaitDetail(&all[i].WaitDetail)
		if err != nil {
			return fmt.Errorf("write the wait of %s: %w", all[i].Execution, err)
		}
		put[i] = waitRow{all[i], string(detail)}
	}
	err := t.Queue(ctx, Call{Statement: qPutWaits, Rows: waits.input(put)})
	if err == nil {
		err = t.DropWaits(ctx, drop)
	}
	return store.Failed(err, "write %d waits", len(all)+len(drop))
}

// DropWaits deletes the waits of executions.
func (t Tx) DropWaits(ctx context.Context, executions []flow.ID) error {
	return t.Queue(ctx, Call{Statement: qDropWaits, Rows: ids.input(executions)})
}

// putUncorrelated records for which signals open waits must still be checked, and for which they have been checked.
func (t Tx) putUncorrelated(ctx context.Context, add, met []int64) error {
	if len(add)+len(met) == 0 {
		return nil
	}
	err := t.Queue(ctx, Call{Statement: qPutUncorrelated, Rows: uncorrelatedRows.input(slices.Sorted(slices.Values(add)))},
		Call{Statement: qDropUncorrelated, Rows: uncorrelatedRows.input(slices.Sorted(slices.Values(met)))})
	return store.Failed(err, "note which signals have met those who wait")
}

func (s Reader) Wait(ctx context.Context, execution flow.ID) (flow.Wait, error) {
	w, err := one(ctx, s, Call{Statement: qWaits, Rows: ids.input([]flow.ID{execution})}, waits, "the wait of %s", execution)
	return w.Wait, err
}

func (s Reader) UnscannedWaits(ctx context.Context, now time.Time, after flow.ID, n int) ([]flow.Wait, error) {
	return readWaits(ctx, s, Call{Statement: qUnscannedWaits, Args: []any{after, now, n}}, "read waits")
}

func (s Reader) OpenWaits(ctx context.Context, trigger, subject string, after flow.ID, n int) ([]flow.Wait, error) {
	return readWaits(ctx, s, Call{Statement: qOpenWaits, Args: []any{trigger, subject, after, n}}, "read waits")
}

func (s Reader) UncorrelatedSignals(ctx context.Context, now time.Time, after int64, n int) ([]flow.Signal, error) {
	return readSignals(ctx, s, Call{Statement: qUncorrelatedSignals, Args: []any{after, now, n}}, "look for signals that have met no waits")
}
