package sqlite

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	qUnfinished = sql(`SELECT queue, stage, count(*) FROM live GROUP BY queue, stage ORDER BY queue, stage`)

	qOldestCreated = sql(`SELECT created_at FROM executions WHERE n = (SELECT min(n) FROM live)`) // numbers are drawn in order of submission

	qUnapplied = sql(`SELECT (SELECT count(*) FROM inbox), (SELECT count(*) FROM inquiries WHERE state = 1)`)
)

// Survey implements store.Surveyor. SQLite has no transactions of other clients, and Pawl's own are short.
func (s *Store) Survey(ctx context.Context) (v store.Survey, err error) {
	err = s.read(ctx, func(c *conn) error {
		q := c.use(qUnfinished)
		for q.next() {
			v.Unfinished = append(v.Unfinished, store.Unfinished{Queue: q.getText(), Stage: flow.Stage(q.getInt()), Count: int(q.getInt())})
		}
		if err := q.done(); err != nil {
			return err
		}
		if q = c.use(qOldestCreated); q.next() {
			v.OldestCreated = row.FromMicros(q.getInt())
		}
		if err := q.done(); err != nil {
			return err
		}
		if q = c.use(qUnapplied); q.next() {
			v.Unapplied, v.Inquiries = int(q.getInt()), int(q.getInt())
		}
		return q.done()
	})
	return store.Result(v, err, "sum up what has not ended")
}
