package verification

import (
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// PausesMost is how many of the latest pauses of queues are compared with claims.
const PausesMost = 100_000

// span is the time in which a queue was paused.
type span struct{ from, to time.Time } // to zero: it still is

// claim is one that was made while its queue was paused, as far as is known.
type claim struct {
	id    flow.ID
	queue string
	at    time.Time
}

// Paused notes when queues were paused: the latest first, as the history has it. It comes before the executions, and once more behind
// them, for a queue that was paused may have been resumed before the last of them was read: what is in both was claimed wrongly.
func (f *Findings) Paused(history []store.Pause) {
	defer f.judgeClaims(f.claims)
	f.paused, f.claims = map[string][]span{}, nil
	next := map[string]time.Time{} // when the pause was replaced or ended
	for _, p := range history {
		if p.Paused {
			s := span{p.At, p.Until}
			if at := next[p.Name]; !at.IsZero() && (s.to.IsZero() || at.Before(s.to)) {
				s.to = at
			}
			f.paused[p.Name] = append(f.paused[p.Name], s)
		}
		next[p.Name] = p.At
	}
}

// checkPaused looks whether the first attempt was claimed while the queue was paused. Of a later attempt the history does not tell: its
// claim is not earlier than what a worker, with a clock of its own, has said of the one before.
func checkPaused(f *Findings, x *flow.Execution, events []flow.Event) {
	if len(f.paused) == 0 {
		return
	}
	queue, _ := flow.SplitLane(x.Queue)
	for _, e := range events {
		if e.Type != flow.EvProvisioning {
			continue
		}
		if c := (claim{x.ID, queue, e.At}); e.Attempt == 1 && !flow.ClaimedByEngine(&e) && len(f.claims) < Most && f.pausedAt(c) != nil {
			f.claims = append(f.claims, c)
		}
		return
	}
}

// pausedAt is the pause in which a claim was made; nil: it was made in none.
func (f *Findings) pausedAt(c claim) *span {
	for i, s := range f.paused[c.queue] {
		if c.at.After(s.from) && (s.to.IsZero() || c.at.Before(s.to)) {
			return &f.paused[c.queue][i]
		}
	}
	return nil
}

func (f *Findings) judgeClaims(claims []claim) {
	for _, c := range claims {
		if s := f.pausedAt(c); s != nil {
			f.Add(58, c.id, "it was claimed at %s from queue %q, which was paused at %s", c.at.Format(time.RFC3339Nano), c.queue, s.from.Format(time.RFC3339Nano))
		}
	}
}
