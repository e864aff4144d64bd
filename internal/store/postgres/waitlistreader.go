package postgres

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

const behind = ` AND (l.priority < $2 OR l.priority = $2 AND l.ticket > $3) ORDER BY l.priority DESC, l.ticket LIMIT $4`

var (
	qWaitingForRoute = sql(`SELECT ` + liveColumns + ` FROM {s}.live l WHERE l.place = 3 AND l.queue = $1` + behind)

	qWaitingForKey = sql(`SELECT ` + liveColumns + ` FROM {s}.live l WHERE l.place = 2 AND l.key = $1` + behind)

	qLeasedCount = sql(`SELECT l.owner, count(*) FROM {s}.live l WHERE l.owner = ANY($1::uuid[]) GROUP BY l.owner`)

	qLeasedFirst = sql(`SELECT ` + liveColumns + ` FROM unnest($1::uuid[]) WITH ORDINALITY AS w(session, n)
		CROSS JOIN LATERAL (SELECT * FROM {s}.live h WHERE h.owner = w.session ORDER BY h.id LIMIT $2::bigint) l ORDER BY w.n, l.id LIMIT $3::bigint`)
)

func (s *Store) Waiting(ctx context.Context, l store.WaitListQuery) ([]*flow.Execution, error) {
	priority, ticket := l.Behind()
	q, of := qWaitingForRoute, l.RoutingKey
	if l.Key != "" {
		q, of = qWaitingForKey, l.Key
	}
	var a args
	all, err := s.readable(ctx, q, a.text(of).int(int64(priority)).int(ticket).int(s.limit(l.Limit)), l.Limit)
	return store.Result(all, err, "read the line of %q", of)
}

// LeasedBy implements store.WaitListReader. Both statements are sent together.
func (s *Store) LeasedBy(ctx context.Context, sessions []flow.ID, each, n int) ([]store.Leased, error) {
	leased, at := make([]store.Leased, len(sessions)), make(map[flow.ID]*store.Leased, len(sessions))
	for i, session := range sessions {
		at[session] = &leased[i]
	}
	var counts, first args
	err := s.read(ctx, call{q: qLeasedCount, params: counts.ids(sessions).params, read: func(r *rows) error {
		if h := at[r.id()]; h != nil {
			h.Count = int(r.int())
		}
		return nil
	}}, call{q: qLeasedFirst, params: first.ids(sessions).int(s.limit(each)).int(s.limit(n)).params, read: func(r *rows) error {
		x, _, err := r.live(false)
		if err != nil {
			return s.passOver(x.ID, err)
		}
		if h := at[x.Owner]; h != nil && len(h.First) < each && n > 0 {
			h.First = append(h.First, x)
			n--
		}
		return nil
	}})
	return store.Result(leased, err, "read what sessions hold")
}

// readable reads the first live executions that a query returns, without payload. It leaves out rows that cannot be decoded.
func (s *Store) readable(ctx context.Context, q *query, a *args, limit int) (all []*flow.Execution, err error) {
	err = s.read(ctx, call{q: q, params: a.params, read: func(r *rows) error {
		x, _, err := r.live(false)
		if err == nil {
			all = append(all, x)
		}
		return s.passOver(x.ID, err)
	}})
	if err != nil {
		return nil, err
	}
	return all[:min(limit, len(all))], nil
}
