package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// Of workers that die without a word nothing stays, least of all the work that was kept for them.
func TestSeatsOfTheDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{seats: map[flow.ID]*seat{}}
		dead, alive := flow.ID{1}, flow.ID{2}
		s.seat(dead).kept = []handoff.Assignment{{Attempt: 1}}
		seat := s.seat(alive)
		for range 10 {
			<-time.After(pollFor)
			if s.seat(alive) != seat {
				t.Fatal("a worker that asks again and again has lost its seat")
			}
		}
		s.seat(flow.ID{3})
		if len(s.seats) != 2 || s.seats[dead] != nil {
			t.Errorf("%d seats, that of the dead is %v", len(s.seats), s.seats[dead])
		}
	})
}

// late is a hand-off in which work comes after a wait, all of it at once.
type late struct {
	handoff.Handoff
	after time.Duration
	work  []handoff.Assignment
}

func (l *late) Take(ctx context.Context, _ flow.ID, _ int) ([]handoff.Assignment, error) {
	select {
	case <-time.After(l.after):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	work := l.work
	l.work = nil
	return work, nil
}

// The age of claimed work that waits for the next call counts from its claim, not from the beginning of the poll in which it
// was claimed: a poll may last longer than half a lease.
func TestWorkClaimedLateInAPoll(t *testing.T) {
	t.Parallel()
	const each = 9 << 20 // two do not fit into one answer
	payload := json.RawMessage(`"` + strings.Repeat("x", each) + `"`)
	for _, tc := range []struct {
		name         string
		poll, pauses time.Duration // before the claim, and between two calls of the worker
		want         int
	}{
		{"at once", 0, 0, 3},
		{"after 16 s", 16 * time.Second, 0, 3},
		{"after 16 s, taken slowly", 16 * time.Second, handoff.Lease/4 - 1, 3},
		{"too old", 0, handoff.Lease / 2, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from := &late{after: tc.poll}
				for i := range 3 {
					from.work = append(from.work, handoff.Assignment{Execution: flow.ID{1, byte(i)}, Attempt: 1, Payload: payload})
				}
				s := &server{handoff: from, key: []byte("secret"), seats: map[flow.ID]*seat{}}
				got := map[flow.ID]bool{}
				for range 3 {
					for _, a := range takeOnce(t, t.Context(), s) {
						got[a.Execution] = true
					}
					<-time.After(tc.pauses)
				}
				if len(got) != tc.want {
					t.Errorf("the worker got %d of the 3 executions claimed for it, not %d", len(got), tc.want)
				}
			})
		})
	}
}

// abandoned is a hand-off that claims when its caller has hung up.
type abandoned struct {
	late
	calls int
}

func (a *abandoned) Take(ctx context.Context, _ flow.ID, _ int) ([]handoff.Assignment, error) {
	a.calls++
	<-ctx.Done()
	work := a.work
	a.work = nil
	return work, ctx.Err()
}

// Work whose caller hung up waits for the session's next call, for half a lease after its claim and no longer: the engine
// may have taken it back by then.
func TestAbandonedWork(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		pause time.Duration
		want  int
	}{{"in time", handoff.Lease/2 - 1, 1}, {"too late", handoff.Lease / 2, 0}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from := &abandoned{late: late{work: []handoff.Assignment{{Execution: flow.ID{1}, Attempt: 1}}}}
				s := &server{handoff: from, key: []byte("secret"), seats: map[flow.ID]*seat{}}
				ctx, hangUp := context.WithCancel(t.Context())
				time.AfterFunc(pollFor-1, hangUp)
				_ = takeOnce(t, ctx, s) // its answer has no reader
				<-time.After(tc.pause)
				if got := takeOnce(t, t.Context(), s); len(got) != tc.want || from.calls != 2-tc.want {
					t.Errorf("the next call got %d after %d calls of the hand-off", len(got), from.calls)
				}
			})
		})
	}
}

// takeOnce makes one call of Take; one whose caller has hung up has no answer.
func takeOnce(t *testing.T, ctx context.Context, s *server) []handoff.Assignment {
	t.Helper()
	session := flow.ID{7}
	body, err := encode(asked{Session: session.Text(flow.SessionPrefix), N: 10})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, Prefix+"take", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(secretHeader, s.secret(session))
	w := httptest.NewRecorder()
	s.take(w, r)
	var out answer
	if ctx.Err() != nil {
		return nil
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK {
		t.Fatalf("take: %d, %v", w.Code, err)
	}
	return out.Work
}
