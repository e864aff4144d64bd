package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

// The shortest time between two messages of a stream of tasks is tasksPause, or tasksPauseRatio times as long as making a message takes.
const (
	tasksPause      = 100 * time.Millisecond
	tasksPauseRatio = 4
)

func (c *call) tasks() error {
	items := int(c.number("items", 100, 0, 1000))
	stream := taskStream{items: items, changes: c.flag("changes")}
	if stream.changes && !c.wantsStream() {
		c.fault("changes", c.query.Get("changes"), "it is for streams", "send Accept: text/event-stream, or leave it out")
	}
	x, err := c.workflow()
	if err != nil {
		return err
	}
	if !c.wantsStream() {
		t, err := c.taskStates(x, items)
		if err != nil {
			return err
		}
		return c.json(http.StatusOK, t)
	}
	return c.follow(x.ID, false, func(s *sse, now *flow.Execution) (bool, error) { return false, c.addTasks(s, now, &stream, "") })
}

// workflow returns the execution in the path, which must be a workflow.
func (c *call) workflow() (*flow.Execution, error) {
	x, err := c.get()
	if err == nil && x.Kind != flow.KindWorkflow {
		err = refusal(http.StatusNotFound, api.ProblemNotFound, fmt.Sprintf("%s is not a workflow: it has no tasks", x.ID))
	}
	return x, err
}

// taskStream is the progress of a stream of a workflow's tasks.
type taskStream struct {
	items   int
	changes bool // messages after the first have only the changed tasks
	sent    []byte
	tasks   [][]byte // each task as it was last sent
	attempt int
	next    time.Time // earliest time of the next message
}

// addTasks adds the state of a workflow's tasks to the stream, if it has changed.
func (c *call) addTasks(s *sse, x *flow.Execution, t *taskStream, id string) error {
	if !c.pauseUntil(t.next) {
		return errGone
	}
	begun := time.Now()
	defer func() { t.next = time.Now().Add(max(tasksPause, tasksPauseRatio*time.Since(begun))) }()
	now, err := c.taskStates(x, t.items)
	if err != nil {
		return err
	}
	if t.changes {
		return c.addTaskChanges(s, &now, t, id)
	}
	body, err := encode(now)
	if err != nil {
		return fmt.Errorf("encode tasks: %w", err)
	}
	if bytes.Equal(body, t.sent) {
		return nil
	}
	t.sent = body
	return s.add(api.StreamTasks, id, json.RawMessage(body))
}

// addTaskChanges adds the tasks that have changed since they were last sent. The first message, and the first of another attempt, has all
// tasks.
func (c *call) addTaskChanges(s *sse, now *api.Tasks, t *taskStream, id string) error {
	changes := api.TaskChanges{Status: now.Status, Attempt: now.Attempt, Tasks: []api.TaskChange{}}
	whole := now.Attempt != t.attempt || len(now.Tasks) != len(t.tasks)
	if whole {
		t.tasks = make([][]byte, len(now.Tasks))
	}
	for i := range now.Tasks {
		body, err := encode(&now.Tasks[i])
		if err != nil {
			return fmt.Errorf("encode task %s: %w", now.Tasks[i].Name, err)
		}
		if !bytes.Equal(body, t.tasks[i]) {
			changes.Tasks = append(changes.Tasks, api.TaskChange{Place: i, Task: now.Tasks[i]})
			t.tasks[i] = body
		}
	}
	t.attempt = now.Attempt
	switch status := []byte(now.Status); {
	case whole:
		t.sent = status
		return s.add(api.StreamTasks, id, now)
	case len(changes.Tasks) == 0 && bytes.Equal(status, t.sent):
		return nil
	default:
		t.sent = status
		return s.add(api.StreamTaskChanges, id, changes)
	}
}

// pauseUntil waits until t, and reports whether the stream goes on.
func (c *call) pauseUntil(t time.Time) bool {
	d := time.Until(t)
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-c.draining.Done():
		return false
	case <-c.ctx().Done():
		return false
	}
}

// mostTaskRows is approximately how many executions an answer about a workflow's tasks lists: some 5 MB.
const mostTaskRows = 20_000

// share is how many executions of one task are listed: as many as requested, or fewer if the workflow has so many foreach tasks that the
// answer would list more than mostTaskRows.
func share(plan *definition.Workflow, items int) int {
	wide := 0
	for _, t := range plan.Tasks {
		if many(t) {
			wide++
		}
	}
	if wide == 0 || items == 0 {
		return items
	}
	return max(1, min(items, (mostTaskRows-len(plan.Tasks)+wide)/wide))
}

// many reports whether a task can have more than one execution.
func many(t *definition.Task) bool { return t.Foreach != nil || t.Repeat != nil }

func (c *call) taskStates(x *flow.Execution, items int) (api.Tasks, error) {
	out := api.Tasks{Workflow: x.ID.String(), Status: status(x.Stage), Attempt: x.Attempt}
	plan, err := c.plan(x)
	if err != nil {
		return out, err
	}
	of := store.WorkflowAttempt{ID: x.ID, Attempt: x.Attempt}
	all, err := c.Engine.Reader().Marks(c.ctx(), of)
	if err != nil {
		return out, fmt.Errorf("read marks: %w", err)
	}
	marks := make(map[string]store.Mark, len(all))
	for _, m := range all {
		marks[m.Task] = m
	}
	most := share(plan, items)
	sums, err := c.sumTasks(x, func(task string) int {
		if t := plan.Task(task); t != nil && !many(t) {
			return max(most, 1)
		}
		return most
	})
	if err != nil {
		return out, err
	}
	out.Tasks = make([]api.Task, len(plan.Tasks))
	for i, t := range plan.Tasks {
		out.Tasks[i] = api.Task{Name: t.Name, Action: t.Action, Foreach: t.Foreach != nil}
		if t.Repeat != nil {
			out.Tasks[i].Repeat = t.Repeat.Max
		}
		for _, n := range t.Needs {
			out.Tasks[i].Needs = append(out.Tasks[i].Needs, plan.Tasks[n].Name)
		}
		sum := sums[t.Name]
		if sum == nil {
			sum = &taskSum{}
		}
		fillTask(&out.Tasks[i], t, marks[t.Name], sum)
	}
	return out, nil
}

// taskSum sums up the executions of one task. It holds only few of them in memory.
type taskSum struct {
	most       int // how many to list
	counts     map[flow.Stage]int
	created    int
	ended      int
	reused     int
	rerun      bool                 // the workflow is a rerun, so none of its results came from the cache
	overridden func(index int) bool // whether the item's output was given with the rerun
	overrides  int
	started    time.Time // the first start
	over       time.Time // the last end

	open, finished latest
}

// latest has the rows of a task with the highest indexes.
type latest []store.Child

// add adds the row with the next index.
func (l *latest) add(r store.Child, most int) {
	if len(*l) >= 2*most {
		*l = append((*l)[:0], (*l)[len(*l)-most:]...)
	}
	*l = append(*l, r)
}

func (l latest) last(n int) []store.Child { return l[len(l)-min(n, len(l)):] }

// reused reports whether an execution of a task took over the outcome of another execution, or a supplied output. No other execution
// completes without a hand-off.
func reused(r *store.Child) bool { return r.Stage == flow.Completed && r.ClaimedAt.IsZero() }

// add adds a row; rows come in the order of their index.
func (s *taskSum) add(r store.Child) {
	s.counts[r.Stage]++
	s.created++
	switch {
	case !reused(&r):
	case s.overridden(r.Index):
		s.overrides++
	default:
		s.reused++
	}
	if !r.StartedAt.IsZero() && (s.started.IsZero() || r.StartedAt.Before(s.started)) {
		s.started = r.StartedAt
	}
	if r.FinishedAt.After(s.over) {
		s.over = r.FinishedAt
	}
	if !r.Stage.Terminal() {
		s.open.add(r, s.most)
		return
	}
	s.ended++
	s.finished.add(r, s.most)
}

// listed returns the rows to list: the unfinished ones, then the latest finished ones, sorted by index.
func (s *taskSum) listed() []store.Child {
	open := s.open.last(s.most)
	rows := slices.Concat(open, s.finished.last(s.most-len(open)))
	slices.SortFunc(rows, func(a, b store.Child) int { return cmp.Compare(a.Index, b.Index) })
	return rows
}

// sumTasks reads the rows of a workflow's attempt page by page, and sums them up by task.
func (c *call) sumTasks(x *flow.Execution, most func(task string) int) (map[string]*taskSum, error) {
	const page = 1000
	of := store.WorkflowAttempt{ID: x.ID, Attempt: x.Attempt}
	sums := map[string]*taskSum{}
	for task, index := "", -1; ; {
		rows, err := c.Engine.Reader().Children(c.ctx(), of, task, index, page)
		if err != nil {
			return nil, fmt.Errorf("list tasks: %w", err)
		}
		for _, r := range rows {
			if sums[r.Task] == nil {
				task := r.Task
				sums[task] = &taskSum{most: most(task), counts: map[flow.Stage]int{}, rerun: !x.RerunOf.IsZero(),
					overridden: func(index int) bool { return x.OverrideOf(task, index) != nil }}
			}
			sums[r.Task].add(r)
			task, index = r.Task, r.Index
		}
		if len(rows) < page {
			return sums, nil
		}
	}
}

func fillTask(t *api.Task, def *definition.Task, mark store.Mark, sum *taskSum) {
	t.Created, t.Ended, t.Reused, t.Given, t.Total, t.StartedAt = sum.created, sum.ended, sum.reused, sum.overrides, mark.Total, sum.started
	if !sum.rerun {
		t.Reused, t.Cached = 0, sum.reused
	}
	if e := renderError(mark.Error); e != nil {
		const most = 1000 // an expression's error may quote its data
		e.Message = problem.Clip(e.Message, most)
		t.Error = e
	}
	t.Status = taskStatus(t, mark, sum.counts)
	if def.Repeat != nil {
		t.Status = repeatStatus(t, def, mark, sum.counts)
	}
	if t.Status.Terminal() {
		t.FinishedAt = sum.over
	}
	if sum.created > 1 || t.Many() {
		t.Counts = make(map[api.Status]int, len(sum.counts))
		for s, n := range sum.counts {
			t.Counts[status(s)] = n
		}
	}
	for _, r := range sum.listed() {
		t.Executions = append(t.Executions, api.TaskExecution{
			ID: r.Execution.String(), Index: r.Index, Status: status(r.Stage), Kind: string(r.Kind), Attempt: r.Attempt,
			CreatedAt: r.CreatedAt, ClaimedAt: r.ClaimedAt, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt, WakeAt: r.WakeAt,
			Reused: reused(&r) && !sum.overridden(r.Index) && sum.rerun, Cached: reused(&r) && !sum.overridden(r.Index) && !sum.rerun,
			Given: reused(&r) && sum.overridden(r.Index),
		})
	}
	t.More = len(t.Executions) < t.Created
}

// marked reports whether m was decided about a task.
func marked(mark store.Mark, m orchestration.Mark) bool { return mark.State == m.String() }

// taskStatus returns the status of a task: that of the decision about it, or else of its executions, the worst outcome first.
func taskStatus(t *api.Task, mark store.Mark, counts map[flow.Stage]int) api.Status {
	open := t.Created - t.Ended
	switch {
	case marked(mark, orchestration.Skipped):
		return api.TaskSkipped
	case !t.Foreach && t.Created == 1:
		for s := range counts {
			return status(s)
		}
	case open > 0:
		return api.Running
	case marked(mark, orchestration.Broken):
		return api.Failed
	case counts[flow.Failed] > 0:
		return api.Failed
	case counts[flow.TimedOut] > 0:
		return api.TimedOut
	case counts[flow.Cancelled] > 0, marked(mark, orchestration.Cancelled):
		return api.Cancelled
	case marked(mark, orchestration.Expanded) && t.Created < t.Total:
		return api.Running
	case marked(mark, orchestration.Expanded):
		return api.Completed
	}
	return api.TaskPending
}

// repeatStatus returns the status of a task that runs in rounds.
func repeatStatus(t *api.Task, def *definition.Task, mark store.Mark, counts map[flow.Stage]int) api.Status {
	switch {
	case marked(mark, orchestration.Skipped):
		return api.TaskSkipped
	case marked(mark, orchestration.Reached):
		return api.Completed
	case marked(mark, orchestration.Broken), marked(mark, orchestration.NotReached):
		return api.Failed
	case marked(mark, orchestration.Cancelled), counts[flow.Cancelled] > 0:
		return api.Cancelled
	case t.Created == 0:
		return api.TaskPending
	case def.ContinueOnError || t.Created > t.Ended:
		return api.Running
	case counts[flow.Failed] > 0:
		return api.Failed
	case counts[flow.TimedOut] > 0:
		return api.TimedOut
	}
	return api.Running
}

func (c *call) plan(x *flow.Execution) (*definition.Workflow, error) {
	d, _, err := c.Engine.Catalog().Get(c.ctx(), x.Action, x.Version)
	if err != nil {
		return nil, fmt.Errorf("definition of %s: %w", x.ID, err)
	}
	if d.Workflow == nil {
		return nil, refusal(http.StatusNotFound, api.ProblemNotFound, fmt.Sprintf("the definition that %s ran on is not here: %s@%d is not a workflow", x.ID, x.Action, x.Version))
	}
	return d.Workflow, nil
}
