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
)

var (
	qInsertReruns = sql(reruns.insert("reruns"))
	qDeleteReruns = sql(`DELETE FROM {s}.reruns r USING ` + reruns.rows() + ` AS v WHERE ` + is("r.original", "v.original") + ` AND r.id = v.id`)

	qInsertRetries = sql(retries.insert("retries"))
	qDeleteRetries = sql(`DELETE FROM {s}.retries r USING ` + retries.rows() + ` AS v WHERE ` + is("r.original", "v.original") + ` AND r.id = v.id`)

	qRecorded = sql(`SELECT ` + endedColumns + outcomeColumns + endedPayload + ` FROM (SELECT c.task, c.idx, c.id FROM {s}.children c
			WHERE c.workflow = $1 AND c.attempt = $2::bigint AND (c.task, c.idx) > ($3, $4::bigint) ORDER BY c.task, c.idx LIMIT $5) c
		CROSS JOIN LATERAL (SELECT * FROM {s}.ended d WHERE d.id = c.id OFFSET 0) d` + joinEnded + ` ORDER BY c.task, c.idx`)
)

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
