package sqlite

import (
	"cmp"
	"context"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

var (
	qInsertRerun = sql(`INSERT INTO reruns (original, n) VALUES (?, ?)`)
	qDeleteRerun = sql(`DELETE FROM reruns WHERE original = ? AND n = ?`)

	qInsertRetry = sql(`INSERT INTO retries (original, n) VALUES (?, ?)`)
	qDeleteRetry = sql(`DELETE FROM retries WHERE original = ? AND n = ?`)

	qRecorded = sql(`SELECT ` + requestRead.names("e.") + `, ` + endedRead.names("d.") + `, ` + complete.names("") + ` FROM children c JOIN ended d ON d.n = c.n
		JOIN executions e ON e.n = c.n WHERE c.workflow = ? AND c.attempt = ? AND (c.task, c.idx) > (?, ?) ORDER BY c.task, c.idx LIMIT ?`)
)

func (s *Store) Recorded(ctx context.Context, of store.WorkflowAttempt, afterTask string, afterIndex, limit int) (all []*flow.Execution, err error) {
	err = s.of(ctx, of.ID, func(c *conn, n int64) error {
		var bad error
		q := c.use(qRecorded).int(n).int(int64(of.Attempt)).text(afterTask).int(int64(afterIndex)).int(int64(limit))
		for page := store.Page(0); bad == nil && !page.Full() && q.next(); {
			var x *flow.Execution
			if x, bad = q.ended(complete); bad == nil {
				page.Execution(x)
				page.Payload(x)
				page.Output(x.Outcome.Output)
				all = append(all, x)
			}
		}
		return cmp.Or(q.done(), bad)
	})
	return store.Result(all, err, "read what %s recorded", of.ID)
}
