package verification

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// pausesMost is how many of the latest pauses of queues, and of actions, are compared with claims.
const pausesMost = 100_000

// span is the time in which something was paused.
type span struct{ from, to time.Time } // to zero: it still is

// subject is a queue or an action.
type subject struct {
	of   store.PauseKind
	name string
}

// claim is one that was made while its queue or action was paused, as far as is known.
type claim struct {
	id flow.ID
	of subject
	at time.Time
}

// ReadPauses notes when queues and actions were paused, from the history that a store has.
func (f *Findings) ReadPauses(ctx context.Context, r store.PauseReader) error {
	queues, err := r.PauseHistory(ctx, store.PausedQueue, "", 0, pausesMost)
	if err != nil {
		return err
	}
	actions, err := r.PauseHistory(ctx, store.PausedAction, "", 0, pausesMost)
	if err == nil {
		f.Paused(queues, actions)
	}
	return err
}

// Paused notes when queues and actions were paused, of each kind the latest first, as the history has it. It comes
// before the executions, and once more behind them, for what was paused may have been resumed before the last of them
// was read: what is in both was claimed wrongly.
func (f *Findings) Paused(histories ...[]store.Pause) {
	defer f.judgeClaims(f.claims)
	f.paused, f.claims = map[subject][]span{}, nil
	next := map[subject]time.Time{} // when the pause was replaced or ended
	for _, p := range slices.Concat(histories...) {
		of := subject{p.Of, p.Name}
		if p.Paused {
			s := span{p.At, p.Until}
			if at := next[of]; !at.IsZero() && (s.to.IsZero() || at.Before(s.to)) {
				s.to = at
			}
			f.paused[of] = append(f.paused[of], s)
		}
		next[of] = p.At
	}
}

// checkPaused looks whether the first attempt was claimed while its queue or action was paused. Of a later attempt the
// history does not tell: its claim is not earlier than what a worker, with a clock of its own, has said of the one
// before.
func checkPaused(f *Findings, x *flow.Execution, events []flow.Event) {
	if len(f.paused) == 0 {
		return
	}
	i := slices.IndexFunc(events, func(e flow.Event) bool { return e.Type == flow.EvProvisioning })
	if i < 0 || events[i].Attempt > 1 || len(f.claims) >= Most {
		return
	}
	e := &events[i]
	byEngine := flow.ClaimedByEngine(e)
	if byEngine && (!x.Kind.ByEngine() || rejected(events[i:])) {
		return
	}
	queue, _ := flow.SplitRoutingKey(x.Queue)
	all := []subject{{store.PausedAction, x.Action}}
	if !byEngine {
		all = append(all, subject{store.PausedQueue, queue})
	}
	for _, of := range all {
		if c := (claim{x.ID, of, e.At}); f.pausedAt(c) != nil {
			f.claims = append(f.claims, c)
			return
		}
	}
}

// rejected reports whether an attempt, from its claim on, failed in the moment of that: what cannot be carried out ends whatever is paused.
func rejected(events []flow.Event) bool {
	i := slices.IndexFunc(events, func(e flow.Event) bool { return e.Type == flow.EvFailed })
	return i >= 0 && events[i].At.Equal(events[0].At)
}

// pausedAt is the pause in which a claim was made; nil: it was made in none.
func (f *Findings) pausedAt(c claim) *span {
	for i, s := range f.paused[c.of] {
		if c.at.After(s.from) && (s.to.IsZero() || c.at.Before(s.to)) {
			return &f.paused[c.of][i]
		}
	}
	return nil
}

func (f *Findings) judgeClaims(claims []claim) {
	for _, c := range claims {
		if s := f.pausedAt(c); s != nil {
			f.Add(58, c.id, "it was claimed at %s, and %s %q was paused at %s", c.at.Format(time.RFC3339Nano), c.of.of, c.of.name, s.from.Format(time.RFC3339Nano))
		}
	}
}
