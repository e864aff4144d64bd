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

// A call of Take that failed may have claimed work. The worker asks for it after 1.25 s, and then four times with doubling pauses: over
// 38.75 s in all (1.25 s times 31), or over 31/24 of a lease if that is shorter. Once is not enough, because the engine may not have
// noticed that the connection is broken, and may still claim work for the call.
const (
	missedFirst = 1250 * time.Millisecond
	missedLooks = 5
)

func (s *session) noteFailedTake() { signal(s.failedTake) }

// lookForMissed asks for work that failed calls of Take have claimed, and starts work that the hand-off delivers without a call. Once ctx
// has ended it gives such work back, until the session ends, because a server may not know that running calls were given up, and may still
// claim work for them.
func (s *session) lookForMissed(ctx context.Context) {
	var strays <-chan handoff.Stray
	if h, ok := s.w.Handoff.(handoff.Straying); ok {
		strays = h.Strays()
	}
	var due <-chan time.Time // nil: no call has failed lately
	left := 0
	look := func() {
		if due = nil; left > 0 {
			due = time.After(min(missedFirst, s.currentLease()/24) << (missedLooks - left))
		}
	}
	begin := s.start
	draining := ctx.Done()
	for s.ctx.Err() == nil {
		select {
		case <-due:
			if s.missed(begin) {
				left--
			}
			look()
		case <-s.failedTake:
			left = missedLooks
			look()
		case stray := <-strays:
			if stray.Session == s.id {
				begin(stray.Work)
			}
		case <-draining:
			draining, begin = nil, s.turnAway
			s.noteFailedTake()
		case <-s.ctx.Done():
		}
	}
}

// missed starts work whose hand-off was lost, and reports whether the engine answered.
func (s *session) missed(begin func([]handoff.Assignment)) bool {
	work, err := s.w.Handoff.Missed(s.ctx, s.id, s.holding())
	switch {
	case errors.Is(err, handoff.ErrSessionLost):
		s.end(err)
	case err != nil:
		s.w.Log.Debug("look for missed work: trying again", telemetry.Err, err)
	case len(work) > 0:
		s.w.Log.Info("a hand-off of work was lost: starting the work now", telemetry.Session, s.id.Text(flow.SessionPrefix), "executions", len(work))
		begin(work)
	}
	return err == nil
}

func (s *session) holding() []flow.AttemptID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.held))
}

func (s *session) currentLease() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease
}
