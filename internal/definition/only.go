package definition

import (
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
)

// Only is a workflow in which some tasks are left out, and which puts out what others put out. What is left out needs nothing and nothing
// needs it, so that it is skipped in the first step; what needs a task that is left out has to be left out too.
func (w *Workflow) Only(reports, leftOut []string) *Workflow {
	out := make([]bool, len(w.Tasks))
	for i, t := range w.Tasks {
		out[i] = slices.Contains(leftOut, t.Name)
	}
	gone := func(i int) bool { return out[i] }
	o := *w
	o.Outputs, o.Reports, o.Tasks = nil, reports, make([]*Task, len(w.Tasks))
	for i, t := range w.Tasks {
		c := *t
		if c.LeftOut = out[i]; c.LeftOut {
			c.Needs, c.Successors = nil, nil
		} else {
			c.Needs, c.Successors = slices.DeleteFunc(slices.Clone(t.Needs), gone), slices.DeleteFunc(slices.Clone(t.Successors), gone)
		}
		o.Tasks[i] = &c
	}
	return &o
}

// For is what an execution runs of the workflow, which a rerun may have narrowed to some tasks. Nil is the workflow of what is none.
func (w *Workflow) For(r *flow.Request) *Workflow {
	again := r.AsRerun()
	if len(again.Only) == 0 || w == nil {
		return w
	}
	var reports []string
	for _, text := range again.Only {
		name, _, _ := strings.Cut(text, "[")
		reports = append(reports, name)
	}
	return w.Only(reports, again.LeftOut)
}
