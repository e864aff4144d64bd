package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

const (
	mostScanned = 40 // executions that one answer reads, however many there are below a workflow
	mostAlike   = 3  // of them, tasks of one workflow in the same stage
	shownTasks  = 5  // tasks of a workflow that an answer names
)

// descent bounds one answer's way down into a workflow: how many executions it may still read.
type descent struct{ left int }

// openTask is a task that a workflow waits for, and the explanation of that task's wait.
type openTask struct {
	name string // "fit", "each[3]"
	why  answer
}

// survey is what an answer needs of a workflow's tasks.
type survey struct {
	open   map[flow.Stage]int
	sample []store.Child      // some of the open ones, of each stage
	failed *store.Child       // the first that makes the workflow fail
	items  map[string]*[2]int // by task: ended and open children
}

// workflow explains which tasks a workflow waits for, and follows the one that is least likely to end by itself to its
// root cause.
func (e *Explainer) workflow(ctx context.Context, x *flow.Execution, w *answer, d *descent) error {
	def, _, err := e.Catalog.Get(ctx, x.Action, x.Version)
	if err != nil && fault.Passing(err) {
		return fmt.Errorf("definition of %s: %w", x.Action, err)
	}
	var plan *definition.Workflow
	if err == nil {
		plan = def.Workflow.For(&x.Request)
	}
	s, err := e.surveyTasks(ctx, x, plan)
	if err != nil {
		return err
	}
	marks, err := e.Store.Marks(ctx, store.WorkflowAttempt{ID: x.ID, Attempt: x.Attempt})
	if err != nil {
		return fmt.Errorf("read marks: %w", err)
	}
	tasks, err := e.lookInto(ctx, plan, s.sample, d)
	if err != nil {
		return err
	}
	w.Summary = s.summary()
	if len(s.open) > 0 {
		w.Open = map[api.Status]int{}
		for stage, n := range s.open {
			w.Open[api.Status(stage.String())] = n
		}
	}
	if len(tasks) > 0 {
		w.follow(tasks)
	}
	w.Facts = append(w.Facts, s.suspended(plan, marks)...)
	return e.failing(ctx, x, w, s.failed, marks)
}

// surveyTasks reads the children of a workflow's attempt, a page at a time.
func (e *Explainer) surveyTasks(ctx context.Context, x *flow.Execution, plan *definition.Workflow) (*survey, error) {
	const page = 1000
	s := &survey{open: map[flow.Stage]int{}, items: map[string]*[2]int{}}
	for task, index := "", -1; ; {
		children, err := e.Store.Children(ctx, store.WorkflowAttempt{ID: x.ID, Attempt: x.Attempt}, task, index, page)
		if err != nil {
			return nil, fmt.Errorf("list tasks: %w", err)
		}
		for i := range children {
			s.add(&children[i], plan)
			task, index = children[i].Task, children[i].Index
		}
		if len(children) < page {
			return s, nil
		}
	}
}

func (s *survey) add(c *store.Child, plan *definition.Workflow) {
	n := s.items[c.Task]
	if n == nil {
		n = new([2]int)
		s.items[c.Task] = n
	}
	if !c.Stage.Terminal() {
		n[1]++
		if s.open[c.Stage]++; s.open[c.Stage] <= mostAlike {
			s.sample = append(s.sample, *c)
		}
		return
	}
	n[0]++
	bad := c.Stage == flow.Failed || c.Stage == flow.TimedOut
	if t := taskOf(plan, c.Task); bad && s.failed == nil && (t == nil || !t.ContinueOnError) {
		s.failed = c
	}
}

func (s *survey) summary() string {
	var counts []string
	for _, stage := range flow.Stages() {
		if n := s.open[stage]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, stage))
		}
	}
	if len(counts) == 0 {
		return "no task is open: its next step is being decided"
	}
	return "waits for its tasks: " + strings.Join(counts, ", ")
}

// suspended describes the foreach tasks with items that have not begun.
func (s *survey) suspended(plan *definition.Workflow, marks []store.Mark) []string {
	var facts []string
	for _, m := range marks {
		n := s.items[m.Task]
		if n == nil || m.Total <= n[0]+n[1] {
			continue
		}
		fact := fmt.Sprintf("task %s: %d of %d items %s ended, %d %s open, %d have not begun", m.Task, n[0], m.Total, has(n[0]), n[1], are(n[1]), m.Total-n[0]-n[1])
		switch t := taskOf(plan, m.Task); {
		case t == nil:
		case t.InFlight > 0:
			fact += fmt.Sprintf(" (concurrency %d)", t.InFlight)
		case t.InFlightOf != nil:
			fact += " (its concurrency is an expression)"
		}
		facts = append(facts, fact)
	}
	return facts[:min(len(facts), shownTasks)]
}

// lookInto explains what tasks wait for, as far as the descent allows.
func (e *Explainer) lookInto(ctx context.Context, plan *definition.Workflow, children []store.Child, d *descent) ([]openTask, error) {
	var tasks []openTask
	for i := range children {
		c := &children[i]
		if d.left--; d.left < 0 {
			break
		}
		x, err := e.Store.Get(ctx, c.Execution)
		if err != nil {
			return nil, fmt.Errorf("load task %s[%d]: %w", c.Task, c.Index, err)
		}
		if x.Stage.Terminal() {
			continue // since it was listed
		}
		why, err := e.explain(ctx, x, d)
		if err != nil {
			return nil, err
		}
		name := c.Task
		switch t := taskOf(plan, c.Task); {
		case t == nil || t.Foreach != nil:
			name = fmt.Sprintf("%s[%d]", c.Task, c.Index)
		case t.Repeat != nil:
			name = fmt.Sprintf("%s (round %d of at most %d)", c.Task, c.Index+1, t.Repeat.Max)
		}
		tasks = append(tasks, openTask{name, why})
	}
	slices.SortStableFunc(tasks, func(a, b openTask) int { return cmp.Compare(a.why.patience(), b.why.patience()) })
	return tasks, nil
}

// patience orders waits by how likely they are to end without help: 0 is the least likely.
func (w *answer) patience() int {
	if w.root != nil {
		w = w.root
	}
	held := w.Worker != ""
	switch w.Waiting {
	case "aside":
		return 0
	case "worker":
		if !held {
			return 1
		}
		return 8
	case "key":
		return 2
	case "cancel":
		return 3
	case "queue":
		return 4
	case "retry":
		return 5
	case "time":
		return 6
	case "sleep":
		return 7
	}
	return 9
}

// follow makes the root cause of the first task's wait that of the workflow, and adds some more tasks.
func (w *answer) follow(tasks []openTask) {
	first := tasks[0]
	root, path := &first.why, first.name
	if first.why.root != nil {
		root, path = first.why.root, path+" → "+first.why.path
	}
	w.root, w.path, w.Root, w.Unblock = root, path, root.ID, slices.Clone(root.Unblock)
	w.Summary += fmt.Sprintf("; task %s: %s", path, root.Summary)
	for _, t := range tasks[:min(len(tasks), shownTasks)] {
		w.Facts = append(w.Facts, fmt.Sprintf("task %s (%s): %s", t.name, t.why.ID, t.why.Summary))
	}
	for _, fact := range root.Facts[:min(len(root.Facts), shownTasks)] {
		w.Facts = append(w.Facts, fmt.Sprintf("task %s: %s", path, fact))
	}
}

// failing adds that a workflow is failing while it waits for running tasks.
func (e *Explainer) failing(ctx context.Context, x *flow.Execution, w *answer, failed *store.Child, marks []store.Mark) error {
	since := ""
	if failed != nil {
		child, err := e.Store.Get(ctx, failed.Execution)
		if err != nil {
			return fmt.Errorf("load task %s[%d]: %w", failed.Task, failed.Index, err)
		}
		since = fmt.Sprintf("task %s %s", failed.Task, strings.ReplaceAll(child.Stage.String(), "_", " "))
		if child.Outcome != nil {
			since += because(child.Outcome.Error)
		}
	}
	for _, m := range marks {
		if since == "" && m.Error != nil {
			since = fmt.Sprintf("task %s could not start%s", m.Task, because(m.Error))
		}
	}
	if since == "" || x.State.Cancel != nil {
		return nil
	}
	w.Summary = fmt.Sprintf("is failing, since %s: %s", since, w.Summary)
	w.Unblock = append(w.Unblock, cancelIt("what is running ends, or it is cancelled", x.ID))
	return nil
}

func taskOf(plan *definition.Workflow, name string) *definition.Task {
	if plan == nil {
		return nil
	}
	return plan.Task(name)
}

func because(err *flow.Error) string {
	switch {
	case err == nil:
		return ""
	case err.Message == "":
		return fmt.Sprintf(" (%s)", err.Code)
	}
	return fmt.Sprintf(" (%s: %s)", err.Code, shortened(err.Message))
}

// shortened cuts a message that quotes its input.
func shortened(s string) string {
	const most = 300 // bytes
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

func has(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
