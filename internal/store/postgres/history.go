package postgres

import (
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store/row"
)

// qHistory gives the runs of an execution's events from the one that has event $2 on, in order, at most $3 of them and one
// (negative: all).
var qHistory = sql(`SELECT created_at, h.first, h.history FROM (
	SELECT created_at, history_from, history FROM {s}.live WHERE id = $1
	UNION ALL SELECT created_at, history_from, history FROM {s}.ended WHERE id = $1) x,
	LATERAL (SELECT e.first, e.history FROM {s}.events e WHERE e.id = $1
		AND e.first >= coalesce((SELECT max(b.first) FROM {s}.events b WHERE b.id = $1 AND b.first <= $2), 0)
	UNION ALL SELECT x.history_from, x.history) h ORDER BY h.first LIMIT CASE WHEN $3::bigint >= 0 THEN $3::bigint + 1 END`)

// history gathers events with from <= Seq < to, at most limit (negative: all).
type history struct {
	from, to int64
	limit    int
	all      []flow.Event
}

func (h *history) read(r *rows) (err error) {
	created, first := r.int(), r.int()
	h.all, err = row.DecodeHistory(h.all, r.peek(), first, h.from, h.to, created)
	if h.limit >= 0 && len(h.all) > h.limit {
		h.all = h.all[:h.limit]
	}
	return err
}
