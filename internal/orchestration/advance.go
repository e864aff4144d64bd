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

// Advance is the effect of a step on the tasks of a workflow, by their names: the data of the event "advanced".
type Advance struct {
	Started   map[string]int `json:"started,omitempty"`  // how many executions
	Expanded  map[string]int `json:"expanded,omitempty"` // to how many items
	Skipped   []string       `json:"skipped,omitempty"`
	Cancelled []string       `json:"cancelled,omitempty"`
	Broken    []string       `json:"broken,omitempty"`
	// Of tasks with a repeat: until held, or there are no more rounds.
	Reached    []string `json:"reached,omitempty"`
	NotReached []string `json:"not_reached,omitempty"`
	// Cleanup is the stage in which the workflow will end, in a step of its clean-up.
	Cleanup string `json:"cleanup,omitempty"`
}

// Advance is the effect of the plan on the tasks of its workflow.
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

// Does reports whether the plan has the effect a on the tasks of its workflow; a's lists are sorted.
func (p *Plan) Does(w *definition.Workflow, a *Advance) bool {
	started := 0
	for _, n := range a.Started {
		started += n
	}
	if marks := len(a.Expanded) + len(a.Skipped) + len(a.Cancelled) + len(a.Broken) + len(a.Reached) + len(a.NotReached); started != len(p.Children) || marks != len(p.Marks) {
		return false // without building anything
	}
	// The plan marks each task at most once, and a has as many marks: if a has each mark of the plan, they are the same.
	for _, m := range p.Marks {
		if !a.marks(w.Tasks[m.Task].Name, m) {
			return false
		}
	}
	does := map[string]int{} // stays on the stack up to eight tasks
	for i := range p.Children {
		does[p.Children[i].Task.Name]++
	}
	return maps.Equal(does, a.Started)
}

// marks reports whether a, whose lists are sorted, has a mark of a task.
func (a *Advance) marks(task string, m Marking) bool {
	in := func(names []string) bool {
		_, ok := slices.BinarySearch(names, task)
		return ok
	}
	switch m.Mark {
	case Expanded:
		total, ok := a.Expanded[task]
		return ok && total == m.Total
	case Skipped:
		return in(a.Skipped)
	case Cancelled:
		return in(a.Cancelled)
	case Broken:
		return in(a.Broken)
	case Reached:
		return in(a.Reached)
	case NotReached:
		return in(a.NotReached)
	}
	return false
}

// ReadAdvance reads the data of an event "advanced".
func ReadAdvance(data json.RawMessage) (*Advance, error) {
	a := &Advance{}
	return a, strictjson.Read(data, func(dec *jsontext.Decoder) error {
		return strictjson.EachMember(dec, func(name string) (err error) {
			switch name {
			case "started":
				a.Started, err = counts(dec)
			case "expanded":
				a.Expanded, err = counts(dec)
			case "skipped":
				a.Skipped, err = names(dec)
			case "cancelled":
				a.Cancelled, err = names(dec)
			case "broken":
				a.Broken, err = names(dec)
			case "reached":
				a.Reached, err = names(dec)
			case "not_reached":
				a.NotReached, err = names(dec)
			case "cleanup":
				a.Cleanup, err = text(dec, "it")
			default:
				return dec.SkipValue()
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	})
}

func counts(dec *jsontext.Decoder) (map[string]int, error) {
	all := map[string]int{}
	return all, strictjson.EachMember(dec, func(name string) error {
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if all[name], err = strconv.Atoi(string(value)); err != nil {
			return fmt.Errorf("%s is %s, not a whole number", name, value)
		}
		return nil
	})
}

func names(dec *jsontext.Decoder) (all []string, err error) {
	err = strictjson.EachElement(dec, func(i int) error {
		name, err := text(dec, fmt.Sprintf("element %d", i))
		all = append(all, name)
		return err
	})
	return all, err
}

// text reads a string; what names it.
func text(dec *jsontext.Decoder, what string) (string, error) {
	value, err := dec.ReadValue()
	if err != nil {
		return "", err
	}
	if value.Kind() != '"' {
		return "", fmt.Errorf("%s is %s, not a string", what, value)
	}
	s, err := jsontext.AppendUnquote(nil, value)
	return string(s), err
}

// Names reports whether a names a task.
func (a *Advance) Names(task string) bool {
	_, started := a.Started[task]
	_, expanded := a.Expanded[task]
	return started || expanded || slices.Contains(a.Skipped, task) || slices.Contains(a.Cancelled, task) || slices.Contains(a.Broken, task) ||
		slices.Contains(a.Reached, task) || slices.Contains(a.NotReached, task)
}

// Tasks are the named tasks, in alphabetical order.
func (a *Advance) Tasks() []string {
	all := make([]string, 0, len(a.Started)+len(a.Expanded)+len(a.Skipped)+len(a.Cancelled)+len(a.Broken)+len(a.Reached)+len(a.NotReached))
	all = slices.AppendSeq(all, maps.Keys(a.Started))
	all = slices.AppendSeq(all, maps.Keys(a.Expanded))
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
