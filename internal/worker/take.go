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
func (l *life) take(ctx context.Context) {
	if len(l.resumed) > 0 {
		l.start(l.resumed)
	}
	select {
	case <-l.leased:
	case <-ctx.Done():
		return
	}
	takes := min(handoff.Calls(l.w.Handoff), l.w.Slots)
	var wg sync.WaitGroup
	defer context.AfterFunc(ctx, l.w.tell)()
	l.background.Go(func() { l.lookForMissed(ctx) })
	for i := range takes {
		wg.Go(func() { l.takeFor(ctx, i == 0, (l.w.Slots+takes-1)/takes) })
	}
	wg.Wait()
}

// takeFor claims work for its share of the slots, with one call of Take after another.
func (l *life) takeFor(ctx context.Context, first bool, share int) {
	var tries backoff
	for {
		n := l.w.ask(ctx, first, share, l.room)
		if n == 0 {
			return
		}
		work, err := l.w.Handoff.Take(ctx, l.session, n)
		if len(work) > 0 {
			l.start(work)
		}
		l.w.answered(n, len(work), share)
		switch {
		case len(work) > 0:
			tries = backoff{}
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, handoff.ErrSessionLost):
			l.end(err)
			return
		default:
			l.doubt()
			l.w.Log.Warn("take work: trying again", telemetry.Err, err)
			tries.wait(ctx, l.w.Random)
		}
	}
}

// room reports whether the worker may take more. When the engine is slow, ended attempts wait for their acknowledgement: with 32 slots no call
// of Take begins while 192 attempts (4·32+64) or more are held.
func (l *life) room() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held) < 4*l.w.Slots+64
}

// start runs assignments: the instant ones one after another in one slot, before it returns, the others each in a slot of its
// own. Every call claims for free slots only, so there is a slot for each, unless work that an earlier call had claimed came
// late and has taken some. Instant ones take microseconds and keep no slot, so the next call of Take asks for theirs too;
// without that, with 4 slots and calls for 3 and 1 by turns, 4,000 no-ops took 1.4 times as long. Assignments without a handler
// or without a slot are given back.
func (l *life) start(work []handoff.Assignment) {
	failpoint.Hit(failpoint.BeforeStart)
	var said, instant []*attempt
	var declined []flow.AttemptID
	for i := range work {
		if l.w.Handlers[work[i].Kind] == nil {
			l.w.Log.Warn("the engine handed over work that this worker has no handler for: giving it back",
				telemetry.Execution, work[i].Execution, telemetry.Attempt, work[i].Attempt, telemetry.Kind, work[i].Kind)
			declined = append(declined, l.refuse(&work[i]))
			continue
		}
		a := newAttempt(l, &work[i])
		order, fresh := l.hold(a)
		if !fresh {
			continue
		}
		over := l.over()
		if over && a.resumed == nil {
			l.forget(a) // claimed while the session ended: the engine recovers it
			continue
		}
		if a.resumed != nil {
			if over {
				a.stop(&task.Stop{Reason: "the session was lost"})
			}
			a.resume(order)
		} else if order != nil {
			a.endUnstarted(ordered(*order))
		} else if _, is := a.handler.(task.Instant); is {
			instant = append(instant, a)
			continue
		} else if !l.w.occupyFree() {
			declined = append(declined, l.giveBack(a))
			continue
		} else {
			a.begin()
			go a.run()
		}
		said = append(said, a)
	}
	l.reports.add(said...)
	switch {
	case len(instant) == 0:
	case l.w.occupyFree():
		for _, a := range instant {
			a.runInstant()
		}
		l.w.release()
		l.reports.add(instant...)
	default:
		for _, a := range instant {
			declined = append(declined, l.giveBack(a))
		}
	}
	if len(declined) > 0 {
		l.background.Go(func() { l.decline(declined) })
	}
}

// turnAway gives back assignments that come while the worker shuts down, except those that it holds or has ended.
func (l *life) turnAway(work []handoff.Assignment) {
	var declined []flow.AttemptID
	l.mu.Lock()
	for i := range work {
		id := flow.AttemptID{Execution: work[i].Execution, Attempt: work[i].Attempt}
		if l.held[id] == nil && !l.past.has(id) {
			l.past.add(id, time.Now(), l.lease)
			declined = append(declined, id)
		}
	}
	l.mu.Unlock()
	if len(declined) > 0 {
		l.w.Log.Info("work came while the worker is shutting down: giving it back", "executions", len(declined))
		l.background.Go(func() { l.decline(declined) })
	}
}

// refuse remembers an assignment as finished, so that a second hand-off does not start it.
func (l *life) refuse(w *handoff.Assignment) flow.AttemptID {
	id := flow.AttemptID{Execution: w.Execution, Attempt: w.Attempt}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.past.add(id, time.Now(), l.lease)
	return id
}

// giveBack gives up an attempt for which no slot is free.
func (l *life) giveBack(a *attempt) flow.AttemptID {
	l.w.Log.Info("work came late and no slot is free: giving it back", telemetry.Execution, a.task.Execution, telemetry.Attempt, a.task.Attempt)
	a.mu.Lock()
	a.gone = true
	a.spans.end("given back: no slot is free")
	a.mu.Unlock()
	l.forget(a)
	return a.id()
}

// decline gives attempts back. If the engine does not answer before the session ends, it recovers them together with the
// session, or as hand-offs that never arrived.
func (l *life) decline(attempts []flow.AttemptID) {
	var tries backoff
	for l.ctx.Err() == nil {
		err := l.w.Handoff.Decline(l.ctx, l.session, attempts)
		if err == nil || errors.Is(err, handoff.ErrSessionLost) {
			return
		}
		l.w.Log.Warn("give work back: trying again", telemetry.Err, err)
		tries.wait(l.ctx, l.w.Random)
	}
}
