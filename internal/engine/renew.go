package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// Renewals are gathered for gatherRenewals, or for 1/gatherPart of a lease if that is shorter, and written together: otherwise a thousand
// idle workers would cost a hundred transactions a second.
const (
	gatherRenewals = 250 * time.Millisecond
	gatherPart     = 100
)

// renewals are sessions that are renewed in one transaction. alive and err are written before done is closed.
type renewals struct {
	sessions []flow.ID
	done     chan struct{}
	alive    map[flow.ID][]handoff.Order // the renewed sessions, with their outstanding orders
	err      error
}

// joinRenewals adds a session to the gathered ones. Its first renewal at this replica is made at once, without waiting for others.
func (e *Engine) joinRenewals(session flow.ID) *renewals {
	all := e.sessions
	all.mu.Lock()
	defer all.mu.Unlock()
	if s := all.known[session]; s != nil && !s.renewed {
		s.renewed = true
		r := &renewals{sessions: []flow.ID{session}, done: make(chan struct{})}
		go e.renew(r)
		return r
	}
	r := all.next
	if r == nil {
		r = &renewals{done: make(chan struct{})}
		all.next = r
		time.AfterFunc(min(gatherRenewals, e.opts.Lease/gatherPart), func() {
			all.mu.Lock()
			all.next = nil
			all.mu.Unlock()
			e.renew(r)
		})
	}
	r.sessions = append(r.sessions, session)
	return r
}

type renewed struct {
	alive  map[flow.ID][]handoff.Order
	lapsed bool // the lease of some session had expired
	at     clockReading
}

// renew renews the gathered sessions. It does not end with any of its callers. If leases have expired, the database's clock may have
// jumped: the recovery notices a jump only within seconds, and a session whose renewal comes before that must not be lost.
func (e *Engine) renew(r *renewals) {
	defer close(r.done)
	ctx := context.Background()
	for tries := 1; ; tries++ {
		jumps := e.clocks.noticed()
		var n renewed
		n, r.err = inBatchFromSession(ctx, e, func(ctx context.Context, t *transaction) (n renewed, err error) {
			if n.alive, err = t.renew(ctx, r.sessions); err != nil {
				return n, err
			}
			n.lapsed = slices.ContainsFunc(r.sessions, func(id flow.ID) bool { _, alive := n.alive[id]; return !alive })
			if n.lapsed {
				n.at, err = t.readClock(ctx)
			}
			return n, err
		})
		r.alive = n.alive
		switch {
		case r.err != nil || !n.lapsed || tries > 1:
			return
		case e.clocks.noticed() != jumps: // meanwhile; the leases were restarted
		case !e.clocks.jumped(n.at):
			return
		default:
			if r.err = e.restartLeases(ctx, n.at); r.err != nil {
				return
			}
		}
	}
}

// renew renews sessions, and returns those whose leases were valid, with their outstanding orders.
func (t *transaction) renew(ctx context.Context, sessions []flow.ID) (map[flow.ID][]handoff.Order, error) {
	renewed, err := t.tx.RenewSessions(ctx, sessions, t.e.opts.Lease)
	if err != nil {
		return nil, fmt.Errorf("renew: %w", err)
	}
	alive := make(map[flow.ID][]handoff.Order, len(renewed))
	if len(renewed) == 0 {
		return alive, nil
	}
	orders, err := t.orders(ctx, renewed)
	if err != nil {
		return nil, err
	}
	for _, id := range renewed {
		alive[id] = orders[id]
	}
	return alive, nil
}
