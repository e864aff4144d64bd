package engine

import (
	"sync"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// handed remembers executions that this replica has handed to workers, for the transactions of their ends:
//
//   - an execution without a key, in its committed state: the transaction does not read its row
//   - the workflow of a task, which a report does not name: the transaction reads it with its first statements
//
// Both are hints: without them the transaction reads the row of the execution, and then the workflow.
type handed struct {
	mu         sync.Mutex
	attempts   map[flow.ID]store.WorkflowAttempt
	executions map[flow.ID]*flow.Execution
}

// handedTasksLimit and handedLimit are how many tasks and executions are remembered, in about 6 MB and at most 12 MB. Beyond them all are
// forgotten: most of their workers are gone. An execution with more than handedPayload bytes of payload is not remembered.
const (
	handedTasksLimit = 50_000
	handedLimit      = 5_000
	handedPayload    = 1_500
)

func newHanded() handed {
	return handed{attempts: map[flow.ID]store.WorkflowAttempt{}, executions: map[flow.ID]*flow.Execution{}}
}

// add adds executions that workers get. The caller must not use them any more: the transaction of their end changes them.
func (h *handed) add(xs []*flow.Execution) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range xs {
		if !x.Parent.IsZero() {
			if len(h.attempts) >= handedTasksLimit {
				clear(h.attempts)
			}
			h.attempts[x.ID] = store.WorkflowAttempt{ID: x.Parent, Attempt: x.ParentAttempt}
		}
		if x.Key == "" && x.PayloadSize() <= handedPayload {
			if len(h.executions) >= handedLimit {
				clear(h.executions)
			}
			h.executions[x.ID] = x
		}
	}
}

// forget has the transaction of an execution's end read its row.
func (h *handed) forget(id flow.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.executions, id)
}

// ended returns the workflow of an execution whose end its worker reports, and the execution, and forgets both. The zero attempt and nil:
// they are not known. The execution is not known if events were recorded after the hand-off.
func (h *handed) ended(session flow.ID, r flow.Report) (workflowAttempt store.WorkflowAttempt, x *flow.Execution) {
	h.mu.Lock()
	defer h.mu.Unlock()
	workflowAttempt, x = h.attempts[r.Execution], h.executions[r.Execution]
	delete(h.attempts, r.Execution)
	delete(h.executions, r.Execution)
	if x == nil || x.Owner != session || x.Attempt != r.Attempt || x.NextSeq != r.Events[0].Seq {
		return workflowAttempt, nil
	}
	return workflowAttempt, x
}
