package engine

import (
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// workflows is which workflows take their next step in a transaction, and their progress.
type workflows struct {
	due map[flow.ID]bool // those that must take their next step
	// expected are the questions about workflows that the store was told to expect.
	expected map[flow.ID]store.KnownWorkflow

	begun map[flow.ID]bool // those whose attempt has begun in this transaction, and that have no tasks yet

	ended     map[flow.ID][]*flow.Draft // executions that ended in this transaction, by parent
	endedIDs  map[flow.ID]bool          // their ids
	uncounted map[flow.ID][]*flow.Draft // those of them that the parent's progress does not include yet

	progress  map[store.WorkflowAttempt]*progress // of the workflows that have taken a step, or were postponed
	postponed []*advanceOp                        // those whose next step a later transaction takes
}

func newWorkflows() workflows {
	return workflows{
		due:       map[flow.ID]bool{},
		begun:     map[flow.ID]bool{},
		ended:     map[flow.ID][]*flow.Draft{},
		endedIDs:  map[flow.ID]bool{},
		uncounted: map[flow.ID][]*flow.Draft{},
		progress:  map[store.WorkflowAttempt]*progress{},
	}
}

// childEnded makes the workflow above an execution due.
func (w *workflows) childEnded(d *flow.Draft) {
	w.due[d.Parent] = true
	if !w.endedIDs[d.ID] {
		w.endedIDs[d.ID] = true
		w.ended[d.Parent] = append(w.ended[d.Parent], d)
		w.uncounted[d.Parent] = append(w.uncounted[d.Parent], d)
	}
}
