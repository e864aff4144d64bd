package worker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// session is one session of the worker at the engine: from Open until it is lost or closed.
type session struct {
	w       *Worker
	id      flow.ID
	resumed []handoff.Assignment // attempts taken over from the process before

	// ctx ends with the session. Its cause is the reason: the session was lost, expired, was closed or given up.
	ctx context.Context
	end context.CancelCauseFunc

	mu       sync.Mutex
	held     map[flow.AttemptID]*attempt // attempts whose last event is not acknowledged yet
	finished remembered                  // attempts that it has held, declined or lost, and holds no more
	orders   []handoff.Order             // all outstanding orders, as of the engine's last message
	empty    chan struct{}               // closed when held becomes empty, if a goroutine waits for that

	reports reporter
	logs    logUploader

	background sync.WaitGroup // of goroutines that end with the session

	failedTake chan struct{} // capacity 1: a call of Take has failed since the last look for missed work

	lease  time.Duration // from the last renewal; only the function renewed writes it, under mu
	leased chan struct{} // closed by the first renewal: no work is claimed before the lease is known
	expiry *time.Timer   // ends the session when it has not been renewed for too long
	until  time.Time     // when expiry fires; guarded by mu
}

var (
	errExpired   = errors.New("the session could not be renewed in time")
	errDrained   = errors.New("the worker is shutting down")
	errAbandoned = errors.New("the worker has given up its attempts")
)

// newSession begins a session. began is when it was asked for, so its lease cannot have begun earlier.
func newSession(w *Worker, id flow.ID, began time.Time, resumed []handoff.Assignment) *session {
	s := &session{w: w, id: id, resumed: resumed, held: map[flow.AttemptID]*attempt{}, lease: handoff.Lease, leased: make(chan struct{}), failedTake: make(chan struct{}, 1)}
	s.ctx, s.end = context.WithCancelCause(w.sessions)
	s.reports.init(s)
	s.logs.init(s)
	s.until = began.Add(handoff.StopAfter)
	s.expiry = time.AfterFunc(time.Until(s.until), func() { s.end(errExpired) })
	return s
}

// run serves until the session is lost, which is an error, or until ctx has ended and all attempts are given back.
func (s *session) run(ctx context.Context) error {
	defer s.expiry.Stop()
	s.background.Go(s.renew)
	s.background.Go(s.listen)
	for range handoff.Calls(s.w.Handoff) {
		s.background.Go(func() { s.reports.run(s.ctx, false) })
	}
	s.background.Go(s.logs.run)
	taking, stop := context.WithCancel(ctx)
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		s.take(taking)
	}()
	context.AfterFunc(s.ctx, func() {
		stop()
		s.abandonAll("the session was lost")
	})
	<-taking.Done()
	<-taken // executions of the last claim are run as well
	if s.ctx.Err() == nil {
		s.drain()
	}
	s.background.Wait()
	stop()
	for _, a := range s.all() {
		a.mu.Lock()
		a.spans.end("the session ended before this was acknowledged")
		a.mu.Unlock()
	}
	switch cause := context.Cause(s.ctx); {
	case errors.Is(cause, errExpired):
		go s.reports.run(ctx, true)
		return cause
	case !errors.Is(cause, errDrained):
		return cause
	}
	closing, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	if err := s.w.Handoff.Close(closing, s.id); err != nil && !errors.Is(err, handoff.ErrSessionLost) {
		s.w.Log.Warn("close session: its attempts are recovered when the lease runs out", telemetry.Err, err)
		return nil
	}
	s.w.forget()
	return nil
}

// drain waits for running attempts, at most for the grace, then stops them, and ends the session.
func (s *session) drain() {
	if !s.idle(s.w.Grace) {
		s.abandonAll(errDrained.Error())
		s.idle(flushWithin)
	}
	s.end(errDrained)
}

const (
	// closeWithin is how long closing a session may take. If it fails, the engine ends the session when its lease expires.
	closeWithin = 5 * time.Second
	// flushWithin bounds the time for reporting the ends of stopped attempts.
	flushWithin = 10 * time.Second
)

// idle waits until no attempt is held any more, at most for d or until the session ends, and reports whether none is.
func (s *session) idle(d time.Duration) bool {
	select {
	case <-s.emptied():
		return true
	case <-time.After(d):
	case <-s.ctx.Done():
	}
	return false
}

// emptied returns a channel that is closed when no attempt is held.
func (s *session) emptied() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held) == 0 {
		now := make(chan struct{})
		close(now)
		return now
	}
	if s.empty == nil {
		s.empty = make(chan struct{})
	}
	return s.empty
}

// abandonAll stops every attempt without reporting that: the engine recovers the attempts. If a handler completes
// anyway, that is reported if the session is still alive, as in drain.
func (s *session) abandonAll(reason string) {
	for _, a := range s.all() {
		a.stop(&task.Stop{Reason: reason})
	}
}

func (s *session) all() []*attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.held))
}

// hold adds attempts to those that the session holds, and returns the added ones with the orders to end them that have come already, nil
// for most. It skips attempts that are held, or were held within the last lease, because a hand-off may arrive twice.
func (s *session) hold(all []*attempt) (fresh []*attempt, orders []*handoff.Order) {
	fresh, orders = all[:0], make([]*handoff.Order, 0, len(all))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range all {
		key := a.id()
		if s.held[key] != nil || s.finished.has(key) {
			continue
		}
		s.held[key] = a
		var order *handoff.Order
		for i := range s.orders {
			if o := &s.orders[i]; o.Execution == key.Execution && o.Attempt == key.Attempt {
				order = o
			}
		}
		fresh, orders = append(fresh, a), append(orders, order)
	}
	return fresh, orders
}

// forget removes attempts that the session does not hold any more.
func (s *session) forget(all ...*attempt) {
	if len(all) == 0 {
		return
	}
	now := time.Now()
	s.mu.Lock()
	for _, a := range all {
		delete(s.held, a.id())
		s.finished.add(a.id(), now, s.lease)
	}
	if len(s.held) == 0 && s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
	s.mu.Unlock()
	s.w.wakeWaiting()
}

// renew renews the lease periodically.
func (s *session) renew() {
	for first := true; s.ctx.Err() == nil; {
		asked := time.Now()
		ctx, cancel := context.WithTimeout(s.ctx, s.stopAfter()/4) // if a call hangs, there is time for another one
		r, err := s.w.Handoff.Renew(ctx, s.id)
		cancel()
		switch {
		case err == nil:
			s.renewed(asked, &r)
			if first {
				first = false
				close(s.leased)
			}
			pause(s.ctx, s.renewPause())
		case errors.Is(err, handoff.ErrSessionLost):
			s.end(err)
		case s.ctx.Err() != nil: // the session was closed while it was being renewed
		default:
			s.w.Log.Warn("renew session: trying again", telemetry.Err, err)
			again := min(time.Second, s.lease/10)
			pause(s.ctx, again/2+portion(again/2, s.w.Random))
		}
	}
}

// renewed applies a renewal that was requested at a moment: the lease runs from then on.
func (s *session) renewed(asked time.Time, r *handoff.Renewal) {
	if r.Lease > 0 {
		s.mu.Lock()
		s.lease = r.Lease
		s.mu.Unlock()
	}
	// Stop reports false if the timer has fired: an expired session stays expired.
	if s.expiry.Stop() {
		s.mu.Lock()
		s.until = asked.Add(s.stopAfter())
		s.mu.Unlock()
		s.expiry.Reset(s.stopAfter() - time.Since(asked))
	}
	s.w.remember(s.id, asked.Add(s.lease))
	s.applyOrders(r.Orders)
}

func (s *session) renewPause() time.Duration {
	every := s.lease / 3
	return every - portion(every/5, s.w.Random)
}

// stopAfter is how long the session continues without a renewal.
func (s *session) stopAfter() time.Duration { return 2 * s.lease / 3 }

// over reports whether the session has ended. It checks the time as well, because the timer may fire late after this process was suspended.
func (s *session) over() bool {
	s.mu.Lock()
	late := time.Now().After(s.until)
	s.mu.Unlock()
	if late {
		s.end(errExpired)
	}
	return s.ctx.Err() != nil
}

func (s *session) listen() {
	var tries backoff
	for s.ctx.Err() == nil {
		orders, err := s.w.Handoff.Orders(s.ctx, s.id)
		switch {
		case err == nil:
			tries = backoff{}
			s.applyOrders(orders)
		case errors.Is(err, handoff.ErrSessionLost):
			s.end(err)
		default:
			tries.wait(s.ctx, s.w.Random)
		}
	}
}

// applyOrders obeys orders. The list is complete, so an order for an attempt that has not arrived yet is obeyed when the attempt arrives.
func (s *session) applyOrders(orders []handoff.Order) {
	s.mu.Lock()
	s.orders = orders
	var told []*attempt
	var stops []*task.Stop
	for _, o := range orders {
		if a := s.held[flow.AttemptID{Execution: o.Execution, Attempt: o.Attempt}]; a != nil {
			told, stops = append(told, a), append(stops, ordered(o))
		}
	}
	s.mu.Unlock()
	for i, a := range told {
		a.stop(stops[i])
	}
}

func ordered(o handoff.Order) *task.Stop {
	return &task.Stop{As: o.As, Code: o.Code, Reason: o.Reason, AtOnce: o.AtOnce}
}
