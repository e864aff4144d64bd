package postgres

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

const behind = ` AND (l.priority < $2 OR l.priority = $2 AND l.ticket > $3) ORDER BY l.priority DESC, l.ticket LIMIT $4`

var (
	qWaitingInLane = sql(`SELECT ` + liveColumns + ` FROM {s}.live l WHERE l.place = 3 AND l.queue = $1` + behind)

	qWaitingForKey = sql(`SELECT ` + liveColumns + ` FROM {s}.live l WHERE l.place = 2 AND l.key = $1` + behind)

	qHeldBy = sql(`SELECT ` + liveColumns + ` FROM {s}.live l WHERE l.owner = $1 AND l.id > $2 ORDER BY l.id LIMIT $3`)
)

// Waiting implements store.LineReader.
func (s *Store) Waiting(ctx context.Context, l store.LineQuery) ([]*flow.Execution, error) {
	priority, ticket := l.Behind()
	q, of := qWaitingInLane, l.Lane
	if l.Key != "" {
		q, of = qWaitingForKey, l.Key
	}
	var a args
	all, err := s.readable(ctx, q, a.text(of).int(int64(priority)).int(ticket).int(s.limit(l.Limit)), l.Limit)
	if err != nil {
		return nil, fmt.Errorf("read the line of %q: %w", of, err)
	}
	return all, nil
}

// HeldBy implements store.LineReader.
func (s *Store) HeldBy(ctx context.Context, session, after flow.ID, limit int) ([]*flow.Execution, error) {
	var a args
	all, err := s.readable(ctx, qHeldBy, a.id(session).id(after).int(s.limit(limit)), limit)
	if err != nil {
		return nil, fmt.Errorf("read the executions that %s holds: %w", session.Text(flow.SessionPrefix), err)
	}
	return all, nil
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
