package postgres

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

var (
	reruns = relation[*flow.Execution, none]{
		{"original", oidUUID, func(c *column, x *flow.Execution) { c.id(x.RerunOf) }, nil},
		{"id", oidUUID, func(c *column, x *flow.Execution) { c.id(x.ID) }, nil},
	}

	retries = relation[*flow.Execution, none]{
		{"original", oidUUID, func(c *column, x *flow.Execution) { c.id(x.RetryOf()) }, nil},
		{"id", oidUUID, func(c *column, x *flow.Execution) { c.id(x.ID) }, nil},
	}

	reuses = relation[*store.Reuse, none]{
		{"workflow", oidUUID, func(c *column, r *store.Reuse) { c.id(r.Workflow) }, nil},
		{"task", oidText, func(c *column, r *store.Reuse) { c.text(r.Task) }, nil},
		{"idx", oidInt4, func(c *column, r *store.Reuse) { c.int(int64(r.Index)) }, nil},
		{"origin", oidUUID, func(c *column, r *store.Reuse) { c.id(r.Of) }, nil},
		{"hash", oidBytes, func(c *column, r *store.Reuse) { c.bytes(r.Hash[:]) }, nil},
		{"source", oidUUID, func(c *column, r *store.Reuse) { c.id(r.From) }, nil},
	}
)

var (
	qInsertReruns = sql(reruns.insert("reruns"))
	qDeleteReruns = sql(`DELETE FROM {s}.reruns r USING ` + reruns.rows() + ` AS v WHERE ` + is("r.original", "v.original") + ` AND r.id = v.id`)

	qInsertRetries = sql(retries.insert("retries"))
	qDeleteRetries = sql(`DELETE FROM {s}.retries r USING ` + retries.rows() + ` AS v WHERE ` + is("r.original", "v.original") + ` AND r.id = v.id`)

	qReuse = sql(`WITH v AS ` + reuses.rows() + `,
		made AS (INSERT INTO {s}.reuses (workflow, task, idx, origin, hash, output)
			SELECT v.workflow, v.task, v.idx, v.origin, v.hash, d.output FROM v
			CROSS JOIN LATERAL (SELECT d.output FROM {s}.ended d WHERE d.id = v.source AND d.stage = 6 OFFSET 0) d RETURNING 1)
		SELECT {s}.expect((SELECT count(*) FROM made), cardinality($1), 'PW410', 'executions whose outcomes are to be reused have been removed')`)

	// PostgreSQL tells the length of a value stored out of line without reading it.
	qReusable = sql(`SELECT idx, origin, hash, output FROM (SELECT r.*, sum(coalesce(octet_length(r.output), 0)) OVER (ORDER BY r.idx)
			- coalesce(octet_length(r.output), 0) AS before FROM {s}.reuses r
			WHERE r.workflow = $1 AND r.task = $2 AND r.idx >= $3::bigint ORDER BY r.idx LIMIT $4) r WHERE before <= $5::bigint ORDER BY idx`)
	qDropReusable = sql(`DELETE FROM {s}.reuses r USING (SELECT n COLLATE "C" AS n FROM unnest($2::text[]) AS v(n)) AS v WHERE r.workflow = $1
		AND (r.task = v.n OR r.task >= v.n || '[' AND r.task < v.n || '\' OR r.task >= v.n || '/' AND r.task < v.n || '0')`)
	qDropReuses = sql(`DELETE FROM {s}.reuses r WHERE r.workflow = ANY ($1::uuid[])`)

	qRecorded = sql(`SELECT ` + endedColumns + outcomeColumns + endedPayload + ` FROM (SELECT c.task, c.idx, c.id FROM {s}.children c
			WHERE c.workflow = $1 AND c.attempt = $2::bigint AND (c.task, c.idx) > ($3, $4::bigint) ORDER BY c.task, c.idx LIMIT $5) c
		CROSS JOIN LATERAL (SELECT * FROM {s}.ended d WHERE d.id = c.id OFFSET 0) d` + joinEnded + ` ORDER BY c.task, c.idx`)
)

// putReuses queues the statement that writes which items reruns reuse.
func (t *tx) putReuses(all []store.Reuse) {
	if len(all) == 0 {
		return
	}
	var c columns
	reuses.begin(&c)
	for i := range all {
		reuses.add(&c, &all[i])
	}
	t.put(qReuse, &c)
}

// Reusable implements store.Reruns.
func (t *tx) Reusable(ctx context.Context, workflow flow.ID, task string, from, n int, most int64) ([]store.Reusable, error) {
	var all []store.Reusable
	a := t.args().id(workflow).text(task).int(int64(from)).int(int64(n)).int(most)
	err := t.ask(ctx, qReusable, a, func(r *rows) error {
		u := store.Reusable{Index: int(r.int()), Of: r.id()}
		copy(u.Hash[:], r.peek())
		u.Output = r.bytes()
		all = append(all, u)
		return nil
	})
	return store.Result(all, err, "read the items that %s reuses", workflow)
}

// DropReusable implements store.Reruns.
func (t *tx) DropReusable(_ context.Context, workflow flow.ID, tasks []string) error {
	t.add(qDropReusable, t.args().id(workflow).texts(tasks), nil)
	return nil
}

// Recorded implements store.RerunReader.
func (s *Store) Recorded(ctx context.Context, of store.WorkflowAttempt, afterTask string, afterIndex, limit int) (all []*flow.Execution, err error) {
	var a args
	a.id(of.ID).int(int64(of.Attempt)).text(afterTask).int(int64(afterIndex)).int(int64(limit))
	var page store.Page
	err = s.read(ctx, call{q: qRecorded, params: a.params, read: func(r *rows) error {
		if page.Full() {
			return nil
		}
		x, err := r.ended(complete)
		if err != nil {
			return err
		}
		page.Execution(x)
		page.Payload(x)
		page.Output(x.Outcome.Output)
		all = append(all, x)
		return nil
	}})
	return store.Result(all, err, "read the recorded items of %s", of.ID)
}
