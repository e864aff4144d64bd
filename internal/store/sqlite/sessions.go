package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

const sessionColumns = `id, name, embedded, queues, kinds, slots, started_at, expires_at`

var (
	qOpenSession = sql(`INSERT INTO sessions (` + sessionColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)

	qRenewSession = sql(`UPDATE sessions SET expires_at = ? WHERE id = ? AND expires_at > ?`)

	qSession = sql(`SELECT ` + sessionColumns + ` FROM sessions WHERE id = ?`)

	qDropSession = sql(`DELETE FROM sessions WHERE id = ?`)

	qExpired = sql(`SELECT ` + sessionColumns + ` FROM sessions WHERE expires_at <= ? ORDER BY expires_at, id LIMIT ?`)

	qLiveSessions = sql(`SELECT ` + sessionColumns + ` FROM sessions WHERE expires_at > ? ORDER BY id`)

	qExpireEmbedded = sql(`UPDATE sessions SET expires_at = ? WHERE embedded = 1 AND expires_at > ?`)

	qOwned = sql(`SELECT l.n FROM live l JOIN executions e ON e.n = l.n WHERE l.owner = ? AND (? IS NULL OR e.id > ?) ORDER BY e.id LIMIT ?`)

	qOrdered = sql(`SELECT n FROM live WHERE owner = ? AND ordered = 1 ORDER BY n`)
)

// OpenSession implements store.Sessions.
func (t *tx) OpenSession(_ context.Context, s store.Session) error {
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
	err = taken(t.c.use(qOpenSession).id(s.ID).text(s.Name).int(embedded).text(string(queues)).text(string(kinds)).
		int(int64(s.Slots)).int(row.Micros(s.StartedAt)).int(row.Micros(s.ExpiresAt)).run())
	if err != nil {
		return fmt.Errorf("open session %s: %w", s.ID.Text(flow.SessionPrefix), err)
	}
	return nil
}

// RenewSessions implements store.Sessions.
func (t *tx) RenewSessions(_ context.Context, ids []flow.ID, now, expires time.Time) ([]flow.ID, error) {
	var renewed []flow.ID
	for _, id := range ids {
		if err := t.c.use(qRenewSession).int(row.Micros(expires)).id(id).int(row.Micros(now)).run(); err != nil {
			return nil, fmt.Errorf("renew session %s: %w", id.Text(flow.SessionPrefix), err)
		}
		if t.c.changes() == 1 {
			renewed = append(renewed, id)
		}
	}
	return renewed, nil
}

// ExpectSession implements store.Sessions. Nothing is a round trip away here.
func (t *tx) ExpectSession(flow.ID) {}

// LockSession implements store.Sessions.
func (t *tx) LockSession(_ context.Context, id flow.ID) (store.Session, error) {
	all, err := t.c.use(qSession).id(id).sessions()
	if err != nil {
		return store.Session{}, fmt.Errorf("lock session %s: %w", id.Text(flow.SessionPrefix), err)
	}
	if len(all) == 0 {
		return store.Session{}, fmt.Errorf("session %s: %w", id.Text(flow.SessionPrefix), store.ErrNotFound)
	}
	return all[0], nil
}

// DropSession implements store.Sessions.
func (t *tx) DropSession(_ context.Context, id flow.ID) error {
	if err := t.c.use(qDropSession).id(id).run(); err != nil {
		return fmt.Errorf("drop session %s: %w", id.Text(flow.SessionPrefix), err)
	}
	return nil
}

// Expired implements store.Sessions.
func (t *tx) Expired(_ context.Context, now time.Time, n int) ([]store.Session, error) {
	all, err := t.c.use(qExpired).int(row.Micros(now)).int(int64(n)).sessions()
	if err != nil {
		return nil, fmt.Errorf("find expired sessions: %w", err)
	}
	return all, nil
}

// ExpireEmbedded implements store.Sessions.
func (t *tx) ExpireEmbedded(_ context.Context, now time.Time) error {
	if err := t.c.use(qExpireEmbedded).int(row.Micros(now)).int(row.Micros(now)).run(); err != nil {
		return fmt.Errorf("expire embedded sessions: %w", err)
	}
	return nil
}

// OwnedBy implements store.Sessions.
func (t *tx) OwnedBy(_ context.Context, session, after flow.ID, n int) ([]*flow.Execution, error) {
	return t.chosen(t.c.use(qOwned).id(session).id(after).id(after).int(int64(n)), store.WithoutPayload)
}

// Ordered implements store.Sessions.
func (t *tx) Ordered(_ context.Context, sessions []flow.ID) ([]*flow.Execution, error) {
	var all []*flow.Execution
	for _, id := range sessions {
		xs, err := t.chosen(t.c.use(qOrdered).id(id), store.WithoutPayload)
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
		v := store.Session{ID: s.getID(), Name: s.getText(), Embedded: s.getInt() == 1}
		bad = errors.Join(bad, json.Unmarshal(s.peekBlob(), &v.Queues), json.Unmarshal(s.peekBlob(), &v.Kinds))
		v.Slots = int(s.getInt())
		v.StartedAt, v.ExpiresAt = row.FromMicros(s.getInt()), row.FromMicros(s.getInt())
		all = append(all, v)
	}
	if err := s.done(); err != nil {
		return nil, err
	}
	return all, bad
}
