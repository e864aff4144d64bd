package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// take claims work for the free slots and starts it, until ctx ends.
func (s *session) take(ctx context.Context) {
	if len(s.resumed) > 0 {
		s.start(s.resumed)
	}
	select {
	case <-s.leased:
	case <-ctx.Done():
		return
	}
	takes := min(handoff.Calls(s.w.Handoff), s.w.Slots)
	var wg sync.WaitGroup
	defer context.AfterFunc(ctx, s.w.wakeWaiting)()
	s.background.Go(func() { s.lookForMissed(ctx) })
	for i := range takes {
		wg.Go(func() { s.takeFor(ctx, i == 0, (s.w.Slots+takes-1)/takes) })
	}
	wg.Wait()
}

// takeFor claims work for its share of the slots, by repeated calls of Take.
func (s *session) takeFor(ctx context.Context, first bool, share int) {
	var tries backoff
	for {
		n := s.w.awaitSlots(ctx, first, share, s.room)
		if n == 0 {
			return
		}
		work, err := s.w.Handoff.Take(ctx, s.id, n)
		if len(work) > 0 {
			s.start(work)
		}
		s.w.takeReturned(n, len(work), share)
		switch {
		case len(work) > 0:
			tries = backoff{}
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, handoff.ErrSessionLost):
			s.end(err)
			return
		default:
			s.noteFailedTake()
			s.w.Log.Warn("take work: trying again", telemetry.Err, err)
			tries.wait(ctx, s.w.Random)
		}
	}
}

// room reports whether the worker may take more. When the engine is slow, ended attempts wait for their
// acknowledgement: with 32 slots no call of Take begins while 592 attempts (4·32+64+2·200) or more are held.
func (s *session) room() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held) < 4*s.w.Slots+64+2*handoff.MostInstant
}

// start runs assignments: the instant ones first, one after another in one slot, and then the others, each in its own slot. Every call
// claims for free slots only, so there is a slot for each, unless late work of an earlier call has taken some. Instant ones take
// microseconds and keep no slot: a call returns more of them than it asks for. Assignments without a handler or without a slot are given
// back.
func (s *session) start(work []handoff.Assignment) {
	failpoint.Hit(failpoint.BeforeStart)
	come := make([]*attempt, 0, len(work))
	var begun, instant, lasting []*attempt
	var declined []flow.AttemptID
	for i := range work {
		if s.w.Handlers[work[i].Kind] == nil {
			s.w.Log.Warn("the engine handed over work that this worker has no handler for: giving it back",
				telemetry.Execution, work[i].Execution, telemetry.Attempt, work[i].Attempt, telemetry.Kind, work[i].Kind)
			declined = append(declined, s.markFinished(&work[i]))
			continue
		}
		come = append(come, newAttempt(s, &work[i]))
	}
	come, orders := s.hold(come)
	over := s.over() // after hold: attempts held when the session ends are stopped
	for i, a := range come {
		order := orders[i]
		switch _, ok := a.handler.(task.Instant); {
		case over && a.resumed == nil:
			s.forget(a) // claimed while the session ended: the engine recovers it
			continue
		case a.resumed != nil:
			if over {
				a.stop(&task.Stop{Reason: "the session was lost"})
			}
			a.resume(order)
		case order != nil:
			a.endUnstarted(ordered(*order))
		case ok:
			instant = append(instant, a)
			continue
		default:
			lasting = append(lasting, a)
			continue
		}
		begun = append(begun, a)
	}
	declined = append(declined, s.runInstant(instant)...)
	for _, a := range lasting {
		if !s.w.occupyFree() {
			declined = append(declined, s.giveBack(a))
			continue
		}
		a.begin()
		go a.run()
		begun = append(begun, a)
	}
	s.reports.add(begun...)
	s.decline(declined)
}

// runInstant runs instant attempts one after another in one slot. It returns those that it gives back because there is no free slot.
func (s *session) runInstant(all []*attempt) (declined []flow.AttemptID) {
	if len(all) == 0 {
		return nil
	}
	if !s.w.occupyFree() {
		for _, a := range all {
			declined = append(declined, s.giveBack(a))
		}
		return declined
	}
	for _, a := range all {
		a.runInstant()
	}
	s.w.release()
	s.reports.add(all...)
	return nil
}

// turnAway gives back assignments that come during the shutdown, except those that the worker holds or has ended.
func (s *session) turnAway(work []handoff.Assignment) {
	var declined []flow.AttemptID
	s.mu.Lock()
	for i := range work {
		id := flow.AttemptID{Execution: work[i].Execution, Attempt: work[i].Attempt}
		if s.held[id] == nil && !s.finished.has(id) {
			s.finished.add(id, time.Now(), s.lease)
			declined = append(declined, id)
		}
	}
	s.mu.Unlock()
	if len(declined) > 0 {
		s.w.Log.Info("work came while the worker is shutting down: giving it back", "executions", len(declined))
		s.decline(declined)
	}
}

// markFinished records an assignment as finished, so that a second hand-off does not start it.
func (s *session) markFinished(w *handoff.Assignment) flow.AttemptID {
	id := flow.AttemptID{Execution: w.Execution, Attempt: w.Attempt}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished.add(id, time.Now(), s.lease)
	return id
}

// giveBack gives up an attempt without a free slot.
func (s *session) giveBack(a *attempt) flow.AttemptID {
	s.w.Log.Info("work came late and no slot is free: giving it back", telemetry.Execution, a.task.Execution, telemetry.Attempt, a.task.Attempt)
	a.mu.Lock()
	a.gone = true
	a.spans.end("given back: no slot is free")
	a.mu.Unlock()
	s.forget(a)
	return a.id()
}

// decline gives attempts back, in the background. If the engine does not answer before the session ends, it recovers them together with the
// session, or as lost hand-offs.
func (s *session) decline(attempts []flow.AttemptID) {
	if len(attempts) == 0 {
		return
	}
	s.background.Go(func() {
		var tries backoff
		for s.ctx.Err() == nil {
			err := s.w.Handoff.Decline(s.ctx, s.id, attempts)
			if err == nil || errors.Is(err, handoff.ErrSessionLost) {
				return
			}
			s.w.Log.Warn("give work back: trying again", telemetry.Err, err)
			tries.wait(s.ctx, s.w.Random)
		}
	})
}
