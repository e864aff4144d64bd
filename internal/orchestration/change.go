package orchestration

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
)

// Change is the effect of one transaction on a workflow's state. The changes of an attempt, in order, lead from any
// state between two of them to the latest: a caller that knows an earlier state need not count the workflow's children.
type Change struct {
	Marks    []MarkChange  `json:"marks,omitempty"`
	Created  []CountChange `json:"created,omitempty"`
	Ended    []CountChange `json:"ended,omitempty"`
	Recalled bool          `json:"recalled,omitempty"`
	Stopped  bool          `json:"stopped,omitempty"`
	// CleanedUp means that Stopped belongs to the order at the end of the clean-up.
	CleanedUp bool `json:"cleaned_up,omitempty"`
	// Unknown means that the state changed in a way that this change does not describe: it must be read again.
	Unknown bool `json:"unknown,omitempty"`
}

type MarkChange struct {
	Task  int         `json:"task"` // its index in Workflow.Tasks
	Mark  Mark        `json:"mark"`
	Total int         `json:"total,omitempty"`
	Error *flow.Error `json:"error,omitempty"`
}

// CountChange is how many children of a task were created, or have ended in a
// stage.
type CountChange struct {
	Task  int        `json:"task"`
	Stage flow.Stage `json:"stage,omitempty"`
	Count int        `json:"count"`
}

// ChangeOf is the change that a plan and the ends of children make to a state.
func ChangeOf(st *State, plan *Plan) Change {
	c := Change{Recalled: st.Recalled, Stopped: st.Stopped, CleanedUp: st.CleanedUp}
	for _, m := range plan.Marks {
		c.Marks = append(c.Marks, MarkChange(m))
	}
	for i := range plan.Children {
		c.Created = count(c.Created, plan.Children[i].Task.Index, 0)
	}
	return c
}

// Empty reports whether the change adds nothing to the state before it, apart from Recalled and Stopped, which the
// caller compares.
func (c *Change) Empty() bool { return len(c.Marks)+len(c.Created)+len(c.Ended) == 0 && !c.Unknown }

func (c *Change) End(task int, as flow.Stage) { c.Ended = count(c.Ended, task, as) }

func count(all []CountChange, task int, stage flow.Stage) []CountChange {
	for i := len(all) - 1; i >= 0 && i >= len(all)-8; i-- { // related ends mostly come together
		if all[i].Task == task && all[i].Stage == stage {
			all[i].Count++
			return all
		}
	}
	return append(all, CountChange{task, stage, 1})
}

func (c *Change) Text() (json.RawMessage, error) { return json.Marshal(c) }

// Apply applies a stored change to the tracker's state, and returns how many children it created. After an error the
// state must be read again.
func (k *Tracker) Apply(text json.RawMessage) (created int, err error) {
	var c Change
	if err := json.Unmarshal(text, &c); err != nil {
		return 0, fmt.Errorf("read a change of a workflow: %w", err)
	}
	if c.Unknown {
		return 0, errors.New("a change of a workflow says that its state is to be read anew")
	}
	known := func(task int) bool { return task >= 0 && task < len(k.st.Tasks) }
	for _, m := range c.Marks {
		if !known(m.Task) {
			return 0, fmt.Errorf("a change of a workflow names task %d of %d", m.Task, len(k.st.Tasks))
		}
		p := &k.st.Tasks[m.Task]
		if p.Mark = m.Mark; m.Mark == Expanded {
			p.Total = m.Total
		}
		if m.Error != nil {
			p.Error, p.ErrorIndex, p.ErrorStage = m.Error, p.Created, 0
		}
		k.look(m.Task)
	}
	for _, n := range c.Created {
		if !known(n.Task) {
			return 0, fmt.Errorf("a change of a workflow names task %d of %d", n.Task, len(k.st.Tasks))
		}
		p := &k.st.Tasks[n.Task]
		created += n.Count
		p.Created += n.Count
		p.Open += n.Count
		k.look(n.Task)
	}
	for _, n := range c.Ended {
		if !known(n.Task) {
			return 0, fmt.Errorf("a change of a workflow names task %d of %d", n.Task, len(k.st.Tasks))
		}
		for range n.Count {
			k.Ended(n.Task, n.Stage)
		}
		if p := &k.st.Tasks[n.Task]; n.Stage != flow.Completed && p.ErrorStage != 0 {
			p.Error, p.ErrorIndex, p.ErrorStage = nil, 0, 0 // one of these may be the failure to name: it must be loaded again
		}
	}
	k.st.Recalled, k.st.Stopped, k.st.CleanedUp = c.Recalled, c.Stopped, c.CleanedUp
	return created, nil
}
