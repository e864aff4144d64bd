package sqlite

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

var (
	qInsertRerun = sql(`INSERT INTO reruns (original, n) VALUES (?, ?)`)
	qDeleteRerun = sql(`DELETE FROM reruns WHERE original = ? AND n = ?`)

	qInsertRetry = sql(`INSERT INTO retries (original, n) VALUES (?, ?)`)
	qDeleteRetry = sql(`DELETE FROM retries WHERE original = ? AND n = ?`)

	// OR FAIL: the statement writes one row, so it has nothing to undo, and SQLite needs no statement journal.
	qReuse = sql(`INSERT OR FAIL INTO reuses (workflow, task, idx, origin, hash, output)
		SELECT ?, ?, ?, ?, ?, d.output FROM ids i JOIN ended d ON d.n = i.n WHERE i.id = ? AND d.stage = 6`)

	qReusable     = sql(`SELECT idx, origin, hash, output FROM reuses WHERE workflow = ? AND task = ? AND idx >= ? ORDER BY idx LIMIT ?`)
	qDropReusable = sql(`DELETE FROM reuses WHERE workflow = ?1 AND (task = ?2 OR task >= ?2 || '[' AND task < ?2 || '\' OR task >= ?2 || '/' AND task < ?2 || '0')`)
	qDropReuses   = sql(`DELETE FROM reuses WHERE workflow = ?`)

	qRecorded = sql(`SELECT ` + requestRead.names("e.") + `, ` + endedRead.names("d.") + `, ` + complete.names("") + ` FROM children c JOIN ended d ON d.n = c.n
		JOIN executions e ON e.n = c.n WHERE c.workflow = ? AND c.attempt = ? AND (c.task, c.idx) > (?, ?) ORDER BY c.task, c.idx LIMIT ?`)
)

// reuse copies the outcome with which an item of a rerun ends.
func (t *tx) reuse(r *store.Reuse) error {
	n, err := t.mustNumber(r.Workflow)
	if err != nil {
		return err
	}
	err = taken(t.c.use(qReuse).int(n).text(r.Task).int(int64(r.Index)).id(r.Of).blob(r.Hash[:]).id(r.From).run())
	if err == nil && t.c.changes() != 1 {
		err = fmt.Errorf("%w: it has been removed, or has not completed", store.ErrNotFound)
	}
	return err
}

// Reusable implements store.Reruns.
func (t *tx) Reusable(_ context.Context, workflow flow.ID, task string, from, limit int, most int64) ([]store.Reusable, error) {
	n, ok, err := t.number(workflow)
	if err != nil || !ok {
		return nil, err
	}
	var all []store.Reusable
	s := t.c.use(qReusable).int(n).text(task).int(int64(from)).int(int64(limit))
	for most >= 0 && s.next() {
		r := store.Reusable{Index: int(s.getInt()), Of: s.getID()}
		copy(r.Hash[:], s.peekBlob())
		r.Output = s.getBlob()
		most -= int64(len(r.Output))
		all = append(all, r)
	}
	err = s.done()
	return store.Result(all, err, "read what %s reuses", workflow)
}

// DropReusable implements store.Reruns.
func (t *tx) DropReusable(_ context.Context, workflow flow.ID, tasks []string) error {
	n, ok, err := t.number(workflow)
	if err != nil || !ok {
		return err
	}
	for _, task := range tasks {
		if err := t.c.use(qDropReusable).int(n).text(task).run(); err != nil {
			return fmt.Errorf("forget what task %q of %s reuses: %w", task, workflow, err)
		}
	}
	return nil
}

// Recorded implements store.RerunReader.
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
