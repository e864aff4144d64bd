package relational

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

var reuses = Relation[store.Reuse]{
	id("workflow", func(r *store.Reuse) *flow.ID { return &r.Workflow }),
	text("task", func(r *store.Reuse) *string { return &r.Task }),
	number("idx", Int4, func(r *store.Reuse) *int { return &r.Index }),
	id("origin", func(r *store.Reuse) *flow.ID { return &r.Of }),
	sum("hash", func(r *store.Reuse) *[sha256.Size]byte { return &r.Hash }),
	id("source", func(r *store.Reuse) *flow.ID { return &r.From }),
}

var reusable = Relation[store.Reusable]{
	number("idx", Int4, func(r *store.Reusable) *int { return &r.Index }),
	id("origin", func(r *store.Reusable) *flow.ID { return &r.Of }),
	sum("hash", func(r *store.Reusable) *[sha256.Size]byte { return &r.Hash }),
	blob("output", Bytes, func(r *store.Reusable) *json.RawMessage { return &r.Output }),
}

var (
	qReuse = sql(func(d dialect) string {
		if d == sqlite { // OR FAIL: it writes one row, so there is nothing to undo and no statement journal is needed
			return `INSERT OR FAIL INTO reuses (workflow, task, idx, origin, hash, output) SELECT ` + d.execution("?1") + `, ?2, ?3, ?4, ?5, d.output
				FROM ended d WHERE d.n = ` + d.execution("?6") + ` AND d.stage = 6`
		}
		return `INSERT INTO {s}.reuses (workflow, task, idx, origin, hash, output)
			SELECT v.workflow, v.task, v.idx, v.origin, v.hash, d.output FROM ` + reuses.rows(d) + ` AS v` +
			d.lookUp("ended", "d", `d.id = v.source AND d.stage = 6`)
	}).exactly(store.ErrNotFound, "executions whose outcomes are to be reused have been removed or have not completed")

	// PostgreSQL sends whole answers, and knows the length of a value that is stored out of line without reading it.
	qReusable = sql(func(d dialect) string {
		items := `FROM {s}.reuses r WHERE r.workflow = ` + d.execution("$1") + ` AND r.task = $2 AND r.idx >= $3::bigint AND $5::bigint >= 0
			ORDER BY r.idx LIMIT $4`
		if d == sqlite {
			return `SELECT ` + reusable.names("") + ` ` + items
		}
		return `SELECT ` + reusable.names("") + ` FROM (SELECT r.*, sum(coalesce(octet_length(r.output), 0)) OVER (ORDER BY r.idx)
			- coalesce(octet_length(r.output), 0) AS before ` + items + `) r WHERE before <= $5::bigint ORDER BY idx`
	})

	qDropReusable = sql(func(d dialect) string {
		of := func(task string) string {
			return ` WHERE r.workflow = ` + d.execution("$2") + ` AND (r.task = ` + task + ` OR r.task >= ` + task + ` || '[' AND r.task < ` + task +
				` || '\' OR r.task >= ` + task + ` || '/' AND r.task < ` + task + ` || '0')`
		}
		if d == sqlite {
			return `DELETE FROM reuses AS r` + of("?1")
		}
		return `DELETE FROM {s}.reuses r USING (SELECT key COLLATE "C" AS task FROM ` + keys.rows(d) + ` AS k) AS v` + of("v.task")
	})

	qDropReuses = sql(func(d dialect) string {
		if d == sqlite {
			return `DELETE FROM reuses WHERE workflow = ` + d.execution("?1")
		}
		return `DELETE FROM {s}.reuses WHERE ` + d.in("workflow", UUID)
	})
)

// Reuse writes which items reruns reuse, with copies of the outputs.
func (t Tx) Reuse(ctx context.Context, all []store.Reuse) error {
	return queue(ctx, t, qReuse, reuses, all, "reuse %d outcomes")
}

func (t Tx) Reusable(ctx context.Context, workflow flow.ID, task string, from, n int, most int64) (all []store.Reusable, err error) {
	c := Call{Statement: qReusable, Args: []any{workflow, task, from, n, most}, Read: func(r Row) error {
		if most < 0 {
			return ErrEnough
		}
		var u store.Reusable
		err := reusable.read(r, &u)
		most -= int64(len(u.Output))
		all = append(all, u)
		return err
	}}
	err = t.Run(ctx, c)
	return store.Result(all, err, "read the items that %s reuses", workflow)
}

func (t Tx) DropReusable(ctx context.Context, workflow flow.ID, tasks []string) error {
	return t.Queue(ctx, Call{Statement: qDropReusable, Rows: keys.input(tasks), Args: []any{workflow}})
}

// DropReuses deletes the remaining outcomes of reruns that have ended.
func (t Tx) DropReuses(ctx context.Context, workflows []flow.ID) error {
	return t.Queue(ctx, Call{Statement: qDropReuses, Rows: ids.input(workflows)})
}
