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

// advance lets workflows with news take their next step, as many as the transaction has room for. The next transaction takes the rest.
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

// advanceDue calls advance if a workflow is due, and reports whether one was.
func (t *transaction) advanceDue(ctx context.Context) (bool, error) {
	if len(t.workflows.due) == 0 {
		return false, nil
	}
	return true, t.advance(ctx)
}

// advanceOne lets one workflow take its next step. l is the store's answer about it; nil: the transaction knows the workflow.
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

// takeStep lets one workflow take a step. A workflow whose steps have ended the process repeatedly is ended like one with an unreadable
// definition.
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

// undefined is the error of a workflow whose definition this version of the program cannot read; another version may be able to.
type undefined struct{ error }

func (e *undefined) Unwrap() error { return e.error }

// loadWorkflows locks workflows, brings them into the transaction, and returns the store's account of their progress. It does not ask for a
// workflow whose attempt began, or that took a step, in this transaction: it is known.
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
		// A child may have ended in a transaction that read its clock later than this one. The step that handles the end must not be earlier.
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
			case !t.borrow(ctx, a, l) && asked[l.ID].Change >= 0: // its progress is not known any more
				knownWorkflows = append(knownWorkflows, store.KnownWorkflow{WorkflowAttempt: a, Change: store.NothingKnown})
			default:
				all[l.ID] = l
			}
		}
	}
	return all, nil
}

// expectWorkflows tells the store which workflows will probably take a step. A transaction that postpones its follow-ups does not: a
// workflow may be the reason why its request is alone.
func (t *transaction) expectWorkflows(tx store.Expecter) {
	if len(t.wants.workflows) == 0 || t.postpones {
		return
	}
	t.workflows.expected = make(map[flow.ID]store.KnownWorkflow, len(t.wants.workflows))
	knownWorkflows := make([]store.KnownWorkflow, 0, len(t.wants.workflows))
	for _, a := range t.wants.workflows {
		if _, has := t.workflows.expected[a.ID]; has {
			continue // either of the two attempts may be the one under way
		}
		k := store.KnownWorkflow{WorkflowAttempt: a, Change: t.e.followed.peek(a)}
		t.workflows.expected[a.ID] = k
		knownWorkflows = append(knownWorkflows, k)
	}
	tx.ExpectWorkflows(knownWorkflows)
}

// workflowToLoad is the question to the store about an attempt of a workflow. It repeats the expected question, if there was one.
func (t *transaction) workflowToLoad(a store.WorkflowAttempt) store.KnownWorkflow {
	if k, ok := t.workflows.expected[a.ID]; ok && k.Attempt == a.Attempt {
		return k
	}
	return store.KnownWorkflow{WorkflowAttempt: a, Change: t.e.followed.peek(a)}
}

// knows reports whether the transaction can continue a workflow without reading the store.
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

// borrow moves what this replica remembers of a workflow into the transaction and brings it up to date. It returns false if the workflow's
// children must be counted; evaluated lists of items may be present even then.
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

// attemptToLoad is the attempt that a workflow is probably in.
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

// adoptWorkflow brings a locked workflow into the transaction.
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
