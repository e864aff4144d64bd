package postgres

import (
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// A report that ends a task locks the task, and then its workflow, which takes its next step in the same transaction. Where the workflow is
// expected, both are one round trip:
//
//	ExpectWorkflows ── Lock: the executions, the workflows, their progress, the clock ── Apply: adds ends ── LockWorkflows
//
// What the transaction writes about a workflow in between is added where that is the end of a task. Anything else is rare: the workflow is
// forgotten then, and LockWorkflows reads it.

// ExpectWorkflows implements store.Expecter.
func (t *tx) ExpectWorkflows(of []store.KnownWorkflow) { t.workflowsToRead = of }

// lockExpected queues the lock of the expected workflows and what reads them, behind the lock of the executions with these ids. The
// function that it returns takes in the answers. Three kinds of workflows are left to LockWorkflows: those that have ended, those that
// another transaction has locked and that may not be waited for, and those that cannot be decoded.
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

// expectedWorkflow is a workflow that was expected, as LockWorkflows is to tell it.
type expectedWorkflow struct {
	known store.KnownWorkflow
	store.LockedWorkflow
}

// keepExpected brings expected workflows up to date with what Apply writes.
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

// end counts the end of a task, where its tasks are counted. It reports whether that could be done.
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

// mayWaitBehind is mayWaitFor(ids) once the executions "before" are locked.
func (t *tx) mayWaitBehind(before, ids []flow.ID) bool {
	lowest := t.lowest
	defer func() { t.lowest = lowest }()
	for _, id := range before {
		t.lockedExecution(id)
	}
	return t.mayWaitFor(ids)
}
