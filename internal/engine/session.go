package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// sessionCache is what this replica knows of worker sessions: the row of each, and a channel that signals orders.
type sessionCache struct {
	mu    sync.Mutex
	known map[flow.ID]*sessionState
	next  *renewals // sessions that wait to be renewed together; nil: none does
}

// sessionState is what this replica knows of one session.
type sessionState struct {
	session handoff.Session
	reach   flow.Reach
	// queues are the routing keys that the session's claimers read: the queues of the session, if it runs built-in kinds, and the
	// narrow routing keys that it serves among routingKeys.all[:matched]; later routing keys have not been checked yet. routingKeys.mu guards
	// both.
	queues  []string
	matched int
	since   time.Time     // when this replica learned of it, by this process's clock
	orders  chan struct{} // capacity 1: there may be an order
	renewed bool          // at this replica; the mutex of the cache guards it
	logging sync.RWMutex  // held for reading while logs of the session are stored
	ahead   atomic.Int32  // how many executions beyond its slots a look reads, because the last ones occupied none
}

// instant reports whether executions of a kind occupy no slot of the session's worker.
func (s *sessionState) instant(kind flow.Kind) bool { return slices.Contains(s.session.Instant, kind) }

// mostInstant is how many of them a call of Take for n slots may return beyond n.
func (s *sessionState) mostInstant(n int) int {
	if len(s.session.Instant) == 0 {
		return 0
	}
	return max(0, handoff.MostInstant-n)
}

func newSessionCache() *sessionCache { return &sessionCache{known: map[flow.ID]*sessionState{}} }

func (c *sessionCache) put(s handoff.Session) *sessionState {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[s.ID] == nil {
		reach := flow.ReachOf(s.Queues, s.Kinds)
		c.known[s.ID] = &sessionState{session: s, reach: reach, queues: slices.Clone(reach.Queues()), since: time.Now(), orders: make(chan struct{}, 1)}
	}
	return c.known[s.ID]
}

func (c *sessionCache) drop(id flow.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.known[id]; s != nil {
		close(s.orders)
		delete(c.known, id)
	}
}

func (c *sessionCache) get(id flow.ID) *sessionState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[id]
}

// sessionOf finds a session, even if another replica opened it.
func (e *Engine) sessionOf(ctx context.Context, id flow.ID) (*sessionState, error) {
	if s := e.sessions.get(id); s != nil {
		return s, nil
	}
	row, err := inBatch(ctx, e, nil, func(ctx context.Context, t *transaction) (store.Session, error) {
		row, _, err := t.tx.LockSession(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return store.Session{}, nil
		}
		return row, err
	})
	if err != nil {
		return nil, sessionError(err)
	}
	if row.ID.IsZero() {
		return nil, fmt.Errorf("%w: there is no session %s", handoff.ErrSessionLost, id.Text(flow.SessionPrefix))
	}
	return e.sessions.put(handoff.Session{ID: row.ID, Name: row.Name, Embedded: row.Embedded, Queues: row.Queues, Kinds: row.Kinds, Slots: row.Slots}), nil
}

// order signals a session that there may be an order.
func (c *sessionCache) order(id flow.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.known[id]; s != nil {
		loop.Wake(s.orders)
	}
}

// orderAll signals every session.
func (c *sessionCache) orderAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.known {
		loop.Wake(s.orders)
	}
}

// forgetDead drops sessions that have been known since before a moment and are not alive: other replicas have ended them.
func (c *sessionCache) forgetDead(alive map[flow.ID]bool, before time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, s := range c.known {
		if !alive[id] && s.since.Before(before) {
			close(s.orders)
			delete(c.known, id)
		}
	}
}

// Open implements handoff.Handoff.
func (e *Engine) Open(ctx context.Context, s handoff.Session) (flow.ID, error) {
	id, _, err := e.open(ctx, s, func(context.Context, *transaction, flow.ID) ([]flow.AttemptID, error) { return nil, nil })
	return id, err
}

// mostQueues is the number of known queues from which on sessions cannot add more. Names of queues are kept for ever, and lists and metrics
// read them all: 23,000 took 4 s.
const mostQueues = 5000

// declareQueues makes the queues of a session known. Known names are always served.
func (e *Engine) declareQueues(ctx context.Context, s handoff.Session) error {
	var added []string
	for _, q := range s.Queues {
		known, err := e.catalog.KnowsQueue(ctx, q)
		if err != nil {
			return sessionError(err)
		}
		if !known && !slices.Contains(added, q) {
			added = append(added, q)
		}
	}
	if len(added) == 0 {
		return nil
	}
	all, err := e.catalog.Queues(ctx)
	if err != nil {
		return sessionError(err)
	}
	if sum := len(all) + len(added); sum > mostQueues {
		return fmt.Errorf("%w: %w: open session of %.100q: queue %.100q is new, and with the %d new ones of this worker there would be %d queues, of which workers "+
			"add up to %d: serve a queue that exists, or apply a document that declares it (kind: queue)", handoff.ErrUnavailable, handoff.ErrBadCall, s.Name, added[0], len(added), sum, mostQueues)
	}
	if err := e.catalog.DeclareQueues(ctx, added); err != nil {
		return sessionError(err)
	}
	return nil
}

// open opens a session. In the same transaction, inherit gives it attempts of another session, and returns them.
func (e *Engine) open(ctx context.Context, s handoff.Session, inherit func(context.Context, *transaction, flow.ID) ([]flow.AttemptID, error)) (flow.ID, []flow.AttemptID, error) {
	s.ID = e.opts.NewID()
	for _, q := range s.Queues {
		if err := catalog.CheckQueue(q); err != nil {
			return flow.ID{}, nil, fmt.Errorf("%w: %w: open session of %.100q: %w", handoff.ErrUnavailable, handoff.ErrBadCall, s.Name, err)
		}
	}
	labels, kinds := flow.OfferedLabels(s.Kinds)
	if err := errors.Join(flow.CheckLabels(labels), flow.CheckKinds(kinds)); err != nil {
		return flow.ID{}, nil, fmt.Errorf("open session of %.100q: %w", s.Name, err)
	}
	if err := e.declareQueues(ctx, s); err != nil {
		return flow.ID{}, nil, err
	}
	if err := e.languages.LearnOffered(ctx, s.Kinds); errors.Is(err, catalog.ErrTooManyLanguages) {
		return flow.ID{}, nil, fmt.Errorf("%w: %w: open session of %.100q: %w", handoff.ErrUnavailable, handoff.ErrBadCall, s.Name, err)
	} else if err != nil {
		return flow.ID{}, nil, sessionError(err)
	}
	asking := ctx
	var decided atomic.Bool
	inherited, err := inBatch(ctx, e, nil, func(ctx context.Context, t *transaction) ([]flow.AttemptID, error) {
		if decided.Store(true); asking.Err() != nil {
			return nil, nil // Behind 10,000 abandoned calls, no session would be opened in time.
		}
		err := t.tx.OpenSession(ctx, store.Session{
			ID: s.ID, Name: s.Name, Embedded: s.Embedded, Queues: s.Queues, Kinds: s.Kinds, Slots: s.Slots,
		}, e.opts.Lease)
		if err != nil {
			return nil, err
		}
		return inherit(ctx, t, s.ID)
	})
	if asking.Err() != nil {
		if decided.Load() { // it may be open, and may hold inherited attempts that no worker runs
			go func() { _ = e.Close(context.WithoutCancel(ctx), s.ID) }() // otherwise its lease expires
		}
		return flow.ID{}, nil, asking.Err()
	}
	if err != nil {
		return flow.ID{}, nil, sessionError(err)
	}
	e.watch.wakeAll()
	if !e.sessions.put(s).reach.Plain() {
		if err := e.readRoutingKeys(ctx); err != nil {
			return flow.ID{}, nil, sessionError(err)
		}
	}
	e.opts.Log.Info("worker session opened", telemetry.Session, s.ID.Text(flow.SessionPrefix), telemetry.Worker, s.Name, telemetry.Queues, s.Queues, telemetry.Slots, s.Slots)
	return s.ID, inherited, nil
}

// Lease implements handoff.Leased.
func (e *Engine) Lease() time.Duration { return e.opts.Lease }

// Renew implements handoff.Handoff.
func (e *Engine) Renew(ctx context.Context, session flow.ID) (handoff.Renewal, error) {
	r := e.joinRenewals(session)
	select {
	case <-r.done:
	case <-ctx.Done():
		return handoff.Renewal{}, ctx.Err()
	}
	if r.err != nil {
		return handoff.Renewal{}, sessionError(r.err)
	}
	orders, alive := r.alive[session]
	if !alive {
		e.sessions.drop(session)
		return handoff.Renewal{}, handoff.ErrSessionLost
	}
	if s := e.sessions.get(session); s != nil {
		if err := e.refreshRoutingKeys(ctx, s); err != nil {
			e.opts.Log.Debug("routing keys are looked up with the next renewal", telemetry.Err, err)
		}
	}
	return handoff.Renewal{Orders: orders, Lease: e.opts.Lease}, nil
}

// Orders implements handoff.Handoff.
func (e *Engine) Orders(ctx context.Context, session flow.ID) ([]handoff.Order, error) {
	for {
		s, err := e.sessionOf(ctx, session)
		if err != nil {
			return nil, err
		}
		select {
		case _, open := <-s.orders:
			if !open {
				return nil, handoff.ErrSessionLost
			}
		case <-e.orderPoll():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		orders, err := inBatchFromSession(ctx, e, func(ctx context.Context, t *transaction) (map[flow.ID][]handoff.Order, error) {
			return t.orders(ctx, []flow.ID{session})
		})
		if err != nil {
			return nil, sessionError(err)
		}
		if len(orders[session]) > 0 {
			return orders[session], nil
		}
	}
}

func (t *transaction) orders(ctx context.Context, sessions []flow.ID) (map[flow.ID][]handoff.Order, error) {
	xs, err := t.tx.CancelRequested(ctx, sessions)
	if err != nil {
		return nil, fmt.Errorf("read orders: %w", err)
	}
	orders := make(map[flow.ID][]handoff.Order, len(sessions))
	for _, x := range xs {
		c := x.State.Cancel
		orders[x.Owner] = append(orders[x.Owner], handoff.Order{
			Execution: x.ID, Attempt: x.Attempt, As: c.As, Code: c.Code, Reason: c.Reason, AtOnce: c.Kill,
		})
	}
	return orders, nil
}

// Decline implements handoff.Handoff.
func (e *Engine) Decline(ctx context.Context, session flow.ID, attempts []flow.AttemptID) error {
	s, err := e.sessionOf(ctx, session)
	if err != nil {
		return err
	}
	ids := make([]flow.ID, len(attempts))
	for i, a := range attempts {
		ids[i] = a.Execution
	}
	return sessionError(e.do(ctx, ids, func(_ context.Context, t *transaction) error {
		for _, a := range attempts {
			d := t.Draft(a.Execution)
			if d == nil || d.Place != flow.Held || d.Owner != session || d.Attempt != a.Attempt || d.Stage != flow.Provisioning {
				continue
			}
			if err := d.Decline("worker "+s.session.Name+flow.ReasonDeclined, t.now); err != nil {
				return err
			}
			t.Changed(d)
		}
		return nil
	}))
}

// Close implements handoff.Handoff.
func (e *Engine) Close(ctx context.Context, session flow.ID) error {
	e.sessions.drop(session)
	_, err := e.recoverSession(ctx, session, func(d *flow.Draft, now time.Time) error {
		return d.HandBack(flow.ReasonShutDown, now)
	})
	return sessionError(err)
}

// Log implements handoff.Handoff. It drops chunks of attempts that the session does not hold: their worker has learned, or will, that these
// are over.
func (e *Engine) Log(ctx context.Context, session flow.ID, chunks []flow.LogChunk) error {
	s, err := e.sessionOf(ctx, session)
	if err != nil {
		return err
	}
	s.logging.RLock()
	defer s.logging.RUnlock()
	if !s.session.Embedded {
		if chunks, err = e.ownLogs(ctx, session, chunks); err != nil {
			return sessionError(err)
		}
	}
	if err := e.opts.Store.AppendLogs(ctx, chunks); err != nil {
		if fault.OfBatch(err) {
			return fmt.Errorf("%w: %w: store logs: %w", handoff.ErrUnavailable, handoff.ErrBadCall, err)
		}
		return sessionError(fmt.Errorf("store logs: %w", err))
	}
	e.watch.logged(chunks)
	return nil
}

// ownLogs returns the chunks of attempts that the session holds.
func (e *Engine) ownLogs(ctx context.Context, session flow.ID, chunks []flow.LogChunk) ([]flow.LogChunk, error) {
	ids := make([]flow.ID, len(chunks))
	for i := range chunks {
		ids[i] = chunks[i].Execution
	}
	own, err := inBatch(ctx, e, ids, func(_ context.Context, t *transaction) (own []flow.LogChunk, err error) {
		for _, c := range chunks {
			if d := t.Draft(c.Execution); d != nil && d.Place == flow.Held && d.Owner == session && d.Attempt == c.Attempt {
				own = append(own, c)
			}
		}
		return own, nil
	})
	if err != nil {
		return nil, err
	}
	if n := len(chunks) - len(own); n > 0 {
		e.counters.fenced.Add(int64(n))
		e.opts.Log.Warn("dropped log chunks of attempts that the session does not hold", "session", session.Text(flow.SessionPrefix), "chunks", n)
	}
	return own, nil
}

func sessionError(err error) error {
	if err == nil || errors.Is(err, handoff.ErrSessionLost) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", handoff.ErrUnavailable, err)
}

// tellSessions signals the sessions for which a committed transaction has orders.
func (e *Engine) tellSessions(t *transaction) {
	for _, x := range t.effects.written {
		if x.State.Cancel != nil && !x.Owner.IsZero() {
			e.sessions.order(x.Owner)
		}
	}
}
