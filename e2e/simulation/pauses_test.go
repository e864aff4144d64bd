package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// pausing is the chance that, when a client begins, a client pauses a queue or an action; the chance that one pauses a workflow is the
// same. All pauses end by themselves, within mostPaused.
const (
	pausing    = 0.2
	mostPaused = 20 * time.Second
)

// pausable is a queue or an action.
type pausable struct {
	of   store.PauseKind
	name string
}

// toPause draws the queue or action that a client pauses.
func (l *load) toPause(n int) pausable {
	w := l.w
	if w.noise("paused action", n) < 0.5 {
		actions := []string{"noop", "input", "sleep"}
		for _, d := range append([]*document{leaf(), lister(), rounder(), cacher(), wrapper()}, l.docs...) {
			for _, def := range d.defs {
				actions = append(actions, def.Name)
			}
		}
		return pausable{store.PausedAction, actions[int(w.noise("which action", n)*float64(len(actions)))]}
	}
	if w.noise("paused queue", n) < 0.4 {
		return pausable{store.PausedQueue, queues[int(w.noise("which queue", n)*float64(len(queues)))]}
	}
	return pausable{store.PausedQueue, "default"}
}

// pause is a client that pauses a queue or an action for a while, and may resume it earlier.
func (l *load) pause(n int) {
	w := l.w
	key, what := fmt.Sprintf("pause%d", n), l.toPause(n)
	span := time.Second + time.Duration(w.noise("paused for", n)*float64(mostPaused-time.Second))
	l.waiting[key] = true
	w.note("%s begins: %s %s for %s", key, what.of, what.name, span)
	w.spawn(func() {
		l.steer(w.ctx, key, func(ctx context.Context, e *engine.Engine) error {
			_, err := e.PauseWork(ctx, what.of, what.name, engine.PauseOrder{By: key, For: span})
			return err
		})
		if early := w.noise("resumed", n); early < 0.5 {
			select {
			case <-time.After(time.Duration(2 * early * float64(span))):
			case <-w.ctx.Done():
			}
			l.steer(w.ctx, key, func(ctx context.Context, e *engine.Engine) error {
				_, err := e.ResumeWork(ctx, what.of, what.name, engine.PauseOrder{By: key})
				return err
			})
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, key)
	})
}

// pauseWorkflow is a client that pauses a workflow for a while, and may resume it earlier.
func (l *load) pauseWorkflow(n int) {
	w, key := l.w, fmt.Sprintf("rest%d", n)
	l.beside(key, func(ctx context.Context) {
		target := w.shadow.pick(int(1000*w.noise("which workflow", n)), func(r *row) bool { return r.x.Kind == flow.KindWorkflow && r.x.Place != flow.Finished })
		if target == nil {
			return
		}
		span := time.Second + time.Duration(w.noise("workflow paused for", n)*float64(mostPaused-time.Second))
		stops := w.noise("workflow's timers", n) < 0.5
		w.aside("%s: %s for %s, its timers stand still: %t", key, name(target.id), span, stops)
		steer := func(do func(context.Context, *engine.Engine) (engine.WorkflowPause, error)) {
			l.steer(ctx, key, func(ctx context.Context, e *engine.Engine) error {
				if _, err := do(ctx, e); !errors.Is(err, flow.ErrFinished) {
					return err
				}
				return nil
			})
		}
		steer(func(ctx context.Context, e *engine.Engine) (engine.WorkflowPause, error) {
			return e.PauseExecution(ctx, target.id, engine.PauseOrder{By: key, For: span, Stops: stops})
		})
		early := w.noise("workflow resumed", n)
		if early >= 0.5 {
			return
		}
		select {
		case <-time.After(time.Duration(2 * early * float64(span))):
		case <-ctx.Done():
		}
		steer(func(ctx context.Context, e *engine.Engine) (engine.WorkflowPause, error) {
			return e.ResumeExecution(ctx, target.id, engine.PauseOrder{By: key})
		})
	})
}

// steer asks one engine, once, to pause or resume something. A client that gets no answer does not try again.
func (l *load) steer(ctx context.Context, key string, do func(context.Context, *engine.Engine) error) {
	if err := l.call(ctx, key, do); err != nil && !errors.Is(err, errLost) && !passes(err) && !errors.Is(err, store.ErrNotFound) {
		l.w.violate(58, "%s was refused: %v", key, err)
	}
}

// ChangePause is a transaction like those of Update.
func (s *seam) ChangePause(ctx context.Context, of store.PauseKind, name string, decide func(time.Time, store.Pause) *store.Pause) (store.Pause, error) {
	w := s.r.w
	n := s.begin()
	defer s.end(n)
	v := w.park(s.alive, &gate{key: fmt.Sprintf("%s/commit %d", s.life, n), kind: atCommit, of: s.r})
	switch v.do {
	case gone, refuse:
		return store.Pause{}, store.ErrUnavailable
	case conflict:
		return store.Pause{}, store.ErrConflict
	case crashFirst:
		s.r.crash()
		return store.Pause{}, store.ErrUnavailable
	}
	p, err := s.Store.ChangePause(ctx, of, name, decide)
	if err == nil {
		w.shadow.paused(s.life, p)
	}
	switch {
	case v.do == crashAfter:
		s.r.crash()
		return store.Pause{}, store.ErrUnavailable
	case v.do == unknown && err == nil:
		return store.Pause{}, store.ErrUnknown
	}
	return p, err
}

// paused records a committed pause, or its end.
func (s *shadow) paused(by string, p store.Pause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Generation > 0 {
		s.pauses[pausable{p.Of, p.Name}] = p
	}
	s.w.note("%s committed: %s %s is paused: %t", by, p.Of, p.Name, p.Paused)
}

// claimed judges a claim by the committed pauses. The recorded time may be later than the real one, because a worker's clock may be ahead.
func (c *commit) claimed(r *row, x *flow.Execution, e flow.Event) {
	queue, _, _ := strings.Cut(x.Queue, "@")
	all := []pausable{{store.PausedAction, r.asks.Action}}
	switch {
	case !x.Owner.IsZero():
		all = append(all, pausable{store.PausedQueue, queue})
	case !r.asks.Kind.ByEngine() || x.Stage == flow.Failed && x.FinishedAt.Equal(e.At):
		return // it is rejected
	}
	for _, of := range all {
		if p, ok := c.pauses[of]; ok && p.Holds(e.At) {
			c.w.violate(58, "%s was claimed at %s: %s %s is paused since %s until %s", name(r.id), e.At, of.of, of.name, p.At, p.Until)
		}
	}
}

// pausing follows the pauses of an execution through its events, and judges the end of each.
func (c *commit) pausing(r *row, e flow.Event) {
	switch e.Type {
	case flow.EvRequested:
		r.claimed, r.stood.Here = time.Time{}, 0
	case flow.EvProvisioning:
		r.claimed = e.At
	case flow.EvPaused:
		p, err := flow.PauseOf(&e)
		if err != nil {
			c.w.violate(64, "%s: event %d: %v", name(r.id), e.Seq, err)
			return
		}
		r.stood, r.pause = r.stoodUntil(e.At), p
	case flow.EvResumed:
		by, _ := flow.ResumedBy(&e)
		if p := r.pause; p == nil || by == "" && (p.Until.IsZero() || e.At.Before(p.Until)) {
			c.w.violate(64, "%s goes on by itself at %s: it was paused as %+v", name(r.id), e.At, p)
		}
		r.stood, r.pause = r.stoodUntil(e.At), nil
	case flow.EvCompleted:
		c.slept(r, e)
	}
}

// stoodUntil returns how long the timers of an execution had stood still at a moment, derived from its events.
func (r *row) stoodUntil(at time.Time) flow.PausedFor {
	p, stood := r.pause, r.stood
	if p == nil || !p.Stops {
		return stood
	}
	if !p.Until.IsZero() && p.Until.Before(at) {
		at = p.Until
	}
	stood.All += max(0, at.Sub(p.At))
	if !r.claimed.IsZero() {
		stood.Here += max(0, min(at.Sub(p.At), at.Sub(r.claimed)))
	}
	return stood
}

// slept judges the end of a sleep: it lasts for its given time plus the time for which its timers stood still.
func (c *commit) slept(r *row, e flow.Event) {
	var sleep struct{ For int }
	if r.asks.Kind != flow.KindSleep || r.claimed.IsZero() || json.Unmarshal(r.asks.Input, &sleep) != nil {
		return
	}
	if early := r.claimed.Add(time.Duration(sleep.For)*time.Second + r.stoodUntil(e.At).Here).Sub(e.At); early > 0 {
		c.w.violate(24, "%s, a sleep of %d s that stood still for %s, was over %s before its time", name(r.id), sleep.For, r.stoodUntil(e.At).Here, early)
	}
}

// startedWhilePaused judges the start of a task by its workflow's pause at the end of the transaction. A pause does not stop the clean-up
// of a cancelled workflow, which has a time limit of its own.
func (c *commit) startedWhilePaused(p, r *row) {
	if p.order != nil && p.order.Cleaning {
		return
	}
	if at := p.pause; at != nil && (at.Until.IsZero() || r.x.CreatedAt.Before(at.Until)) {
		c.w.violate(64, "%s, task %q of %s, was started at %s: its workflow is paused since %s until %s", name(r.id), r.x.Task, name(p.id), r.x.CreatedAt, at.At, at.Until)
	}
}

// pauseBugs are planted bugs of pauses.
var pauseBugs = []bug{
	{name: "paused yet claimed", invariant: []int{58}, tx: twisted(twist{
		locked: func(s *store.Session) { s.Pauses = 0 },
		pauses: func([]store.Pause) []store.Pause { return nil },
	})},
	{name: "server goes by the pauses that it knows", invariant: []int{58}, tx: twisted(twist{locked: func(s *store.Session) { s.Pauses = 0 }})},
	{name: "paused action yet claimed", invariant: []int{58}, tx: twisted(twist{pauses: withoutActions})},
	{name: "paused action yet begun by the engine", invariant: []int{58}, tx: twisted(twist{paused: func(int64) int64 { return 0 }})},
	{name: "what a paused action has held back stays", invariant: []int{34}, tx: twisted(twist{take: func(t *twist, ctx context.Context, queues []string, n int) ([]*flow.Execution, error) {
		return t.Tx.Take(ctx, slices.DeleteFunc(slices.Clone(queues), func(q string) bool { _, held := flow.PausedAction(q); return held }), n)
	}})},
	{name: "pause is over early", invariant: []int{58}, tx: twisted(twist{pauses: func(all []store.Pause) []store.Pause {
		for i := range all {
			all[i].Until = all[i].Until.Add(-all[i].Until.Sub(all[i].At) / 2)
		}
		return all
	}})},
	{name: "pause never ends", invariant: []int{34}, tx: twisted(twist{pauses: func(all []store.Pause) []store.Pause {
		for i := range all {
			all[i].Until = time.Time{}
		}
		return all
	}})},
	{name: "paused workflow starts tasks", invariant: []int{64}, tx: twisted(twist{workflows: func(_ *twist, x *flow.Execution) { x.State.Pause = nil }})},
	{name: "pause of a workflow is over early", invariant: []int{64}, tx: twisted(twist{workflows: shiftedPause(func(p *flow.Pause) time.Time { return p.At.Add(p.Until.Sub(p.At) / 2) })})},
	{name: "pause of a workflow never ends", invariant: []int{34}, tx: twisted(twist{workflows: shiftedPause(func(*flow.Pause) time.Time { return time.Time{} })})},
	{name: "timers of a paused workflow run on", invariant: []int{24}, tx: twisted(twist{apply: stored(func(x *flow.Execution) {
		if p := x.State.Pause; p != nil {
			x.State.Pause = &flow.Pause{At: p.At, Until: p.Until, By: p.By, Reason: p.Reason}
		}
	})})},
	{name: "how long timers stood still is forgotten", invariant: []int{24}, tx: twisted(twist{apply: stored(func(x *flow.Execution) { x.State.PausedFor = nil })})},
}

// stored returns an apply function that changes each execution before it is stored.
func stored(change func(*flow.Execution)) func(*twist, context.Context, store.Delta) error {
	return func(t *twist, ctx context.Context, d store.Delta) error {
		for _, x := range d.Drafts {
			change(x.Execution)
		}
		return t.Tx.Apply(ctx, d)
	}
}

// withoutActions hides pauses of actions.
func withoutActions(all []store.Pause) []store.Pause {
	return slices.DeleteFunc(all, func(p store.Pause) bool { return p.Of == store.PausedAction })
}

// shiftedPause moves the end of a locked workflow's pause.
func shiftedPause(until func(*flow.Pause) time.Time) func(*twist, *flow.Execution) {
	return func(_ *twist, x *flow.Execution) {
		if p := x.State.Pause; p != nil {
			x.State.Pause = &flow.Pause{At: p.At, Until: until(p), By: p.By, Reason: p.Reason, Stops: p.Stops}
		}
	}
}
