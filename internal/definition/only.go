package definition

import (
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
)

// Only returns the workflow without some of its tasks; its output is that of the tasks in reports. A task that is left out has no needs,
// and no task needs it, so it is skipped in the first step. The caller also leaves out every task that needs one of them.
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

// For returns the part of the workflow that an execution runs: a rerun may be narrowed to some tasks. It returns nil for nil: an action has
// no workflow.
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
