package remote

import (
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
