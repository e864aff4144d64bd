package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	qGetLive = sql(`SELECT ` + liveColumns + livePayload + ` FROM {s}.live l` + joinLive + ` WHERE l.id = $1`)

	qGetEnded = sql(`SELECT ` + endedColumns + outcomeColumns + endedPayload + ` FROM {s}.ended d` + joinEnded + ` WHERE d.id = $1`)

	// The kind is at the beginning of the detail, so only that part is read: the rest may be large.
	qChildren = sql(`SELECT c.task, c.idx, c.id, c.ended_as, coalesce(d.created_at, l.created_at), d.finished_at, l.stage, l.attempt,
		coalesce(d.action, l.action), substring(coalesce(d.detail, l.detail) FROM 1 FOR ` + fmt.Sprint(row.KindWithin) + `), coalesce(d.state, l.state)
		FROM {s}.children c LEFT JOIN LATERAL (SELECT * FROM {s}.live l WHERE l.id = c.id OFFSET 0) l ON true
			LEFT JOIN LATERAL (SELECT * FROM {s}.ended d WHERE d.id = c.id OFFSET 0) d ON true
		WHERE c.workflow = $1 AND c.attempt = $2::bigint AND (c.task, c.idx) > ($3, $4::bigint) ORDER BY c.task, c.idx LIMIT $5`)

	qMarks = sql(`SELECT ` + marks.names("") + ` FROM {s}.marks WHERE workflow = $1 AND attempt = $2::bigint ORDER BY task`)

	qKeyHolders = sql(`SELECT ` + liveColumns + ` FROM {s}.live l WHERE l.key = $1 AND l.place IN (3, 4) ORDER BY l.created_at, l.id LIMIT $2`)

	// The recursion jumps from key to key in the index of live rows with a key.
	qWaitLists = sql(`WITH RECURSIVE waiting AS (
			(SELECT key FROM {s}.live WHERE key > $1 AND place = 2 ORDER BY key LIMIT 1)
			UNION ALL SELECT n.key FROM waiting w CROSS JOIN LATERAL
				(SELECT key FROM {s}.live WHERE key > w.key AND place = 2 ORDER BY key LIMIT 1) n)
		SELECT k.key, (SELECT count(*) FROM {s}.live h WHERE h.key = k.key AND h.place IN (3, 4)), ` + liveColumns + `
		FROM (SELECT key FROM waiting LIMIT $2) k CROSS JOIN LATERAL
			(SELECT * FROM {s}.live l WHERE l.key = k.key AND l.place = 2 ORDER BY l.priority DESC, l.ticket LIMIT 1) l`)

	// In the order of the index of owners, so that each page begins where the previous one ended, and dead rows are read once.
	qProvisioning = sql(`SELECT ` + liveColumns + ` FROM {s}.live l WHERE l.owner IS NOT NULL AND (l.owner, l.id) > ($2, $3)
		AND l.stage = $1::bigint ORDER BY l.owner, l.id LIMIT $4`)

	qSize = sql(`SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relkind = 'r'`)
)

func (s *Store) Get(ctx context.Context, id flow.ID) (x *flow.Execution, err error) {
	var a args
	a.id(id)
	// An execution moves from the first table to the second. The second one is read later, so the execution cannot be missed.
	err = s.read(ctx,
		call{q: qGetLive, params: a.params, read: func(r *rows) (err error) {
			x, _, err = r.live(true)
			return err
		}},
		call{q: qGetEnded, params: a.params, read: func(r *rows) (err error) {
			x, err = r.ended(complete)
			return err
		}})
	if err != nil {
		return nil, fmt.Errorf("get execution %s: %w", id, err)
	}
	if x == nil {
		return nil, fmt.Errorf("execution %s: %w", id, store.ErrNotFound)
	}
	return x, nil
}

func (s *Store) Children(ctx context.Context, of store.WorkflowAttempt, afterTask string, afterIndex, limit int) (all []store.Child, err error) {
	var a args
	a.id(of.ID).int(int64(of.Attempt)).text(afterTask).int(int64(afterIndex)).int(int64(limit))
	err = s.read(ctx, call{q: qChildren, params: a.params, read: func(r *rows) error {
		k, err := r.child()
		all = append(all, k)
		return err
	}})
	return store.Result(all, err, "read children of %s", of.ID)
}

// child reads a row of qChildren.
func (r *rows) child() (k store.Child, err error) {
	k = store.Child{Task: r.text(), Index: int(r.int()), Execution: r.id()}
	ended := flow.Stage(r.int())
	created, finished := r.int(), r.int()
	k.CreatedAt, k.FinishedAt = row.FromMicros(created), row.FromMicros(finished)
	k.Stage = flow.Stage(r.int())
	state := flow.State{Attempt: int(r.int())}
	if k.Kind, err = row.DecodeKind(r.text(), r.peek()); err != nil {
		return k, fmt.Errorf("read execution %s: %w", k.Execution, err)
	}
	if ended != 0 {
		k.Stage = ended
	}
	if err := row.DecodeState(&state, r.peek(), created, ended != 0); err != nil {
		return k, fmt.Errorf("read state of %s: %w", k.Execution, err)
	}
	k.Attempt, k.ClaimedAt, k.StartedAt, k.WakeAt = state.Attempt, state.ClaimedAt, state.StartedAt, state.WakeAt
	return k, nil
}

func (s *Store) Marks(ctx context.Context, of store.WorkflowAttempt) (all []store.Mark, err error) {
	return list(ctx, s, qMarks, new(args).id(of.ID).int(int64(of.Attempt)), marks, "read marks of %s", of.ID)
}

func (s *Store) KeyHolders(ctx context.Context, key string, limit int) (all []*flow.Execution, err error) {
	err = s.read(ctx, call{q: qKeyHolders, params: new(args).text(key).int(int64(limit)).params, read: func(r *rows) error {
		x, _, err := r.live(false)
		all = append(all, x)
		return err
	}})
	return store.Result(all, err, "read holders of key %q", key)
}

func (s *Store) WaitLists(ctx context.Context, after string, limit int) (all []store.WaitList, err error) {
	err = s.read(ctx, call{q: qWaitLists, params: new(args).text(after).int(s.limit(limit)).params, read: func(r *rows) (err error) {
		l := store.WaitList{Key: r.text(), Holders: int(r.int())}
		if l.Head, _, err = r.live(false); err == nil {
			all = append(all, l)
		}
		return s.passOver(l.Head.ID, err)
	}})
	if err != nil {
		return nil, fmt.Errorf("read the lines of keys: %w", err)
	}
	return all[:min(limit, len(all))], nil
}

func (s *Store) Provisioning(ctx context.Context, owner, id flow.ID, limit int) ([]*flow.Execution, error) {
	var a args
	all, err := s.readable(ctx, qProvisioning, a.int(int64(flow.Provisioning)).id(owner).id(id).int(s.limit(limit)), limit)
	return store.Result(all, err, "read executions that have not begun")
}

// limit returns n plus the number of rows that cannot be decoded, because readers leave those out.
func (s *Store) limit(n int) int64 { return int64(n + s.unreadable.Count()) }

// passOver records a row if the error says that it cannot be decoded. It returns other errors.
func (s *Store) passOver(id flow.ID, err error) error {
	if !errors.Is(err, row.ErrDamaged) {
		return err
	}
	s.unreadable.Add(id)
	return nil
}

// Size implements store.Reader. It includes tables, their indexes and values stored out of line.
func (s *Store) Size(ctx context.Context) (size int64, err error) {
	err = s.read(ctx, call{q: qSize, params: new(args).text(s.name).params, read: readTo(&size, (*rows).int)})
	return store.Result(size, err, "measure the store")
}
