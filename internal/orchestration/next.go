package orchestration

import (
	"slices"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// Step is the work to do in a state. The zero Step is none: the workflow waits for its children.
type Step struct {
	// Marks are decided without evaluating anything.
	Marks []Marking
	// Start are the tasks whose needs have ended, to be evaluated by Take.
	Start []Start
	// More are the foreach tasks that have room for more children, as far as is known without evaluating their
	// concurrency.
	More []int
	// Judge are the tasks with a repeat whose round has ended: Take evaluates whether it was the last.
	Judge []int
	// Recall are tasks whose open children must be cancelled unless a worker holds them: the workflow is failing. Running
	// children continue to their ends.
	Recall []int
	// Cancel are tasks whose open children must all be cancelled: the workflow is ending.
	Cancel []int
	// Done is the stage in which the workflow ends, if nothing is left to do and no child is open; flow.Completed still
	// depends on its outputs.
	Done flow.Stage
}

// Start is a task to evaluate, with the answers of the functions that its condition may call.
type Start struct {
	Task                       int
	Success, Failed, Cancelled bool
}

// Marking is a mark to be stored.
type Marking struct {
	Task  int
	Mark  Mark
	Total int         // of Expanded
	Error *flow.Error // of Broken
}

// Empty reports whether there is nothing to do but wait.
func (s *Step) Empty() bool {
	return len(s.Marks)+len(s.Start)+len(s.More)+len(s.Judge)+len(s.Recall)+len(s.Cancel) == 0 && s.Done == 0
}

// The effect of a task on those after it.
const (
	ended       uint8 = 1 << iota // it has a status
	ok                            // that counts as success
	failedHere                    // it, or a task before it, failed or was stopped by a failure
	cancelledAt                   // it, or a task before it, was cancelled
)

// decide decides about a task whose needs have ended: a mark if that is certain, else an evaluation. In a clean-up the
// whole workflow counts as cancelled: none of its tasks follows a success.
func (k *Tracker) decide(t *definition.Task, before uint8) (Mark, Start) {
	success := before&ok != 0
	survives := t.If.Survives()
	switch {
	case survives:
	case k.st.Cleaning:
		return Cancelled, Start{}
	case !success:
		return Skipped, Start{}
	case k.failing:
		return Cancelled, Start{}
	}
	return Unmarked, Start{t.Index, success && !k.st.Cleaning, before&failedHere != 0, before&cancelledAt != 0 || k.st.Cleaning}
}

// meaning is the effect of a task's status on the tasks after it.
func meaning(t *definition.Task, p *Progress, status definition.Status, before uint8, failing bool) uint8 {
	m := before & (failedHere | cancelledAt)
	switch {
	case status == "":
		return m
	case status == definition.StatusSkipped:
	case fails(t, p):
		m |= failedHere
	case p.interrupted():
		m |= cancelledAt
		if failing {
			m |= failedHere
		}
	default:
		m |= ok
	}
	return m | ended
}

// room is how many children of a foreach may be created now, if limit of them may be open; 0 is no limit.
func room(t *definition.Task, p *Progress, failing bool, limit int) int {
	n := p.remaining(t, failing)
	if limit > 0 {
		n = min(n, limit-p.Open)
	}
	return max(0, n)
}

// end is Next for a workflow that must end early: nothing starts any more, and it has ended when nothing is open.
func end(w *definition.Workflow, st *State) Step {
	var s Step
	open := false
	for i := range st.Tasks {
		if st.Tasks[i].Open > 0 {
			open = true
			if !st.Stopped {
				s.Cancel = append(s.Cancel, i)
			}
		}
	}
	if open {
		return s
	}
	for i := range st.Tasks {
		if p := &st.Tasks[i]; !p.started() || p.undecided(w.Tasks[i]) {
			s.Marks = append(s.Marks, Marking{Task: i, Mark: Cancelled})
		}
	}
	s.Done = st.Ending
	return s
}

// outcome is the stage of a workflow whose tasks have all ended.
func outcome(st *State, failing bool) flow.Stage {
	if failing {
		return flow.Failed
	}
	for i := range st.Tasks {
		if st.Tasks[i].interrupted() {
			return flow.Cancelled
		}
	}
	return flow.Completed
}

// Outputs returns the tasks whose outputs Take will read, in document order. The items of tasks in have need not be
// evaluated again.
func (s *Step) Outputs(w *definition.Workflow, have Items) []int {
	n := need{w: w}
	for _, start := range s.Start {
		t := w.Tasks[start.Task]
		n.condition(t, t.If)
		n.template(t.Foreach, t)
		n.child(t)
	}
	for _, i := range s.More {
		t := w.Tasks[i]
		if _, known := have[i]; !known {
			n.template(t.Foreach, t)
		}
		n.child(t)
	}
	for _, i := range s.Judge {
		t := w.Tasks[i]
		n.tasks = append(n.tasks, i)
		n.condition(t, t.Repeat.Until)
		n.child(t)
	}
	if s.Done == flow.Completed {
		n.template(w.Outputs, nil)
		for _, name := range w.Reports {
			if t := w.Task(name); t != nil {
				n.tasks = append(n.tasks, t.Index)
			}
		}
	}
	slices.Sort(n.tasks)
	return slices.Compact(n.tasks)
}

// need collects tasks whose outputs are read.
type need struct {
	w     *definition.Workflow
	tasks []int
}

func (n *need) child(t *definition.Task) {
	n.template(t.With, t)
	n.template(t.Settings.Env, t)
	n.template(t.InFlightOf, t)
	if t.Cache != nil {
		n.template(t.Cache.Key, t)
	}
	if c := t.Settings.Concurrency; c != nil {
		n.template(c.Key, t)
		n.template(c.FairBy, t)
	}
	if r := t.Settings.Rate; r != nil {
		n.template(r.Key, t)
	}
}

func (n *need) condition(t *definition.Task, c *definition.Condition) {
	refs, all := c.Refs()
	n.add(refs, all, t)
}

func (n *need) template(tpl *definition.Template, t *definition.Task) {
	if tpl == nil {
		return
	}
	refs, all := tpl.Refs()
	n.add(refs, all, t)
}

func (n *need) add(refs []definition.TaskRef, all bool, t *definition.Task) {
	if all {
		for _, name := range upstream(n.w, t) {
			n.tasks = append(n.tasks, n.w.Task(name).Index)
		}
		return
	}
	for _, r := range refs {
		if task := n.w.Task(r.Task); r.Output && task != nil {
			n.tasks = append(n.tasks, task.Index)
		}
	}
}

// upstream names the tasks whose outputs may be read: for the workflow's outputs (nil), every task.
func upstream(w *definition.Workflow, t *definition.Task) []string {
	if t != nil {
		return w.Upstream(t)
	}
	names := make([]string, len(w.Tasks))
	for i, t := range w.Tasks {
		names[i] = t.Name
	}
	return names
}
