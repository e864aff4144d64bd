package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
)

func (s *step) createChildren(ctx context.Context) error {
	drafts, all := make([]*flow.Draft, 0, len(s.plan.Children)), s.prepared
	for i := range s.plan.Children {
		if err := s.makeChild(ctx, &s.plan.Children[i], &all[i]); err != nil {
			return err
		}
	}
	if err := s.lookUp(ctx, all); err != nil {
		return err
	}
	for i := range s.plan.Children {
		c, m := &s.plan.Children[i], &all[i]
		r := &m.request
		r.Parent, r.ParentAttempt, r.Task, r.Index = s.w.ID, s.w.Attempt, c.Task.Name, c.Index
		r.Depth, r.Traceparent, r.Rules, r.CreatedAt = s.w.Depth+1, s.w.Traceparent, s.w.Rules, s.t.now
		if m.runs() {
			if err := s.spaceRounds(ctx, c, r); err != nil {
				return err
			}
			if err := s.t.e.assign(r); err == nil {
				if err := s.t.writeRoutingKey(ctx, r.Queue); err != nil {
					return err
				}
			} else if m.refusal == nil {
				m.refusal = &flow.Error{Code: flow.CodeInvalidInput, Message: err.Error()}
			}
		}
		d := flow.Submit(s.t.e.opts.NewID(), *r)
		s.t.add(d)
		if sums := uploads.SumsIn(r.Input, r.With); len(sums) > 0 { // a child misses an absent upload when it runs
			if err := s.t.lockUploads(ctx, sums); err != nil {
				return err
			}
			s.t.referenceUploads(d.ID, sums)
		}
		if m.refusal == nil && m.runs() {
			drafts = append(drafts, d)
			continue
		}
		if err := m.endUnrun(d, s.t.now); err != nil {
			return err
		}
		s.t.Changed(d)
	}
	return s.t.admit(ctx, drafts)
}

// prepare makes the request of a planned child, and returns how many operations the expressions of its action took. It runs while the plan
// is made, so that the plan ends with the child that exceeds the transaction's budget.
func (s *step) prepare(ctx context.Context, kids *requests.Maker, c *orchestration.Child, most int) (operations int) {
	wanted := *c
	if b := s.w.BeneathAt(c.Task.Name, c.Index); b != nil { // as in the planned version
		wanted.Action, _, _ = strings.Cut(c.Action, "@")
		wanted.Version = b.Version
	}
	w := definition.WorkWithin(min(definition.SharedWork, max(1, most)))
	var m childRequest
	var err error
	if m.request, m.refusal, err = kids.Request(ctx, &wanted, w); err != nil && s.unprepared == nil {
		s.unprepared = fmt.Errorf("task %q: %w", c.Task.Name, err)
	}
	if len(s.prepared) == cap(s.prepared) { // as many as the plan has room for: a request is 1 kB, and doubling copies all of them
		s.prepared = slices.Grow(s.prepared, max(1, cap(s.plan.Children)-len(s.prepared)))
	}
	s.prepared = append(s.prepared, m)
	return w.Done
}

// makeChild completes a child's request, and finds out whether the child ends with a known output instead of running.
func (s *step) makeChild(ctx context.Context, c *orchestration.Child, m *childRequest) (err error) {
	if b := s.w.BeneathAt(c.Task.Name, c.Index); b != nil {
		return s.runBeneath(ctx, c, b, m)
	}
	m.request.NoCache = s.w.NoCache || !s.w.RerunOf.IsZero() // a rerun has its own rules for reuse: what it runs, runs
	if m.override = s.w.OverrideOf(c.Task.Name, c.Index); m.override != nil {
		m.request.Rerun = &flow.Rerun{OverriddenBy: s.w.AsRerun().OverriddenBy}
	} else if m.reuse, err = s.reusable(ctx, c, &m.request, m.refusal); err != nil {
		return err
	}
	if m.refusal == nil && m.runs() {
		m.request.Cache = s.cacheOf(c, &m.request)
	}
	return nil
}

// runs reports whether the child has no known output. A refused child fails instead.
func (m *childRequest) runs() bool { return m.reuse == nil && m.override == nil && m.kept == nil }

// endUnrun ends a child that does not run: with a given output, a refusal, or the outcome of another execution.
func (m *childRequest) endUnrun(d *flow.Draft, now time.Time) error {
	switch {
	case m.override != nil:
		return d.Override(m.override, now)
	case m.refusal != nil:
		return d.Reject(m.refusal, now)
	case m.kept != nil:
		return d.Reuse(m.kept.Output, now)
	}
	return d.Reuse(m.reuse.Output, now)
}

func (s *step) maker() requests.Maker {
	return requests.Maker{Definition: s.t.definition, Workflow: firstOf(s.w.Execution).String(), Priority: s.w.Priority, Depth: int(s.w.Depth)}
}
