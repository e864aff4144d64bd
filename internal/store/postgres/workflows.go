package postgres

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// OFFSET 0 keeps what is looked up for each row a look by the index. As a join it is planned once by the size of the other
// table, which may be empty then: the whole table is read for each row.
var (
	qProgress = sql(`SELECT c.workflow, c.task, c.ended, count(*) FROM ` + rowsOf("id uuid, attempt bigint") + ` AS w
		CROSS JOIN LATERAL (SELECT * FROM {s}.children c WHERE c.workflow = w.id AND c.attempt = w.attempt OFFSET 0) c
		GROUP BY c.workflow, c.task, c.ended ORDER BY c.workflow, c.task`)

	qMarksOf = sql(`SELECT m.workflow, m.attempt, m.task, m.state, m.total, m.error FROM ` + rowsOf("id uuid, attempt bigint") + ` AS w
		CROSS JOIN LATERAL (SELECT * FROM {s}.marks m WHERE m.workflow = w.id AND m.attempt = w.attempt OFFSET 0) m
		ORDER BY m.workflow, m.task`)

	qOutcomes = sql(`SELECT c.task, c.idx, d.id, d.stage` + outcomeColumns + ` FROM {s}.children c
		CROSS JOIN LATERAL (SELECT * FROM {s}.ended d WHERE d.id = c.id OFFSET 0) d
		WHERE c.workflow = $1 AND c.attempt = $2::bigint AND c.task = ANY ($3::text[]) AND c.ended <> 0 ORDER BY c.task, c.idx`)

	qOpen = sql(`SELECT id FROM {s}.children WHERE workflow = $1 AND attempt = $2::bigint AND ended = 0 ORDER BY task, idx LIMIT $3`)

	qOpenOfTask = sql(`SELECT id FROM {s}.children WHERE workflow = $1 AND attempt = $2::bigint AND task = $4 AND ended = 0 ORDER BY idx LIMIT $3`)
)

// attempts adds workflows' attempts as two columns.
func (a *args) attempts(of []store.WorkflowAttempt) *args {
	var t columns
	c := t.begin(oidUUID, oidInt8)
	for _, w := range of {
		c[0].id(w.ID)
		c[1].int(int64(w.Attempt))
	}
	return a.columns(&t)
}

// LockWorkflows implements store.Workflows. The rows are locked before their progress is read, in one round trip.
func (t *tx) LockWorkflows(ctx context.Context, of []store.WorkflowAttempt) ([]*flow.Execution, map[flow.ID][]store.TaskProgress, error) {
	if len(of) == 0 {
		return nil, nil, nil
	}
	ids := make([]flow.ID, len(of))
	for i, w := range of {
		ids[i] = w.ID
	}
	progress := make(map[flow.ID][]store.TaskProgress, len(of))
	var marks []store.Mark
	ws, err := t.lock(ctx, ids, store.WithPayload, func() { t.addProgress(of, progress, &marks) })
	if err != nil {
		return nil, nil, err
	}
	for i := range marks {
		m := &marks[i]
		tasks, at := progress[m.Workflow], -1
		for j := range tasks {
			if tasks[j].Task == m.Task {
				at = j
			}
		}
		if at < 0 {
			progress[m.Workflow] = append(tasks, store.TaskProgress{Task: m.Task, Mark: m})
		} else {
			tasks[at].Mark = m
		}
	}
	return ws, progress, nil
}

// addProgress puts the questions how far workflows are in line.
func (t *tx) addProgress(of []store.WorkflowAttempt, all map[flow.ID][]store.TaskProgress, marks *[]store.Mark) {
	t.add(qProgress, t.args().attempts(of), func(r *rows) error {
		id, task, ended, count := r.id(), r.text(), r.int(), int(r.int())
		tasks := all[id]
		if len(tasks) == 0 || tasks[len(tasks)-1].Task != task { // rows come in order of task
			tasks = append(tasks, store.TaskProgress{Task: task})
			all[id] = tasks
		}
		p := &tasks[len(tasks)-1]
		p.Created += count
		if ended == 0 {
			p.Open += count
			return nil
		}
		if p.Ended == nil {
			p.Ended = make(map[flow.Stage]int, 1)
		}
		p.Ended[flow.Stage(ended)] += count
		return nil
	})
	t.add(qMarksOf, t.args().attempts(of), readMark(marks))
}

func readMark(all *[]store.Mark) func(*rows) error {
	return func(r *rows) (err error) {
		m := store.Mark{Workflow: r.id(), Attempt: int(r.int()), Task: r.text(), State: r.text(), Total: int(r.int())}
		if m.Error, err = row.DecodeError(r.peek()); err != nil {
			return fmt.Errorf("read mark of task %q: %w", m.Task, err)
		}
		*all = append(*all, m)
		return nil
	}
}

// Outcomes implements store.Workflows.
func (t *tx) Outcomes(ctx context.Context, of store.WorkflowAttempt, tasks []string) (map[string][]store.ChildOutcome, error) {
	all := make(map[string][]store.ChildOutcome, len(tasks))
	if len(tasks) == 0 {
		return all, nil
	}
	a := t.args().id(of.ID).int(int64(of.Attempt)).texts(unique(tasks))
	err := t.ask(ctx, qOutcomes, a, func(r *rows) (err error) {
		task := r.text()
		o := store.ChildOutcome{Index: int(r.int()), Execution: r.id(), Stage: flow.Stage(r.int())}
		if o.Outcome, err = r.outcome(); err != nil {
			return fmt.Errorf("read outcome of %s: %w", o.Execution, err)
		}
		all[task] = append(all[task], o)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read outcomes of tasks of %s: %w", of.ID, err)
	}
	return all, nil
}

// Open implements store.Workflows.
func (t *tx) Open(ctx context.Context, of store.WorkflowAttempt, task string, limit int) ([]flow.ID, error) {
	a, q := t.args().id(of.ID).int(int64(of.Attempt)).int(int64(limit)), qOpen
	if task != "" {
		a, q = a.text(task), qOpenOfTask
	}
	var all []flow.ID
	if err := t.ask(ctx, q, a, readID(&all)); err != nil {
		return nil, fmt.Errorf("find open children of %s: %w", of.ID, err)
	}
	return all, nil
}

func readID(all *[]flow.ID) func(*rows) error {
	return func(r *rows) error {
		*all = append(*all, r.id())
		return nil
	}
}
