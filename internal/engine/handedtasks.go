package engine

import (
	"sync"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// handedTasks remembers the workflows of tasks that this replica has handed to workers. A report does not name the workflow. A transaction
// that knows it reads it together with the task that ends. It is a hint: without it the workflow is read afterwards.
type handedTasks struct {
	mu       sync.Mutex
	attempts map[flow.ID]store.WorkflowAttempt
}

// handedTasksLimit is how many executions are remembered, in about 6 MB. Beyond it all are forgotten: most of their workers are gone.
const handedTasksLimit = 50_000

// add adds the tasks among executions that workers get.
func (h *handedTasks) add(xs []*flow.Execution) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range xs {
		if x.Parent.IsZero() {
			continue
		}
		if len(h.attempts) >= handedTasksLimit {
			clear(h.attempts)
		}
		h.attempts[x.ID] = store.WorkflowAttempt{ID: x.Parent, Attempt: x.ParentAttempt}
	}
}

// ended returns the workflow of an execution whose end its worker reports, and forgets it; the zero attempt: it is not known.
func (h *handedTasks) ended(id flow.ID) store.WorkflowAttempt {
	h.mu.Lock()
	defer h.mu.Unlock()
	workflowAttempt := h.attempts[id]
	delete(h.attempts, id)
	return workflowAttempt
}
