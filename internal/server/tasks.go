package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// tasksPause is the least time between two messages of a stream of tasks, and how much longer than making one took.
const (
	tasksPause      = 100 * time.Millisecond
	tasksPauseRatio = 4
)

// What may be decided about a task beyond its executions: the names that package orchestration's marks are stored by.
const (
	markExpanded  = "expanded"
	markSkipped   = "skipped"
	markCancelled = "cancelled"
	markBroken    = "broken"
)

func (c *call) tasks() error {
	items := int(c.number("items", 100, 1, 1000))
	if err := c.checked(); err != nil {
		return err
	}
	x, err := c.get()
	if err != nil {
		return err
	}
	if x.Kind != flow.KindWorkflow {
		return problem(http.StatusNotFound, api.ProblemNotFound, fmt.Sprintf("%s is no workflow: it has no tasks", x.ID))
	}
	if !c.wantsStream() {
		t, err := c.taskStates(x, items)
		if err != nil {
			return err
		}
		return c.json(http.StatusOK, t)
	}
	var last []byte
	var next time.Time
	return c.follow(x.ID, func(s *sse, now *flow.Execution) (bool, error) {
		if !c.pauseUntil(next) {
			return false, errGone
		}
		begun := time.Now()
		t, err := c.taskStates(now, items)
		if err != nil {
			return false, err
		}
		body, err := json.Marshal(t)
		if err != nil {
			return false, fmt.Errorf("encode tasks: %w", err)
		}
		next = time.Now().Add(max(tasksPause, tasksPauseRatio*time.Since(begun)))
		if bytes.Equal(body, last) {
			return false, nil
		}
		last = body
		return false, s.add(api.StreamTasks, "", json.RawMessage(body))
	})
}

// pauseUntil reports whether the stream goes on after t.
func (c *call) pauseUntil(t time.Time) bool {
	d := time.Until(t)
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.draining.Done():
		return false
	case <-c.ctx().Done():
		return false
	}
}

// taskStates puts together how far the tasks of a workflow are.
func (c *call) taskStates(x *flow.Execution, items int) (api.Tasks, error) {
	out := api.Tasks{Workflow: x.ID.String(), Status: status(x.Stage), Attempt: x.Attempt}
	plan, err := c.plans.get(c, x.Action, x.Version)
	if err != nil {
		return out, err
	}
	of := store.WorkflowAttempt{ID: x.ID, Attempt: x.Attempt}
	marks, err := c.Engine.Reader().Marks(c.ctx(), of)
	if err != nil {
		return out, fmt.Errorf("read marks: %w", err)
	}
	children, err := c.children(of)
	if err != nil {
		return out, err
	}
	details, err := c.details(x.ID)
	if err != nil {
		return out, err
	}
	out.Tasks = make([]api.Task, len(plan.Tasks))
	for i, t := range plan.Tasks {
		out.Tasks[i] = api.Task{Name: t.Name, Action: t.Action, Foreach: t.Foreach != nil}
		for _, n := range t.Needs {
			out.Tasks[i].Needs = append(out.Tasks[i].Needs, plan.Tasks[n].Name)
		}
		var mark store.Mark
		if k := slices.IndexFunc(marks, func(m store.Mark) bool { return m.Task == t.Name }); k >= 0 {
			mark = marks[k]
		}
		fillTask(&out.Tasks[i], mark, children[t.Name], details, items)
	}
	return out, nil
}

// children are the rows of a workflow's attempt, by task and in the order of their index.
func (c *call) children(of store.WorkflowAttempt) (map[string][]store.Child, error) {
	const page = 1000
	out := map[string][]store.Child{}
	for task, index := "", -1; ; {
		rows, err := c.Engine.Reader().Children(c.ctx(), of, task, index, page)
		if err != nil {
			return nil, fmt.Errorf("list tasks: %w", err)
		}
		for _, r := range rows {
			out[r.Task] = append(out[r.Task], r)
			task, index = r.Task, r.Index
		}
		if len(rows) < page {
			return out, nil
		}
	}
}

// details are the latest executions of a workflow's tasks. Of a workflow with more there are rows without details.
func (c *call) details(id flow.ID) (map[flow.ID]*flow.Execution, error) {
	const most = 1000
	latest, err := c.Engine.Reader().List(c.ctx(), store.Filter{Workflow: id, Limit: most})
	if err != nil {
		return nil, fmt.Errorf("list executions of tasks: %w", err)
	}
	out := make(map[flow.ID]*flow.Execution, len(latest))
	for _, x := range latest {
		out[x.ID] = x
	}
	return out, nil
}

func fillTask(t *api.Task, mark store.Mark, rows []store.Child, details map[flow.ID]*flow.Execution, items int) {
	t.Created, t.Total, t.Error = len(rows), mark.Total, renderError(mark.Error)
	counts := map[flow.Stage]int{}
	for _, r := range rows {
		counts[r.Stage]++
		if r.Stage.Terminal() {
			t.Ended++
		}
		if x := details[r.Execution]; x != nil {
			if t.StartedAt.IsZero() || (!x.StartedAt.IsZero() && x.StartedAt.Before(t.StartedAt)) {
				t.StartedAt = x.StartedAt
			}
			if x.FinishedAt.After(t.FinishedAt) {
				t.FinishedAt = x.FinishedAt
			}
		}
	}
	t.Status = taskStatus(t, mark, counts)
	if !t.Status.Terminal() {
		t.FinishedAt = time.Time{}
	}
	if len(rows) > 1 || t.Foreach {
		t.Counts = make(map[api.Status]int, len(counts))
		for s, n := range counts {
			t.Counts[status(s)] = n
		}
	}
	for _, r := range chosen(rows, items) {
		e := api.TaskExecution{ID: r.Execution.String(), Index: r.Index, Status: status(r.Stage), Attempt: r.Attempt}
		if x := details[r.Execution]; x != nil {
			e.Kind, e.Attempt, e.CreatedAt = string(x.Kind), x.Attempt, x.CreatedAt
			e.StartedAt, e.FinishedAt, e.WakeAt = x.StartedAt, x.FinishedAt, x.WakeAt
		}
		t.Executions = append(t.Executions, e)
	}
}

// taskStatus sums up a task: what was decided about it, else where its executions stand, the worst outcome first.
func taskStatus(t *api.Task, mark store.Mark, counts map[flow.Stage]int) api.Status {
	open := t.Created - t.Ended
	switch {
	case mark.State == markSkipped:
		return api.TaskSkipped
	case !t.Foreach && t.Created == 1:
		for s := range counts {
			return status(s)
		}
	case open > 0:
		return api.Running
	case mark.State == markBroken:
		return api.Failed
	case counts[flow.Failed] > 0:
		return api.Failed
	case counts[flow.TimedOut] > 0:
		return api.TimedOut
	case counts[flow.Cancelled] > 0, mark.State == markCancelled:
		return api.Cancelled
	case mark.State == markExpanded && t.Created < t.Total:
		return api.Running
	case mark.State == markExpanded:
		return api.Completed
	}
	return api.TaskPending
}

// chosen are up to n of the rows: the open ones, then the latest of those that have ended, in the order of their index.
func chosen(rows []store.Child, n int) []store.Child {
	if len(rows) <= n {
		return rows
	}
	out := make([]store.Child, 0, n)
	for _, open := range []bool{true, false} {
		for _, r := range slices.Backward(rows) {
			if r.Stage.Terminal() != open && len(out) < n {
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, func(a, b store.Child) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

// plans remembers decoded workflows. Versions never change.
type plans struct {
	mu    sync.Mutex
	known map[string]*definition.Workflow
}

const plansLimit = 500

func (p *plans) get(c *call, name string, version int) (*definition.Workflow, error) {
	key := fmt.Sprintf("%s@%d", name, version)
	p.mu.Lock()
	w := p.known[key]
	p.mu.Unlock()
	if w != nil {
		return w, nil
	}
	row, err := c.Engine.Reader().Definition(c.ctx(), name, version)
	if err != nil {
		return nil, fmt.Errorf("definition %s: %w", key, err)
	}
	d, err := definition.Decode(row.Document)
	if err != nil {
		return nil, fmt.Errorf("definition %s: %w", key, err)
	}
	if d.Workflow == nil {
		return nil, fmt.Errorf("definition %s is no workflow", key)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= plansLimit {
		p.known = map[string]*definition.Workflow{}
	}
	p.known[key] = d.Workflow
	return d.Workflow, nil
}
