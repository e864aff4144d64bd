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

// life is one session: from Open until it is lost or closed.
type life struct {
	w       *Worker
	session flow.ID
	resumed []handoff.Assignment // attempts taken over from the process before

	// ctx ends with the session. Its cause says why: the session was lost, expired, was closed or given up.
	ctx context.Context
	end context.CancelCauseFunc

	mu     sync.Mutex
	held   map[flow.AttemptID]*attempt // attempts whose last event is not acknowledged yet
	past   remembered                  // attempts that are no longer held
	orders []handoff.Order             // all outstanding orders, as of the engine's last message
	empty  chan struct{}               // closed when held becomes empty, if a goroutine waits for that

	reports reporter
	logs    shipper

	background sync.WaitGroup // of goroutines that end with the session

	doubts chan struct{} // capacity 1: a call of Take has failed since the last look for missed work

	lease  time.Duration // as the last renewal said; only renew changes it, under mu
	leased chan struct{} // closed by the first renewal: no work is taken before the lease is known
	expiry *time.Timer   // ends the session when it has not been renewed for too long
	until  time.Time     // when expiry fires; guarded by mu
}

var (
	errExpired = errors.New("the session could not be renewed in time")
	errDrained = errors.New("the worker is shutting down")
	errLetGo   = errors.New("the worker has given up its attempts")
)

// newLife begins a session. began is when it was asked for, so its lease cannot have begun earlier.
func newLife(w *Worker, session flow.ID, began time.Time, resumed []handoff.Assignment) *life {
	l := &life{w: w, session: session, resumed: resumed, held: map[flow.AttemptID]*attempt{}, lease: handoff.Lease, leased: make(chan struct{}), doubts: make(chan struct{}, 1)}
	l.ctx, l.end = context.WithCancelCause(w.lives)
	l.reports.init(l)
	l.logs.init(l)
	l.until = began.Add(handoff.StopAfter)
	l.expiry = time.AfterFunc(time.Until(l.until), func() { l.end(errExpired) })
	return l
}

// run serves until the session is lost, which is an error, or until ctx has ended and all attempts are given back.
func (l *life) run(ctx context.Context) error {
	defer l.expiry.Stop()
	l.background.Go(l.renew)
	l.background.Go(l.listen)
	for range handoff.Calls(l.w.Handoff) {
		l.background.Go(l.reports.run)
	}
	l.background.Go(l.logs.run)
	taking, stop := context.WithCancel(ctx)
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		l.take(taking)
	}()
	context.AfterFunc(l.ctx, func() {
		stop()
		l.abandonAll("the session was lost")
	})
	<-taking.Done()
	<-taken // executions that the last claim brought are run as well
	if l.ctx.Err() == nil {
		l.drain()
	}
	l.background.Wait()
	stop()
	for _, a := range l.all() {
		a.mu.Lock()
		a.spans.end("the session ended before this was acknowledged")
		a.mu.Unlock()
	}
	switch cause := context.Cause(l.ctx); {
	case errors.Is(cause, errExpired):
		go l.reports.reportAfterExpiry(ctx)
		return cause
	case !errors.Is(cause, errDrained):
		return cause
	}
	closing, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	if err := l.w.Handoff.Close(closing, l.session); err != nil && !errors.Is(err, handoff.ErrSessionLost) {
		l.w.Log.Warn("close session: its attempts are recovered when the lease runs out", telemetry.Err, err)
		return nil
	}
	l.w.forget()
	return nil
}

// drain waits for running attempts, at most for the grace, then stops them, and ends the session.
func (l *life) drain() {
	if !l.idle(l.w.Grace) {
		l.abandonAll(errDrained.Error())
		l.idle(flushWithin)
	}
	l.end(errDrained)
}

const (
	// closeWithin is how long closing a session may take. If it fails, the engine ends the session when its lease runs out.
	closeWithin = 5 * time.Second
	// flushWithin bounds how long the ends of stopped attempts may take to be reported.
	flushWithin = 10 * time.Second
)

// idle waits until no attempt is held any more, at most for d or until the session ends, and reports whether none is.
func (l *life) idle(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-l.emptied():
		return true
	case <-t.C:
	case <-l.ctx.Done():
	}
	return false
}

// emptied returns a channel that is closed when no attempt is held.
func (l *life) emptied() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.held) == 0 {
		now := make(chan struct{})
		close(now)
		return now
	}
	if l.empty == nil {
		l.empty = make(chan struct{})
	}
	return l.empty
}

// abandonAll stops every attempt without reporting how it was stopped: the engine recovers the attempts. One whose handler completes all the same is
// reported if the session still lives, as it does in drain.
func (l *life) abandonAll(reason string) {
	for _, a := range l.all() {
		a.stop(&task.Stop{Reason: reason})
	}
}

func (l *life) all() []*attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.held))
}

// hold adds an attempt to those that the session holds, and returns the order to end it, if there is one already. It returns
// false for an attempt that is held, or was held within the last lease, because a hand-off may come twice.
func (l *life) hold(a *attempt) (*handoff.Order, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := a.id()
	if l.held[key] != nil || l.past.has(key) {
		return nil, false
	}
	l.held[key] = a
	for i := range l.orders {
		if o := &l.orders[i]; o.Execution == key.Execution && o.Attempt == key.Attempt {
			return o, true
		}
	}
	return nil, true
}

// forget removes an attempt from those that the session holds.
func (l *life) forget(a *attempt) {
	l.mu.Lock()
	delete(l.held, a.id())
	l.past.add(a.id(), time.Now(), l.lease)
	if len(l.held) == 0 && l.empty != nil {
		close(l.empty)
		l.empty = nil
	}
	l.mu.Unlock()
	l.w.tell()
}

// renew renews the lease again and again.
func (l *life) renew() {
	for first := true; l.ctx.Err() == nil; {
		asked := time.Now()
		ctx, cancel := context.WithTimeout(l.ctx, l.stopAfter()/4) // if a call hangs, there is time for another one
		r, err := l.w.Handoff.Renew(ctx, l.session)
		cancel()
		switch {
		case err == nil:
			if r.Lease > 0 {
				l.mu.Lock()
				l.lease = r.Lease
				l.mu.Unlock()
			}
			// Stop reports false if the timer has fired: an expired session stays expired.
			if l.expiry.Stop() {
				l.mu.Lock()
				l.until = asked.Add(l.stopAfter())
				l.mu.Unlock()
				l.expiry.Reset(l.stopAfter() - time.Since(asked))
			}
			l.w.remember(l.session, asked.Add(l.lease))
			l.obey(r.Orders)
			if first {
				first = false
				close(l.leased)
			}
			pause(l.ctx, l.renewPause())
		case errors.Is(err, handoff.ErrSessionLost):
			l.end(err)
		case l.ctx.Err() != nil: // the session was closed while it was being renewed
		default:
			l.w.Log.Warn("renew session: trying again", telemetry.Err, err)
			again := min(time.Second, l.lease/10)
			pause(l.ctx, again/2+portion(again/2, l.w.Random))
		}
	}
}

func (l *life) renewPause() time.Duration {
	every := l.lease / 3
	return every - portion(every/5, l.w.Random)
}

// stopAfter is how long the session goes on without a renewal.
func (l *life) stopAfter() time.Duration { return 2 * l.lease / 3 }

// over reports whether the session has ended. It compares the time as well, because the timer may fire late after this process
// was suspended.
func (l *life) over() bool {
	l.mu.Lock()
	late := time.Now().After(l.until)
	l.mu.Unlock()
	if late {
		l.end(errExpired)
	}
	return l.ctx.Err() != nil
}

// listen waits for orders.
func (l *life) listen() {
	var tries backoff
	for l.ctx.Err() == nil {
		orders, err := l.w.Handoff.Orders(l.ctx, l.session)
		switch {
		case err == nil:
			tries = backoff{}
			l.obey(orders)
		case errors.Is(err, handoff.ErrSessionLost):
			l.end(err)
		default:
			tries.wait(l.ctx, l.w.Random)
		}
	}
}

// obey carries out orders. The list is complete, so an order for an attempt whose hand-off is still on its way is carried out
// when the attempt arrives.
func (l *life) obey(orders []handoff.Order) {
	l.mu.Lock()
	l.orders = orders
	var told []*attempt
	var stops []*task.Stop
	for _, o := range orders {
		if a := l.held[flow.AttemptID{Execution: o.Execution, Attempt: o.Attempt}]; a != nil {
			told, stops = append(told, a), append(stops, ordered(o))
		}
	}
	l.mu.Unlock()
	for i, a := range told {
		a.stop(stops[i])
	}
}

func ordered(o handoff.Order) *task.Stop {
	return &task.Stop{As: o.As, Code: o.Code, Reason: o.Reason}
}
