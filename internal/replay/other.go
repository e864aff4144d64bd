package replay

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
)

// Comparison is how a recorded run would have differed under another definition.
type Comparison struct {
	Tasks []TaskComparison // in the order of the other definition; tasks that it does not have come last
	// Stage and Outcome are how the run would have ended; the zero stage: unknown.
	Stage   flow.Stage
	Outcome flow.Outcome
	// EndsAlike reports whether it would have ended in the same way.
	EndsAlike bool
}

// Change is how a task changes under another definition.
type Change string

const (
	Same     Change = "same"
	Differs  Change = "differs"   // its decision differs: started, skipped, expanded to another number of items, …
	Mapped   Change = "input"     // it is started, but with another input
	NotKnown Change = "not known" // it comes after something whose outcome is not in the record
	Added    Change = "added"     // the recorded definition does not have it
	Removed  Change = "removed"   // the other definition does not have it
)

type TaskComparison struct {
	Task            string
	Change          Change
	Recorded, Would string // the decision about it, in the record and under the other definition
	Items           []int  // the first items with another input
	Why             string
}

// shownItems is how many items of a task a comparison names.
const shownItems = 100

// Compare runs another definition with the recorded ends of tasks, in the order of their times: an item that is started with its recorded
// input ends as it did. The outcome of every other item is unknown, and so is everything after it. The latest attempt is compared.
func Compare(r *Record, other *definition.Workflow) *Comparison {
	w := &walk{rec: r, x: &flow.Execution{ID: r.Execution.ID, Request: r.Execution.Request}}
	w.x.NextSeq = 1
	w.prepare()
	for w.i < len(r.Events) {
		w.step()
	}
	c := &comparing{was: w.wf, rec: r, w: other, st: &orchestration.State{Tasks: make([]orchestration.Progress, len(other.Tasks))},
		items: map[string][]*flow.Execution{}, tasks: make([]mapping, len(other.Tasks))}
	for _, x := range w.kids[r.Execution.Attempt] {
		all := c.items[x.Task]
		for len(all) <= x.Index {
			all = append(all, nil)
		}
		all[x.Index] = x
		c.items[x.Task] = all
	}
	return c.compare()
}

type comparing struct {
	was   *attempt // nil: the attempt never began
	rec   *Record
	w     *definition.Workflow
	st    *orchestration.State
	items map[string][]*flow.Execution // recorded, by task
	tasks []mapping
	ends  []*flow.Execution // of items that were started as recorded, and whose ends the workflow has not seen
	told  map[*flow.Execution]bool
}

// mapping is what is known of one task under the other definition.
type mapping struct {
	items []int  // with another input
	why   string // why the first of them has
	open  string // why the outcome of an item is unknown
}

func (c *comparing) compare() *Comparison {
	k, plan := orchestration.Track(c.w, c.st), orchestration.Plan{}
	c.told = map[*flow.Execution]bool{}
	x := c.rec.Execution
	facts := &orchestration.Facts{ID: x.ID.String(), Input: x.Input, Labels: x.Labels, Items: orchestration.Items{}, Output: c.output}
	for taken := 0; ; {
		for again := true; again && plan.Stage == 0; {
			next := k.Next()
			again = !next.Empty() && orchestration.Take(c.w, c.st, next, facts, &plan)
			for ; taken < len(plan.Children); taken++ {
				c.start(&plan.Children[taken])
			}
		}
		if len(c.ends) == 0 || plan.Stage != 0 {
			break
		}
		e := c.ends[0]
		c.ends = c.ends[1:]
		c.told[e] = true
		task := c.w.Task(e.Task).Index
		k.Ended(task, e.Stage)
		if e.Outcome != nil {
			c.st.Tasks[task].Blame(e.Index, e.Stage, e.Outcome.Error)
		}
	}
	return c.result(&plan)
}

// start finds the recorded end of an item.
func (c *comparing) start(k *orchestration.Child) {
	m := &c.tasks[k.Task.Index]
	var x *flow.Execution
	if all := c.items[k.Task.Name]; k.Index < len(all) {
		x = all[k.Index]
	}
	open := func(why string, args ...any) {
		if m.open == "" {
			m.open = fmt.Sprintf(why, args...)
		}
	}
	if x == nil {
		open("%s was not started, so no outcome is recorded", itemText(k.Task, k.Index))
		return
	}
	r, err := c.rec.Workflow.Request(k, x)
	if err != nil {
		open("%v", err)
		return
	}
	if why := otherWork(&r, &x.Request); why != "" {
		if len(m.items) < shownItems {
			m.items = append(m.items, k.Index)
		}
		m.why = cmp.Or(m.why, fmt.Sprintf("%s: %s", itemText(k.Task, k.Index), why))
		open("with that, no outcome of %s is recorded", itemText(k.Task, k.Index))
		return
	}
	if !x.Stage.Terminal() {
		open("%s has not ended", itemText(k.Task, k.Index))
		return
	}
	at, _ := slices.BinarySearchFunc(c.ends, x, func(a, b *flow.Execution) int {
		return cmp.Or(a.FinishedAt.Compare(b.FinishedAt), slices.Compare(a.ID[:], b.ID[:]))
	})
	c.ends = slices.Insert(c.ends, at, x)
}

func itemText(t *definition.Task, index int) string {
	if t.Repeat != nil {
		return fmt.Sprintf("round %d of %s", index+1, t.Name)
	}
	if t.Foreach == nil {
		return t.Name
	}
	return fmt.Sprintf("%s[%d]", t.Name, index)
}

// otherWork names how an item's work differs; "": it does not.
func otherWork(would, was *flow.Request) string {
	switch {
	case would.Kind != was.Kind || would.Action != was.Action || would.Version != was.Version:
		return fmt.Sprintf("it runs %s, and ran %s", runs(would), runs(was))
	case !sameJSON(would.Input, was.Input):
		return fmt.Sprintf("its input is %s, and was %s", flow.Clipped(string(would.Input), 200), flow.Clipped(string(was.Input), 200))
	case !sameJSON(would.With, was.With):
		return fmt.Sprintf("its handler is given %s, and was given %s", flow.Clipped(string(would.With), 200), flow.Clipped(string(was.With), 200))
	}
	return ""
}

func runs(r *flow.Request) string {
	if r.Version == 0 {
		return r.Action
	}
	return fmt.Sprintf("%s@%d", r.Action, r.Version)
}

func (c *comparing) output(task int) orchestration.Output {
	t, p := c.w.Tasks[task], &c.st.Tasks[task]
	return outputOf(t, p.Created, c.items[t.Name], func(i int) bool { return c.told[c.items[t.Name][i]] })
}

// result assembles the comparison.
func (c *comparing) result(plan *orchestration.Plan) *Comparison {
	out := &Comparison{Stage: plan.Stage, Outcome: plan.Outcome}
	for i, t := range c.w.Tasks {
		out.Tasks = append(out.Tasks, c.task(i, t))
	}
	if c.was != nil {
		for i, t := range c.was.def.Tasks {
			if c.w.Task(t.Name) == nil {
				out.Tasks = append(out.Tasks, TaskComparison{Task: t.Name, Change: Removed, Recorded: decided(t, &c.was.st.Tasks[i]), Why: "the definition does not have it"})
			}
		}
	}
	x := c.rec.Execution
	out.EndsAlike = plan.Stage == x.Stage && x.Outcome != nil && sameJSON(plan.Outcome.Output, x.Outcome.Output)
	return out
}

func (c *comparing) task(i int, t *definition.Task) TaskComparison {
	p, m := &c.st.Tasks[i], &c.tasks[i]
	d := TaskComparison{Task: t.Name, Change: Same, Would: decided(t, p), Items: m.items}
	var was *orchestration.Progress
	if c.was != nil {
		if old := c.was.def.Task(t.Name); old != nil {
			was = &c.was.st.Tasks[old.Index]
			d.Recorded = decided(old, was)
		}
	}
	switch {
	case was == nil:
		d.Change, d.Why = Added, cmp.Or(m.open, "the recorded definition does not have it")
	case p.Mark == orchestration.Unmarked && p.Created == 0 && was.Mark == orchestration.Unmarked && was.Created == 0:
		// it was not reached in either run
	case p.Mark == orchestration.Unmarked && p.Created == 0:
		d.Change, d.Why = NotKnown, c.waits(t)
	case len(m.items) > 0:
		d.Change, d.Why = Mapped, m.why
	case d.Would != d.Recorded && !c.stopped(p, was):
		d.Change = Differs
		if p.Error != nil && p.Mark == orchestration.Broken {
			d.Why = p.Error.Message
		}
		d.Why = cmp.Or(d.Why, m.open)
	case m.open != "" && !c.stopped(p, was):
		d.Change, d.Why = NotKnown, m.open
	}
	return d
}

// stopped reports whether two decisions about a foreach differ only in how many of its items were started before the workflow failed: that
// depends on the times of other ends, which are not recorded.
func (c *comparing) stopped(p, was *orchestration.Progress) bool {
	return p.Mark == was.Mark && p.Total == was.Total && was.Created < was.Total && c.rec.Execution.Stage != flow.Completed
}

// waits names the unknown outcome that a task comes after.
func (c *comparing) waits(t *definition.Task) string {
	for _, n := range t.Needs {
		if c.st.Status(c.w, n) == "" {
			return fmt.Sprintf("what becomes of %s, which it needs, is not known", c.w.Tasks[n].Name)
		}
	}
	return "what comes before it is not known"
}

// decided describes the decision about a task.
func decided(t *definition.Task, p *orchestration.Progress) string {
	switch {
	case p.Mark == orchestration.Skipped:
		return "skipped"
	case p.Mark == orchestration.Cancelled:
		return "cancelled"
	case p.Mark == orchestration.Broken:
		return "failed expression"
	case t.Foreach != nil && p.Mark == orchestration.Expanded && p.Created == p.Total:
		return fmt.Sprintf("%d items", p.Total)
	case t.Foreach != nil && p.Mark == orchestration.Expanded:
		return fmt.Sprintf("%d of %d items", p.Created, p.Total)
	case p.Mark == orchestration.Reached:
		return fmt.Sprintf("reached in round %d", p.Created)
	case p.Mark == orchestration.NotReached:
		return fmt.Sprintf("not reached in round %d", p.Created)
	case t.Repeat != nil && p.Created > 0:
		return fmt.Sprintf("%d rounds", p.Created)
	case p.Created > 0:
		return "started"
	}
	return "not reached"
}
