package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
)

// loadLatestRound loads how the latest round of a repeated task ended. It does not read earlier rounds: of 1,000 rounds, each step would
// read all.
func (s *step) loadLatestRound(ctx context.Context, task int) error {
	p, t := &s.p.tracker.State().Tasks[task], s.def.Tasks[task]
	if p.Created == 0 {
		return nil
	}
	last, err := s.round(ctx, t.Name, p.Created-1, outputsLimit)
	switch {
	case errors.Is(err, store.ErrTooLarge):
		s.outputs[task] = orchestration.Output{Stage: flow.Completed, TooLarge: fmt.Errorf("the output of round %d has more than %d MB: "+
			"put out less, or write files and pass their names on", p.Created, outputsLimit>>20)}
		return nil
	case err != nil:
		return fmt.Errorf("load round %d of task %q: %w", p.Created, t.Name, err)
	case last == nil:
		return nil
	}
	s.outputs[task] = orchestration.Output{Single: last.Outcome.Output, Stage: last.Stage, Error: last.Outcome.Error}
	if !t.ContinueOnError {
		p.Blame(last.Index, last.Stage, last.Outcome.Error)
	}
	return nil
}

// round returns how a round ended: from the transaction if it ended in it, else from the store.
func (s *step) round(ctx context.Context, task string, index int, most int64) (*store.ChildOutcome, error) {
	for _, d := range s.t.workflows.ended[s.w.ID] {
		if d.Task == task && d.Index == index && d.ParentAttempt == s.w.Attempt {
			return &store.ChildOutcome{Index: index, Execution: d.ID, Stage: d.Stage, Outcome: *d.Outcome}, nil
		}
	}
	return s.t.tx.Outcome(ctx, attemptOf(s.w), task, index, most)
}

// spaceRounds delays a round after the end of the one before it, and gives it the rest of the task's total_timeout, which covers all
// rounds. That timeout does not run between two rounds while the workflow's timers are stopped. If nothing is left, the round times out as
// soon as it is made.
func (s *step) spaceRounds(ctx context.Context, c *orchestration.Child, r *flow.Request) error {
	if c.Task.Repeat == nil || c.Index == 0 {
		return nil
	}
	if c.Delay > 0 {
		r.NotBefore = s.t.now.Add(c.Delay)
	}
	if c.Task.Settings.TotalTimeout == 0 {
		return nil
	}
	last, err := s.round(ctx, c.Task.Name, c.Index-1, math.MaxInt64)
	if err != nil || last == nil {
		return err
	}
	if err := s.t.Load(ctx, []flow.ID{last.Execution}); err != nil {
		return err
	}
	d := s.t.Draft(last.Execution)
	if d == nil {
		return nil
	}
	if until := d.TotalDeadline(); !until.IsZero() {
		paused, err := s.pausedSince(ctx, d.FinishedAt)
		if err != nil {
			return err
		}
		r.TotalTimeout = max(until.Add(paused).Sub(s.t.now), time.Microsecond)
	}
	return nil
}

// pausedSince is how long the workflow's timers have been stopped since a moment.
func (s *step) pausedSince(ctx context.Context, at time.Time) (time.Duration, error) {
	if s.w.PausedFor == nil {
		return 0, nil
	}
	// A workflow of 1,000 rounds has thousands of events. They are read from the end until the events since that moment are complete, together
	// with a pause that was in force at it.
	events := s.w.Events
	pauses := func() *flow.Event {
		for i := range events {
			if t := events[i].Type; t == flow.EvPaused || t == flow.EvResumed {
				return &events[i]
			}
		}
		return nil
	}
	for first := s.w.Before.NextSeq; first > 1; {
		if p := pauses(); len(events) > 0 && events[0].At.Before(at) && (p == nil || p.At.Before(at)) {
			break
		}
		from := max(1, first-recordedAtOnce)
		page, err := s.t.tx.Applied(ctx, s.w.ID, from, first)
		if err != nil {
			return 0, fmt.Errorf("load when its timers stood still: %w", err)
		}
		events, first = append(page, events...), from
	}
	return flow.PausedSince(events, at)
}

// allRounds gives a retry or a rerun of one round the whole total_timeout of its task: the round itself had only the
// rest of it. If the workflow has been removed, the request keeps the rest.
func (e *Engine) allRounds(ctx context.Context, x *flow.Execution, r *flow.Request) error {
	if x.Parent.IsZero() || x.Index == 0 || x.TotalTimeout == 0 {
		return nil
	}
	w, err := e.opts.Store.Get(ctx, x.Parent)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	def, _, err := e.catalog.Get(ctx, w.Action, w.Version)
	if err != nil {
		return fmt.Errorf("load the definition of its workflow: %w", err)
	}
	if t := def.Workflow.Task(x.Task); t != nil && t.Repeat != nil && t.Settings.TotalTimeout != 0 {
		r.TotalTimeout = t.Settings.TotalTimeout
	}
	return nil
}
