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

// loadLatestRound loads how the latest round of a repeated task ended. Those before it are not read: of 1,000 rounds each step would read
// all.
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
	if last.Outcome.Error != nil && p.Error == nil && !t.ContinueOnError {
		p.Error, p.ErrorIndex = last.Outcome.Error, last.Index
	}
	return nil
}

// round returns how a round ended: from the transaction where it ended in it, else from the store.
func (s *step) round(ctx context.Context, task string, index int, most int64) (*store.ChildOutcome, error) {
	for _, d := range s.t.workflows.ended[s.w.ID] {
		if d.Task == task && d.Index == index && d.ParentAttempt == s.w.Attempt {
			return &store.ChildOutcome{Index: index, Execution: d.ID, Stage: d.Stage, Outcome: *d.Outcome}, nil
		}
	}
	return s.t.tx.Outcome(ctx, attemptOf(s.w), task, index, most)
}

// spaceRounds lets a round begin its delay after the end of the one before it, and gives it what is left of the task's total_timeout, which
// is of all rounds together. When nothing is left, the round times out as soon as it is made.
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
	if err := s.t.load(ctx, []flow.ID{last.Execution}, store.WithoutPayload); err != nil {
		return err
	}
	d := s.t.draft(last.Execution)
	if d == nil {
		return nil
	}
	if until := d.TotalDeadline(); !until.IsZero() {
		r.TotalTimeout = max(until.Sub(s.t.now), time.Microsecond)
	}
	return nil
}
