package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
)

// defaultChildrenPerTurn bounds how many children of one workflow a transaction creates, so that a wide fan-out does not hold up
// everybody else's commits. The rest follows in the next transactions.
const defaultChildrenPerTurn = 2000

// advance lets every workflow with news take its next step.
func (t *turn) advance(ctx context.Context) error {
	ids := make([]flow.ID, 0, len(t.folds))
	for id := range t.folds {
		ids = append(ids, id)
	}
	clear(t.folds)
	slices.SortFunc(ids, func(a, b flow.ID) int { return slices.Compare(a[:], b[:]) })
	progress, err := t.loadWorkflows(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		w := t.drafts[id]
		if w == nil || w.Place != flow.Held || w.Kind != flow.KindWorkflow {
			continue
		}
		if err := t.advanceOne(ctx, w, progress[id]); err != nil {
			return fmt.Errorf("advance workflow %s: %w", id, err)
		}
	}
	return nil
}

// loadWorkflows brings workflows into the turn with their input, which expressions look at, and tells how far they are.
func (t *turn) loadWorkflows(ctx context.Context, ids []flow.ID) (map[flow.ID][]store.TaskProgress, error) {
	var of []store.WorkflowAttempt
	for _, id := range ids {
		if d := t.drafts[id]; d == nil || !t.fresh[id] || d.Input == nil && !d.New {
			of = append(of, store.WorkflowAttempt{ID: id, Attempt: t.attemptToLoad(id)})
		}
		delete(t.fresh, id)
	}
	progress, err := t.lockWorkflows(ctx, of)
	if err != nil {
		return nil, err
	}
	var other []store.WorkflowAttempt // another attempt of them is under way
	for _, a := range of {
		if w := t.drafts[a.ID]; w != nil && w.Place == flow.Held && w.Attempt != a.Attempt {
			delete(progress, a.ID)
			other = append(other, attemptOf(w))
		}
	}
	more, err := t.lockWorkflows(ctx, other)
	maps.Copy(progress, more)
	return progress, err
}

// attemptToLoad is the attempt that a workflow is probably at.
func (t *turn) attemptToLoad(id flow.ID) int {
	if d := t.drafts[id]; d != nil {
		return d.Attempt
	}
	last := 1
	for _, child := range t.ends[id] {
		last = max(last, child.ParentAttempt)
	}
	return last
}

func (t *turn) lockWorkflows(ctx context.Context, of []store.WorkflowAttempt) (map[flow.ID][]store.TaskProgress, error) {
	if len(of) == 0 {
		return map[flow.ID][]store.TaskProgress{}, nil
	}
	xs, progress, err := t.tx.LockWorkflows(ctx, of)
	if err != nil {
		return nil, fmt.Errorf("load workflows: %w", err)
	}
	for _, x := range xs {
		if d := t.drafts[x.ID]; d != nil {
			d.Input, d.With = x.Input, x.With
		} else {
			t.add(flow.Load(x))
		}
	}
	return progress, nil
}

func attemptOf(w *flow.Draft) store.WorkflowAttempt {
	return store.WorkflowAttempt{ID: w.ID, Attempt: w.Attempt}
}

// step is one workflow's advance within a turn.
type step struct {
	*turn
	w       *flow.Draft
	def     *definition.Workflow
	state   orchestration.State
	outputs map[int]orchestration.Output
	plan    orchestration.Plan
}

func (t *turn) advanceOne(ctx context.Context, w *flow.Draft, rows []store.TaskProgress) error {
	def, _, err := t.e.catalog.get(ctx, w.Action, w.Version)
	if err != nil {
		return fmt.Errorf("load its definition: %w", err)
	}
	s := &step{turn: t, w: w, def: def.Workflow, outputs: map[int]orchestration.Output{}}
	s.state.Tasks = make([]orchestration.Progress, len(s.def.Tasks))
	for i := range rows {
		s.read(&rows[i])
	}
	if c := w.State.Cancel; c != nil {
		s.state.Ending, s.state.Reason = c.As, &flow.Error{Code: c.Code, Message: c.Reason}
	}
	if err := s.decide(ctx); err != nil {
		return err
	}
	return s.carryOut(ctx)
}

// read takes over what the rows say of one task.
func (s *step) read(r *store.TaskProgress) {
	task := s.def.Task(r.Task)
	if task == nil {
		return
	}
	p := &s.state.Tasks[task.Index]
	p.Created, p.Open = r.Created, r.Open
	p.Completed, p.Failed = r.Ended[flow.Completed], r.Ended[flow.Failed]
	p.Cancelled, p.TimedOut = r.Ended[flow.Cancelled], r.Ended[flow.TimedOut]
	if m := r.Mark; m != nil {
		p.Mark, p.Total, p.Error = markNamed(m.State), m.Total, m.Error
	}
}

func markNamed(name string) orchestration.Mark {
	for m := orchestration.Unmarked; m <= orchestration.Broken; m++ {
		if m.String() == name {
			return m
		}
	}
	return orchestration.Unmarked
}

// decide works out what the workflow does next, until it has to wait.
func (s *step) decide(ctx context.Context) error {
	list := s.e.items.of(attemptOf(s.w))
	list.Lock() // nobody has to wait: whoever decides about a workflow holds its row
	defer list.Unlock()
	items := list.items
	facts := &orchestration.Facts{
		ID: s.w.ID.String(), Input: s.w.Input, Labels: s.w.Labels, Items: items, Most: s.e.childrenPerTurn,
		Output: func(task int) orchestration.Output { return s.outputs[task] },
	}
	for {
		next := orchestration.Next(s.def, &s.state)
		if next.Empty() {
			return nil
		}
		want := next.Outputs(s.def, items)
		if len(next.Start) > 0 || next.Done != 0 {
			want = append(want, s.failures()...)
		}
		if err := s.loadOutputs(ctx, want); err != nil {
			return err
		}
		again := orchestration.Take(s.def, &s.state, next, facts, &s.plan)
		if !again || s.plan.Stage != 0 {
			return nil
		}
		if facts.Most = s.e.childrenPerTurn - len(s.plan.Children); facts.Most <= 0 {
			s.again = append(s.again, s.w.ID)
			return nil
		}
	}
}

// failures names the tasks whose first error is not known yet.
func (s *step) failures() []int {
	var tasks []int
	for i := range s.state.Tasks {
		if p := &s.state.Tasks[i]; p.Error == nil && p.Failed+p.TimedOut+p.Cancelled > 0 {
			tasks = append(tasks, i)
		}
	}
	return tasks
}

// loadOutputs fetches what the children of tasks ended with: from the turn where all of them ended in it, else from the
// store.
func (s *step) loadOutputs(ctx context.Context, tasks []int) error {
	var names []string
	for _, i := range tasks {
		if _, have := s.outputs[i]; have {
			continue
		}
		s.outputs[i] = orchestration.Output{}
		if children := s.endedHere(i); children != nil {
			s.keepOutcomes(i, children)
		} else {
			names = append(names, s.def.Tasks[i].Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	outcomes, err := s.tx.Outcomes(ctx, attemptOf(s.w), names)
	if err != nil {
		return fmt.Errorf("load outputs: %w", err)
	}
	for name, children := range outcomes {
		s.keepOutcomes(s.def.Task(name).Index, children)
	}
	return nil
}

// endedHere returns how the children of a task ended, in index order, when all that have ended did so in this turn; else
// nil.
func (s *step) endedHere(task int) []store.ChildOutcome {
	p, here := &s.state.Tasks[task], s.ends[s.w.ID]
	all := p.Completed + p.Failed + p.Cancelled + p.TimedOut
	if all == 0 || all > len(here) {
		return nil
	}
	name := s.def.Tasks[task].Name
	children := make([]store.ChildOutcome, 0, all)
	for _, d := range here {
		if d.Task == name && d.ParentAttempt == s.w.Attempt {
			children = append(children, store.ChildOutcome{Index: d.Index, Execution: d.ID, Stage: d.Stage, Outcome: *d.Outcome})
		}
	}
	if len(children) != all {
		return nil
	}
	slices.SortFunc(children, func(a, b store.ChildOutcome) int { return a.Index - b.Index })
	return children
}

// keepOutcomes takes over how the children of a task ended, given in index order.
func (s *step) keepOutcomes(task int, children []store.ChildOutcome) {
	p, foreach := &s.state.Tasks[task], s.def.Tasks[task].Foreach != nil
	var out orchestration.Output
	if foreach {
		out.Items = make([]json.RawMessage, p.Created)
	}
	for i := range children {
		c := &children[i]
		if c.Outcome.Error != nil && p.Error == nil {
			p.Error, p.ErrorIndex = c.Outcome.Error, c.Index
		}
		if !foreach {
			out.Single = c.Outcome.Output
		} else if c.Index < len(out.Items) {
			out.Items[c.Index] = c.Outcome.Output
		}
	}
	s.outputs[task] = out
}

// carryOut turns the plan into drafts and marks.
func (s *step) carryOut(ctx context.Context) error {
	for _, m := range s.plan.Marks {
		s.marks = append(s.marks, store.Mark{
			Workflow: s.w.ID, Attempt: s.w.Attempt, Task: s.def.Tasks[m.Task].Name,
			State: m.Mark.String(), Total: m.Total, Error: m.Error,
		})
	}
	if data := s.news(); data != nil {
		if err := s.w.Advance(data, s.now); err != nil {
			return err
		}
	}
	if err := s.createChildren(ctx); err != nil {
		return err
	}
	if err := s.endChildren(ctx, s.plan.Recall, false); err != nil {
		return err
	}
	if err := s.endChildren(ctx, s.plan.Cancel, true); err != nil {
		return err
	}
	if s.plan.Stage != 0 {
		s.e.items.drop(attemptOf(s.w))
		if err := s.w.Finish(s.plan.Stage, s.plan.Outcome, s.now, s.e.opts.Random()); err != nil {
			return err
		}
	}
	if s.w.Changed() {
		s.changed(s.w)
	}
	return nil
}

// news is the data of the event that says what the workflow did; nil when it did nothing that a reader would miss.
func (s *step) news() json.RawMessage {
	if len(s.plan.Marks)+len(s.plan.Children) == 0 {
		return nil
	}
	news := struct {
		Started   map[string]int `json:"started,omitempty"`
		Expanded  map[string]int `json:"expanded,omitempty"`
		Skipped   []string       `json:"skipped,omitempty"`
		Cancelled []string       `json:"cancelled,omitempty"`
		Broken    []string       `json:"broken,omitempty"`
	}{}
	for i := range s.plan.Children {
		if news.Started == nil {
			news.Started = map[string]int{}
		}
		news.Started[s.plan.Children[i].Task.Name]++
	}
	for _, m := range s.plan.Marks {
		name := s.def.Tasks[m.Task].Name
		switch m.Mark {
		case orchestration.Expanded:
			if news.Expanded == nil {
				news.Expanded = map[string]int{}
			}
			news.Expanded[name] = m.Total
		case orchestration.Skipped:
			news.Skipped = append(news.Skipped, name)
		case orchestration.Cancelled:
			news.Cancelled = append(news.Cancelled, name)
		case orchestration.Broken:
			news.Broken = append(news.Broken, name)
		}
	}
	data, err := json.Marshal(news)
	if err != nil {
		return nil // strings and numbers always have a JSON form
	}
	return data
}

func (s *step) createChildren(ctx context.Context) error {
	drafts := make([]*flow.Draft, 0, len(s.plan.Children))
	for i := range s.plan.Children {
		c := &s.plan.Children[i]
		r, refusal, err := s.childRequest(ctx, c)
		if err != nil {
			return fmt.Errorf("task %q: %w", c.Task.Name, err)
		}
		r.Parent, r.ParentAttempt, r.Task, r.Index = s.w.ID, s.w.Attempt, c.Task.Name, c.Index
		r.Depth, r.Traceparent, r.CreatedAt = s.w.Depth+1, s.w.Traceparent, s.now
		lane, err := s.e.assign(&r)
		if err != nil && refusal == nil {
			refusal = &flow.Error{Code: flow.CodeInvalidInput, Message: err.Error()}
		}
		if lane != "" {
			if err := s.keepLane(ctx, lane); err != nil {
				return err
			}
		}
		d := flow.Submit(s.e.opts.NewID(), r)
		s.add(d)
		if refusal != nil {
			if err := d.Reject(refusal, s.now); err != nil {
				return err
			}
			s.changed(d)
			continue
		}
		drafts = append(drafts, d)
	}
	return s.admit(ctx, drafts)
}

// childRequest makes a child's request. When that is impossible the child is created all the same, to fail with the reason.
// That the store does not answer is no such reason: it is an error.
func (s *step) childRequest(ctx context.Context, c *orchestration.Child) (flow.Request, *flow.Error, error) {
	r, err := s.childAction(ctx, c)
	if away := (unreadable{}); errors.As(err, &away) {
		return r, nil, away.error
	}
	if err != nil {
		r = flow.Request{Action: c.Action, Kind: flow.KindNoop, Queue: DefaultQueue, Input: c.Input}
		return r, &flow.Error{Code: flow.CodeInvalidInput, Message: err.Error()}, nil
	}
	if c.Task.Settings.Priority == nil && r.Priority == 0 {
		r.Priority = s.w.Priority
	}
	applySettings(&r, &c.Task.Settings)
	if c.Key != "" {
		r.Key, r.KeyLimit, r.WhenFull = c.Key, c.KeyLimit, c.WhenFull
	}
	if len(r.Key) > keyLimit {
		return r, &flow.Error{Code: flow.CodeInvalidInput, Message: fmt.Sprintf("the concurrency key has %d bytes, more than the %d allowed", len(r.Key), keyLimit)}, nil
	}
	if s.w.Depth+1 > depthLimit {
		return r, &flow.Error{Code: flow.CodeInvalidInput, Message: fmt.Sprintf("workflows nest deeper than %d", depthLimit)}, nil
	}
	return r, nil, nil
}

// unreadable is an error that lies in the store and not in what was asked for.
type unreadable struct{ error }

func (s *step) childAction(ctx context.Context, c *orchestration.Child) (flow.Request, error) {
	if kind := flow.Kind(c.Action); adHoc(kind) && !c.Workflow {
		input := c.Input
		if kind == flow.KindCode || kind == flow.KindContainer {
			var err error
			if input, err = definition.MergeEnv(input, c.Env); err != nil {
				return flow.Request{}, err
			}
		}
		return builtIn(kind, input), nil
	}
	def, version, err := s.e.catalog.get(ctx, c.Action, c.Version)
	if err != nil && !spoiled(err) {
		return flow.Request{}, unreadable{fmt.Errorf("action %q: %w", c.Action, err)}
	}
	if err != nil {
		return flow.Request{}, fmt.Errorf("action %q: %w", c.Action, err)
	}
	if c.Workflow && def.Workflow == nil {
		return flow.Request{}, fmt.Errorf("%q is an action, not a workflow", c.Action)
	}
	return requestFor(def, version, c.Input, nil, c.Env)
}

// endChildren cancels the open children of tasks: all of them, or only those that no worker holds yet.
func (s *step) endChildren(ctx context.Context, tasks []int, held bool) error {
	if len(tasks) == 0 {
		return nil
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	code, reason := flow.CodeCancelled, "the workflow failed"
	if c := s.w.State.Cancel; c != nil {
		code, reason = c.Code, c.Reason
	}
	for _, i := range tasks {
		ids, err := s.tx.Open(ctx, attemptOf(s.w), s.def.Tasks[i].Name, orchestration.MaxItems)
		if err != nil {
			return fmt.Errorf("list open tasks: %w", err)
		}
		if err := s.load(ctx, ids, store.WithoutPayload); err != nil {
			return err
		}
		for _, id := range ids {
			d := s.drafts[id]
			if d == nil || d.Stage.Terminal() || d.State.Cancel != nil || d.Place == flow.Held && !held {
				continue
			}
			if err := d.Cancel(flow.Cancelled, code, reason, s.now); err != nil {
				return err
			}
			s.cancelled(d)
		}
	}
	return nil
}

// foldOp lets a workflow that has more to start than one transaction takes go on.
type foldOp struct{ id flow.ID }

func (o *foldOp) want(t *turn)                        { t.folds[o.id] = true }
func (o *foldOp) decide(context.Context, *turn) error { return nil }
func (o *foldOp) done(error)                          {}
