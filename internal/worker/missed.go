package worker

import (
	"context"
	"errors"
	"sync"
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

// lookForMissed asks for the work that failed calls of Take have claimed, and begins what comes beside the answers to calls, until ctx
// ends.
func (l *life) lookForMissed(ctx context.Context, declines *sync.WaitGroup) {
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
	for ctx.Err() == nil {
		select {
		case <-due:
			if l.missed(ctx, declines) {
				left--
			}
			look()
		case <-l.doubts:
			left = missedLooks
			look()
		case s := <-strays:
			if s.Session == l.session {
				l.start(ctx, s.Work, declines)
			}
		case <-ctx.Done():
		}
	}
}

// missed starts what was missed, and reports whether there was an answer.
func (l *life) missed(ctx context.Context, declines *sync.WaitGroup) bool {
	work, err := l.w.Handoff.Missed(ctx, l.session, l.holding())
	switch {
	case errors.Is(err, handoff.ErrSessionLost):
		l.end(err)
	case err != nil:
		l.w.Log.Debug("look for missed work: trying again", telemetry.Err, err)
	case len(work) > 0:
		l.w.Log.Info("an answer with work was lost: taking the work up now", telemetry.Session, l.session.Text(flow.SessionPrefix), "executions", len(work))
		l.start(ctx, work, declines)
	}
	return err == nil
}

// holding names the attempts that this session answers for.
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
