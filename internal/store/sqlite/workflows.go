package sqlite

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	// children.ended is 2 (openChild) while the child is unfinished, and then its stage (flow.Stage): 6 is completed, and higher ones are the
	// other ends.

	// Grouped only by task, rows are counted in the order of the index; grouped by stage as well, they would have to be sorted first.
	qProgress = sql(`SELECT task, count(*), sum(ended = 2), sum(ended = 6) FROM children WHERE workflow = ? AND attempt = ? GROUP BY task`)

	// Only few tasks need the other ends counted.
	qEndedOtherwise = sql(`SELECT ended, count(*) FROM children WHERE workflow = ? AND attempt = ? AND task = ? AND ended > 6 GROUP BY ended`)

	qMarks = sql(`SELECT task, state, total, error FROM marks WHERE workflow = ? AND attempt = ? ORDER BY task`)

	qOutcomes = sql(`SELECT c.idx, e.id, d.stage, ` + outcomes.names("d.") + ` FROM children c JOIN ended d ON d.n = c.n
		JOIN executions e ON e.n = c.n WHERE c.workflow = ? AND c.attempt = ? AND c.task = ? ORDER BY c.idx`)

	qOutcome = sql(`SELECT c.idx, e.id, d.stage, ` + outcomes.names("d.") + ` FROM children c JOIN ended d ON d.n = c.n
		JOIN executions e ON e.n = c.n WHERE c.workflow = ? AND c.attempt = ? AND c.task = ? AND c.idx = ?`)

	qOpen = sql(`SELECT e.id ` + openChildren + ` ORDER BY c.task, c.idx LIMIT ?`)

	qOpenOfTask = sql(`SELECT e.id ` + openChildren + ` AND c.task = ? ORDER BY c.idx LIMIT ?`)

	qPayloadSize = sql(`SELECT coalesce(length(input), 0) + coalesce(length(payload), 0) FROM executions WHERE n = ?`)

	qChanges = sql(`SELECT number, change FROM changes WHERE workflow = ? AND attempt = ? AND number > ? ORDER BY number`)

	qLastChange = sql(`SELECT max(number) FROM changes WHERE workflow = ? AND attempt = ?`)

	qInsertChange = sql(`INSERT INTO changes (workflow, attempt, number, change) VALUES (?, ?, ?, ?)`)
)

// The unary plus keeps the planner from using an index other than that of the children.
const openChildren = `FROM children c JOIN live l ON l.n = c.n JOIN executions e ON e.n = c.n
	WHERE c.workflow = ? AND c.attempt = ? AND c.ended = 2 AND l.cancel_requested IS NULL AND (+l.place <> 4 OR NOT ?)`

func (t *tx) LockWorkflows(_ context.Context, of []store.KnownWorkflow) ([]store.LockedWorkflow, error) {
	all := make([]store.LockedWorkflow, 0, len(of))
	for _, w := range of {
		n, ok, err := t.number(w.ID)
		if err == nil && ok {
			var l store.LockedWorkflow
			if l, err = t.lockWorkflow(n, w); l.Execution != nil {
				all = append(all, l)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("lock workflow %s: %w", w.ID, err)
		}
	}
	return all, nil
}

func (t *tx) lockWorkflow(n int64, w store.KnownWorkflow) (l store.LockedWorkflow, err error) {
	s := t.c.use(qPayloadSize).int(n)
	l.PayloadLeftOut = !s.next() || s.getInt() > store.SmallPayload
	if err := s.done(); err != nil {
		return l, err
	}
	if l.Execution, err = t.c.load(n, store.Payload(!l.PayloadLeftOut)); err != nil || l.Execution == nil {
		return l, err
	}
	if l.Place == flow.Finished {
		l.PayloadLeftOut, l.Outcome, l.Input, l.With = true, nil, nil, nil
	}
	if w.Change < 0 {
		if l.Tasks, err = t.progress(n, w.WorkflowAttempt); err == nil {
			l.Last, err = t.c.lastChange(n, w.WorkflowAttempt)
		}
		return l, err
	}
	l.Last = w.Change
	s = t.c.use(qChanges).int(n).int(int64(w.Attempt)).int(w.Change)
	for s.next() {
		l.Last = s.getInt()
		l.Changes = append(l.Changes, s.getBlob())
	}
	return l, s.done()
}

func (c *conn) lastChange(n int64, w store.WorkflowAttempt) (last int64, err error) {
	s := c.use(qLastChange).int(n).int(int64(w.Attempt))
	if s.next() {
		last = s.getInt()
	}
	return last, s.done()
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
	return all, cmp.Or(s.done(), bad)
}

func (t *tx) Outcomes(_ context.Context, of store.WorkflowAttempt, tasks []string, most int64) (map[string][]store.ChildOutcome, error) {
	n, ok, err := t.number(of.ID)
	if err != nil || !ok {
		return nil, err
	}
	all := make(map[string][]store.ChildOutcome, len(tasks))
	for _, task := range tasks {
		if _, ok := all[task]; ok {
			continue
		}
		outcomes, size, err := t.outcomes(n, of, task, most)
		if most -= size; err == nil && most < 0 {
			err = fmt.Errorf("%w: with those before it, it has more than the bytes allowed", store.ErrTooLarge)
		}
		if err != nil {
			return nil, fmt.Errorf("read outcomes of task %q of %s: %w", task, of.ID, err)
		}
		if len(outcomes) > 0 {
			all[task] = outcomes
		}
	}
	return all, nil
}

// outcomes reads the outcomes of a task's ended children, until they have more than "most" bytes.
func (t *tx) outcomes(n int64, of store.WorkflowAttempt, task string, most int64) (all []store.ChildOutcome, size int64, err error) {
	return t.readOutcomes(t.c.use(qOutcomes).int(n).int(int64(of.Attempt)).text(task), most)
}

func (t *tx) Outcome(_ context.Context, of store.WorkflowAttempt, task string, index int, most int64) (*store.ChildOutcome, error) {
	n, ok, err := t.number(of.ID)
	if err != nil || !ok {
		return nil, err
	}
	all, size, err := t.readOutcomes(t.c.use(qOutcome).int(n).int(int64(of.Attempt)).text(task).int(int64(index)), most)
	if err == nil && size > most {
		err = fmt.Errorf("%w: it has %d bytes", store.ErrTooLarge, size)
	}
	if err != nil {
		return nil, fmt.Errorf("read outcome of %s[%d] of %s: %w", task, index, of.ID, err)
	}
	if len(all) == 0 {
		return nil, nil
	}
	return &all[0], nil
}

// readOutcomes reads rows of outcomes, until they have more than "most" bytes.
func (t *tx) readOutcomes(s *stmt, most int64) (all []store.ChildOutcome, size int64, err error) {
	var bad error
	for size <= most && s.next() {
		o := store.ChildOutcome{Index: int(s.getInt()), Execution: s.getID(), Stage: flow.Stage(s.getInt())}
		var err error
		if o.Outcome, err = s.outcome(); err != nil {
			bad = err
		}
		size += int64(len(o.Outcome.Output))
		all = append(all, o)
	}
	return all, size, cmp.Or(s.done(), bad)
}

func (t *tx) Open(_ context.Context, of store.WorkflowAttempt, task string, unheld bool, limit int) ([]flow.ID, error) {
	n, ok, err := t.number(of.ID)
	if err != nil || !ok {
		return nil, err
	}
	q := qOpen
	if task != "" {
		q = qOpenOfTask
	}
	s := t.c.use(q).int(n).int(int64(of.Attempt)).int(truth(unheld))
	if task != "" {
		s.text(task)
	}
	s.int(int64(limit))
	var all []flow.ID
	for s.next() {
		all = append(all, s.getID())
	}
	err = s.done()
	return store.Result(all, err, "find open children of %s", of.ID)
}
