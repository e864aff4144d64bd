package worker

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// After a call of Take has failed, what it may have claimed is asked for 1.25 s later, and then four times after twice the pause before,
// over 39 s in all, or over 1.3 leases where that is shorter: the engine may not have noticed that the call's connection is broken, and claim for it for as long
// as it holds a call.
const (
	missedFirst = 1250 * time.Millisecond
	missedLooks = 5
)

// doubt notes that a call of Take has failed.
func (l *life) doubt() {
	select {
	case l.doubts <- struct{}{}:
	default: // noted already
	}
}

// lookForMissed asks for the work that failed calls of Take have claimed, and begins the work that the hand-off brings without a call. Once ctx
// has ended it gives that work back, until the session ends: a server may not know that the calls under way were given up, and claims for them.
func (l *life) lookForMissed(ctx context.Context) {
	var strays <-chan handoff.Stray
	if s, ok := l.w.Handoff.(handoff.Straying); ok {
		strays = s.Strays()
	}
	var due <-chan time.Time // nil: nothing is in doubt
	left := 0
	look := func() {
		if due = nil; left > 0 {
			due = time.After(min(missedFirst, l.currentLease()/24) << (missedLooks - left))
		}
	}
	begin := l.start
	draining := ctx.Done()
	for l.ctx.Err() == nil {
		select {
		case <-due:
			if l.missed(begin) {
				left--
			}
			look()
		case <-l.doubts:
			left = missedLooks
			look()
		case s := <-strays:
			if s.Session == l.session {
				begin(s.Work)
			}
		case <-draining:
			draining, begin = nil, l.turnAway
			l.doubt()
		case <-l.ctx.Done():
		}
	}
}

// missed begins the work whose answer was lost, and reports whether the engine answered.
func (l *life) missed(begin func([]handoff.Assignment)) bool {
	work, err := l.w.Handoff.Missed(l.ctx, l.session, l.holding())
	switch {
	case errors.Is(err, handoff.ErrSessionLost):
		l.end(err)
	case err != nil:
		l.w.Log.Debug("look for missed work: trying again", telemetry.Err, err)
	case len(work) > 0:
		l.w.Log.Info("an answer with work was lost: taking the work up now", telemetry.Session, l.session.Text(flow.SessionPrefix), "executions", len(work))
		begin(work)
	}
	return err == nil
}

// holding names the attempts that this session holds.
func (l *life) holding() []flow.AttemptID {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]flow.AttemptID, 0, len(l.held))
	for id := range l.held {
		all = append(all, id)
	}
	return all
}

func (l *life) currentLease() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease
}
