package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

const behind = ` AND (priority < ? OR priority = ? AND ticket > ?) ORDER BY priority DESC, ticket LIMIT ?`

var (
	qWaitingInLane = sql(`SELECT n FROM live WHERE place = 3 AND queue = ?` + behind)

	qWaitingForKey = sql(`SELECT n FROM live WHERE key = ? AND place = 2` + behind)

	qHeldBy = sql(`SELECT l.n FROM live l JOIN executions e ON e.n = l.n WHERE l.owner = ? AND e.id > ? ORDER BY e.id LIMIT ?`)
)

// Waiting implements store.LineReader.
func (s *Store) Waiting(ctx context.Context, l store.LineQuery) (all []*flow.Execution, err error) {
	priority, ticket := l.Behind()
	err = s.read(ctx, func(c *conn) error {
		q, of := c.use(qWaitingInLane), l.Lane
		if l.Key != "" {
			q, of = c.use(qWaitingForKey), l.Key
		}
		numbers, err := q.text(of).int(int64(priority)).int(int64(priority)).int(ticket).int(s.limit(l.Limit)).numbers()
		if err == nil {
			all, err = s.readable(c, numbers, l.Limit)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the line of %q: %w", l.Lane+l.Key, err)
	}
	return all, nil
}

// HeldBy implements store.LineReader.
func (s *Store) HeldBy(ctx context.Context, session, after flow.ID, limit int) (all []*flow.Execution, err error) {
	err = s.read(ctx, func(c *conn) error {
		numbers, err := c.use(qHeldBy).id(session).blob(after[:]).int(s.limit(limit)).numbers() // as an id, a zero one would be null
		if err == nil {
			all, err = s.readable(c, numbers, limit)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what %s holds: %w", session.Text(flow.SessionPrefix), err)
	}
	return all, nil
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
