package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/direct"
)

// link is the hand-off of one process: every call is a request to some engine and an answer back, and both can get lost. With a solo plan
// it is the direct hand-off: calls are function calls, and the scheduler chooses only their order.
type link struct {
	p *process

	mu   sync.Mutex
	open map[string]bool // calls under way
}

// Calls implements handoff.Concurrent.
func (l *link) Calls() int { return l.p.h.w.plan.Calls }

// Strays implements handoff.Straying.
func (l *link) Strays() <-chan handoff.Stray {
	if l.p.post == nil {
		return nil
	}
	return l.p.post.Strays()
}

// within bounds how long an engine holds a call. With a broker, the broker's server does that instead.
func (l *link) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if l.p.mail != nil {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}

// enter names a call by its method and the lowest number that no open call of that method has. leave ends the call.
func (l *link) enter(method string) (name string, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := 1; ; n++ {
		if name = fmt.Sprintf("%s %d", method, n); !l.open[name] {
			break
		}
	}
	l.open[name] = true
	return name, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, name)
	}
}

const (
	// pollEvery is the pause after which an engine looks for other engines' changes. It is longer than in production, so that fewer steps do
	// nothing, and no multiple of any other pause, so that two pauses never end in the same instant.
	pollEvery = 4700 * time.Millisecond
	// holdTake and holdOrders bound how long an engine holds a waiting call. An engine that held two order calls until its next poll would
	// answer both at once, in an order that the scheduler does not control.
	holdTake   = 12 * time.Second
	holdOrders = 3 * time.Second
)

var errLost = fmt.Errorf("%w: the network lost it", handoff.ErrUnavailable)

// call makes one call. do runs when the request arrives.
func (l *link) call(ctx context.Context, method string, do func(ctx context.Context, h handoff.Handoff) error, v func(verdict)) error {
	w := l.p.h.w
	ctx, cancel := both(ctx, l.p.alive)
	defer cancel()
	if l.p.mail != nil {
		err := do(ctx, l.p.mail)
		if err != nil && ctx.Err() != nil {
			return l.ended(ctx)
		}
		return err
	}
	method, leave := l.enter(method)
	defer leave()
	sent := w.park(ctx, &gate{key: l.p.name + "/" + method + " request", kind: atRequest, at: l.p.h})
	if sent.do == gone {
		return l.ended(ctx)
	}
	if sent.do == lose || sent.to == nil {
		return errLost
	}
	v(sent)
	to := sent.to.reach(ctx)
	if to == nil {
		return errLost
	}
	defer to.done()
	err := l.arrive(ctx, to, method, do)
	if to.died() {
		err = errLost // the engine is dead, so its answer does not count
	}
	back := w.park(ctx, &gate{key: l.p.name + "/" + method + " answer", kind: atAnswer, at: l.p.h})
	if back.do == gone {
		return l.ended(ctx)
	}
	if back.do == lose {
		return errLost
	}
	if back.do == again {
		v(back)
	}
	return err
}

// arrive lets the engine work on a call. In some calls the engine does not notice that the caller has left.
func (l *link) arrive(ctx context.Context, to *visit, method string, do func(context.Context, handoff.Handoff) error) error {
	w := l.p.h.w
	h := w.facing(to.Engine)
	if l.p.web != nil {
		h = l.p.web
	}
	if w.plan.Solo || w.noise("unnoticed", l.p.name, method, time.Since(w.began)) > 0.3 {
		return do(towards(to.ctx, to), h)
	}
	over := make(chan error, 1)
	w.spawn(func() { over <- do(towards(to.alive, to), h) })
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-to.alive.Done():
		return errLost
	}
}

func nothing(verdict) {}

// ended returns the error of a call that ended because its caller left or died.
func (l *link) ended(ctx context.Context) error {
	if l.p.dead() {
		return handoff.ErrSessionLost
	}
	return ctx.Err()
}

// facing returns the engine as callers see it.
func (w *world) facing(e *engine.Engine) handoff.Handoff {
	var h handoff.Handoff = e
	if w.plan.Solo {
		h = direct.New(e)
	}
	if w.bug != nil && w.bug.server != nil {
		h = w.bug.server(w, h)
	}
	return h
}

func (l *link) Open(ctx context.Context, s handoff.Session) (flow.ID, error) {
	var id flow.ID // a caller that has left ignores it: the code below reads it only without an error
	err := l.call(ctx, "open", func(ctx context.Context, h handoff.Handoff) (err error) {
		id, err = h.Open(ctx, s)
		if err == nil {
			l.p.h.w.aside("%s has session %s", l.p.name, name(id))
		}
		return err
	}, nothing)
	if err != nil {
		return flow.ID{}, err
	}
	return id, nil
}

func (l *link) Resume(ctx context.Context, s handoff.Session, before flow.ID, keep []flow.AttemptID) (flow.ID, []handoff.Assignment, error) {
	var id flow.ID
	var work []handoff.Assignment
	err := l.call(ctx, "resume", func(ctx context.Context, h handoff.Handoff) (err error) {
		id, work, err = h.Resume(ctx, s, before, keep)
		if err == nil {
			l.p.h.w.aside("%s has session %s after %s", l.p.name, name(id), name(before))
		}
		return err
	}, nothing)
	if err != nil {
		return flow.ID{}, nil, err
	}
	return id, work, nil
}

func (l *link) Take(ctx context.Context, session flow.ID, n int) ([]handoff.Assignment, error) {
	for {
		var work, more []handoff.Assignment
		err := l.call(ctx, "take", func(ctx context.Context, h handoff.Handoff) (err error) {
			held, cancel := l.within(ctx, holdTake)
			defer cancel()
			work, err = h.Take(held, session, n)
			if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
				return nil
			}
			if err == nil && l.p.mail == nil {
				l.p.h.w.shadow.handedOver(session, work)
			}
			return err
		}, func(v verdict) {
			if v.do == again {
				more = l.repeated(work)
			}
		})
		if err != nil {
			return nil, err
		}
		if len(work) > 0 {
			return append(work, more...), nil
		}
	}
}

func (l *link) Missed(ctx context.Context, session flow.ID, have []flow.AttemptID) ([]handoff.Assignment, error) {
	var work []handoff.Assignment
	err := l.call(ctx, "missed", func(ctx context.Context, h handoff.Handoff) (err error) {
		work, err = h.Missed(ctx, session, have)
		if err == nil && l.p.mail == nil {
			l.p.h.w.shadow.handedOver(session, work)
		}
		return err
	}, nothing)
	if err != nil {
		return nil, err
	}
	return work, nil
}

// repeated returns the part of an answer that arrives a second time with it.
func (l *link) repeated(work []handoff.Assignment) []handoff.Assignment {
	return slices.Clone(work[:min(len(work), 2)])
}

func (l *link) Report(ctx context.Context, session flow.ID, reports []flow.Report) ([]flow.Receipt, error) {
	var receipts []flow.Receipt
	w := l.p.h.w
	sent := make([]flow.Report, 0, len(reports))
	for _, r := range reports {
		w.ledger.say(l.p, r)
		sent = append(sent, l.p.spoil(r))
	}
	chopped := false
	err := l.call(ctx, "report", func(ctx context.Context, h handoff.Handoff) (err error) {
		if chopped {
			return errLost
		}
		receipts, err = h.Report(ctx, session, sent)
		return err
	}, func(v verdict) {
		switch v.do {
		case double:
			l.deliverLater(session, sent)
		case chop:
			chopped = true
			l.deliverPieces(session, sent)
		}
	})
	if err != nil {
		return nil, err
	}
	w.ledger.acknowledged(l.p, reports, receipts)
	return receipts, nil
}

// deliverLater lets a copy of the reports arrive at some engine at some later time.
func (l *link) deliverLater(session flow.ID, reports []flow.Report) {
	w := l.p.h.w
	key := fmt.Sprintf("%s/report copy %d", l.p.name, w.serial.Add(1))
	w.spawn(func() {
		v := w.park(w.ctx, &gate{key: key, kind: atRequest, late: true})
		if v.do == gone || v.do == lose || v.to == nil {
			return
		}
		to := v.to.reach(w.ctx)
		if to == nil {
			return
		}
		defer to.done()
		// The answer is dropped, because the process that sent the report is gone.
		_, _ = w.facing(to.Engine).Report(to.ctx, session, reports)
	})
}

// deliverPieces delivers every event by itself.
func (l *link) deliverPieces(session flow.ID, reports []flow.Report) {
	for _, r := range reports {
		for _, e := range r.Events {
			l.deliverLater(session, []flow.Report{{Execution: r.Execution, Attempt: r.Attempt, Events: []flow.Event{e}}})
		}
	}
}

// spoil changes a report before it leaves: the host's clock is wrong, and some attempts lose progress events for good.
func (p *process) spoil(r flow.Report) flow.Report {
	w := p.h.w
	r.Events = slices.Clone(r.Events)
	for i := range r.Events {
		r.Events[i].At = r.Events[i].At.Add(p.h.skew)
	}
	if w.noise("hole", r.Execution, r.Attempt) < w.plan.Hole {
		r.Events = slices.DeleteFunc(r.Events, func(e flow.Event) bool {
			return e.Type == flow.EvProgress && w.noise("which", r.Execution, e.Seq) < 0.5
		})
	}
	return r
}

func (l *link) Log(ctx context.Context, session flow.ID, chunks []flow.LogChunk) error {
	return l.call(ctx, "log", func(ctx context.Context, h handoff.Handoff) error { return h.Log(ctx, session, chunks) }, nothing)
}

// Input is not simulated: no client of the load uses it.
func (l *link) Input(context.Context, flow.ID, handoff.InputQuery) (handoff.Input, error) {
	return handoff.Input{}, handoff.ErrNotHeld
}

func (l *link) Renew(ctx context.Context, session flow.ID) (handoff.Renewal, error) {
	var r handoff.Renewal
	err := l.call(ctx, "renew", func(ctx context.Context, h handoff.Handoff) (err error) {
		r, err = h.Renew(ctx, session)
		return err
	}, nothing)
	if err != nil {
		return handoff.Renewal{}, err
	}
	l.p.h.w.ledger.ordered(r.Orders)
	return r, nil
}

func (l *link) Orders(ctx context.Context, session flow.ID) ([]handoff.Order, error) {
	for {
		var orders []handoff.Order
		err := l.call(ctx, "orders", func(ctx context.Context, h handoff.Handoff) (err error) {
			held, cancel := l.within(ctx, holdOrders)
			defer cancel()
			orders, err = h.Orders(held, session)
			if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
				return nil
			}
			return err
		}, nothing)
		if err != nil {
			return nil, err
		}
		if len(orders) > 0 {
			l.p.h.w.ledger.ordered(orders)
			return orders, nil
		}
	}
}

func (l *link) Decline(ctx context.Context, session flow.ID, attempts []flow.AttemptID) error {
	l.p.h.w.ledger.declining(attempts)
	err := l.call(ctx, "decline", func(ctx context.Context, h handoff.Handoff) error { return h.Decline(ctx, session, attempts) }, nothing)
	if err == nil {
		l.p.h.w.shadow.declined(session, attempts)
	}
	return err
}

func (l *link) Close(ctx context.Context, session flow.ID) error {
	l.p.h.w.ledger.closing(session)
	return l.call(ctx, "close", func(ctx context.Context, h handoff.Handoff) error { return h.Close(ctx, session) }, nothing)
}
