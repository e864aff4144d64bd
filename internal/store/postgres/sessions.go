package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/relational"
)

// sessions are the columns that readers load. The statement qOpenSession writes a session, with times from the server's clock.
var sessions = relation[none, *store.Session]{
	{"id", oidUUID, nil, func(r *rows, s *store.Session) { s.ID = r.id() }},
	{"name", oidText, nil, func(r *rows, s *store.Session) { s.Name = r.text() }},
	{"embedded", oidBool, nil, func(r *rows, s *store.Session) { s.Embedded = r.bool() }},
	{"queues", oidText, nil, func(r *rows, s *store.Session) { s.Queues = r.texts() }},
	{"kinds", oidText, nil, func(r *rows, s *store.Session) { s.Kinds = r.texts() }},
	{"slots", oidInt8, nil, func(r *rows, s *store.Session) { s.Slots = int(r.int()) }},
	{"started_at", oidInt8, nil, func(r *rows, s *store.Session) { s.StartedAt = r.time() }},
	{"expires_at", oidInt8, nil, func(r *rows, s *store.Session) { s.ExpiresAt = r.time() }},
}

var sessionColumns = sessions.names("")

// leaseNow is the clock of leases: the server's clock, read at each row and not at the start of the transaction.
const leaseNow = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

var (
	qOpenSession = sql(`INSERT INTO {s}.sessions (` + sessionColumns + `)
		SELECT $1::uuid, $2::text, $3::boolean, $4::text[], $5::text[], $6::bigint, c.now, c.now + $7::bigint FROM (SELECT ` + leaseNow + ` AS now) c`)

	qRenewSessions = sql(`UPDATE {s}.sessions SET expires_at = ` + leaseNow + ` + $2 WHERE id = ANY (ARRAY(SELECT id FROM {s}.sessions
		WHERE id = ANY ($1::uuid[]) AND expires_at > ` + leaseNow + ` FOR NO KEY UPDATE SKIP LOCKED)) RETURNING id`)

	qEndLeases = sql(`UPDATE {s}.sessions s SET expires_at = 0 FROM (SELECT id, expires_at FROM {s}.sessions
		WHERE id = ANY ($1::uuid[]) AND expires_at > 0 FOR UPDATE SKIP LOCKED) o WHERE ` + is("s.id", "o.id") + `
		RETURNING s.id, o.expires_at > ` + leaseNow)

	qSession = sql(`SELECT ` + sessionColumns + `, expires_at - ` + leaseNow + `, ` + relational.LastPause + ` FROM {s}.sessions WHERE id = $1 FOR KEY SHARE SKIP LOCKED`)

	qLeaseNotEnded = sql(`SELECT 1 FROM {s}.sessions WHERE id = ANY ($1::uuid[]) AND expires_at > 0 LIMIT 1`)

	qLeaseRuns = sql(`SELECT 1 FROM {s}.sessions WHERE id = ANY ($1::uuid[]) AND expires_at > ` + leaseNow + ` LIMIT 1`)

	// In the same order as in hold, because it waits for rows that other transactions have locked.
	qRestartLeases = sql(`UPDATE {s}.sessions SET expires_at = ` + leaseNow + ` + $1 WHERE id = ANY (ARRAY(SELECT id FROM {s}.sessions
		WHERE expires_at > 0 ORDER BY id FOR NO KEY UPDATE))`)

	qDropSessions = sql(`DELETE FROM {s}.sessions WHERE id = ANY (ARRAY(SELECT id FROM {s}.sessions WHERE id = ANY ($1::uuid[]) FOR UPDATE SKIP LOCKED)) RETURNING id`)

	qSessionThere = sql(`SELECT 1 FROM {s}.sessions WHERE id = ANY ($1::uuid[]) LIMIT 1`)

	qExpired = sql(`SELECT ` + sessionColumns + ` FROM {s}.sessions WHERE expires_at <= ` + leaseNow + `
		ORDER BY expires_at, id LIMIT $1 FOR UPDATE SKIP LOCKED`)

	qLiveSessions = sql(`SELECT ` + sessionColumns + ` FROM {s}.sessions WHERE expires_at > ` + leaseNow + ` ORDER BY id`)

	qExpireEmbedded = sql(`UPDATE {s}.sessions SET expires_at = ` + leaseNow + ` WHERE embedded AND expires_at > ` + leaseNow)

	qOwned = sql(`SELECT l.id FROM {s}.live l WHERE l.owner = $1 AND l.id > $2 ORDER BY l.id LIMIT $3`)

	qCancelRequested = sql(`SELECT ` + liveColumns + ` FROM {s}.live l WHERE l.owner = ANY ($1::uuid[]) AND l.cancel_requested`)
)

func (t *tx) OpenSession(ctx context.Context, s store.Session, lease time.Duration) error {
	a := t.args().id(s.ID).text(s.Name).bool(s.Embedded).texts(s.Queues).texts(s.Kinds).int(int64(s.Slots)).int(lease.Microseconds())
	return store.Failed(t.ask(ctx, qOpenSession, a, nil), "open session %s", s.ID.Text(flow.SessionPrefix))
}

func (t *tx) RenewSessions(ctx context.Context, ids []flow.ID, lease time.Duration) ([]flow.ID, error) {
	var renewed []flow.ID
	err := t.changeSessions(ctx, ids, renewing, qLeaseRuns, qRenewSessions, t.args().ids(ids).int(lease.Microseconds()), func(r *rows) flow.ID {
		renewed = append(renewed, r.id())
		return renewed[len(renewed)-1]
	})
	return store.Result(renewed, err, "renew %d sessions", len(ids))
}

// EndLeases implements store.Sessions. An end of 0 ends a lease regardless of the server's clock.
func (t *tx) EndLeases(ctx context.Context, ids []flow.ID) ([]flow.ID, error) {
	var running []flow.ID
	err := t.changeSessions(ctx, ids, leaving, qLeaseNotEnded, qEndLeases, t.args().ids(ids), func(r *rows) flow.ID {
		id := r.id()
		if r.bool() {
			running = append(running, id)
		}
		return id
	})
	return store.Result(running, err, "end the leases of %d sessions", len(ids))
}

// changeSessions runs a statement that changes sessions and skips those that another transaction has locked. If it changed fewer than
// given, the statement left looks for the others. A session that it finds was skipped because it is locked, so this transaction gives up
// and runs again with all of them locked from the start.
func (t *tx) changeSessions(ctx context.Context, ids []flow.ID, lock seatLock, left, q *query, a *args, read func(*rows) flow.ID) error {
	clear(t.expected)
	t.asked = append(t.asked, locks{sessions: ids, seats: lock})
	changed := make(map[flow.ID]bool, len(ids))
	err := t.ask(ctx, q, a, func(r *rows) error {
		changed[read(r)] = true
		return nil
	})
	if err != nil || len(changed) == len(ids) {
		return err
	}
	return t.unlessThere(ctx, left, slices.DeleteFunc(slices.Clone(ids), func(id flow.ID) bool { return changed[id] }))
}

// unlessThere gives up if a statement finds one of the sessions that were not changed.
func (t *tx) unlessThere(ctx context.Context, q *query, ids []flow.ID) error {
	there := false
	err := t.ask(ctx, q, t.args().ids(ids), func(*rows) error {
		there = true
		return nil
	})
	if err == nil && there {
		return t.giveUp()
	}
	return err
}

// RestartLeases implements store.Store. It runs in its own transaction because it waits for the locks of sessions, which a transaction with
// other locks must not do.
func (s *Store) RestartLeases(ctx context.Context, lease time.Duration) error {
	err := s.Update(ctx, func(ctx context.Context, own store.Tx) error {
		t := own.(*tx)
		return t.ask(ctx, qRestartLeases, t.args().int(lease.Microseconds()), nil)
	})
	return store.Failed(err, "restart leases")
}

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
	t.add(qSession, t.args().id(id), func(r *rows) error {
		x.found = &store.Session{}
		err := sessions.read(r, x.found)
		x.left, x.found.Pauses = time.Duration(r.int())*time.Microsecond, r.int()
		return err
	})
}

// expected is the row of a session. It is known after the round trip with the number trip.
type expected struct {
	trip  int
	found *store.Session // nil: there is none
	left  time.Duration  // remaining time of its lease
}

// LockSession implements store.Sessions. The lock is shared: many transactions may claim for a session at the same time, even while one
// renews it, but none can end its lease or drop it meanwhile.
func (t *tx) LockSession(ctx context.Context, id flow.ID) (store.Session, time.Duration, error) {
	t.ExpectSession(id)
	x := t.expected[id]
	err := t.since(ctx, x.trip)
	if err == nil && x.found == nil {
		err = t.unlessThere(ctx, qLeaseNotEnded, []flow.ID{id})
	}
	if err != nil {
		return store.Session{}, 0, fmt.Errorf("lock session %s: %w", id.Text(flow.SessionPrefix), err)
	}
	if x.found == nil {
		return store.Session{}, 0, fmt.Errorf("session %s: %w", id.Text(flow.SessionPrefix), store.ErrNotFound)
	}
	return *x.found, x.left, nil
}

// DropSession implements store.Sessions. It comes at the end of a decision that has locked executions and keys. It must not wait for a
// session that another transaction has locked, because that one may be waiting for these locks.
func (t *tx) DropSession(ctx context.Context, id flow.ID) error {
	ids := []flow.ID{id}
	return store.Failed(t.changeSessions(ctx, ids, leaving, qSessionThere, qDropSessions, t.args().ids(ids), (*rows).id), "drop session %s", id.Text(flow.SessionPrefix))
}

// Expired implements store.Sessions. Sessions that another transaction has locked are skipped.
func (t *tx) Expired(ctx context.Context, n int) ([]store.Session, error) {
	var all []store.Session
	err := t.ask(ctx, qExpired, t.args().int(int64(n)), readInto(&all, sessions))
	return store.Result(all, err, "find expired sessions")
}

func (t *tx) ExpireEmbedded(ctx context.Context) error {
	clear(t.expected)
	return store.Failed(t.ask(ctx, qExpireEmbedded, nil, nil), "expire embedded sessions")
}

func (t *tx) OwnedBy(ctx context.Context, session, after flow.ID, n int) ([]*flow.Execution, error) {
	var all []*flow.Execution
	for len(all) < n {
		var ids []flow.ID
		most := n - len(all)
		err := t.ask(ctx, qOwned, t.args().id(session).id(after).int(int64(most)), readAll(&ids, (*rows).id))
		var xs []*flow.Execution
		if err == nil {
			xs, err = t.Lock(ctx, slices.DeleteFunc(slices.Clone(ids), t.s.unreadable.Has), store.WithoutPayload)
		}
		if err != nil {
			return nil, fmt.Errorf("find the executions that session %s holds: %w", session.Text(flow.SessionPrefix), err)
		}
		slices.SortFunc(xs, func(a, b *flow.Execution) int { return slices.Compare(a.ID[:], b.ID[:]) })
		for _, x := range xs {
			if x.Place == flow.Held && x.Owner == session { // it may have ended while the statement waited for its lock
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

func (t *tx) CancelRequested(ctx context.Context, sessions []flow.ID) ([]*flow.Execution, error) {
	var all []*flow.Execution
	err := t.ask(ctx, qCancelRequested, t.args().ids(sessions), func(r *rows) error {
		x, _, err := r.live(false)
		if err != nil {
			return t.passOver(x.ID, err)
		}
		all = append(all, x)
		return nil
	})
	return store.Result(all, err, "find orders to %d sessions", len(sessions))
}

func (s *Store) LiveSessions(ctx context.Context) (all []store.Session, err error) {
	err = s.read(ctx, call{q: qLiveSessions, read: readInto(&all, sessions)})
	return store.Result(all, err, "read sessions")
}
