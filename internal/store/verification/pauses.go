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

// span is a time in which something was paused.
type span struct{ from, to time.Time } // to zero: it is still paused

// subject is a queue or an action.
type subject struct {
	of   store.PauseKind
	name string
}

// claim is a claim that was made while its queue or action was paused, as far as is known.
type claim struct {
	id flow.ID
	of subject
	at time.Time
}

// ReadPauses reads when queues and actions were paused from a store's history.
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

// Paused records when queues and actions were paused, from histories that are newest first for each kind. It is called before and after the
// executions are read, because a pause may have been resumed before the last of them was read: a claim that is wrong by both histories is a
// violation.
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

// checkPaused checks whether the first attempt was claimed while its queue or action was paused. The history is not enough for later
// attempts: a claim is not earlier than the times that a worker, by its own clock, reported for the previous attempt.
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

// rejected reports whether an attempt failed at the time of its claim: executions that cannot run end even during a pause.
func rejected(events []flow.Event) bool {
	i := slices.IndexFunc(events, func(e flow.Event) bool { return e.Type == flow.EvFailed })
	return i >= 0 && events[i].At.Equal(events[0].At)
}

// pausedAt returns the pause in which a claim was made, or nil if there is none.
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
