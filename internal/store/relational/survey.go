package relational

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// Counts of live executions. The columns that they read are the same in both databases. Places have the numbers of flow.Place: 2 waits in
// its key's wait list, 3 is ready in its queue, 4 is held by a worker or the engine.
var (
	qQueues = same(`SELECT queue, count(*), min(queued_at) FROM {s}.live WHERE place = 3 GROUP BY queue ORDER BY queue`).whole()

	qKeys = same(`SELECT key, count(*) FILTER (WHERE place IN (3, 4)) AS holders, count(*) FILTER (WHERE place = 2) AS waiting
		FROM {s}.live WHERE key IS NOT NULL AND place IN (2, 3, 4) GROUP BY key ORDER BY holders DESC, waiting DESC, key LIMIT $1`).whole()

	qAhead = map[flow.Place]*Statement{
		flow.Ready:   same(`SELECT count(*) FROM {s}.live WHERE place = 3 AND queue = $1 AND (priority > $2 OR priority = $2 AND ticket < $3)`),
		flow.Waiting: same(`SELECT count(*) FROM {s}.live WHERE key = $1 AND place = 2 AND (priority > $2 OR priority = $2 AND ticket < $3)`),
	}

	// On SQLite the numbers of executions have the order of submission.
	qUnfinished = sql(func(d dialect) string {
		oldest := `min(created_at)`
		if d == sqlite {
			oldest = `(SELECT created_at FROM executions WHERE n = (SELECT min(n) FROM live))`
		}
		return `SELECT queue, stage, count(*), ` + oldest + ` FROM {s}.live GROUP BY queue, stage ORDER BY queue, stage`
	}).whole()

	qUnapplied = same(`SELECT (SELECT count(*) FROM {s}.inbox), (SELECT count(*) FROM {s}.inquiries WHERE state = 1)`).whole()

	// SQLite has no transactions of other clients, and Pawl's own are short. On PostgreSQL, only members of pg_read_all_stats see the
	// transactions of other roles.
	qOldestTransaction = sql(func(d dialect) string {
		if d == sqlite {
			return `SELECT 0`
		}
		return `SELECT coalesce(max(extract(epoch FROM clock_timestamp() - began) * 1000000), 0)::bigint FROM (
		SELECT xact_start AS began FROM pg_stat_activity
			WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
		UNION ALL SELECT prepared FROM pg_prepared_xacts WHERE database = current_database()) AS open_transactions`
	})
)

func (s Reader) Queues(ctx context.Context) (all []store.QueueDepth, err error) {
	err = s.Run(ctx, Call{Statement: qQueues, Read: func(r Row) error {
		all = append(all, store.QueueDepth{Queue: textOf(r), Ready: int(r.Int()), Oldest: row.FromMicros(r.Int())})
		return nil
	}})
	return store.Result(all, err, "measure queues")
}

func (s Reader) Keys(ctx context.Context, n int) (map[string]store.KeyUse, error) {
	all := make(map[string]store.KeyUse)
	err := s.Run(ctx, Call{Statement: qKeys, Args: []any{n}, Read: func(r Row) error {
		all[textOf(r)] = store.KeyUse{Holders: int(r.Int()), Waiting: int(r.Int())}
		return nil
	}})
	return store.Result(all, err, "measure keys")
}

func (s Reader) Ahead(ctx context.Context, x *flow.Execution) (int, error) {
	line := x.Queue
	switch x.Place {
	case flow.Ready:
	case flow.Waiting:
		line = x.Key
	default:
		return 0, nil
	}
	var n int64
	err := s.Run(ctx, Call{Statement: qAhead[x.Place], Args: []any{line, x.Priority, x.Ticket}, Read: readInt(&n)})
	return store.Result(int(n), err, "count the executions ahead of %s", x.ID)
}

func (s Reader) Survey(ctx context.Context) (v store.Survey, err error) {
	err = s.Run(ctx,
		Call{Statement: qUnfinished, Read: func(r Row) error {
			v.Unfinished = append(v.Unfinished, store.Unfinished{Queue: textOf(r), Stage: flow.Stage(r.Int()), Count: int(r.Int())})
			if created := row.FromMicros(r.Int()); v.OldestCreated.IsZero() || created.Before(v.OldestCreated) {
				v.OldestCreated = created
			}
			return nil
		}},
		Call{Statement: qUnapplied, Read: func(r Row) error {
			v.Unapplied, v.Inquiries = int(r.Int()), int(r.Int())
			return nil
		}},
		Call{Statement: qOldestTransaction, Read: func(r Row) error {
			v.OldestTransaction = time.Duration(max(0, r.Int())) * time.Microsecond
			return nil
		}})
	return store.Result(v, err, "sum up live executions")
}
