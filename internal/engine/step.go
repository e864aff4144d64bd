package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
)

// step is one workflow's next step within a transaction.
type step struct {
	t       *transaction
	w       *flow.Draft
	def     *definition.Workflow
	p       *progress
	outputs map[int]orchestration.Output
	plan    orchestration.Plan
	ends    orchestration.Change // the ends of children that caused it
	more    bool                 // it does not fit into this transaction
	begins  bool                 // it begins the clean-up of the workflow
	reuses  reuses               // of a rerun
	// prepared has the requests of the planned children, in order; unprepared is the store's error if one could not be made.
	prepared   []childRequest
	unprepared error
}

const (
	// outputsLimit is how many bytes of outputs a step reads. Decoded, they take several times as much memory.
	outputsLimit = 32 << 20
	// endsAtOnce is how many open children of a task are ended together.
	endsAtOnce = 500
	// handedDownLimit bounds, in bytes, the part of a cancelled workflow's reason that each of its children gets, in its row and in an event;
	// the workflow has the whole reason. With reasons of 4,096 bytes, 2,000 children would have 16 MB.
	handedDownLimit = 200
)

// take decides the step and carries it out. l is the store's answer about the workflow; nil: the transaction knows it.
func (s *step) take(ctx context.Context, l *store.LockedWorkflow) error {
	s.follow(l)
	if c := s.w.State.Cancel; c != nil {
		st := s.p.tracker.State()
		s.cleanUp()
		st.Ending, st.Reason = c.As, &flow.Error{Code: c.Code, Message: c.Reason}
	}
	if err := s.decide(ctx); err != nil {
		return err
	}
	return s.carryOut(ctx)
}

// cleanUp decides whether a workflow that was ordered to end first runs its clean-up tasks. When the clean-up is over, everything it has
// started is ordered to end; clean-ups of sub-workflows that were ordered earlier end at the same time.
func (s *step) cleanUp() {
	st := s.p.tracker.State()
	s.w.BoundCleanup(s.w.State.Cancel.At.Add(s.def.CleanupTimeout))
	if !s.w.State.Cancel.Until.After(s.t.now) {
		s.w.EndCleanup()
	}
	if c := s.w.State.Cancel; !c.Over && !c.Cleaning && st.Cleans(s.def) {
		s.w.BeginCleanup()
		s.begins = true
	}
	c := s.w.State.Cancel
	if c.Over && !st.CleanedUp {
		st.Stopped, st.CleanedUp = false, true
	}
	st.Cleaning = c.Cleaning && !c.Over
}

// follow finds the progress of the workflow: from the transaction and what this replica followed before, or from its rows.
func (s *step) follow(l *store.LockedWorkflow) {
	workflowAttempt := attemptOf(s.w)
	if s.p = s.t.workflows.progress[workflowAttempt]; s.p == nil {
		s.p = s.t.e.followed.begin(workflowAttempt)
		s.t.workflows.progress[workflowAttempt] = s.p
	}
	counted := s.p.tracker == nil
	if counted {
		s.p.count(s.def, l)
	}
	s.ends = s.t.noteEnds(s.p, !counted)
}

// decide plans what the workflow does next, until it has to wait.
func (s *step) decide(ctx context.Context) (err error) {
	if s.w.State.Pause != nil && s.w.State.Cancel == nil {
		return nil // only ends are counted
	}
	st := s.p.tracker.State()
	facts := &orchestration.Facts{
		ID: s.w.ID.String(), Labels: s.w.Labels, Items: s.p.items,
		Output: func(task int) orchestration.Output { return s.outputs[task] },
	}
	kids := s.maker()
	facts.Prepare = func(c *orchestration.Child, most int) int { return s.prepare(ctx, &kids, c, most) }
	rows, bytes, work := s.t.budget.Rows, s.t.budget.Bytes, s.t.budget.Work
	for {
		next := s.p.tracker.Next()
		if next.Empty() {
			return nil
		}
		if len(next.Start)+len(next.More)+len(next.Judge) > 0 || next.Done != 0 {
			if err := s.loadFor(ctx, &next); err != nil {
				return err
			}
			facts.Input = s.w.Input
		}
		if facts.Upto, err = s.loadReusable(ctx, &next, rows-len(s.plan.Children), bytes-s.payloadBytes()); err != nil {
			return err
		}
		facts.Most, facts.MostBytes, facts.MostWork = rows-len(s.plan.Children), bytes-s.payloadBytes(), work-s.plan.Work
		again := orchestration.Take(s.def, st, next, facts, &s.plan)
		if s.unprepared != nil {
			return s.unprepared
		}
		if !again || s.plan.Stage != 0 {
			return nil
		}
		if rows <= len(s.plan.Children) || bytes <= s.payloadBytes() || work <= s.plan.Work {
			s.more = true
			return nil
		}
	}
}

// payloadBytes is about how many bytes the inputs of the planned children and their reused outputs have.
func (s *step) payloadBytes() (n int) {
	n = s.reuses.bytes
	for i := range s.plan.Children {
		n += s.plan.Children[i].Size()
	}
	return n
}

// loadFor loads what the expressions of a step read: the workflow's input, outputs, and the errors of tasks. A workflow that was ordered to
// end evaluates none: its outcome is the order's.
func (s *step) loadFor(ctx context.Context, next *orchestration.Step) error {
	if st := s.p.tracker.State(); st.Ending != 0 && !st.Cleaning {
		return nil
	}
	if err := s.t.needPayload(ctx, s.w); err != nil {
		return err
	}
	return s.loadOutputs(ctx, append(next.Outputs(s.def, s.p.items), s.failures()...))
}

// failures are the tasks whose error is not known yet.
func (s *step) failures() []int {
	var tasks []int
	for i, t := range s.def.Tasks {
		if t.Repeat != nil && t.ContinueOnError {
			continue // its mark has the error
		}
		if s.p.tracker.State().Tasks[i].Unexplained() {
			tasks = append(tasks, i)
		}
	}
	return tasks
}

// loadOutputs loads the outcomes of the children of tasks: from the transaction if all of them ended in it, else from the store.
func (s *step) loadOutputs(ctx context.Context, tasks []int) error {
	var names []string
	for _, i := range tasks {
		if _, have := s.outputs[i]; have {
			continue
		}
		s.outputs[i] = orchestration.Output{}
		if s.def.Tasks[i].Repeat != nil {
			if err := s.loadLatestRound(ctx, i); err != nil {
				return err
			}
			continue
		}
		if children := s.endedHere(i); children != nil {
			s.setOutcomes(i, children)
		} else {
			names = append(names, s.def.Tasks[i].Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	outcomes, err := s.t.tx.Outcomes(ctx, attemptOf(s.w), names, outputsLimit)
	if errors.Is(err, store.ErrTooLarge) {
		return s.loadOneByOne(ctx, names)
	}
	if err != nil {
		return fmt.Errorf("load outputs: %w", err)
	}
	for name, children := range outcomes {
		s.setOutcomes(s.def.Task(name).Index, children)
	}
	return nil
}

// loadOneByOne loads the outputs of tasks that are too large together. Expressions that read an output that is too large by itself fail;
// the others get theirs, while all of them fit.
func (s *step) loadOneByOne(ctx context.Context, names []string) error {
	remaining := int64(outputsLimit)
	for _, name := range names {
		i := s.def.Task(name).Index
		outcomes, err := s.t.tx.Outcomes(ctx, attemptOf(s.w), []string{name}, remaining)
		switch {
		case errors.Is(err, store.ErrTooLarge):
			s.outputs[i] = orchestration.Output{TooLarge: fmt.Errorf("the outputs that the expressions of one step look at have more than %d MB together: "+
				"put out less, or write files and pass their names on", outputsLimit>>20)}
		case err != nil:
			return fmt.Errorf("load outputs: %w", err)
		default:
			for _, c := range outcomes[name] {
				remaining -= int64(len(c.Outcome.Output))
			}
			s.setOutcomes(i, outcomes[name])
		}
	}
	return nil
}

// endedHere returns the outcomes of a task's children, in index order, if all ended children ended in this transaction; else nil.
func (s *step) endedHere(task int) []store.ChildOutcome {
	p, here := &s.p.tracker.State().Tasks[task], s.t.workflows.ended[s.w.ID]
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

// setOutcomes makes the output of a task from the outcomes of its children, given in index order, and records their errors.
func (s *step) setOutcomes(task int, children []store.ChildOutcome) {
	p, foreach := &s.p.tracker.State().Tasks[task], s.def.Tasks[task].Foreach != nil
	var out orchestration.Output
	if foreach {
		out.Items = make([]json.RawMessage, p.Created)
	}
	for i := range children {
		c := &children[i]
		p.Blame(c.Index, c.Stage, c.Outcome.Error)
		if !foreach {
			out.Single = c.Outcome.Output
		} else if c.Index < len(out.Items) {
			out.Items[c.Index] = c.Outcome.Output
		}
	}
	s.outputs[task] = out
}

// carryOut turns the plan into drafts, marks and a change.
func (s *step) carryOut(ctx context.Context) error {
	for _, m := range s.plan.Marks {
		s.t.changes.workflows.Marks = append(s.t.changes.workflows.Marks, store.Mark{
			Workflow: s.w.ID, Attempt: s.w.Attempt, Task: s.def.Tasks[m.Task].Name,
			State: m.Mark.String(), Total: m.Total, Error: m.Error,
		})
	}
	if data := s.advanceData(); data != nil {
		if err := s.w.Advance(data, s.t.now); err != nil {
			return err
		}
	}
	s.t.budget.Spend(len(s.plan.Children), s.payloadBytes())
	s.t.budget.Compute(s.plan.Work)
	if s.plan.Work > s.t.costliest.work {
		s.t.costliest = costliest{s.def.Name, s.plan.Work}
	}
	s.p.created += len(s.plan.Children)
	if err := s.createChildren(ctx); err != nil {
		return err
	}
	st := s.p.tracker.State()
	if err := s.endChildren(ctx, s.plan.Recall, true, &st.Recalled); err != nil {
		return err
	}
	if err := s.endChildren(ctx, s.plan.Cancel, false, &st.Stopped); err != nil {
		return err
	}
	if s.plan.Stage != 0 {
		s.p.tracker, s.p.items = nil, nil // the attempt is over
		return s.w.Finish(s.plan.Stage, s.plan.Outcome, s.t.now, s.t.e.opts.Random())
	}
	c := orchestration.ChangeOf(st, &s.plan)
	c.Ended = s.ends.Ended
	if err := s.t.recordChange(s.p, &c); err != nil {
		return err
	}
	if s.more {
		return s.t.postpone(s.w, nil)
	}
	return nil
}

// advanceData is the data of the event EvAdvanced of this step; nil if no task was started, finished or skipped and no clean-up begins.
func (s *step) advanceData() json.RawMessage {
	if len(s.plan.Marks)+len(s.plan.Children) == 0 && !s.begins {
		return nil
	}
	did := s.plan.Advance(s.def)
	if st := s.p.tracker.State(); st.Cleaning {
		did.Cleanup = st.Ending.String()
	}
	data, err := json.Marshal(did)
	if err != nil {
		return nil // strings and numbers always have a JSON form
	}
	return data
}

// endChildren orders open children of tasks to end: all of them, or only those that neither a worker nor the engine holds yet. all reports
// whether these were all; a transaction ends as many as it has room for, and the next one the rest.
func (s *step) endChildren(ctx context.Context, tasks []int, unheld bool, all *bool) (err error) {
	if len(tasks) == 0 {
		return nil
	}
	code, reason := flow.CodeCancelled, orchestration.AfterCancel
	switch c := s.w.State.Cancel; {
	case c != nil && c.Cleaning && c.Kill:
		reason = "the clean-up was ended by a second cancel or a kill"
	case c != nil && c.Cleaning && c.Over:
		reason = "the clean-up took longer than the cleanup_timeout of the workflow, or of one above it"
	case c != nil:
		code, reason = c.Code, c.Reason
	case s.p.tracker.State().Failing(s.def):
		reason = orchestration.AfterFailure
	}
	*all = true
	for i := 0; i < len(tasks) && *all; i++ {
		if *all, err = s.t.endOpen(ctx, s.w, s.def.Tasks[tasks[i]].Name, unheld, code, reason); err != nil {
			return err
		}
	}
	s.more = s.more || !*all
	return nil
}

// endOpen orders open children of a workflow's task ("": of all) to end, and reports whether these were all.
func (t *transaction) endOpen(ctx context.Context, w *flow.Draft, task string, unheld bool, code, reason string) (all bool, err error) {
	reason = flow.Clipped(reason, handedDownLimit)
	for {
		most := min(endsAtOnce, t.budget.Rows)
		if most <= 0 {
			return false, nil
		}
		ids, err := t.tx.Open(ctx, attemptOf(w), task, unheld, most)
		if err != nil {
			return false, fmt.Errorf("list open tasks: %w", err)
		}
		if err := t.Load(ctx, ids); err != nil {
			return false, err
		}
		t.budget.Spend(len(ids), 0)
		ended := 0
		for _, id := range ids {
			d := t.Draft(id)
			if d == nil || d.Stage.Terminal() || d.State.Cancel != nil {
				continue
			}
			err := t.tried(d, func() error { return d.Cancel(flow.Cancelled, code, reason, t.now) })
			if err != nil {
				return false, err
			}
			if w.State.Cancel != nil {
				d.KeyOrder(w.State.Cancel.Key) // one request may name a workflow and its sub-workflow
			}
			switch c := w.State.Cancel; {
			case c == nil:
			case c.Kill:
				d.EndAtOnce()
			case c.Over:
				d.EndCleanup()
			default:
				d.BoundCleanup(c.Until)
			}
			if t.cancelled(d); d.Aside == nil {
				ended++
			}
		}
		if len(ids) < most || ended == 0 {
			return true, nil
		}
	}
}

// endUndefined ends a cancelled workflow whose definition this version of the program cannot read.
func (t *transaction) endUndefined(ctx context.Context, w *flow.Draft) error {
	c := w.State.Cancel
	all, err := t.endOpen(ctx, w, "", false, c.Code, c.Reason)
	if err != nil {
		return err
	}
	if err := t.flush(ctx); err != nil {
		return err
	}
	locked, err := t.tx.LockWorkflows(ctx, []store.KnownWorkflow{{WorkflowAttempt: attemptOf(w), Change: store.NothingKnown}})
	if err != nil {
		return fmt.Errorf("count its tasks: %w", err)
	}
	open := 0
	for i := range locked {
		for _, task := range locked[i].Tasks {
			open += task.Open
		}
		if err := t.recordUnknownEnds(w, &locked[i]); err != nil {
			return err
		}
	}
	switch {
	case !all:
		return t.postpone(w, nil)
	case open > 0:
		return nil // their ends make the workflow due again
	}
	return w.Finish(c.As, flow.Outcome{Error: &flow.Error{Code: c.Code, Message: c.Reason}}, t.now, t.e.opts.Random())
}
