package engine

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
)

// Verify reads the whole store and returns the promises that its rows break, and where this replica's progress of workflows differs from
// their rows. It changes nothing and may run beside everything else; its duration grows with the store.
func (e *Engine) Verify(ctx context.Context) ([]store.Violation, error) {
	var broken []store.Violation
	for _, check := range []func(context.Context) ([]store.Violation, error){e.opts.Store.Check, e.verifyFollowed, e.verifyRules, e.inquiries.Verify} {
		found, err := check(ctx)
		if err != nil {
			return nil, fmt.Errorf("verify the store: %w", err)
		}
		broken = append(broken, found...)
	}
	return broken, nil
}

// verifyFollowed compares the known progress of workflows with their rows.
func (e *Engine) verifyFollowed(ctx context.Context) (broken []store.Violation, err error) {
	for _, workflowAttempt := range e.followed.all() {
		found, err := inBatch(ctx, e, nil, func(ctx context.Context, t *transaction) (found []store.Violation, err error) {
			locked, err := t.tx.LockWorkflows(ctx, []store.KnownWorkflow{{WorkflowAttempt: workflowAttempt, Change: store.NothingKnown}})
			if err != nil {
				return nil, err
			}
			for i := range locked {
				if l := &locked[i]; l.Place == flow.Held && l.Attempt == workflowAttempt.Attempt {
					found = e.followed.compare(workflowAttempt, l)
				}
			}
			return found, nil
		})
		if err != nil {
			return nil, err
		}
		broken = append(broken, found...)
	}
	return broken, nil
}

// all names the workflows that are followed by their changes.
func (f *followed) all() (all []store.WorkflowAttempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for workflowAttempt, at := range f.known {
		if at.Value.(*progress).tracker != nil {
			all = append(all, workflowAttempt)
		}
	}
	return all
}

// compare returns where the known progress of a workflow differs from its rows. The caller has the workflow's lock.
func (f *followed) compare(workflowAttempt store.WorkflowAttempt, l *store.LockedWorkflow) (found []store.Violation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.known[workflowAttempt]
	if at == nil {
		return nil
	}
	p := at.Value.(*progress)
	if p.tracker == nil || p.change != l.Last {
		return nil // it is not followed any more, or its progress is old, which its next step will notice
	}
	tasks := p.tracker.State().Tasks
	rows := make([]orchestration.Progress, len(tasks))
	for i := range l.Tasks {
		if task := p.tracker.Task(l.Tasks[i].Task); task >= 0 {
			readProgress(&rows[task], &l.Tasks[i])
		}
	}
	for i := range tasks {
		known, row := tasks[i], rows[i]
		known.Error, known.ErrorIndex, known.ErrorStage, row.Error, row.ErrorIndex, row.ErrorStage = nil, 0, 0, nil, 0, 0
		if known.Mark == orchestration.Broken {
			known.Total, row.Total = 0, 0
		}
		if known != row {
			found = append(found, store.Violation{Invariant: 33, Execution: workflowAttempt.ID,
				Say: fmt.Sprintf("the engine believes that task %d of it is at %+v, its rows say %+v", i, known, row)})
		}
	}
	return found
}
