package postgres

import (
	"context"
	"math"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// runsOf returns the encoded histories of an execution, in order, from the one that contains event $2.
const runsOf = `SELECT x.created_at, h.first, h.history FROM (
	SELECT created_at, history_from, history FROM {s}.live WHERE id = $1
	UNION ALL SELECT created_at, history_from, history FROM {s}.ended WHERE id = $1) x,
	LATERAL (SELECT e.first, e.history FROM {s}.events e WHERE e.id = $1
		AND e.first >= coalesce((SELECT max(b.first) FROM {s}.events b WHERE b.id = $1 AND b.first <= $2), 0)
	UNION ALL SELECT x.history_from, x.history) h ORDER BY h.first`

var (
	qHistory = sql(runsOf)

	// qHistoryPage returns at most $3 histories and one more, and stops after $4 bytes. The first one does not count, because most of it may
	// be before event $2.
	qHistoryPage = sql(`SELECT created_at, first, history FROM (SELECT *, coalesce(sum(CASE WHEN first > $2 THEN octet_length(history) END)
		OVER (ORDER BY first ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before FROM (` + runsOf + ` LIMIT $3::bigint + 1) r) r
		WHERE before < $4::bigint ORDER BY first`)
)

func (s *Store) Events(ctx context.Context, id flow.ID, after int64, limit int) (all []flow.Event, err error) {
	var page store.Page
	count := 0
	over := func() bool { return count >= limit || page.Full() }
	var a args
	a.id(id).int(after + 1).int(int64(limit)).int(store.PageBytes)
	err = s.read(ctx, call{q: qHistoryPage, params: a.params, read: func(r *rows) (err error) {
		created, first := r.int(), r.int()
		if over() {
			return nil
		}
		all, err = row.DecodeHistory(all, r.peek(), first, after+1, math.MaxInt64, created, func(e *flow.Event) bool {
			count++
			page.Event(e)
			return over()
		})
		return err
	}})
	return store.Result(all, err, "read events of %s", id)
}
