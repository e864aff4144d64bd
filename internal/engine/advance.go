package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
)

// advance lets every workflow with news take its next step: as many as the transaction has room for. The others go on in the
// next one.
func (t *transaction) advance(ctx context.Context) error {
	ids := make([]flow.ID, 0, len(t.workflows.due))
	for id := range t.workflows.due {
		ids = append(ids, id)
	}
	clear(t.workflows.due)
	own := t.requested.steps
	t.requested.steps = nil
	slices.SortFunc(ids, func(a, b flow.ID) int { return slices.Compare(a[:], b[:]) })
	locked, err := t.loadWorkflows(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		w := t.Draft(id)
		if w == nil || w.Place != flow.Held || w.Kind != flow.KindWorkflow {
			continue
		}
		if t.postpones && !own[id] || t.budget.Spent() {
			err = t.postpone(w, locked[id])
		} else {
			err = t.advanceOne(ctx, w, locked[id])
		}
		if err != nil {
			return fmt.Errorf("advance workflow %s: %w", id, err)
		}
	}
	return nil
}

// advanceDue is advance where some workflow is to take a step, and reports whether there was one.
func (t *transaction) advanceDue(ctx context.Context) (bool, error) {
	if len(t.workflows.due) == 0 {
		return false, nil
	}
	return true, t.advance(ctx)
}

// advanceOne lets one workflow take its next step. l is what the store told of it; nil: the transaction knows it.
func (t *transaction) advanceOne(ctx context.Context, w *flow.Draft, l *store.LockedWorkflow) error {
	w.ClearAside()
	w.WakeAgainAt(notPostponed)
	if err := t.observePause(w); err != nil {
		return err
	}
	def, _, err := t.definition(ctx, w.Action, w.Version, "")
	if err == nil && def.Workflow == nil {
		err = errors.New("it is not a workflow")
	}
	switch {
	case err == nil:
		err = t.takeStep(ctx, &step{t: t, w: w, def: def.Workflow.For(&w.Request), outputs: map[int]orchestration.Output{}}, l)
	case !fault.OfBatch(err):
		err = fmt.Errorf("load its definition: %w", err)
	case w.State.Cancel != nil:
		err = t.endUndefined(ctx, w)
	default:
		err = &undefined{fmt.Errorf("load its definition: %w", err)}
	}
	if err == nil && w.Changed() {
		t.Changed(w)
	}
	return err
}

// takeStep lets one workflow take a step, unless steps of it have ended the process again and again: it is ended then as one whose
// definition cannot be read.
func (t *transaction) takeStep(ctx context.Context, s *step, l *store.LockedWorkflow) error {
	done, err := t.e.opts.Crashes.Begin("a step of workflow", s.w.ID.String(), s.w.Action)
	switch {
	case err == nil:
		defer done()
		return s.take(ctx, l)
	case s.w.State.Cancel != nil:
		return t.endUndefined(ctx, s.w)
	default:
		return err
	}
}

// undefined is the error of a workflow whose definition this version of the program cannot read: another version may.
type undefined struct{ error }

func (e *undefined) Unwrap() error { return e.error }

// loadWorkflows brings workflows into the transaction, locked, and returns what the store tells of how far they are. A workflow whose
// attempt has begun in this transaction, or that has taken a step in it, is known and is not asked for.
func (t *transaction) loadWorkflows(ctx context.Context, ids []flow.ID) (map[flow.ID]*store.LockedWorkflow, error) {
	var knownWorkflows []store.KnownWorkflow
	for _, id := range ids {
		if !t.knows(id) {
			knownWorkflows = append(knownWorkflows, t.workflowToLoad(store.WorkflowAttempt{ID: id, Attempt: t.attemptToLoad(id)}))
		}
		delete(t.workflows.begun, id)
	}
	all := make(map[flow.ID]*store.LockedWorkflow, len(knownWorkflows))
	if tx, ok := t.tx.expecter(); ok && len(knownWorkflows) > 0 && !t.dispatch.pausesKnown {
		tx.ExpectLastPause() // for tasks that the engine runs itself
	}
	for len(knownWorkflows) > 0 {
		locked, err := t.tx.LockWorkflows(ctx, knownWorkflows)
		if err != nil {
			return nil, fmt.Errorf("load workflows: %w", err)
		}
		// A child may have ended in a transaction that read its clock after this one did. The step that takes the end in is not earlier.
		if t.now, err = t.tx.Now(ctx); err != nil {
			return nil, err
		}
		asked := make(map[flow.ID]store.KnownWorkflow, len(knownWorkflows))
		for _, k := range knownWorkflows {
			asked[k.ID] = k
		}
		knownWorkflows = knownWorkflows[:0]
		for i := range locked {
			l := &locked[i]
			w := t.adoptWorkflow(l)
			a := attemptOf(w)
			switch {
			case w.Place != flow.Held:
			case asked[l.ID].Attempt != a.Attempt: // another attempt is under way
				knownWorkflows = append(knownWorkflows, store.KnownWorkflow{WorkflowAttempt: a, Change: t.e.followed.peek(a)})
			case !t.borrow(ctx, a, l) && asked[l.ID].Change >= 0: // it is not known any more
				knownWorkflows = append(knownWorkflows, store.KnownWorkflow{WorkflowAttempt: a, Change: store.NothingKnown})
			default:
				all[l.ID] = l
			}
		}
	}
	return all, nil
}

// expectWorkflows tells the store which workflows will probably take a step. A transaction that postpones what follows from its requests
// does not: one of them may be why it is alone.
func (t *transaction) expectWorkflows(tx store.Expecter) {
	if len(t.wants.workflows) == 0 || t.postpones {
		return
	}
	t.workflows.expected = make(map[flow.ID]store.KnownWorkflow, len(t.wants.workflows))
	knownWorkflows := make([]store.KnownWorkflow, 0, len(t.wants.workflows))
	for _, a := range t.wants.workflows {
		if _, has := t.workflows.expected[a.ID]; has {
			continue // of two attempts, either may be the one under way
		}
		k := store.KnownWorkflow{WorkflowAttempt: a, Change: t.e.followed.peek(a)}
		t.workflows.expected[a.ID] = k
		knownWorkflows = append(knownWorkflows, k)
	}
	tx.ExpectWorkflows(knownWorkflows)
}

// workflowToLoad is what the store is asked about an attempt of a workflow: in the words in which it was expected, if it was.
func (t *transaction) workflowToLoad(a store.WorkflowAttempt) store.KnownWorkflow {
	if k, ok := t.workflows.expected[a.ID]; ok && k.Attempt == a.Attempt {
		return k
	}
	return store.KnownWorkflow{WorkflowAttempt: a, Change: t.e.followed.peek(a)}
}

// knows reports whether the transaction needs nothing of the store to go on with a workflow.
func (t *transaction) knows(id flow.ID) bool {
	d := t.Draft(id)
	if d == nil {
		return false
	}
	if p := t.workflows.progress[attemptOf(d)]; p != nil && p.tracker != nil {
		return true
	}
	return t.workflows.begun[id] && (d.New || d.Input != nil)
}

// borrow takes what this replica knows of a workflow into the transaction and brings it up to date. It returns false when that leaves
// the workflow's children to be counted; evaluated lists of items may be there all the same.
func (t *transaction) borrow(ctx context.Context, a store.WorkflowAttempt, l *store.LockedWorkflow) bool {
	p := t.workflows.progress[a]
	if p == nil {
		if p = t.e.followed.borrow(ctx, a); p == nil {
			return false
		}
		t.workflows.progress[a] = p
	}
	if l.Tasks != nil || p.tracker == nil || p.apply(l) != nil || p.change != l.Last {
		p.tracker = nil
		return false
	}
	return true
}

// attemptToLoad is the attempt that a workflow is probably at.
func (t *transaction) attemptToLoad(id flow.ID) int {
	if d := t.Draft(id); d != nil {
		return d.Attempt
	}
	last := 1
	for _, child := range t.workflows.ended[id] {
		last = max(last, child.ParentAttempt)
	}
	return last
}

// adoptWorkflow brings a workflow that was locked into the transaction.
func (t *transaction) adoptWorkflow(l *store.LockedWorkflow) *flow.Draft {
	d := t.Draft(l.ID)
	if d == nil {
		d = flow.Load(l.Execution)
		t.add(d)
	}
	if !l.PayloadLeftOut {
		d.Input, d.With = l.Input, l.With
		t.loaded.payloads[l.ID] = true
	}
	return d
}

func attemptOf(w *flow.Draft) store.WorkflowAttempt {
	return store.WorkflowAttempt{ID: w.ID, Attempt: w.Attempt}
}
