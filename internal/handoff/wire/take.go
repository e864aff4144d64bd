package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// poller is one of the calls of Take that a session may have under way, and the work that is kept for it. The connection of a
// waiting call may break, and the server notices only later. Work that was claimed meanwhile is kept for the session's next
// call, instead of being lost until Missed returns it.
type poller struct {
	turn  chan struct{}        // capacity 1: full while a call runs
	kept  []handoff.Assignment // claimed work of a lost answer, or that did not fit into one
	since time.Time            // when the Take returned that claimed it
	each  int                  // average bytes of input of the latest claims
	asked time.Time            // when the last call came, for the server's map of pollers
	// The worker may have received an answer that was given up. The first unsure assignments of kept were in the answer to
	// call number "to".
	unsure int
	to     int64

	mu     sync.Mutex
	latest context.CancelFunc // ends the previous call
	number int64              // of the latest call
}

// pollerKey names a poller: a session has one for each call of Take that it may have under way.
type pollerKey struct {
	session flow.ID
	n       int
}

// mostPollers is how many pollers a session may have.
const mostPollers = 8

func (s *Server) poller(session flow.ID, n int) *poller {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := pollerKey{session, n}
	t := s.pollers[key]
	if t == nil {
		// Workers may die without closing their session. Work kept for a poller that has been silent for so long belongs to
		// another session by now.
		maps.DeleteFunc(s.pollers, func(_ pollerKey, other *poller) bool { return time.Since(other.asked) > s.holds.Take+s.Lease() })
		t = &poller{turn: make(chan struct{}, 1)}
		s.pollers[key] = t
	}
	t.asked = time.Now()
	return t
}

func (s *Server) forget(session flow.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range mostPollers {
		delete(s.pollers, pollerKey{session, n})
	}
}

// collect returns the kept work that did not come with the answer to the call of that number, unless the work is too old. The
// engine takes an attempt back that has not begun within a lease of its claim; an attempt that begins shortly before that would
// run twice. The engine recovers the work that is dropped here.
func (t *poller) collect(most time.Duration, answered int64) []handoff.Assignment {
	work := t.kept
	if answered != 0 && answered == t.to {
		work = work[t.unsure:]
	}
	t.kept, t.unsure, t.to = nil, 0, 0
	if time.Since(t.since) >= most {
		return nil
	}
	return work
}

// portion is how many assignments go into one answer.
func portion(work []handoff.Assignment) int {
	size := 0
	for i := range work {
		if size += len(work[i].Payload); i > 0 && size > mostWork {
			return i
		}
	}
	return len(work)
}

// weight is how many bytes of input assignments have.
func weight(work []handoff.Assignment) int {
	n := 0
	for i := range work {
		n += len(work[i].Payload)
	}
	return n
}

// supersede ends the call that has waited so far. A worker makes one call at a time for a poller, so the connection of that
// call must be broken. It reports whether the call of that number is the latest.
func (t *poller) supersede(number int64, cancel context.CancelFunc) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if number != 0 && number <= t.number {
		return false
	}
	if t.latest != nil {
		t.latest()
	}
	t.latest, t.number = cancel, number
	return true
}

// Take answers Take by calling answer. Work that answer does not deliver, or that does not fit, is kept for the poller's next
// call. The context of answer ends when another call comes to the poller, and not with ctx: a server that shuts down may still
// hand over work that it has claimed. If answer was not called, the error says why.
func (s *Server) Take(ctx context.Context, session flow.ID, in *Asked, answer func(context.Context, Answer) error) error {
	if in.N < 1 {
		return fmt.Errorf("%w: take %d executions: ask for at least 1", handoff.ErrBadCall, in.N)
	}
	if in.Poller < 0 || in.Poller >= mostPollers {
		return fmt.Errorf("%w: take on poller %d: a session has pollers 0 to %d", handoff.ErrBadCall, in.Poller, mostPollers-1)
	}
	latest, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, s.holds.Take)
	defer stop()
	t := s.poller(session, in.Poller)
	if !t.supersede(in.Number, func() {
		cancel()
		stop()
	}) {
		return fmt.Errorf("%w: call %d of poller %d", ErrRepeated, in.Number, in.Poller)
	}
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done(): // another call has come, or the caller has gone
		if err := nothingYet(ctx, ctx.Err()); err != nil {
			return err
		}
		_ = answer(latest, Answer{}) // a caller that gets no answer asks again
		return nil
	}
	defer func() { <-t.turn }()
	work, err := t.collect(s.Lease()/2, in.Answered), error(nil)
	if len(work) == 0 {
		work, err = s.handoff.Take(ctx, session, min(in.N, mostTaken, max(1, mostWork/max(1, t.each))))
		// The time is taken after the Take: the call may have waited for longer than the half lease for which work is
		// kept.
		t.since = time.Now()
		if len(work) > 0 {
			t.each = weight(work) / len(work)
		}
	}
	if len(work) == 0 {
		if err = nothingYet(ctx, err); err != nil {
			if errors.Is(err, handoff.ErrSessionLost) {
				s.forget(session)
			}
			return err
		}
	}
	part := portion(work)
	switch {
	case latest.Err() != nil:
		part = 0
	case answer(latest, Answer{Work: work[:part]}) != nil:
		part, t.unsure, t.to = 0, part, in.Number
	}
	if part < len(work) {
		t.kept = work[part:]
	}
	return nil
}
