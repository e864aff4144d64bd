package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// sessions are the columns of the sessions of workers.
var sessions = relation[*store.Session, *store.Session]{
	{"id", func(s *stmt, x *store.Session) { s.id(x.ID) }, func(s *stmt, x *store.Session) { x.ID = s.getID() }},
	{"name", func(s *stmt, x *store.Session) { s.text(x.Name) }, func(s *stmt, x *store.Session) { x.Name = s.getText() }},
	{"embedded", func(s *stmt, x *store.Session) { s.int(truth(x.Embedded)) }, func(s *stmt, x *store.Session) { x.Embedded = s.getInt() == 1 }},
	{"queues", func(s *stmt, x *store.Session) { s.list(x.Queues) }, func(s *stmt, x *store.Session) { s.failed(json.Unmarshal(s.peekBlob(), &x.Queues)) }},
	{"kinds", func(s *stmt, x *store.Session) { s.list(x.Kinds) }, func(s *stmt, x *store.Session) { s.failed(json.Unmarshal(s.peekBlob(), &x.Kinds)) }},
	{"slots", func(s *stmt, x *store.Session) { s.int(int64(x.Slots)) }, func(s *stmt, x *store.Session) { x.Slots = int(s.getInt()) }},
	{"started_at", func(s *stmt, x *store.Session) { s.time(x.StartedAt) }, func(s *stmt, x *store.Session) { x.StartedAt = s.getTime() }},
	{"expires_at", func(s *stmt, x *store.Session) { s.time(x.ExpiresAt) }, func(s *stmt, x *store.Session) { x.ExpiresAt = s.getTime() }},
}

// list binds the next parameter: a list as JSON.
func (s *stmt) list(all []string) {
	text, err := json.Marshal(all)
	if err != nil {
		s.fail(err)
	}
	s.text(string(text))
}

var (
	qOpenSession = sql(sessions.insert("sessions"))

	// It renews a lease, or ends it with expires_at = 0.
	qSetExpiry = sql(`UPDATE sessions SET expires_at = ? WHERE id = ? AND expires_at > ?`)

	qRestartLeases = sql(`UPDATE sessions SET expires_at = ? WHERE expires_at > 0`)

	qSession = sql(`SELECT ` + sessions.names("") + `, ` + lastPause + ` FROM sessions WHERE id = ?`)

	qDropSession = sql(`DELETE FROM sessions WHERE id = ?`)

	qExpired = sql(`SELECT ` + sessions.names("") + ` FROM sessions WHERE expires_at <= ? ORDER BY expires_at, id LIMIT ?`)

	qLiveSessions = sql(`SELECT ` + sessions.names("") + ` FROM sessions WHERE expires_at > ? ORDER BY id`)

	qExpireEmbedded = sql(`UPDATE sessions SET expires_at = ? WHERE embedded = 1 AND expires_at > ?`)

	qOwned = sql(`SELECT l.n FROM live l JOIN executions e ON e.n = l.n WHERE l.owner = ? AND (? IS NULL OR e.id > ?) ORDER BY e.id LIMIT ?`)

	qCancelRequested = sql(`SELECT n FROM live WHERE owner = ? AND cancel_requested = 1 ORDER BY n`)
)

func (t *tx) OpenSession(ctx context.Context, s store.Session, lease time.Duration) error {
	var err error
	s.StartedAt, err = t.Now(ctx)
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	s.ExpiresAt = row.FromMicros(t.s.leaseNow() + lease.Microseconds())
	err = taken(sessions.bind(t.c.use(qOpenSession), &s).run())
	return store.Failed(err, "open session %s", s.ID.Text(flow.SessionPrefix))
}

func (t *tx) RenewSessions(_ context.Context, ids []flow.ID, lease time.Duration) ([]flow.ID, error) {
	now := t.s.leaseNow()
	renewed, err := t.setExpiry(ids, now+lease.Microseconds(), now)
	return store.Result(renewed, err, "renew sessions")
}

// EndLeases implements store.Sessions. An end of 0 ends a lease regardless of the clock.
func (t *tx) EndLeases(_ context.Context, ids []flow.ID) ([]flow.ID, error) {
	running, err := t.setExpiry(ids, 0, t.s.leaseNow())
	if err == nil {
		_, err = t.setExpiry(ids, 0, 0) // including those that have expired
	}
	return store.Result(running, err, "end leases")
}

// setExpiry sets the end of leases that end after a time, and returns their sessions.
func (t *tx) setExpiry(ids []flow.ID, expires, after int64) ([]flow.ID, error) {
	var moved []flow.ID
	for _, id := range ids {
		if err := t.c.use(qSetExpiry).int(expires).id(id).int(after).run(); err != nil {
			return nil, fmt.Errorf("session %s: %w", id.Text(flow.SessionPrefix), err)
		}
		if t.c.changes() == 1 {
			moved = append(moved, id)
		}
	}
	return moved, nil
}

func (s *Store) RestartLeases(ctx context.Context, lease time.Duration) error {
	return s.Update(ctx, func(context.Context, store.Tx) error {
		return store.Failed(s.w.use(qRestartLeases).int(s.leaseNow()+lease.Microseconds()).run(), "restart leases")
	})
}

func (t *tx) LockSession(_ context.Context, id flow.ID) (store.Session, time.Duration, error) {
	s := t.c.use(qSession).id(id)
	var found store.Session
	var bad error
	there := s.next()
	if there {
		bad = sessions.read(s, &found)
		found.Pauses = s.getInt()
	}
	if err := cmp.Or(s.done(), bad); err != nil {
		return store.Session{}, 0, fmt.Errorf("lock session %s: %w", id.Text(flow.SessionPrefix), err)
	}
	if !there {
		return store.Session{}, 0, fmt.Errorf("session %s: %w", id.Text(flow.SessionPrefix), store.ErrNotFound)
	}
	return found, time.Duration(row.Micros(found.ExpiresAt)-t.s.leaseNow()) * time.Microsecond, nil
}

func (t *tx) DropSession(_ context.Context, id flow.ID) error {
	return store.Failed(t.c.use(qDropSession).id(id).run(), "drop session %s", id.Text(flow.SessionPrefix))
}

func (t *tx) Expired(_ context.Context, n int) ([]store.Session, error) {
	all, err := rowsOf(t.c.use(qExpired).int(t.s.leaseNow()).int(int64(n)), sessions)
	return store.Result(all, err, "find expired sessions")
}

func (t *tx) ExpireEmbedded(context.Context) error {
	now := t.s.leaseNow()
	return store.Failed(t.c.use(qExpireEmbedded).int(now).int(now).run(), "expire embedded sessions")
}

func (t *tx) OwnedBy(_ context.Context, session, after flow.ID, n int) ([]*flow.Execution, error) {
	return t.chosen(t.c.use(qOwned).id(session).id(after).id(after).int(t.s.limit(n)), n)
}

func (t *tx) CancelRequested(_ context.Context, sessions []flow.ID) ([]*flow.Execution, error) {
	var all []*flow.Execution
	for _, id := range sessions {
		xs, err := t.chosen(t.c.use(qCancelRequested).id(id), math.MaxInt)
		if err != nil {
			return nil, err
		}
		all = append(all, xs...)
	}
	return all, nil
}
