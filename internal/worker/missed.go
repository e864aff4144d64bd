package worker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// A call of Take that failed may have claimed work. The worker asks for it after 1.25 s, and then four times with doubling
// pauses: over 38.75 s in all (1.25 s times 31), or over 31/24 of a lease if that is shorter. Once is not enough, because the engine may not have noticed
// that the connection is broken, and may still claim work for the call.
const (
	missedFirst = 1250 * time.Millisecond
	missedLooks = 5
)

// doubt notes that a call of Take has failed.
func (l *life) doubt() { signal(l.doubts) }

// lookForMissed asks for work that failed calls of Take have claimed, and starts work that the hand-off brings without a call.
// Once ctx has ended it gives such work back, until the session ends, because a server may not know that running calls were
// given up, and may still claim work for them.
func (l *life) lookForMissed(ctx context.Context) {
	var strays <-chan handoff.Stray
	if s, ok := l.w.Handoff.(handoff.Straying); ok {
		strays = s.Strays()
	}
	var due <-chan time.Time // nil: no call has failed lately
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

// missed starts work whose hand-off was lost, and reports whether the engine answered.
func (l *life) missed(begin func([]handoff.Assignment)) bool {
	work, err := l.w.Handoff.Missed(l.ctx, l.session, l.holding())
	switch {
	case errors.Is(err, handoff.ErrSessionLost):
		l.end(err)
	case err != nil:
		l.w.Log.Debug("look for missed work: trying again", telemetry.Err, err)
	case len(work) > 0:
		l.w.Log.Info("a hand-off of work was lost: starting the work now", telemetry.Session, l.session.Text(flow.SessionPrefix), "executions", len(work))
		begin(work)
	}
	return err == nil
}

// holding are the ids of the attempts that this session holds.
func (l *life) holding() []flow.AttemptID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.held))
}

func (l *life) currentLease() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease
}
