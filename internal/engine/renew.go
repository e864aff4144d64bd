package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// Renewals wait for each other so long, to go together: a thousand workers that have nothing to do would cost a hundred
// transactions a second. It is next to nothing of a lease.
const (
	beatEvery     = 250 * time.Millisecond
	beatsPerLease = 100
)

// renewals are sessions that are renewed at once. What follows done is written before that is closed.
type renewals struct {
	sessions []flow.ID
	done     chan struct{}
	alive    map[flow.ID][]handoff.Order // those that were renewed, with what is outstanding for them
	err      error
}

// joinRenewals lets a session be renewed with others. Its first renewal at this replica waits for nobody.
func (e *Engine) joinRenewals(session flow.ID) *renewals {
	d := e.sessions
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.known[session]; s != nil && !s.renewed {
		s.renewed = true
		r := &renewals{sessions: []flow.ID{session}, done: make(chan struct{})}
		go e.renew(r)
		return r
	}
	r := d.next
	if r == nil {
		r = &renewals{done: make(chan struct{})}
		d.next = r
		time.AfterFunc(min(beatEvery, e.opts.Lease/beatsPerLease), func() {
			d.mu.Lock()
			d.next = nil
			d.mu.Unlock()
			e.renew(r)
		})
	}
	r.sessions = append(r.sessions, session)
	return r
}

// renew renews what has been gathered. Whoever joined may have stopped waiting, the others have not.
func (e *Engine) renew(r *renewals) {
	defer close(r.done)
	r.err = e.askAside(context.Background(), func(ctx context.Context, t *turn) error {
		renewed, err := t.tx.RenewSessions(ctx, r.sessions, t.now, t.now.Add(e.opts.Lease))
		if err != nil {
			return fmt.Errorf("renew: %w", err)
		}
		r.alive = make(map[flow.ID][]handoff.Order, len(renewed))
		if len(renewed) == 0 {
			return nil
		}
		orders, err := t.orders(ctx, renewed)
		if err != nil {
			return err
		}
		for _, id := range renewed {
			r.alive[id] = orders[id]
		}
		return nil
	})
}
