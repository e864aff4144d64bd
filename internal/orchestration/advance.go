package orchestration

import (
	"maps"
	"slices"

	"github.com/pawl-run/pawl/internal/definition"
)

// Advance is what a step did to the tasks of a workflow, by their names: the data of the event "advanced".
type Advance struct {
	Started   map[string]int `json:"started,omitempty"`  // how many executions
	Expanded  map[string]int `json:"expanded,omitempty"` // to how many items
	Skipped   []string       `json:"skipped,omitempty"`
	Cancelled []string       `json:"cancelled,omitempty"`
	Broken    []string       `json:"broken,omitempty"`
	// Of tasks with a repeat: until held, or there is no further round.
	Reached    []string `json:"reached,omitempty"`
	NotReached []string `json:"not_reached,omitempty"`
}

// Advance is what the plan does to the tasks of its workflow.
func (p *Plan) Advance(w *definition.Workflow) Advance {
	var a Advance
	for i := range p.Children {
		if a.Started == nil {
			a.Started = map[string]int{}
		}
		a.Started[p.Children[i].Task.Name]++
	}
	for _, m := range p.Marks {
		name := w.Tasks[m.Task].Name
		switch m.Mark {
		case Expanded:
			if a.Expanded == nil {
				a.Expanded = map[string]int{}
			}
			a.Expanded[name] = m.Total
		case Skipped:
			a.Skipped = append(a.Skipped, name)
		case Cancelled:
			a.Cancelled = append(a.Cancelled, name)
		case Broken:
			a.Broken = append(a.Broken, name)
		case Reached:
			a.Reached = append(a.Reached, name)
		case NotReached:
			a.NotReached = append(a.NotReached, name)
		}
	}
	return a
}

// Tasks are the tasks that it names, in alphabetical order.
func (a *Advance) Tasks() []string {
	all := slices.Concat(slices.Collect(maps.Keys(a.Started)), slices.Collect(maps.Keys(a.Expanded)), a.Skipped, a.Cancelled, a.Broken, a.Reached, a.NotReached)
	slices.Sort(all)
	return slices.Compact(all)
}

// Sort orders the names in each list, so that two can be compared.
func (a *Advance) Sort() {
	slices.Sort(a.Skipped)
	slices.Sort(a.Cancelled)
	slices.Sort(a.Broken)
	slices.Sort(a.Reached)
	slices.Sort(a.NotReached)
}
