package postgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/pgpool"
	"github.com/pawl-run/pawl/internal/store"
)

// news collects the changes of a transaction that other processes must learn about.
type news struct {
	queues     map[string]bool
	sessions   map[flow.ID]bool
	executions []flow.ID
	pauses     bool
	all        bool // more executions than fit into one notification
}

const (
	// mostNamed is how many executions one notification names. With the other fields they stay below the server's limit of 8,000 bytes.
	mostNamed = 120
	// noteLimit is the largest size of a notification.
	noteLimit = 7800
	// noteEvery is the shortest time between two notifications of one process. A commit that notifies takes a lock for which every other
	// notifying commit waits; at this rate such waits are rare.
	noteEvery = 5 * time.Millisecond
	// reconnectEvery is the pause before a lost connection is opened again.
	reconnectEvery = time.Second
)

func (n *news) empty() bool { return !n.all && !n.pauses && len(n.executions) == 0 }

// add adds the changes of a draft.
func (n *news) add(x *flow.Draft) {
	if x.Place == flow.Ready && !n.queues[x.Queue] {
		if n.queues == nil {
			n.queues = make(map[string]bool)
		}
		n.queues[x.Queue] = true
	}
	if x.State.Cancel != nil && !x.Owner.IsZero() {
		if n.sessions == nil {
			n.sessions = make(map[flow.ID]bool)
		}
		n.sessions[x.Owner] = true
	}
	if len(n.executions) < mostNamed {
		n.executions = append(n.executions, x.ID)
	} else {
		n.all = true
	}
}

// merge adds the news of a later transaction.
func (n *news) merge(m news) {
	for q := range m.queues {
		if n.queues == nil {
			n.queues = make(map[string]bool)
		}
		n.queues[q] = true
	}
	for id := range m.sessions {
		if n.sessions == nil {
			n.sessions = make(map[flow.ID]bool)
		}
		n.sessions[id] = true
	}
	for _, id := range m.executions {
		if !slices.Contains(n.executions, id) {
			n.executions = append(n.executions, id)
		}
	}
	n.all, n.pauses = n.all || m.all, n.pauses || m.pauses
	if len(n.executions) > mostNamed {
		n.executions, n.all = n.executions[:mostNamed], true
	}
}

// note is the JSON of a notification.
type note struct {
	From       string    `json:"f"`
	Queues     []string  `json:"q,omitempty"`
	Sessions   []flow.ID `json:"s,omitempty"`
	Executions []byte    `json:"x,omitempty"` // their ids, concatenated: there may be a hundred of them 200 times a second
	Pauses     bool      `json:"p,omitempty"`
	All        bool      `json:"a,omitempty"`
}

func (n *note) notification() store.Notification {
	heard := store.Notification{Queues: n.Queues, Sessions: n.Sessions, Pauses: n.Pauses, All: n.All}
	for id := range slices.Chunk(n.Executions, len(flow.ID{})) {
		heard.Executions = append(heard.Executions, flow.ID(id))
	}
	return heard
}

// from returns the beginning of a process's notifications, in which From is the first field of note.
func from(process string) string { return `{"f":"` + process + `"` }

func (n *news) encode(process string) (string, error) {
	v := note{From: process, Pauses: n.pauses, All: n.all}
	for q := range n.queues {
		v.Queues = append(v.Queues, q)
	}
	for id := range n.sessions {
		v.Sessions = append(v.Sessions, id)
	}
	if !n.all {
		for _, id := range n.executions {
			v.Executions = append(v.Executions, id[:]...)
		}
	}
	b, err := json.Marshal(v)
	if err == nil && len(b) > noteLimit {
		b, err = json.Marshal(note{From: process, Pauses: n.pauses, All: true})
	}
	return string(b), err
}

// notifier sends notifications to other processes after commits, and receives theirs. They are hints: a change whose notification is lost
// is found by the regular reads of the tables.
type notifier struct {
	cfg     *pgx.ConnConfig // nil behind a pooler, where connections receive no notifications
	limits  pgpool.Limits
	channel string
	self    string

	mu      sync.Mutex
	pending news
	wake    chan struct{} // capacity 1: news is pending
	end     context.CancelFunc
	ctx     context.Context
	done    sync.WaitGroup
}

// startNotifier starts the notifier on the connections of cfg. Without cfg it sends and receives nothing.
func (s *Store) startNotifier(cfg *pgxpool.Config, limits pgpool.Limits) {
	b := &notifier{wake: make(chan struct{}, 1), limits: limits.Filled(), self: rand.Text()}
	s.notifier = b
	b.ctx, b.end = context.WithCancel(context.Background())
	if cfg == nil {
		return
	}
	b.cfg = cfg.ConnConfig.Copy()
	b.cfg.RuntimeParams["synchronous_commit"] = "off" // this connection writes only notifications, which need not wait for the disk
	h := fnv.New64a()
	h.Write([]byte(s.name))
	b.channel = fmt.Sprintf("pawl_%016x", h.Sum64())
	b.done.Go(b.send)
}

// sameDatabase returns an error unless the connections of the notifier reach the store's database: notifications stay within it. A lock
// that a transaction of the store holds must be visible on them. Names and system identifiers are not enough: a standby and a restored copy
// have the same as the original.
func (s *Store) sameDatabase(ctx context.Context) error {
	return s.writers.Use(ctx, func(ctx context.Context, held *pgpool.Conn) error {
		tx, err := held.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }()
		var lock [8]byte
		_, _ = rand.Read(lock[:]) // never fails
		key := int64(binary.BigEndian.Uint64(lock[:]))
		var ours, theirs string
		var standby, free bool
		if err := tx.QueryRow(ctx, `SELECT current_database() FROM pg_advisory_xact_lock($1)`, key).Scan(&ours); err != nil {
			return err
		}
		c, err := pgx.ConnectConfig(ctx, s.notifier.cfg)
		defer s.notifier.close(c)
		if err == nil {
			err = c.QueryRow(ctx, `SELECT current_database(), pg_is_in_recovery(), pg_try_advisory_xact_lock($1)`, key).Scan(&theirs, &standby, &free)
		}
		switch {
		case err != nil:
			return unfitf("store_notify: %w", explain(err))
		case theirs != ours:
			return unfitf("store_notify reaches the database %q, and the store is %q: notifications stay within one database", theirs, ours)
		case standby:
			return unfitf("store_notify reaches a standby: name the primary")
		case free:
			return unfitf("store_notify reaches a database %q of another server than the store's: notifications stay within one server", theirs)
		}
		return nil
	})
}

// Heard returns an error unless a notification from one connection reaches another one that listens, as between processes. A pooler in
// transaction mode accepts LISTEN like any statement but passes no notifications on.
func (s *Store) Heard(ctx context.Context) error {
	b := s.notifier
	if b.cfg == nil {
		return errNoNotifications
	}
	c, err := b.listen(ctx)
	if err != nil {
		return explain(err)
	}
	defer b.close(c)
	other, err := pgx.ConnectConfig(ctx, b.cfg)
	if err != nil {
		return explain(err)
	}
	defer b.close(other)
	text, err := new(news).encode(b.self)
	if err != nil {
		return err
	}
	if err := b.exec(ctx, other, `SELECT pg_notify($1, $2)`, b.channel, text); err != nil {
		return explain(err)
	}
	bounded, cancel := context.WithTimeout(ctx, b.limits.Ping)
	defer cancel()
	for {
		heard, err := c.WaitForNotification(bounded)
		switch {
		case err != nil && bounded.Err() != nil && ctx.Err() == nil:
			return fmt.Errorf("a notification was not heard within %s: a pooler in transaction mode passes none on", b.limits.Ping)
		case err != nil:
			return explain(err)
		case heard.Payload == text:
			return nil
		}
	}
}

// announce queues the changes of a committed transaction for notification. It never waits.
func (b *notifier) announce(n news) {
	if b.cfg == nil || n.empty() {
		return
	}
	b.mu.Lock()
	b.pending.merge(n)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// send notifies at once, and again while there is more, at most every noteEvery. After a broken connection, which may have lost
// notifications, the next one says that anything may have changed.
func (b *notifier) send() {
	var c *pgx.Conn
	lost := false
	defer func() { b.close(c) }()
	for {
		select {
		case <-b.wake:
		case <-b.ctx.Done():
			return
		}
		b.mu.Lock()
		n := b.pending
		b.pending = news{}
		b.mu.Unlock()
		pause := noteEvery
		n.all, n.pauses = n.all || lost, n.pauses || lost
		text, err := n.encode(b.self)
		if err == nil && c == nil {
			c, err = pgx.ConnectConfig(b.ctx, b.cfg)
		}
		if err == nil {
			err = b.exec(b.ctx, c, `SELECT pg_notify($1, $2)`, b.channel, text)
		}
		if lost = err != nil; lost {
			b.close(c)
			c, pause = nil, reconnectEvery
			b.announce(n)
		}
		if !b.sleep(b.ctx, pause) {
			return
		}
	}
}

// exec runs a short statement with a time limit.
func (b *notifier) exec(ctx context.Context, c *pgx.Conn, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, b.limits.Ping)
	defer cancel()
	_, err := c.Exec(ctx, sql, args...)
	return err
}

// close closes a connection, if there is one. It does not wait long for a server that does not answer.
func (b *notifier) close(c *pgx.Conn) {
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.limits.Ping)
	defer cancel()
	_ = c.Close(ctx) // a lost notification is not an error
}

func (b *notifier) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-b.ctx.Done():
	}
	return false
}

func (b *notifier) stop() {
	b.end()
	b.done.Wait()
}

var errNoNotifications = errors.New("a pooler in transaction mode passes no notifications on")

func (s *Store) Notifications(ctx context.Context) (<-chan store.Notification, error) {
	b := s.notifier
	if b.cfg == nil {
		return nil, errNoNotifications
	}
	c, err := b.listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("listen for notifications: %w", explain(err))
	}
	ctx, stop := context.WithCancel(ctx)
	out := make(chan store.Notification, 1)
	b.done.Go(func() {
		defer stop()
		defer close(out)
		b.receive(ctx, c, out)
	})
	context.AfterFunc(b.ctx, stop)
	return out, nil
}

func (b *notifier) listen(ctx context.Context) (*pgx.Conn, error) {
	c, err := pgx.ConnectConfig(ctx, b.cfg)
	if err != nil {
		return nil, err
	}
	if err := b.exec(ctx, c, `LISTEN `+b.channel); err != nil {
		b.close(c)
		return nil, err
	}
	return c, nil
}

// receive passes on the notifications of other processes until ctx ends. A notification that the receiver has not read yet is merged with
// the next one. A broken connection is replaced.
func (b *notifier) receive(ctx context.Context, c *pgx.Conn, out chan store.Notification) {
	defer func() { b.close(c) }()
	for ctx.Err() == nil {
		if c == nil {
			var err error
			if c, err = b.listen(ctx); err != nil {
				c = nil
				if !b.sleep(ctx, reconnectEvery) {
					return
				}
				continue
			}
			offer(out, store.Notification{Pauses: true, All: true}) // notifications may have been missed while there was no connection
		}
		text, err := b.next(ctx, c)
		if err != nil {
			b.close(c)
			c = nil
			continue
		}
		if strings.HasPrefix(text, from(b.self)) {
			continue // most notifications are this process's own
		}
		var n note
		if json.Unmarshal([]byte(text), &n) != nil || len(n.Executions)%len(flow.ID{}) != 0 {
			n = note{Pauses: true, All: true} // sent by another version of this program
		}
		offer(out, n.notification())
	}
}

// next waits for a notification. It pings a connection that has been quiet for a while, because a dead connection looks the same as an idle
// one.
func (b *notifier) next(ctx context.Context, c *pgx.Conn) (string, error) {
	for {
		quiet, cancel := context.WithTimeout(ctx, b.limits.Quiet)
		heard, err := c.WaitForNotification(quiet)
		over := quiet.Err() != nil
		cancel()
		switch {
		case err == nil:
			return heard.Payload, nil
		case ctx.Err() != nil || !over || c.IsClosed():
			return "", err
		}
		if err := b.exec(ctx, c, `SELECT 1`); err != nil {
			return "", err
		}
	}
}

// offer puts a notification into a channel with capacity 1, merged with one that is still in it.
func offer(out chan store.Notification, n store.Notification) {
	select {
	case old := <-out:
		n.Queues = append(old.Queues, n.Queues...)
		n.Sessions = append(old.Sessions, n.Sessions...)
		n.Executions = append(old.Executions, n.Executions...)
		n.All, n.Pauses = n.All || old.All, n.Pauses || old.Pauses
		if len(n.Executions) > 10*mostNamed {
			n.Executions, n.All = nil, true
		}
	default:
	}
	out <- n // this goroutine is the only one that fills it
}
