package sqlite

import (
	"context"
	"errors"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

const behind = ` AND (priority < ? OR priority = ? AND ticket > ?) ORDER BY priority DESC, ticket LIMIT ?`

var (
	qWaitingForRoute = sql(`SELECT n FROM live WHERE place = 3 AND queue = ?` + behind)

	qWaitingForKey = sql(`SELECT n FROM live WHERE key = ? AND place = 2` + behind)

	qLeasedCount = sql(`SELECT count(*) FROM live WHERE owner = ?`)

	qLeasedFirst = sql(`SELECT l.n FROM live l JOIN executions e ON e.n = l.n WHERE l.owner = ? ORDER BY e.id LIMIT ?`)
)

func (s *Store) Waiting(ctx context.Context, l store.WaitListQuery) (all []*flow.Execution, err error) {
	priority, ticket := l.Behind()
	err = s.read(ctx, func(c *conn) error {
		q, of := c.use(qWaitingForRoute), l.RoutingKey
		if l.Key != "" {
			q, of = c.use(qWaitingForKey), l.Key
		}
		numbers, err := q.text(of).int(int64(priority)).int(int64(priority)).int(ticket).int(s.limit(l.Limit)).numbers()
		if err == nil {
			all, err = s.readable(c, numbers, l.Limit)
		}
		return err
	})
	return store.Result(all, err, "read the line of %q", l.RoutingKey+l.Key)
}

func (s *Store) LeasedBy(ctx context.Context, sessions []flow.ID, each, n int) ([]store.Leased, error) {
	leased := make([]store.Leased, len(sessions))
	err := s.read(ctx, func(c *conn) error {
		for i, session := range sessions {
			h := &leased[i]
			q := c.use(qLeasedCount).id(session)
			for q.next() {
				h.Count = int(q.getInt())
			}
			if err := q.done(); err != nil {
				return err
			}
			most := min(each, n)
			if h.Count == 0 || most == 0 {
				continue
			}
			numbers, err := c.use(qLeasedFirst).id(session).int(s.limit(most)).numbers()
			if err == nil {
				h.First, err = s.readable(c, numbers, most)
			}
			if err != nil {
				return err
			}
			n -= len(h.First)
		}
		return nil
	})
	return store.Result(leased, err, "read what sessions hold")
}

// readable loads the first executions, without payload, and leaves out rows that cannot be decoded.
func (s *Store) readable(c *conn, numbers []int64, limit int) (all []*flow.Execution, err error) {
	for _, n := range numbers {
		if len(all) == limit {
			break
		}
		x, err := c.loadLive(n, store.WithoutPayload)
		switch {
		case errors.Is(err, row.ErrDamaged):
			s.unreadable.Add(n)
		case err != nil:
			return nil, err
		case x != nil:
			all = append(all, x)
		}
	}
	return all, nil
}
