package sqlite

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	// Grouped by task alone, rows are counted in the order in which they lie; by stage as well, they would be sorted first.
	qProgress = sql(`SELECT task, count(*), sum(ended = 2), sum(ended = 6) FROM children WHERE workflow = ? AND attempt = ? GROUP BY task`)

	// Few tasks need the rest counted.
	qEndedOtherwise = sql(`SELECT ended, count(*) FROM children WHERE workflow = ? AND attempt = ? AND task = ? AND ended > 6 GROUP BY ended`)

	qMarks = sql(`SELECT task, state, total, error FROM marks WHERE workflow = ? AND attempt = ? ORDER BY task`)

	qOutcomes = sql(`SELECT c.idx, e.id, d.stage` + outcomeColumns + ` FROM children c JOIN ended d ON d.n = c.n
		JOIN executions e ON e.n = c.n WHERE c.workflow = ? AND c.attempt = ? AND c.task = ? ORDER BY c.idx`)

	qOpen = sql(`SELECT e.id FROM children c JOIN executions e ON e.n = c.n
		WHERE c.workflow = ? AND c.attempt = ? AND c.ended = 2 ORDER BY c.task, c.idx LIMIT ?`)

	qOpenOfTask = sql(`SELECT e.id FROM children c JOIN executions e ON e.n = c.n
		WHERE c.workflow = ? AND c.attempt = ? AND c.task = ? AND c.ended = 2 ORDER BY c.idx LIMIT ?`)
)

// LockWorkflows implements store.Workflows.
func (t *tx) LockWorkflows(ctx context.Context, of []store.WorkflowAttempt) ([]*flow.Execution, map[flow.ID][]store.TaskProgress, error) {
	ids := make([]flow.ID, len(of))
	for i, w := range of {
		ids[i] = w.ID
	}
	ws, err := t.Lock(ctx, ids, store.WithPayload)
	if err != nil {
		return nil, nil, err
	}
	progress := make(map[flow.ID][]store.TaskProgress, len(of))
	for _, w := range of {
		n, ok, err := t.number(w.ID)
		if err != nil {
			return nil, nil, fmt.Errorf("read progress of %s: %w", w.ID, err)
		}
		if !ok {
			continue
		}
		tasks, err := t.progress(n, w)
		if err != nil {
			return nil, nil, fmt.Errorf("read progress of %s: %w", w.ID, err)
		}
		if len(tasks) > 0 {
			progress[w.ID] = tasks
		}
	}
	return ws, progress, nil
}

func (t *tx) progress(n int64, w store.WorkflowAttempt) ([]store.TaskProgress, error) {
	var tasks []store.TaskProgress
	s := t.c.use(qProgress).int(n).int(int64(w.Attempt))
	for s.next() {
		p := store.TaskProgress{Task: s.getText(), Created: int(s.getInt()), Open: int(s.getInt())}
		if p.Created > p.Open {
			p.Ended = make(map[flow.Stage]int, 1)
			if completed := int(s.getInt()); completed > 0 {
				p.Ended[flow.Completed] = completed
			}
		}
		tasks = append(tasks, p)
	}
	if err := s.done(); err != nil {
		return nil, err
	}
	for _, p := range tasks {
		if p.Open+p.Ended[flow.Completed] == p.Created {
			continue
		}
		s := t.c.use(qEndedOtherwise).int(n).int(int64(w.Attempt)).text(p.Task)
		for s.next() {
			stage := flow.Stage(s.getInt())
			p.Ended[stage] = int(s.getInt())
		}
		if err := s.done(); err != nil {
			return nil, err
		}
	}
	marks, err := t.c.marks(n, w)
	if err != nil {
		return nil, err
	}
	at := make(map[string]int, len(tasks))
	for i := range tasks {
		at[tasks[i].Task] = i
	}
	for i := range marks {
		m := &marks[i]
		if j, ok := at[m.Task]; ok {
			tasks[j].Mark = m
		} else {
			tasks = append(tasks, store.TaskProgress{Task: m.Task, Mark: m})
		}
	}
	return tasks, nil
}

func (c *conn) marks(n int64, w store.WorkflowAttempt) ([]store.Mark, error) {
	var all []store.Mark
	var bad error
	s := c.use(qMarks).int(n).int(int64(w.Attempt))
	for s.next() {
		m := store.Mark{Workflow: w.ID, Attempt: w.Attempt, Task: s.getText(), State: s.getText(), Total: int(s.getInt())}
		var err error
		if m.Error, err = row.DecodeError(s.peekBlob()); err != nil {
			bad = fmt.Errorf("read mark of task %q: %w", m.Task, err)
		}
		all = append(all, m)
	}
	if err := s.done(); err != nil {
		return nil, err
	}
	return all, bad
}

// Outcomes implements store.Workflows.
func (t *tx) Outcomes(_ context.Context, of store.WorkflowAttempt, tasks []string) (map[string][]store.ChildOutcome, error) {
	n, ok, err := t.number(of.ID)
	if err != nil || !ok {
		return nil, err
	}
	all := make(map[string][]store.ChildOutcome, len(tasks))
	for _, task := range tasks {
		if _, ok := all[task]; ok {
			continue
		}
		outcomes, err := t.outcomes(n, of, task)
		if err != nil {
			return nil, fmt.Errorf("read outcomes of task %q of %s: %w", task, of.ID, err)
		}
		if len(outcomes) > 0 {
			all[task] = outcomes
		}
	}
	return all, nil
}

func (t *tx) outcomes(n int64, of store.WorkflowAttempt, task string) ([]store.ChildOutcome, error) {
	var all []store.ChildOutcome
	var bad error
	s := t.c.use(qOutcomes).int(n).int(int64(of.Attempt)).text(task)
	for s.next() {
		o := store.ChildOutcome{Index: int(s.getInt()), Execution: s.getID(), Stage: flow.Stage(s.getInt())}
		var err error
		if o.Outcome, err = s.outcome(); err != nil {
			bad = err
		}
		all = append(all, o)
	}
	if err := s.done(); err != nil {
		return nil, err
	}
	return all, bad
}

// Open implements store.Workflows.
func (t *tx) Open(_ context.Context, of store.WorkflowAttempt, task string, limit int) ([]flow.ID, error) {
	n, ok, err := t.number(of.ID)
	if err != nil || !ok {
		return nil, err
	}
	var s *stmt
	if task == "" {
		s = t.c.use(qOpen).int(n).int(int64(of.Attempt))
	} else {
		s = t.c.use(qOpenOfTask).int(n).int(int64(of.Attempt)).text(task)
	}
	s.int(int64(limit))
	var all []flow.ID
	for s.next() {
		all = append(all, s.getID())
	}
	if err := s.done(); err != nil {
		return nil, fmt.Errorf("find open children of %s: %w", of.ID, err)
	}
	return all, nil
}
