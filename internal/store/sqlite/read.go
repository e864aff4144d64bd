package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	// The kind is at the beginning of the detail, so only that part is read: the rest may be large.
	qChildren = sql(`SELECT c.task, c.idx, e.id, c.ended, e.created_at, e.created_at + d.finished_after, l.stage, l.attempt,
		e.action, substr(e.detail, 1, ` + fmt.Sprint(row.KindWithin) + `), coalesce(d.state, l.state)
		FROM children c JOIN executions e ON e.n = c.n LEFT JOIN live l ON l.n = c.n LEFT JOIN ended d ON d.n = c.n
		WHERE c.workflow = ? AND c.attempt = ? AND (c.task, c.idx) > (?, ?) ORDER BY c.task, c.idx LIMIT ?`)

	// The recursion jumps from key to key in the index of live rows with a key, and ends with NULL.
	qWaitLists = sql(`WITH RECURSIVE waiting (key) AS (SELECT min(key) FROM live WHERE key > ? AND place = 2
		UNION ALL SELECT (SELECT min(l.key) FROM live l WHERE l.key > w.key AND l.place = 2) FROM waiting w WHERE w.key IS NOT NULL)
		SELECT key, (SELECT count(*) FROM live h WHERE h.key = w.key AND h.place IN (3, 4)),
			(SELECT n FROM live l WHERE l.key = w.key AND l.place = 2 ORDER BY l.priority DESC, l.ticket LIMIT 1)
		FROM waiting w WHERE key IS NOT NULL LIMIT ?`)
)

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

func (s *Store) Events(ctx context.Context, id flow.ID, after int64, limit int) (all []flow.Event, err error) {
	err = s.of(ctx, id, func(c *conn, n int64) error {
		all, err = c.events(n, after+1, maxEvents, limit, new(store.Page))
		return err
	})
	return store.Result(all, err, "read events of %s", id)
}

// of runs a query about one execution. For an unknown execution it does nothing.
func (s *Store) of(ctx context.Context, id flow.ID, query func(c *conn, n int64) error) error {
	return s.read(ctx, func(c *conn) error {
		n, ok, err := c.number(id)
		if err != nil || !ok {
			return err
		}
		return query(c, n)
	})
}

func (s *Store) Children(ctx context.Context, of store.WorkflowAttempt, afterTask string, afterIndex, limit int) (all []store.Child, err error) {
	err = s.of(ctx, of.ID, func(c *conn, n int64) error {
		var bad error
		q := c.use(qChildren).int(n).int(int64(of.Attempt)).text(afterTask).int(int64(afterIndex)).int(int64(limit))
		for bad == nil && q.next() {
			var k store.Child
			k, bad = q.child()
			all = append(all, k)
		}
		return cmp.Or(q.done(), bad)
	})
	return store.Result(all, err, "read children of %s", of.ID)
}

// child reads a row of qChildren.
func (s *stmt) child() (k store.Child, err error) {
	k = store.Child{Task: s.getText(), Index: int(s.getInt()), Execution: s.getID()}
	ended := s.getInt()
	created, finished := s.getInt(), s.getInt()
	k.CreatedAt, k.FinishedAt = row.FromMicros(created), row.FromMicros(finished)
	k.Stage = flow.Stage(s.getInt())
	state := flow.State{Attempt: int(s.getInt())}
	if k.Kind, err = row.DecodeKind(s.getText(), s.peekBlob()); err != nil {
		return k, fmt.Errorf("read execution %s: %w", k.Execution, err)
	}
	if ended != openChild {
		k.Stage = flow.Stage(ended)
	}
	if err := row.DecodeState(&state, s.peekBlob(), created, ended != openChild); err != nil {
		return k, fmt.Errorf("read state of %s: %w", k.Execution, err)
	}
	k.Attempt, k.ClaimedAt, k.StartedAt, k.WakeAt = state.Attempt, state.ClaimedAt, state.StartedAt, state.WakeAt
	return k, nil
}

func (s *Store) Marks(ctx context.Context, of store.WorkflowAttempt) (all []store.Mark, err error) {
	err = s.of(ctx, of.ID, func(c *conn, n int64) error {
		all, err = c.marks(n, of)
		return err
	})
	return store.Result(all, err, "read marks of %s", of.ID)
}

func (s *Store) KeyHolders(ctx context.Context, key string, limit int) (all []*flow.Execution, err error) {
	err = s.read(ctx, func(c *conn) error {
		numbers, err := c.use(qHolding).text(key).int(int64(limit)).numbers()
		if err == nil {
			all, err = c.loadAll(numbers, store.WithoutPayload)
		}
		return err
	})
	return store.Result(all, err, "read holders of key %q", key)
}

func (s *Store) Provisioning(ctx context.Context, owner, id flow.ID, limit int) (all []*flow.Execution, err error) {
	err = s.read(ctx, func(c *conn) error {
		numbers, err := c.use(qProvisioning).int(int64(flow.Provisioning)).blob(owner[:]).blob(id[:]).int(s.limit(limit)).numbers()
		if err == nil {
			all, err = s.readable(c, numbers, limit)
		}
		return err
	})
	return store.Result(all, err, "read what has not begun")
}

// limit returns n plus the number of rows that cannot be decoded, because readers leave those out.
func (s *Store) limit(n int) int64 { return int64(n + s.unreadable.Count()) }

func (s *Store) LiveSessions(ctx context.Context) (all []store.Session, err error) {
	err = s.read(ctx, func(c *conn) error {
		all, err = rowsOf(c.use(qLiveSessions).int(s.leaseNow()), sessions)
		return err
	})
	return store.Result(all, err, "read sessions")
}

func (s *Store) WaitLists(ctx context.Context, after string, limit int) (all []store.WaitList, err error) {
	err = s.read(ctx, func(c *conn) error {
		var heads []int64
		q := c.use(qWaitLists).text(after).int(s.limit(limit))
		for q.next() {
			all = append(all, store.WaitList{Key: q.getText(), Holders: int(q.getInt())})
			heads = append(heads, q.getInt())
		}
		if err := q.done(); err != nil {
			return err
		}
		for i, n := range heads {
			var err error
			if all[i].Head, err = c.loadLive(n, store.WithoutPayload); errors.Is(err, row.ErrDamaged) {
				s.unreadable.Add(n)
			} else if err != nil {
				return err
			}
		}
		all = slices.DeleteFunc(all, func(l store.WaitList) bool { return l.Head == nil })
		all = all[:min(limit, len(all))]
		return nil
	})
	return store.Result(all, err, "read the lines of keys")
}
