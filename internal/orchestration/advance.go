package orchestration

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/strictjson"
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

// Does reports whether what the plan does to the tasks of its workflow is what a says, whose lists are sorted.
func (p *Plan) Does(w *definition.Workflow, a *Advance) bool {
	started := 0
	for _, n := range a.Started {
		started += n
	}
	if marks := len(a.Expanded) + len(a.Skipped) + len(a.Cancelled) + len(a.Broken) + len(a.Reached) + len(a.NotReached); started != len(p.Children) || marks != len(p.Marks) {
		return false // and nothing needs to be put together
	}
	does := p.Advance(w)
	does.Sort()
	return maps.Equal(does.Started, a.Started) && maps.Equal(does.Expanded, a.Expanded) && slices.Equal(does.Skipped, a.Skipped) &&
		slices.Equal(does.Cancelled, a.Cancelled) && slices.Equal(does.Broken, a.Broken) && slices.Equal(does.Reached, a.Reached) && slices.Equal(does.NotReached, a.NotReached)
}

// ReadAdvance reads the data of an event "advanced".
func ReadAdvance(data json.RawMessage) (*Advance, error) {
	a := &Advance{}
	return a, strictjson.Members(data, func(name string, value []byte) (err error) {
		switch name {
		case "started":
			a.Started, err = counts(value)
		case "expanded":
			a.Expanded, err = counts(value)
		case "skipped":
			a.Skipped, err = names(value)
		case "cancelled":
			a.Cancelled, err = names(value)
		case "broken":
			a.Broken, err = names(value)
		case "reached":
			a.Reached, err = names(value)
		case "not_reached":
			a.NotReached, err = names(value)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// counts reads an object of numbers.
func counts(raw []byte) (map[string]int, error) {
	all := map[string]int{}
	return all, strictjson.Members(raw, func(name string, value []byte) error {
		n, err := strconv.Atoi(string(value))
		if err != nil {
			return fmt.Errorf("%s is %s, not a whole number", name, value)
		}
		all[name] = n
		return nil
	})
}

// names reads a list of strings.
func names(raw []byte) (all []string, err error) {
	err = strictjson.Elements(raw, func(i int, value []byte) error {
		if value[0] != '"' {
			return fmt.Errorf("element %d is %s, not a string", i, value)
		}
		name, err := jsontext.AppendUnquote(nil, value)
		all = append(all, string(name))
		return err
	})
	return all, err
}

// Names reports whether it names a task.
func (a *Advance) Names(task string) bool {
	_, started := a.Started[task]
	_, expanded := a.Expanded[task]
	return started || expanded || slices.Contains(a.Skipped, task) || slices.Contains(a.Cancelled, task) || slices.Contains(a.Broken, task) ||
		slices.Contains(a.Reached, task) || slices.Contains(a.NotReached, task)
}

// Tasks are the tasks that it names, in alphabetical order.
func (a *Advance) Tasks() []string {
	all := make([]string, 0, len(a.Started)+len(a.Expanded)+len(a.Skipped)+len(a.Cancelled)+len(a.Broken)+len(a.Reached)+len(a.NotReached))
	for name := range a.Started {
		all = append(all, name)
	}
	for name := range a.Expanded {
		all = append(all, name)
	}
	all = append(append(append(append(append(all, a.Skipped...), a.Cancelled...), a.Broken...), a.Reached...), a.NotReached...)
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
