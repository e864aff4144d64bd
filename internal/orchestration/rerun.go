package orchestration

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// Work is the work of an item: its action and its input. Two items with the same work should have the same outcome.
type Work struct{ Action, Input [sha256.Size]byte }

// Sum is the hash of the work, in its stored form.
func (w Work) Sum() [sha256.Size]byte {
	return sha256.Sum256(append(w.Action[:], w.Input[:]...))
}

// Past is the end of an item of the original.
type Past struct {
	Execution flow.ID
	Of        flow.ID // the execution that ran: Execution, or the one whose outcome it reused
	Stage     flow.Stage
	Work      Work
	// Fleeting means that its output names files, which are removed together with their execution.
	Fleeting bool
	// Partial means that it is a workflow of which only some tasks ran, so its output is not that of the whole.
	Partial bool
}

// Item names an item of a task; Index AllItems: every item.
type Item struct {
	Task  string
	Index int
}

// Text is an item in the form that users write: task, or task[index].
func (i Item) Text() string {
	if i.Index == AllItems {
		return i.Task
	}
	return fmt.Sprintf("%s[%d]", i.Task, i.Index)
}

// AllItems stands for every item of a task.
const AllItems = -1

// Original is the part of the original workflow execution that a plan reads.
type Original struct {
	// Past is how an item ended; false: there was no such item.
	Past func(task string, index int) (Past, bool)
	// Mark is the decision about a task that its items do not show.
	Mark func(task string) Mark
	// Output is the outputs of the items 0..n-1 of a task. It is called for tasks whose items have all completed.
	Output func(t *definition.Task, n int) Output
	// Override is the output given to an item of the rerun; nil: none.
	Override func(task string, index int) json.RawMessage
	// Within reports whether an item is a workflow of which parts run again, so that it cannot be reused; nil: none is.
	Within func(c *Child) bool
	// Work is the work of an item of the rerun; an error is why it will fail.
	Work func(c *Child) (Work, error)
}

// Decision is what a rerun does about a task.
type Decision string

const (
	Reuse    Decision = "reuse"   // it ends with the outcomes of the original; nothing of it runs
	Run      Decision = "run"     // all of it runs
	Partly   Decision = "partly"  // some items run, and the others' outcomes are reused
	Skip     Decision = "skip"    // its condition does not hold
	Break    Decision = "break"   // one of its expressions fails
	Prevent  Decision = "prevent" // the workflow fails before it can start
	Override Decision = "give"    // it ends with given outputs, or reused ones; nothing of it runs
	Leave    Decision = "leave"   // it is left out: the rerun runs only other tasks
)

// Planned is the plan for one task, with the reason.
type Planned struct {
	Task       string
	Decision   Decision
	Reused     int   // items with reused outcomes
	Overridden int   // items with given outputs
	Runs       int   // items that run, as far as is known before the ends of the tasks that it needs
	Items      []int // of a foreach: the first items that run
	Reason     string
}

// shownItems is how many items of a task a plan names.
const shownItems = 100

// Reused is an item whose outcome is reused.
type Reused struct {
	Item
	Past
}

type RerunPlan struct {
	Tasks  []Planned // in document order
	Reuses []Reused
	// LeftOut are the tasks that a rerun of only others leaves out.
	LeftOut []string
	// Stage and Outcome are the end of the rerun if nothing runs.
	Stage   flow.Stage
	Outcome flow.Outcome
}

// PlanRerun plans a rerun of a workflow execution, with the definition and the facts of the rerun; f.Output and the bounds are not used.
// from are items that run again however they ended.
//
// It takes the rerun's own steps: an item ends at once if its outcome can be reused, and stays open if it must run. Items after one that
// runs are never started here, so they are never reused; conditions, items and inputs of all others are evaluated from known outputs.
func PlanRerun(w *definition.Workflow, o *Original, from []Item, f Facts) *RerunPlan {
	r := &rerun{w: unbounded(w), o: o, from: make(map[Item]bool, len(from)), tasks: make([]planning, len(w.Tasks))}
	for _, i := range from {
		r.from[i] = true
	}
	r.st = &State{Tasks: make([]Progress, len(w.Tasks))}
	f.Most, f.MostBytes, f.Upto, f.Items = 0, 0, nil, Items{}
	f.Output = func(task int) Output { return o.Output(w.Tasks[task], r.st.Tasks[task].Created) }
	k := Track(r.w, r.st)
	var plan Plan
	for taken := 0; plan.Stage == 0; {
		next := k.Next()
		if next.Empty() {
			break
		}
		Take(r.w, r.st, next, &f, &plan)
		r.reused = slices.Grow(r.reused, len(plan.Children)-taken)
		for ; taken < len(plan.Children); taken++ {
			c := &plan.Children[taken]
			if r.reuses(c) {
				k.Ended(c.Task.Index, flow.Completed)
			}
		}
	}
	return r.plan(&plan)
}

// unbounded is a workflow whose foreach tasks create all items at once: otherwise items that run would block the others.
func unbounded(w *definition.Workflow) *definition.Workflow {
	u := *w
	u.Tasks = make([]*definition.Task, len(w.Tasks))
	for i, t := range w.Tasks {
		c := *t
		c.InFlight, c.InFlightOf = 0, nil
		u.Tasks[i] = &c
	}
	return &u
}

type rerun struct {
	w      *definition.Workflow
	o      *Original
	st     *State
	from   map[Item]bool
	tasks  []planning
	reused []Reused
}

// planning is what is known of one task so far.
type planning struct {
	reused, runs int
	overridden   int
	items        []int
	why          string // the reason of the first item that runs, but of a cancelled one only if all were cancelled
	stopped      bool   // why belongs to a cancelled item
}

func (r *rerun) hasOverride(task string, index int) bool {
	return r.o.Override != nil && r.o.Override(task, index) != nil
}

// reuses decides about one item, and reports whether it ends at once.
func (r *rerun) reuses(c *Child) bool {
	p := &r.tasks[c.Task.Index]
	if r.hasOverride(c.Task.Name, c.Index) {
		p.overridden++
		return true
	}
	past, why := r.look(c)
	if why == "" {
		p.reused++
		r.reused = append(r.reused, Reused{Item{c.Task.Name, c.Index}, past})
		return true
	}
	if p.runs++; p.why == "" || p.stopped && past.Stage != flow.Cancelled {
		p.why, p.stopped = why, past.Stage == flow.Cancelled
	}
	if c.Task.Foreach != nil && len(p.items) < shownItems {
		p.items = append(p.items, c.Index)
	}
	return false
}

// look returns the outcome that an item can reuse, or the reason why it cannot.
func (r *rerun) look(c *Child) (Past, string) {
	past, ok := r.o.Past(c.Task.Name, c.Index)
	switch {
	case r.o.Within != nil && r.o.Within(c):
		return past, "a path leads into it"
	case r.from[Item{c.Task.Name, AllItems}] || r.from[Item{c.Task.Name, c.Index}]:
		return past, "it was named"
	case !ok:
		return past, r.absent(c.Task)
	case r.o.Mark(c.Task.Name) == NotReached:
		return past, "its until was not reached"
	case past.Stage != flow.Completed:
		return past, map[flow.Stage]string{flow.Failed: "it failed", flow.Cancelled: "it was cancelled", flow.TimedOut: "it timed out"}[past.Stage]
	case past.Partial:
		return past, "only a part of it ran"
	case past.Fleeting:
		return past, "its output names files, which are kept only as long as the execution that left them"
	}
	work, err := r.o.Work(c)
	switch {
	case err != nil:
		return past, "it cannot run any more: " + err.Error()
	case work.Input != past.Work.Input:
		return past, "its input has changed"
	case work.Action != past.Work.Action:
		return past, "what it runs has changed"
	}
	return past, ""
}

// absent returns why the original has no such item.
func (r *rerun) absent(t *definition.Task) string {
	switch r.o.Mark(t.Name) {
	case Skipped:
		return "it was skipped"
	case Cancelled:
		return "it was cancelled before it started"
	case Broken:
		return "one of its expressions failed"
	}
	return "it did not start"
}

func (r *rerun) plan(taken *Plan) *RerunPlan {
	all := &RerunPlan{Tasks: make([]Planned, len(r.w.Tasks)), Reuses: r.reused, Stage: taken.Stage, Outcome: taken.Outcome}
	for i, t := range r.w.Tasks {
		all.Tasks[i] = r.planned(t)
	}
	return all
}

func (r *rerun) planned(t *definition.Task) Planned {
	p, k := &r.st.Tasks[t.Index], &r.tasks[t.Index]
	d := Planned{Task: t.Name, Reused: k.reused, Overridden: k.overridden, Runs: k.runs, Items: k.items, Reason: k.why}
	switch {
	case t.LeftOut:
		d.Decision, d.Reason = Leave, "the rerun is of "+strings.Join(r.w.Reports, ", ")+" only"
	case p.Mark == Broken:
		d.Decision, d.Reason = Break, p.Error.Message
	case p.Mark == Skipped:
		d.Decision, d.Reason = Skip, "its condition does not hold"
	case p.Mark == Cancelled:
		d.Decision, d.Reason = Prevent, "the workflow fails before it can start"
	case !p.started() && t.Foreach == nil && r.hasOverride(t.Name, 0):
		d.Decision, d.Overridden, d.Reason = Override, 1, "its output is given, when its turn comes: "+r.waits(t)
	case !p.started():
		d.Decision, d.Reason = Run, r.waits(t)
	case k.runs > 0 && k.reused+k.overridden > 0:
		d.Decision = Partly
	case k.runs > 0:
		d.Decision = Run
	case k.overridden > 0:
		d.Decision, d.Reason = Override, "its output is given"
	case p.Mark == Expanded && p.Total == 0:
		d.Decision, d.Reason = Reuse, "its list is empty"
	default:
		d.Decision, d.Reason = Reuse, "it completed, and neither it nor what comes before it has changed"
	}
	return d
}

// waits names the task that a task which has not started waits for.
func (r *rerun) waits(t *definition.Task) string {
	for _, n := range t.Needs {
		if r.st.Status(r.w, n) == "" {
			return fmt.Sprintf("%s, which it needs, runs again", r.w.Tasks[n].Name)
		}
	}
	return "what it needs runs again"
}

// After returns the tasks after one, directly and indirectly, in document order.
func After(w *definition.Workflow, t *definition.Task) []string {
	seen := make([]bool, len(w.Tasks))
	for stack := slices.Clone(t.Successors); len(stack) > 0; {
		i := stack[len(stack)-1]
		if stack = stack[:len(stack)-1]; !seen[i] {
			seen[i] = true
			stack = append(stack, w.Tasks[i].Successors...)
		}
	}
	var names []string
	for i, is := range seen {
		if is {
			names = append(names, w.Tasks[i].Name)
		}
	}
	return names
}
