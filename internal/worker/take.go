package worker

import (
	"context"
	"errors"
	"sync"

	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// take claims work for the free slots and starts it, until ctx ends.
func (l *life) take(ctx context.Context) {
	var declines sync.WaitGroup
	defer declines.Wait()
	if len(l.resumed) > 0 {
		l.start(ctx, l.resumed, &declines)
	}
	select {
	case <-l.leased:
	case <-ctx.Done():
		return
	}
	takes := min(handoff.Calls(l.w.Handoff), l.w.Slots)
	var wg sync.WaitGroup
	defer context.AfterFunc(ctx, l.w.tell)()
	for i := range takes {
		wg.Go(func() { l.takeFor(ctx, i == 0, (l.w.Slots+takes-1)/takes, &declines) })
	}
	wg.Wait()
}

// takeFor is one of those who claim work, each for its share of the slots, one call after another.
func (l *life) takeFor(ctx context.Context, first bool, share int, declines *sync.WaitGroup) {
	var tries backoff
	for {
		n := l.w.ask(ctx, first, share, l.room)
		if n == 0 {
			return
		}
		work, err := l.w.Handoff.Take(ctx, l.session, n)
		if len(work) > 0 {
			l.start(ctx, work, declines)
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
			l.w.Log.Warn("take work: trying again", telemetry.Err, err)
			tries.wait(ctx, l.w.Random)
		}
	}
}

// room keeps the ends that wait for their acknowledgement within bounds when the engine is slow.
func (l *life) room() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held) < 4*l.w.Slots+64
}

// start runs assignments: the instant ones one after another in one slot, before it returns, the others each in its own. There are
// slots for all: no more was claimed than were free. Instant ones take microseconds, and the next call of Take asks for their slots,
// too: with 4 slots, in calls for 3 and 1 by turns, 4,000 no-ops took 1.4 times as long. Assignments of a kind that this worker has
// no handler for are given back.
func (l *life) start(ctx context.Context, work []handoff.Assignment, declines *sync.WaitGroup) {
	failpoint.Hit(failpoint.BeforeStart)
	var said, instant []*attempt
	var declined []flow.AttemptID
	for i := range work {
		if l.w.Handlers[work[i].Kind] == nil {
			l.w.Log.Warn("the engine handed over work that this worker has no handler for: giving it back",
				telemetry.Execution, work[i].Execution, telemetry.Attempt, work[i].Attempt, telemetry.Kind, work[i].Kind)
			declined = append(declined, flow.AttemptID{Execution: work[i].Execution, Attempt: work[i].Attempt})
			continue
		}
		a := newAttempt(l, &work[i])
		order, fresh := l.hold(a)
		if !fresh {
			continue
		}
		over := l.over()
		if over && a.resumed == nil {
			l.forget(a) // claimed while the session was ending: recovery has it
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
		} else {
			a.begin()
			l.w.occupy()
			go a.run()
		}
		said = append(said, a)
	}
	l.reports.add(said...)
	if len(declined) > 0 {
		declines.Go(func() { l.decline(ctx, declined) })
	}
	if len(instant) > 0 {
		l.w.occupy()
		for _, a := range instant {
			a.runInstant()
		}
		l.w.release()
		l.reports.add(instant...)
	}
}

// decline gives attempts back. Without an answer until ctx or the session ends they are recovered with the session, or as
// hand-offs that never arrived.
func (l *life) decline(ctx context.Context, attempts []flow.AttemptID) {
	var tries backoff
	for ctx.Err() == nil {
		err := l.w.Handoff.Decline(ctx, l.session, attempts)
		if err == nil || errors.Is(err, handoff.ErrSessionLost) {
			return
		}
		l.w.Log.Warn("give work back: trying again", telemetry.Err, err)
		tries.wait(ctx, l.w.Random)
	}
}
