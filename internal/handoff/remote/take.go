package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// seat is where a session waits for work. A connection may break while a call waits, and the server notices only later:
// what was claimed meanwhile is kept for the session's next call instead of being lost until it is recovered.
type seat struct {
	turn  chan struct{}        // capacity 1: full while a call takes
	kept  []handoff.Assignment // and what did not fit into an answer
	since time.Time            // when the Take returned that claimed kept
	each  int                  // bytes of input that what was claimed last had on average
	asked time.Time            // when it was last looked for; the server's

	mu     sync.Mutex
	latest context.CancelFunc // ends the call before
}

// mostTaken bounds the answer to one call.
const mostTaken = 1000

func (s *server) seat(session flow.ID) *seat {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.seats[session]
	if t == nil {
		// Workers die without a word. What was kept for one that has not asked for so long is not its own any more.
		maps.DeleteFunc(s.seats, func(_ flow.ID, other *seat) bool { return time.Since(other.asked) > pollFor+s.lease() })
		t = &seat{turn: make(chan struct{}, 1)}
		s.seats[session] = t
	}
	t.asked = time.Now()
	return t
}

// collect returns what was kept back, unless it is too old: the engine takes an attempt back that has not begun within a
// lease of its claim, and an attempt that begins shortly before that would run twice. What is dropped here the engine
// recovers.
func (t *seat) collect(most time.Duration) []handoff.Assignment {
	work := t.kept
	t.kept = nil
	if time.Since(t.since) >= most {
		return nil
	}
	return work
}

// portion is how much of the work goes into one answer.
func portion(work []handoff.Assignment) int {
	size := 0
	for i := range work {
		if size += len(work[i].Payload); i > 0 && size > mostWork {
			return i
		}
	}
	return len(work)
}

// weight is how many bytes the inputs of work have.
func weight(work []handoff.Assignment) int {
	n := 0
	for i := range work {
		n += len(work[i].Payload)
	}
	return n
}

// lease is how long attempts are waited for.
func (s *server) lease() time.Duration {
	if l, ok := s.handoff.(handoff.Leased); ok && l.Lease() > 0 {
		return l.Lease()
	}
	return handoff.Lease
}

func (s *server) forget(session flow.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seats, session)
}

// supersede ends the call that waited so far: a worker makes one at a time, so its connection is gone.
func (t *seat) supersede(cancel context.CancelFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.latest != nil {
		t.latest()
	}
	t.latest = cancel
}

func (s *server) take(w http.ResponseWriter, r *http.Request) {
	var in asked
	id, ok := s.begin(w, r, &in)
	if !ok {
		return
	}
	if in.N < 1 {
		fail(w, fmt.Errorf("%w: take %d executions: ask for at least 1", errAsked, in.N))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), pollFor)
	defer cancel()
	t := s.seat(id)
	t.supersede(cancel)
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done(): // another call has come, or the caller has left
		if err := nothingYet(ctx, ctx.Err()); err != nil {
			fail(w, err)
			return
		}
		_ = write(w, http.StatusOK, answer{}) // it asks again
		return
	}
	defer func() { <-t.turn }()
	work, err := t.collect(s.lease()/2), error(nil)
	if len(work) == 0 {
		work, err = s.handoff.Take(ctx, id, min(in.N, mostTaken, max(1, mostWork/max(1, t.each))))
		// Not before the Take: it may have waited for pollFor, 20 s, which is more than the half of a lease that kept work may
		// be old.
		t.since = time.Now()
		if len(work) > 0 {
			t.each = weight(work) / len(work)
		}
	}
	if len(work) == 0 {
		if err = nothingYet(ctx, err); err != nil {
			if errors.Is(err, handoff.ErrSessionLost) {
				s.forget(id)
			}
			fail(w, err)
			return
		}
	}
	part := portion(work)
	if ctx.Err() == context.Canceled || write(w, http.StatusOK, answer{Work: work[:part]}) != nil {
		part = 0
	}
	if part < len(work) {
		t.kept = work[part:]
	}
}
