package postgres

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

var (
	qUnfinished = sql(`SELECT queue, stage, count(*), min(created_at) FROM {s}.live GROUP BY queue, stage ORDER BY queue, stage`)

	qUnapplied = sql(`SELECT (SELECT count(*) FROM {s}.inbox), (SELECT count(*) FROM {s}.inquiries WHERE state = 1)`)

	// The database user sees the transactions of other roles only as a member of pg_read_all_stats.
	qOldestTransaction = sql(`SELECT coalesce(max(extract(epoch FROM clock_timestamp() - began) * 1000000), 0)::bigint FROM (
		SELECT xact_start AS began FROM pg_stat_activity
			WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
		UNION ALL SELECT prepared FROM pg_prepared_xacts WHERE database = current_database()) AS open_transactions`)
)

// Survey implements store.Surveyor.
func (s *Store) Survey(ctx context.Context) (v store.Survey, err error) {
	err = s.read(ctx,
		call{q: qUnfinished, read: func(r *rows) error {
			v.Unfinished = append(v.Unfinished, store.Unfinished{Queue: r.text(), Stage: flow.Stage(r.int()), Count: int(r.int())})
			if created := r.time(); v.OldestCreated.IsZero() || created.Before(v.OldestCreated) {
				v.OldestCreated = created
			}
			return nil
		}},
		call{q: qUnapplied, read: func(r *rows) error {
			v.Unapplied, v.Inquiries = int(r.int()), int(r.int())
			return nil
		}},
		call{q: qOldestTransaction, read: func(r *rows) error {
			v.OldestTransaction = time.Duration(max(0, r.int())) * time.Microsecond
			return nil
		}})
	return store.Result(v, err, "sum up live executions")
}
