package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	qChildren = sql(`SELECT c.task, c.idx, e.id, c.ended, l.stage, l.attempt, d.state
		FROM children c JOIN executions e ON e.n = c.n LEFT JOIN live l ON l.n = c.n LEFT JOIN ended d ON d.n = c.n
		WHERE c.workflow = ? AND c.attempt = ? AND (c.task, c.idx) > (?, ?) ORDER BY c.task, c.idx LIMIT ?`)

	qAheadReady = sql(`SELECT count(*) FROM live WHERE place = 3 AND queue = ? AND (priority > ? OR priority = ? AND ticket < ?)`)

	qAheadWaiting = sql(`SELECT count(*) FROM live WHERE key = ? AND place = 2 AND (priority > ? OR priority = ? AND ticket < ?)`)

	qQueues = sql(`SELECT queue, count(*), min(queued_at) FROM live WHERE place = 3 GROUP BY queue ORDER BY queue`)

	qKeys = sql(`SELECT key, count(*) FILTER (WHERE place IN (3, 4)) AS holders, count(*) FILTER (WHERE place = 2) AS waiting
		FROM live WHERE key IS NOT NULL AND place IN (2, 3, 4) GROUP BY key ORDER BY holders DESC, waiting DESC, key LIMIT ?`)

	qCounts = sql(`SELECT stage, count(*) FROM live GROUP BY stage`)
)

// Get implements store.Reader.
func (s *Store) Get(ctx context.Context, id flow.ID) (x *flow.Execution, err error) {
	err = s.read(ctx, func(c *conn) error {
		n, ok, err := c.number(id)
		if err == nil && ok {
			x, err = c.load(n, store.WithPayload)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get execution %s: %w", id, err)
	}
	if x == nil {
		return nil, fmt.Errorf("execution %s: %w", id, store.ErrNotFound)
	}
	return x, nil
}

// Events implements store.Reader.
func (s *Store) Events(ctx context.Context, id flow.ID, after int64, limit int) (all []flow.Event, err error) {
	err = s.of(ctx, id, func(c *conn, n int64) error {
		all, err = c.events(n, after+1, maxEvents, limit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read events of %s: %w", id, err)
	}
	return all, nil
}

// of runs a query about one execution; there is nothing to say about one that is unknown.
func (s *Store) of(ctx context.Context, id flow.ID, query func(c *conn, n int64) error) error {
	return s.read(ctx, func(c *conn) error {
		n, ok, err := c.number(id)
		if err != nil || !ok {
			return err
		}
		return query(c, n)
	})
}

// Children implements store.Reader.
func (s *Store) Children(ctx context.Context, of store.WorkflowAttempt, afterTask string, afterIndex, limit int) (all []store.Child, err error) {
	err = s.of(ctx, of.ID, func(c *conn, n int64) error {
		var bad error
		q := c.use(qChildren).int(n).int(int64(of.Attempt)).text(afterTask).int(int64(afterIndex)).int(int64(limit))
		for q.next() {
			k := store.Child{Task: q.getText(), Index: int(q.getInt()), Execution: q.getID()}
			if ended := q.getInt(); ended != openChild {
				k.Stage = flow.Stage(ended)
				q.skip(2)
				var state flow.State
				if err := row.DecodeState(&state, q.peekBlob(), 0, true); err != nil {
					bad = fmt.Errorf("read state of %s: %w", k.Execution, err)
				}
				k.Attempt = state.Attempt
			} else {
				k.Stage, k.Attempt = flow.Stage(q.getInt()), int(q.getInt())
			}
			all = append(all, k)
		}
		if err := q.done(); err != nil {
			return err
		}
		return bad
	})
	if err != nil {
		return nil, fmt.Errorf("read children of %s: %w", of.ID, err)
	}
	return all, nil
}

// Marks implements store.Reader.
func (s *Store) Marks(ctx context.Context, of store.WorkflowAttempt) (all []store.Mark, err error) {
	err = s.of(ctx, of.ID, func(c *conn, n int64) error {
		all, err = c.marks(n, of)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read marks of %s: %w", of.ID, err)
	}
	return all, nil
}

// Ahead implements store.Reader.
func (s *Store) Ahead(ctx context.Context, x *flow.Execution) (n int, err error) {
	err = s.read(ctx, func(c *conn) error {
		var q *stmt
		switch x.Place {
		case flow.Ready:
			q = c.use(qAheadReady).text(x.Queue)
		case flow.Waiting:
			q = c.use(qAheadWaiting).text(x.Key)
		default:
			return nil
		}
		q.int(int64(x.Priority)).int(int64(x.Priority)).int(x.Ticket)
		if q.next() {
			n = int(q.getInt())
		}
		return q.done()
	})
	if err != nil {
		return 0, fmt.Errorf("count what is ahead of %s: %w", x.ID, err)
	}
	return n, nil
}

// KeyHolders implements store.Reader.
func (s *Store) KeyHolders(ctx context.Context, key string, limit int) (all []*flow.Execution, err error) {
	err = s.read(ctx, func(c *conn) error {
		numbers, err := c.use(qHolding).text(key).int(int64(limit)).numbers()
		if err == nil {
			all, err = c.loadAll(numbers, store.WithoutPayload)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read holders of key %q: %w", key, err)
	}
	return all, nil
}

// Provisioning implements store.Reader.
func (s *Store) Provisioning(ctx context.Context, owner, id flow.ID, limit int) (all []*flow.Execution, err error) {
	err = s.read(ctx, func(c *conn) error {
		numbers, err := c.use(qProvisioning).int(int64(flow.Provisioning)).blob(owner[:]).blob(id[:]).int(int64(limit)).numbers()
		if err == nil {
			all, err = c.loadAll(numbers, store.WithoutPayload)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what has not begun: %w", err)
	}
	return all, nil
}

// LiveSessions implements store.Reader.
func (s *Store) LiveSessions(ctx context.Context, now time.Time) (all []store.Session, err error) {
	err = s.read(ctx, func(c *conn) error {
		all, err = c.use(qLiveSessions).int(row.Micros(now)).sessions()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	return all, nil
}

// Queues implements store.Reader.
func (s *Store) Queues(ctx context.Context) (all []store.QueueDepth, err error) {
	err = s.read(ctx, func(c *conn) error {
		q := c.use(qQueues)
		for q.next() {
			all = append(all, store.QueueDepth{Queue: q.getText(), Ready: int(q.getInt()), Oldest: row.FromMicros(q.getInt())})
		}
		return q.done()
	})
	if err != nil {
		return nil, fmt.Errorf("measure queues: %w", err)
	}
	return all, nil
}

// Keys implements store.Reader.
func (s *Store) Keys(ctx context.Context, limit int) (map[string]store.KeyUse, error) {
	all := make(map[string]store.KeyUse)
	err := s.read(ctx, func(c *conn) error {
		q := c.use(qKeys).int(int64(limit))
		for q.next() {
			all[q.getText()] = store.KeyUse{Holders: int(q.getInt()), Waiting: int(q.getInt())}
		}
		return q.done()
	})
	if err != nil {
		return nil, fmt.Errorf("measure keys: %w", err)
	}
	return all, nil
}

// Counts implements store.Reader.
func (s *Store) Counts(ctx context.Context) (map[flow.Stage]int, error) {
	all := make(map[flow.Stage]int)
	err := s.read(ctx, func(c *conn) error {
		q := c.use(qCounts)
		for q.next() {
			stage := flow.Stage(q.getInt())
			all[stage] = int(q.getInt())
		}
		return q.done()
	})
	if err != nil {
		return nil, fmt.Errorf("count executions: %w", err)
	}
	return all, nil
}

// Definition implements store.Reader.
func (s *Store) Definition(ctx context.Context, name string, version int) (d store.Definition, err error) {
	found := false
	err = s.read(ctx, func(c *conn) error {
		all, err := c.use(qDefinition).text(name).int(int64(version)).int(int64(version)).definitions()
		if len(all) > 0 {
			d, found = all[0], true
		}
		return err
	})
	if err != nil {
		return d, fmt.Errorf("read definition %q: %w", name, err)
	}
	if !found {
		return d, fmt.Errorf("definition %q version %d: %w", name, version, store.ErrNotFound)
	}
	return d, nil
}

// Definitions implements store.Reader.
func (s *Store) Definitions(ctx context.Context, after string, limit int) (all []store.Definition, err error) {
	err = s.read(ctx, func(c *conn) error {
		all, err = c.use(qDefinitions).text(after).int(int64(limit)).definitions()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	return all, nil
}
