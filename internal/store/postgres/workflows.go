package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	// attempts are the attempts of workflows; knownAttempts also have the number of the last change that the caller knows.
	attempts = relation[store.KnownWorkflow, none]{
		{"id", oidUUID, func(c *column, w store.KnownWorkflow) { c.id(w.ID) }, nil},
		{"attempt", oidInt8, func(c *column, w store.KnownWorkflow) { c.int(int64(w.Attempt)) }, nil},
	}
	knownAttempts = attempts.with(field[store.KnownWorkflow, none]{"known", oidInt8, func(c *column, w store.KnownWorkflow) { c.int(w.Change) }, nil})

	changes = relation[*store.WorkflowChange, none]{
		{"workflow", oidUUID, func(c *column, w *store.WorkflowChange) { c.id(w.ID) }, nil},
		{"attempt", oidInt4, func(c *column, w *store.WorkflowChange) { c.int(int64(w.Attempt)) }, nil},
		{"number", oidInt8, func(c *column, w *store.WorkflowChange) { c.int(w.Number) }, nil},
		{"change", oidBytes, func(c *column, w *store.WorkflowChange) { c.bytes(w.Change) }, nil},
	}

	marks = relation[*store.Mark, *store.Mark]{
		{"workflow", oidUUID, func(c *column, m *store.Mark) { c.id(m.Workflow) }, func(r *rows, m *store.Mark) { m.Workflow = r.id() }},
		{"attempt", oidInt4, func(c *column, m *store.Mark) { c.int(int64(m.Attempt)) }, func(r *rows, m *store.Mark) { m.Attempt = int(r.int()) }},
		{"task", oidText, func(c *column, m *store.Mark) { c.text(m.Task) }, func(r *rows, m *store.Mark) { m.Task = r.text() }},
		{"state", oidText, func(c *column, m *store.Mark) { c.text(m.State) }, func(r *rows, m *store.Mark) { m.State = r.text() }},
		{"total", oidInt8, func(c *column, m *store.Mark) { c.int(int64(m.Total)) }, func(r *rows, m *store.Mark) { m.Total = int(r.int()) }},
		{"error", oidBytes, putMarkError, getMarkError},
	}
)

func putMarkError(c *column, m *store.Mark) {
	if m.Error == nil {
		c.null()
		return
	}
	c.encode(func(b []byte) []byte { return row.AppendError(b, m.Error) })
}

func getMarkError(r *rows, m *store.Mark) {
	e, err := row.DecodeError(r.peek())
	if err != nil {
		err = fmt.Errorf("read mark of task %q: %w", m.Task, err)
	}
	m.Error = e
	r.failed(err)
}

// OFFSET 0 makes each row a look-up by index. A join would be planned once for the sizes of the tables at that time; if the other one is
// empty then, the plan reads the whole table for each row.
var (
	qProgress = sql(`SELECT c.workflow, c.task, c.ended_as, count(*) FROM ` + attempts.rows() + ` AS w
		CROSS JOIN LATERAL (SELECT * FROM {s}.children c WHERE c.workflow = w.id AND c.attempt = w.attempt OFFSET 0) c
		GROUP BY c.workflow, c.task, c.ended_as ORDER BY c.workflow, c.task`)

	qMarksOf = sql(`SELECT ` + marks.names("m.") + ` FROM ` + attempts.rows() + ` AS w
		CROSS JOIN LATERAL (SELECT * FROM {s}.marks m WHERE m.workflow = w.id AND m.attempt = w.attempt OFFSET 0) m
		ORDER BY m.workflow, m.task`)

	// For a workflow of which the caller knows nothing (-1), only the number of the last change is read.
	qChanges = sql(`SELECT w.id, c.number, CASE WHEN w.known >= 0 THEN c.change END FROM ` + knownAttempts.rows() + ` AS w
		CROSS JOIN LATERAL (SELECT * FROM {s}.changes c WHERE c.workflow = w.id AND c.attempt = w.attempt AND c.number > w.known
			ORDER BY c.number DESC LIMIT CASE WHEN w.known < 0 THEN 1 END) c ORDER BY w.id, c.number`)

	qInsertChanges = sql(changes.insert("changes"))

	// PostgreSQL knows the lengths without reading the values; outputs beyond the limit are not read.
	qOutcomes = sql(`SELECT task, idx, id, stage, error, CASE WHEN sum <= $4::bigint THEN output END, sum FROM (
		SELECT c.task, c.idx, d.id, d.stage, d.error, d.output,
			sum(coalesce(octet_length(d.output), 0)) OVER (ORDER BY c.task, c.idx) AS sum FROM {s}.children c
		CROSS JOIN LATERAL (SELECT * FROM {s}.ended d WHERE d.id = c.id OFFSET 0) d
		WHERE c.workflow = $1 AND c.attempt = $2::bigint AND c.task = ANY ($3::text[]) AND c.ended_as <> 0) o ORDER BY task, idx`)

	qOutcome = sql(`SELECT c.idx, d.id, d.stage, d.error, CASE WHEN coalesce(octet_length(d.output), 0) <= $4::bigint THEN d.output END,
		coalesce(octet_length(d.output), 0) FROM {s}.children c CROSS JOIN LATERAL (SELECT * FROM {s}.ended d WHERE d.id = c.id OFFSET 0) d
		WHERE c.workflow = $1 AND c.attempt = $2::bigint AND c.task = $3 AND c.idx = $5::bigint AND c.ended_as <> 0`)

	qOpen = sql(`SELECT c.id ` + openChildren + ` ORDER BY c.task, c.idx LIMIT $3`)

	qOpenOfTask = sql(`SELECT c.id ` + openChildren + ` AND c.task = $5 ORDER BY c.idx LIMIT $3`)
)

const openChildren = `FROM {s}.children c CROSS JOIN LATERAL
		(SELECT FROM {s}.live l WHERE l.id = c.id AND NOT l.cancel_requested AND (l.place <> 4 OR NOT $4) OFFSET 0) l
		WHERE c.workflow = $1 AND c.attempt = $2::bigint AND c.ended_as = 0`

// LockWorkflows implements store.Workflows. It locks the rows and then reads their progress, in one round trip, or in none if
// ExpectWorkflows was called for them.
func (t *tx) LockWorkflows(ctx context.Context, of []store.KnownWorkflow) ([]store.LockedWorkflow, error) {
	all := make([]store.LockedWorkflow, 0, len(of))
	ids := make([]flow.ID, 0, len(of))
	var rest []store.KnownWorkflow
	for _, w := range of {
		if e := t.expectedWorkflows[w.ID]; e != nil && e.known == w {
			all = append(all, e.LockedWorkflow)
		} else {
			ids, rest = append(ids, w.ID), append(rest, w)
		}
	}
	clear(t.expectedWorkflows) // the caller is about to change them
	if len(rest) == 0 {
		t.nowUnread = t.nowUnread || len(of) > 0 // the clock was read after them
		return all, nil
	}
	var progress *workflowProgress
	ws, err := t.lock(ctx, ids, smallPayload, func() { progress = t.readProgress(rest) })
	t.nowUnread = true
	if err != nil {
		return nil, err
	}
	progress.addMarks()
	for _, x := range ws {
		w := progress.of[x.ID]
		w.Execution, w.PayloadLeftOut = x, t.leftOut[x.ID] || x.Place == flow.Finished
		all = append(all, *w)
	}
	return all, nil
}

type workflowProgress struct {
	of    map[flow.ID]*store.LockedWorkflow
	marks []store.Mark
}

// readProgress queues the statements that read the progress of workflows, and then the clock: they see ends that were committed after the
// transaction began, and Now is not before these.
func (t *tx) readProgress(of []store.KnownWorkflow) *workflowProgress {
	p := &workflowProgress{of: make(map[flow.ID]*store.LockedWorkflow, len(of))}
	var unknown []store.KnownWorkflow
	for _, w := range of {
		p.of[w.ID] = &store.LockedWorkflow{Last: max(w.Change, 0)}
		if w.Change < 0 {
			unknown = append(unknown, w)
		}
	}
	if len(unknown) > 0 {
		t.addProgress(unknown, p.of, &p.marks)
	}
	t.add(qChanges, t.args().columns(knownAttempts.columns(of...)), readChange(p.of))
	t.addNow()
	return p
}

// addMarks adds the marks to the counts.
func (p *workflowProgress) addMarks() {
	for i := range p.marks {
		m := &p.marks[i]
		w := p.of[m.Workflow]
		if at := taskOf(w, m.Task); at < 0 {
			w.Tasks = append(w.Tasks, store.TaskProgress{Task: m.Task, Mark: m})
		} else {
			w.Tasks[at].Mark = m
		}
	}
}

func taskOf(w *store.LockedWorkflow, name string) int {
	return slices.IndexFunc(w.Tasks, func(p store.TaskProgress) bool { return p.Task == name })
}

// addProgress queues the statements that read the progress of workflows.
func (t *tx) addProgress(of []store.KnownWorkflow, all map[flow.ID]*store.LockedWorkflow, found *[]store.Mark) {
	t.add(qProgress, t.args().columns(attempts.columns(of...)), func(r *rows) error {
		id, task, ended, count := r.id(), r.text(), r.int(), int(r.int())
		w := all[id]
		if len(w.Tasks) == 0 || w.Tasks[len(w.Tasks)-1].Task != task { // rows are sorted by task
			w.Tasks = append(w.Tasks, store.TaskProgress{Task: task})
		}
		p := &w.Tasks[len(w.Tasks)-1]
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
	t.add(qMarksOf, t.args().columns(attempts.columns(of...)), readInto(found, marks))
}

func readChange(all map[flow.ID]*store.LockedWorkflow) func(*rows) error {
	return func(r *rows) error {
		w := all[r.id()]
		w.Last = r.int()
		if !r.null() {
			w.Changes = append(w.Changes, r.bytes())
		}
		return nil
	}
}

func (t *tx) Outcomes(ctx context.Context, of store.WorkflowAttempt, tasks []string, most int64) (map[string][]store.ChildOutcome, error) {
	all := make(map[string][]store.ChildOutcome, len(tasks))
	if len(tasks) == 0 {
		return all, nil
	}
	a := t.args().id(of.ID).int(int64(of.Attempt)).texts(unique(tasks)).int(most)
	var size int64
	err := t.ask(ctx, qOutcomes, a, func(r *rows) (err error) {
		task := r.text()
		o := store.ChildOutcome{Index: int(r.int()), Execution: r.id(), Stage: flow.Stage(r.int())}
		if o.Outcome, err = r.outcome(); err != nil {
			return fmt.Errorf("read outcome of %s: %w", o.Execution, err)
		}
		size = r.int()
		all[task] = append(all[task], o)
		return nil
	})
	if err == nil && size > most {
		err = fmt.Errorf("%w: they have %d bytes together", store.ErrTooLarge, size)
	}
	return store.Result(all, err, "read outcomes of tasks of %s", of.ID)
}

func (t *tx) Outcome(ctx context.Context, of store.WorkflowAttempt, task string, index int, most int64) (*store.ChildOutcome, error) {
	a := t.args().id(of.ID).int(int64(of.Attempt)).text(task).int(most).int(int64(index))
	var found *store.ChildOutcome
	var size int64
	err := t.ask(ctx, qOutcome, a, func(r *rows) (err error) {
		found = &store.ChildOutcome{Index: int(r.int()), Execution: r.id(), Stage: flow.Stage(r.int())}
		if found.Outcome, err = r.outcome(); err == nil {
			size = r.int()
		}
		return err
	})
	if err == nil && size > most {
		err = fmt.Errorf("%w: it has %d bytes", store.ErrTooLarge, size)
	}
	return store.Result(found, err, "read outcome of %s[%d] of %s", task, index, of.ID)
}

func (t *tx) Open(ctx context.Context, of store.WorkflowAttempt, task string, unheld bool, limit int) ([]flow.ID, error) {
	a, q := t.args().id(of.ID).int(int64(of.Attempt)).int(int64(limit)).bool(unheld), qOpen
	if task != "" {
		a, q = a.text(task), qOpenOfTask
	}
	var all []flow.ID
	err := t.ask(ctx, q, a, readAll(&all, (*rows).id))
	return store.Result(all, err, "find open children of %s", of.ID)
}
