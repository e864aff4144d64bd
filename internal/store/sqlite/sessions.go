package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

const sessionColumns = `id, name, embedded, queues, kinds, slots, started_at, expires_at`

var (
	qOpenSession = sql(`INSERT INTO sessions (` + sessionColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)

	qRenewSession = sql(`UPDATE sessions SET expires_at = ? WHERE id = ? AND expires_at > ?`)

	qRestartLeases = sql(`UPDATE sessions SET expires_at = ? WHERE expires_at > 0`)

	qSession = sql(`SELECT ` + sessionColumns + `, ` + lastPause + ` FROM sessions WHERE id = ?`)

	qDropSession = sql(`DELETE FROM sessions WHERE id = ?`)

	qExpired = sql(`SELECT ` + sessionColumns + ` FROM sessions WHERE expires_at <= ? ORDER BY expires_at, id LIMIT ?`)

	qLiveSessions = sql(`SELECT ` + sessionColumns + ` FROM sessions WHERE expires_at > ? ORDER BY id`)

	qExpireEmbedded = sql(`UPDATE sessions SET expires_at = ? WHERE embedded = 1 AND expires_at > ?`)

	qOwned = sql(`SELECT l.n FROM live l JOIN executions e ON e.n = l.n WHERE l.owner = ? AND (? IS NULL OR e.id > ?) ORDER BY e.id LIMIT ?`)

	qOrdered = sql(`SELECT n FROM live WHERE owner = ? AND ordered = 1 ORDER BY n`)
)

// OpenSession implements store.Sessions.
func (t *tx) OpenSession(ctx context.Context, s store.Session, lease time.Duration) error {
	queues, err := json.Marshal(s.Queues)
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	kinds, err := json.Marshal(s.Kinds)
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	embedded := int64(0)
	if s.Embedded {
		embedded = 1
	}
	started, err := t.Now(ctx)
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	err = taken(t.c.use(qOpenSession).id(s.ID).text(s.Name).int(embedded).text(string(queues)).text(string(kinds)).
		int(int64(s.Slots)).int(row.Micros(started)).int(t.s.leaseNow() + lease.Microseconds()).run())
	if err != nil {
		return fmt.Errorf("open session %s: %w", s.ID.Text(flow.SessionPrefix), err)
	}
	return nil
}

// RenewSessions implements store.Sessions.
func (t *tx) RenewSessions(_ context.Context, ids []flow.ID, lease time.Duration) ([]flow.ID, error) {
	now := t.s.leaseNow()
	renewed, err := t.setExpiry(ids, now+lease.Microseconds(), now)
	if err != nil {
		return nil, fmt.Errorf("renew sessions: %w", err)
	}
	return renewed, nil
}

// EndLeases implements store.Sessions. No clock goes back so far that the lease of a session which ends at 0 would run.
func (t *tx) EndLeases(_ context.Context, ids []flow.ID) ([]flow.ID, error) {
	running, err := t.setExpiry(ids, 0, t.s.leaseNow())
	if err == nil {
		_, err = t.setExpiry(ids, 0, 0) // those that had run out
	}
	if err != nil {
		return nil, fmt.Errorf("end leases: %w", err)
	}
	return running, nil
}

// setExpiry moves the ends of leases that lie after a moment, and returns the sessions that have these leases.
func (t *tx) setExpiry(ids []flow.ID, expires, after int64) ([]flow.ID, error) {
	var moved []flow.ID
	for _, id := range ids {
		if err := t.c.use(qRenewSession).int(expires).id(id).int(after).run(); err != nil {
			return nil, fmt.Errorf("session %s: %w", id.Text(flow.SessionPrefix), err)
		}
		if t.c.changes() == 1 {
			moved = append(moved, id)
		}
	}
	return moved, nil
}

// RestartLeases implements store.Store.
func (s *Store) RestartLeases(ctx context.Context, lease time.Duration) error {
	return s.Update(ctx, func(context.Context, store.Tx) error {
		if err := s.w.use(qRestartLeases).int(s.leaseNow() + lease.Microseconds()).run(); err != nil {
			return fmt.Errorf("restart leases: %w", err)
		}
		return nil
	})
}

// LockSession implements store.Sessions.
func (t *tx) LockSession(_ context.Context, id flow.ID) (store.Session, bool, error) {
	s := t.c.use(qSession).id(id)
	var found store.Session
	var bad error
	there := s.next()
	if there {
		found, bad = s.session()
		found.Pauses = s.getInt()
	}
	if err := cmp.Or(s.done(), bad); err != nil {
		return store.Session{}, false, fmt.Errorf("lock session %s: %w", id.Text(flow.SessionPrefix), err)
	}
	if !there {
		return store.Session{}, false, fmt.Errorf("session %s: %w", id.Text(flow.SessionPrefix), store.ErrNotFound)
	}
	return found, row.Micros(found.ExpiresAt) > t.s.leaseNow(), nil
}

// DropSession implements store.Sessions.
func (t *tx) DropSession(_ context.Context, id flow.ID) error {
	if err := t.c.use(qDropSession).id(id).run(); err != nil {
		return fmt.Errorf("drop session %s: %w", id.Text(flow.SessionPrefix), err)
	}
	return nil
}

// Expired implements store.Sessions.
func (t *tx) Expired(_ context.Context, n int) ([]store.Session, error) {
	all, err := t.c.use(qExpired).int(t.s.leaseNow()).int(int64(n)).sessions()
	if err != nil {
		return nil, fmt.Errorf("find expired sessions: %w", err)
	}
	return all, nil
}

// ExpireEmbedded implements store.Sessions.
func (t *tx) ExpireEmbedded(context.Context) error {
	now := t.s.leaseNow()
	if err := t.c.use(qExpireEmbedded).int(now).int(now).run(); err != nil {
		return fmt.Errorf("expire embedded sessions: %w", err)
	}
	return nil
}

// OwnedBy implements store.Sessions.
func (t *tx) OwnedBy(_ context.Context, session, after flow.ID, n int) ([]*flow.Execution, error) {
	return t.chosen(t.c.use(qOwned).id(session).id(after).id(after).int(t.s.limit(n)), n, store.WithoutPayload)
}

// Ordered implements store.Sessions.
func (t *tx) Ordered(_ context.Context, sessions []flow.ID) ([]*flow.Execution, error) {
	var all []*flow.Execution
	for _, id := range sessions {
		xs, err := t.chosen(t.c.use(qOrdered).id(id), math.MaxInt, store.WithoutPayload)
		if err != nil {
			return nil, err
		}
		all = append(all, xs...)
	}
	return all, nil
}

// sessions reads rows of sessionColumns.
func (s *stmt) sessions() ([]store.Session, error) {
	var all []store.Session
	var bad error
	for s.next() {
		v, err := s.session()
		bad = errors.Join(bad, err)
		all = append(all, v)
	}
	if err := s.done(); err != nil {
		return nil, err
	}
	return all, bad
}

// session reads sessionColumns of a row.
func (s *stmt) session() (store.Session, error) {
	v := store.Session{ID: s.getID(), Name: s.getText(), Embedded: s.getInt() == 1}
	err := errors.Join(json.Unmarshal(s.peekBlob(), &v.Queues), json.Unmarshal(s.peekBlob(), &v.Kinds))
	v.Slots = int(s.getInt())
	v.StartedAt, v.ExpiresAt = row.FromMicros(s.getInt()), row.FromMicros(s.getInt())
	return v, err
}
