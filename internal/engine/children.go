package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
)

// createChildren makes the executions of the plan's children.
func (s *step) createChildren(ctx context.Context) error {
	drafts := make([]*flow.Draft, 0, len(s.plan.Children))
	kids, all := s.maker(), make([]made, len(s.plan.Children))
	for i := range s.plan.Children {
		if err := s.make(ctx, kids, &s.plan.Children[i], &all[i]); err != nil {
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
			lane, err := s.t.e.assign(r)
			if err != nil && m.refusal == nil {
				m.refusal = &flow.Error{Code: flow.CodeInvalidInput, Message: err.Error()}
			}
			if lane != "" {
				if err := s.t.keepLane(ctx, lane); err != nil {
					return err
				}
			}
		}
		d := flow.Submit(s.t.e.opts.NewID(), *r)
		s.t.add(d)
		if sums := uploads.SumsIn(r.Input, r.With); len(sums) > 0 { // one that is not there the child misses when it runs
			if err := s.t.lockUploads(ctx, sums); err != nil {
				return err
			}
			s.t.holds(d.ID, sums)
		}
		if m.refusal == nil && m.runs() {
			drafts = append(drafts, d)
			continue
		}
		if err := m.end(d, s.t.now); err != nil {
			return err
		}
		s.t.changed(d)
	}
	return s.t.admit(ctx, drafts)
}

// make makes a child's request, and finds out whether it is to end with an output without running.
func (s *step) make(ctx context.Context, kids maker, c *orchestration.Child, m *made) (err error) {
	if b := s.w.BeneathAt(c.Task.Name, c.Index); b != nil {
		if m.request, m.refusal, err = s.beneath(ctx, kids, c, b); err != nil {
			return fmt.Errorf("task %q: %w", c.Task.Name, err)
		}
		return nil
	}
	if m.request, m.refusal, err = kids.request(ctx, c); err != nil {
		return fmt.Errorf("task %q: %w", c.Task.Name, err)
	}
	m.request.NoCache = s.w.NoCache || !s.w.RerunOf.IsZero() // a rerun says by itself what it reuses: what it runs, runs
	if m.given = s.w.Given(c.Task.Name, c.Index); m.given != nil {
		m.request.Rerun = &flow.Rerun{GivenBy: s.w.AsRerun().GivenBy}
	} else if m.reuse, err = s.reusable(ctx, c, &m.request, m.refusal); err != nil {
		return err
	}
	if m.refusal == nil && m.runs() {
		m.request.Cache = s.cacheOf(c, &m.request)
	}
	return nil
}

// runs reports whether nothing else gives the child its output. One that was refused fails instead.
func (m *made) runs() bool { return m.reuse == nil && m.given == nil && m.kept == nil }

// end ends a child that does not run.
func (m *made) end(d *flow.Draft, now time.Time) error {
	switch {
	case m.given != nil:
		return d.Give(m.given, now)
	case m.refusal != nil:
		return d.Reject(m.refusal, now)
	case m.kept != nil:
		return d.Reuse(m.kept.Output, now)
	}
	return d.Reuse(m.reuse.Output, now)
}

// maker makes the requests of a workflow's children.
type maker struct {
	definition func(ctx context.Context, name string, version int, by string) (*definition.Definition, int, error)
	// workflow is whose children they are, or the first execution of which it is a rerun: where an alias stands for several versions, all
	// of them get the same one, and so do those of reruns.
	workflow        string
	priority, depth int // the workflow's
}

func (s *step) maker() maker {
	return maker{s.t.definition, firstOf(s.w.Execution).String(), s.w.Priority, s.w.Depth}
}

// request makes a child's request. When that is impossible the child is created all the same, to fail with the reason.
// That the store does not answer is no such reason: it is an error.
func (m maker) request(ctx context.Context, c *orchestration.Child) (flow.Request, *flow.Error, error) {
	r, err := m.action(ctx, c)
	if away := (unreadable{}); errors.As(err, &away) {
		return r, nil, away.error
	}
	if err == nil {
		if c.Task.Settings.Priority == nil && r.Priority == 0 {
			r.Priority = m.priority
		}
		applySettings(&r, &c.Task.Settings)
		if c.Key != "" {
			r.Key, r.KeyLimit, r.WhenFull, r.Fair = c.Key, c.KeyLimit, c.WhenFull, c.Fair
		}
		if c.Rate.Key != "" {
			r.Rate = c.Rate
		}
		if err = checkText("the concurrency key", r.Key, fault.KeyLimit); err == nil {
			err = checkText("the key of the rate", r.Rate.Key, fault.KeyLimit)
		}
		if err == nil {
			err = checkText("fair_by", r.Fair.By, fault.KeyLimit)
		}
		if err == nil && m.depth+1 > depthLimit {
			err = fmt.Errorf("workflows nest deeper than %d", depthLimit)
		}
	}
	if err != nil {
		r = flow.Request{Action: c.Task.Action, Kind: flow.KindNoop, Queue: flow.DefaultQueue, Input: c.Input}
		return r, &flow.Error{Code: flow.CodeInvalidInput, Message: err.Error()}, nil
	}
	return r, nil, nil
}

// checkText refuses a text that an expression made and a user could not have sent.
func checkText(what, text string, limit int) error {
	switch {
	case len(text) > limit:
		return fmt.Errorf("%s has %d bytes, more than the %d allowed", what, len(text), limit)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return fmt.Errorf("%s %.60q has a NUL byte or is not UTF-8: remove the byte", what, text)
	}
	return nil
}

// unreadable is an error that lies in the store and not in what was asked for.
type unreadable struct{ error }

// action resolves what a child runs.
func (m maker) action(ctx context.Context, c *orchestration.Child) (flow.Request, error) {
	if err := checkEnv(c.Env); err != nil {
		return flow.Request{}, err
	}
	if kind := flow.Kind(c.Action); kind.AdHoc() && !c.Workflow {
		input := c.Input
		if kind.RunsCode() {
			var err error
			if input, err = definition.MergeEnv(input, c.Env); err != nil {
				return flow.Request{}, err
			}
		}
		return builtIn(kind, input), nil
	}
	if err := checkText("the name of the action or workflow", c.Action, fault.ActionLimit); err != nil {
		return flow.Request{}, err
	}
	def, version, err := m.definition(ctx, c.Action, c.Version, m.workflow)
	if err != nil && !spoiled(err) {
		return flow.Request{}, unreadable{fmt.Errorf("action %q: %w", c.Action, err)}
	}
	if err != nil {
		return flow.Request{}, fmt.Errorf("action %q: %w", c.Action, err)
	}
	if c.Workflow && def.Workflow == nil {
		return flow.Request{}, fmt.Errorf("%q is an action, not a workflow", c.Action)
	}
	r, err := requestFor(def, version, c.Input, nil, c.Env)
	_, r.Alias, _ = strings.Cut(c.Action, "@")
	return r, err
}

// envLimit is how many bytes the environment of a task may have, names and values together: what a program is started with
// must fit into what its system takes.
const envLimit = 1 << 20

// checkEnv refuses an environment that no program can be started with.
func checkEnv(env map[string]string) error {
	size := 0
	for name, value := range env {
		if err := checkText("the environment's "+name, value, envLimit); err != nil {
			return err
		}
		size += len(name) + len(value)
	}
	if size > envLimit {
		return fmt.Errorf("the environment has %d bytes, more than the %d allowed: pass large values as input or as files", size, envLimit)
	}
	return nil
}
