package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

const sessionColumns = `id, name, embedded, queues, kinds, slots, started_at, expires_at`

var (
	qOpenSession = sql(`INSERT INTO {s}.sessions (` + sessionColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`)

	qRenewSessions = sql(`UPDATE {s}.sessions SET expires_at = $3 WHERE id = ANY (ARRAY(SELECT id FROM {s}.sessions
		WHERE id = ANY ($1::uuid[]) AND expires_at > $2 FOR UPDATE SKIP LOCKED)) RETURNING id`)

	qSession = sql(`SELECT ` + sessionColumns + ` FROM {s}.sessions WHERE id = $1 FOR SHARE SKIP LOCKED`)

	qSessionsAt = sql(`SELECT 1 FROM {s}.sessions WHERE id = ANY ($1::uuid[]) AND expires_at > $2 LIMIT 1`)

	qDropSession = sql(`DELETE FROM {s}.sessions WHERE id = $1`)

	qExpired = sql(`SELECT ` + sessionColumns + ` FROM {s}.sessions WHERE expires_at <= $1 ORDER BY expires_at, id LIMIT $2 FOR UPDATE SKIP LOCKED`)

	qLiveSessions = sql(`SELECT ` + sessionColumns + ` FROM {s}.sessions WHERE expires_at > $1 ORDER BY id`)

	qExpireEmbedded = sql(`UPDATE {s}.sessions SET expires_at = $1 WHERE embedded AND expires_at > $1`)

	qOwned = sql(`SELECT l.id FROM {s}.live l WHERE l.owner = $1 AND l.id > $2 ORDER BY l.id LIMIT $3`)

	qOrdered = sql(`SELECT ` + liveColumns + ` FROM {s}.live l WHERE l.owner = ANY ($1::uuid[]) AND l.ordered`)
)

// OpenSession implements store.Sessions.
func (t *tx) OpenSession(ctx context.Context, s store.Session) error {
	a := t.args().id(s.ID).text(s.Name).bool(s.Embedded).texts(s.Queues).texts(s.Kinds).int(int64(s.Slots)).
		int(row.Micros(s.StartedAt)).int(row.Micros(s.ExpiresAt))
	if err := t.ask(ctx, qOpenSession, a, nil); err != nil {
		return fmt.Errorf("open session %s: %w", s.ID.Text(flow.SessionPrefix), err)
	}
	return nil
}

// RenewSessions implements store.Sessions.
func (t *tx) RenewSessions(ctx context.Context, ids []flow.ID, now, expires time.Time) ([]flow.ID, error) {
	var renewed []flow.ID
	clear(t.expected)
	t.asked = append(t.asked, locks{sessions: ids, changed: true})
	a := t.args().ids(ids).int(row.Micros(now)).int(row.Micros(expires))
	err := t.ask(ctx, qRenewSessions, a, func(r *rows) error {
		renewed = append(renewed, r.id())
		return nil
	})
	if err == nil && len(renewed) < len(ids) {
		passed := slices.DeleteFunc(slices.Clone(ids), func(id flow.ID) bool { return slices.Contains(renewed, id) })
		err = t.unlessThere(ctx, passed, now)
	}
	if err != nil {
		return nil, fmt.Errorf("renew %d sessions: %w", len(ids), err)
	}
	return renewed, nil
}

// unlessThere gives up when one of the sessions that could not be locked is there, and has not expired at now.
func (t *tx) unlessThere(ctx context.Context, ids []flow.ID, now time.Time) error {
	there := false
	err := t.ask(ctx, qSessionsAt, t.args().ids(ids).int(row.Micros(now)), func(*rows) error {
		there = true
		return nil
	})
	if err == nil && there {
		return t.giveUp()
	}
	return err
}

// ExpectSession implements store.Sessions.
func (t *tx) ExpectSession(id flow.ID) {
	if t.expected == nil {
		t.expected = make(map[flow.ID]*expected, 1)
	}
	if t.expected[id] != nil {
		return
	}
	x := &expected{trip: t.trips}
	t.expected[id] = x
	t.asked = append(t.asked, locks{sessions: []flow.ID{id}})
	t.add(qSession, t.args().id(id), readSession(&x.found))
}

// expected is a session's row, once the round trip that was the next one when it was asked for is over.
type expected struct {
	trip  int
	found []store.Session // at most one
}

// LockSession implements store.Sessions. The lock is shared: many may claim for a session at once, while nobody can drop
// or renew it.
func (t *tx) LockSession(ctx context.Context, id flow.ID) (store.Session, error) {
	t.ExpectSession(id)
	x := t.expected[id]
	err := t.since(ctx, x.trip)
	if err == nil && len(x.found) == 0 {
		err = t.unlessThere(ctx, []flow.ID{id}, time.Time{})
	}
	if err != nil {
		return store.Session{}, fmt.Errorf("lock session %s: %w", id.Text(flow.SessionPrefix), err)
	}
	if len(x.found) == 0 {
		return store.Session{}, fmt.Errorf("session %s: %w", id.Text(flow.SessionPrefix), store.ErrNotFound)
	}
	return x.found[0], nil
}

// DropSession implements store.Sessions.
func (t *tx) DropSession(ctx context.Context, id flow.ID) error {
	clear(t.expected)
	if err := t.ask(ctx, qDropSession, t.args().id(id), nil); err != nil {
		return fmt.Errorf("drop session %s: %w", id.Text(flow.SessionPrefix), err)
	}
	return nil
}

// Expired implements store.Sessions. Sessions that another transaction is deciding about are passed over.
func (t *tx) Expired(ctx context.Context, now time.Time, n int) ([]store.Session, error) {
	var all []store.Session
	if err := t.ask(ctx, qExpired, t.args().int(row.Micros(now)).int(int64(n)), readSession(&all)); err != nil {
		return nil, fmt.Errorf("find expired sessions: %w", err)
	}
	return all, nil
}

// ExpireEmbedded implements store.Sessions.
func (t *tx) ExpireEmbedded(ctx context.Context, now time.Time) error {
	clear(t.expected)
	if err := t.ask(ctx, qExpireEmbedded, t.args().int(row.Micros(now)), nil); err != nil {
		return fmt.Errorf("expire embedded sessions: %w", err)
	}
	return nil
}

// OwnedBy implements store.Sessions.
func (t *tx) OwnedBy(ctx context.Context, session, after flow.ID, n int) ([]*flow.Execution, error) {
	var all []*flow.Execution
	for len(all) < n {
		var ids []flow.ID
		most := n - len(all)
		err := t.ask(ctx, qOwned, t.args().id(session).id(after).int(int64(most)), readID(&ids))
		var xs []*flow.Execution
		if err == nil {
			xs, err = t.Lock(ctx, ids, store.WithoutPayload)
		}
		if err != nil {
			return nil, fmt.Errorf("find what session %s holds: %w", session.Text(flow.SessionPrefix), err)
		}
		slices.SortFunc(xs, func(a, b *flow.Execution) int { return slices.Compare(a.ID[:], b.ID[:]) })
		for _, x := range xs {
			if x.Place == flow.Held && x.Owner == session { // it may have ended while it was waited for
				all = append(all, x)
			}
		}
		if len(ids) < most {
			return all, nil
		}
		after = ids[len(ids)-1]
	}
	return all, nil
}

// Ordered implements store.Sessions.
func (t *tx) Ordered(ctx context.Context, sessions []flow.ID) ([]*flow.Execution, error) {
	var all []*flow.Execution
	err := t.ask(ctx, qOrdered, t.args().ids(sessions), func(r *rows) error {
		x, _, err := r.live(false)
		all = append(all, x)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find orders to %d sessions: %w", len(sessions), err)
	}
	return all, nil
}

// LiveSessions implements store.Reader.
func (s *Store) LiveSessions(ctx context.Context, now time.Time) (all []store.Session, err error) {
	var a args
	err = s.read(ctx, call{q: qLiveSessions, params: a.int(row.Micros(now)).params, read: readSession(&all)})
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	return all, nil
}

// readSession returns a reader of sessionColumns.
func readSession(all *[]store.Session) func(*rows) error {
	return func(r *rows) error {
		*all = append(*all, store.Session{ID: r.id(), Name: r.text(), Embedded: r.bool(), Queues: r.texts(), Kinds: r.texts(),
			Slots: int(r.int()), StartedAt: r.time(), ExpiresAt: r.time()})
		return nil
	}
}
