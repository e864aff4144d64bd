package postgres

import (
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// A report that ends a task locks the task, and then its workflow, which takes its next step in the same transaction. If the workflow was
// announced, both take one round trip:
//
//	ExpectWorkflows ── Lock: the executions, the workflows, their progress, the clock ── Apply: adds ends ── LockWorkflows
//
// Ends of tasks that the transaction writes in between are added to the workflow's progress. Other writes about the workflow are rare: then
// it is forgotten, and LockWorkflows reads it.

func (t *tx) ExpectWorkflows(of []store.KnownWorkflow) { t.workflowsToRead = of }

// lockExpected queues the lock of the announced workflows and the statements that read them, after the lock of the executions with these
// ids. The function that it returns processes the answers. Three kinds of workflows are left to LockWorkflows: ended ones, those that
// another transaction has locked and for which this one may not wait, and those that cannot be decoded.
func (t *tx) lockExpected(ids []flow.ID) (done func()) {
	of := t.workflowsToRead
	t.workflowsToRead = nil
	if len(of) == 0 {
		return func() {}
	}
	workflows := make([]flow.ID, len(of))
	for i, w := range of {
		workflows[i] = w.ID
	}
	var found []*flow.Execution
	wait := t.mayWaitBehind(ids, workflows)
	t.asked = append(t.asked, locks{executions: workflows})
	t.add(lockQuery(wait, smallPayload), t.args().ids(workflows).int(store.SmallPayload), func(r *rows) error {
		x, size, err := r.live(true)
		if err != nil {
			t.lockedExecution(x.ID)
			return nil
		}
		if r.bool() {
			t.leftOut[x.ID] = true
		}
		t.locked(&found, x, size)
		return nil
	})
	progress := t.readProgress(of)
	return func() {
		progress.addMarks()
		t.nowUnread = true
		all := make(map[flow.ID]*flow.Execution, len(found))
		for _, x := range found {
			all[x.ID] = x
		}
		t.expectedWorkflows = make(map[flow.ID]*expectedWorkflow, len(found))
		for _, w := range of {
			if x := all[w.ID]; x != nil {
				l := *progress.of[w.ID]
				l.Execution, l.PayloadLeftOut = x, t.leftOut[w.ID]
				t.expectedWorkflows[w.ID] = &expectedWorkflow{known: w, LockedWorkflow: l}
			}
		}
	}
}

// expectedWorkflow is an announced workflow, in the form in which LockWorkflows returns it.
type expectedWorkflow struct {
	known store.KnownWorkflow
	store.LockedWorkflow
}

// keepExpected updates announced workflows with the writes of Apply.
func (t *tx) keepExpected(d *store.Delta) {
	if len(t.expectedWorkflows) == 0 {
		return
	}
	for _, x := range d.Drafts {
		delete(t.expectedWorkflows, x.ID)
		if w := t.expectedWorkflows[x.Parent]; w != nil && (x.New || x.Place == flow.Finished && !w.end(x)) {
			delete(t.expectedWorkflows, x.Parent)
		}
	}
	for _, m := range d.Workflows.Marks {
		delete(t.expectedWorkflows, m.Workflow)
	}
	for _, c := range d.Workflows.Changes {
		delete(t.expectedWorkflows, c.ID)
	}
}

// end counts the end of a task, if the tasks are counted. It reports whether the workflow is still correct.
func (w *expectedWorkflow) end(x *flow.Draft) bool {
	if w.known.Change >= 0 || x.ParentAttempt != w.known.Attempt {
		return true
	}
	at := taskOf(&w.LockedWorkflow, x.Task)
	if at < 0 || w.Tasks[at].Open == 0 {
		return false
	}
	p := &w.Tasks[at]
	p.Open--
	if p.Ended == nil {
		p.Ended = make(map[flow.Stage]int, 1)
	}
	p.Ended[x.Stage]++
	return true
}

// mayWaitBehind is mayWaitFor(ids) for the time when the executions "before" are locked.
func (t *tx) mayWaitBehind(before, ids []flow.ID) bool {
	lowest := t.lowest
	defer func() { t.lowest = lowest }()
	for _, id := range before {
		t.lockedExecution(id)
	}
	return t.mayWaitFor(ids)
}
