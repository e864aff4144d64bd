package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// Each transaction bounds the follow-ups of its requests, and they may fail by themselves: a workflow creates more children than fit, or
// the store refuses one of its steps. The rest is postponed: the workflow's row says that the engine must continue it, and a separate
// request does so at once.
//
//	a request fails together with its follow-ups
//	 1. its batch is halved until it is alone
//	 2. alone, it is decided again with all its follow-ups postponed, and is committed
//	 3. each workflow continues by an advanceOp, each wait list of a key by a waitListOp: these fail alone, and are decided again with the
//	    follow-ups of their own step postponed
//	 4. a workflow whose advanceOp fails again is ended as failed by a stuckOp, which gives the reason
//	 5. a workflow that cannot even be ended is put aside, and tried again with growing delays

// Beyond its requests a transaction creates, admits and ends this many executions, which takes 10 to 30 ms, with about this many bytes of
// input.
const (
	budgetRows  = 1000
	budgetBytes = 4 << 20
	// budgetWork is 20 ms of a processor. One value of a document may take 25 times as much; it is then alone in its transaction.
	budgetWork = 200_000
	// callersRows is what a transaction of callers' requests does beyond them, plus one for each request: a caller does not wait for the
	// fan-out of another caller's workflow. A fifth of budgetRows, so 2 to 6 ms: chosen, not measured.
	callersRows = 200
)

// budgetOf is what a transaction may do now beyond its requests.
func (e *Engine) budgetOf(ops []op) txn.Budget {
	b := e.pace.of(e.budget)
	if len(ops) > 0 && !areFollowUps(ops) {
		b.Rows = min(b.Rows, callersRows)
		for _, o := range ops {
			if !namesNoExecution(o) {
				b.Rows = min(b.Rows+1, e.budget.Rows)
			}
		}
	}
	return b
}

// areFollowUps reports whether a batch is of follow-ups: no batch has both.
func areFollowUps(ops []op) bool { return len(ops) > 0 && ops[0].class() == classFollowUp }

// goOnLeast is the least time before the sweep continues a postponed workflow.
const goOnLeast = 5 * time.Second

// notPostponed, passed to WakeAgainAt, cancels a postponement: the workflow continues when one of its tasks has ended.
var notPostponed = time.Time{}

// postpone leaves a workflow's next step to the next transaction. l is the store's answer about it; nil: the transaction knows the
// workflow.
func (t *transaction) postpone(w *flow.Draft, l *store.LockedWorkflow) error {
	w.WakeAgainAt(t.now.Add(t.e.goOnWithin()))
	t.Changed(w)
	p := t.workflows.progress[attemptOf(w)]
	if p != nil && p.tracker != nil && !t.postpones {
		t.noteFollowUp(w.ID, p)
		c := t.noteEnds(p, true)
		return t.recordChange(p, &c)
	}
	err := t.recordUnknownEnds(w, l)
	t.noteFollowUp(w.ID, t.workflows.progress[attemptOf(w)])
	return err
}

// noteFollowUp adds the follow-up of a postponed workflow, once.
func (t *transaction) noteFollowUp(id flow.ID, p *progress) {
	if !slices.ContainsFunc(t.workflows.postponed, func(o *advanceOp) bool { return o.id == id }) {
		t.workflows.postponed = append(t.workflows.postponed, &advanceOp{e: t.e, id: id, wide: p.wide()})
	}
}

// noteEnds counts the workflow's children that have ended in the transaction. fresh: the tracker does not include them yet; otherwise it
// was made from rows that do.
func (t *transaction) noteEnds(p *progress, fresh bool) (c orchestration.Change) {
	for _, d := range t.workflows.uncounted[p.workflowAttempt.ID] {
		task := p.tracker.Task(d.Task)
		if task < 0 || d.ParentAttempt != p.workflowAttempt.Attempt {
			continue
		}
		if fresh {
			p.tracker.Ended(task, d.Stage)
			if row := &p.tracker.State().Tasks[task]; row.Error != nil {
				row.Blame(d.Index, d.Stage, d.Outcome.Error)
			}
		}
		c.End(task, d.Stage)
	}
	delete(t.workflows.uncounted, p.workflowAttempt.ID)
	return c
}

// recordChange stores a change of a workflow with many children, for the replicas that follow it.
func (t *transaction) recordChange(p *progress, c *orchestration.Change) error {
	if !p.wide() || c.Empty() {
		return nil
	}
	text, err := c.Text()
	if err != nil {
		return fmt.Errorf("write a change of a workflow: %w", err)
	}
	p.change++
	t.changes.workflows.Changes = append(t.changes.workflows.Changes, store.WorkflowChange{WorkflowAttempt: p.workflowAttempt,
		Number: p.change, Change: text})
	return nil
}

// recordUnknownEnds tells the replicas that follow a workflow that this transaction ended some of its children, without naming them: they
// count the children anew.
func (t *transaction) recordUnknownEnds(w *flow.Draft, l *store.LockedWorkflow) error {
	workflowAttempt := attemptOf(w)
	p := t.workflows.progress[workflowAttempt]
	if p == nil {
		p = t.e.followed.begin(workflowAttempt)
		t.workflows.progress[workflowAttempt] = p
	}
	if l != nil {
		p.created, p.change = max(p.created, created(l)), l.Last
	}
	p.tracker = nil
	if len(t.workflows.uncounted[w.ID]) == 0 {
		return nil
	}
	delete(t.workflows.uncounted, w.ID)
	return t.recordChange(p, &orchestration.Change{Unknown: true})
}

// requestedWork is the work that follow-ups request: steps of workflows, or the wait list of a key. A transaction that postpones everything
// else does this work and postpones its consequences: the end of a workflow may admit another one to its key, or let the parent workflow
// take a step, and the store may refuse that step.
type requestedWork struct {
	steps    map[flow.ID]bool
	waitList bool
}

// collectRequested is the work that the requests of the transaction are for. It is called before they are decided, because decisions add to
// both.
func (t *transaction) collectRequested() (o requestedWork) {
	o.steps = maps.Clone(t.workflows.due)
	for _, k := range t.keys.all {
		o.waitList = o.waitList || k.waitListDue
	}
	return o
}

// postponeAll does the work that the requests are for, and postpones all its consequences.
func (t *transaction) postponeAll(ctx context.Context) error {
	if t.requested.waitList {
		if _, err := t.admitWaitLists(ctx); err != nil {
			return err
		}
	}
	for {
		for name, k := range t.keys.all {
			if k.waitListDue {
				k.waitListDue = false
				t.keys.postponed = append(t.keys.postponed, name)
			}
		}
		if err := t.flush(ctx); err != nil || len(t.workflows.due) == 0 {
			return err
		}
		if err := t.advance(ctx); err != nil {
			return err
		}
	}
}

// handInFollowUps enqueues the postponed work of a committed transaction.
func (e *Engine) handInFollowUps(t *transaction) {
	for _, o := range t.workflows.postponed {
		e.followUp(o)
	}
	for _, key := range t.keys.postponed {
		e.followUp(&waitListOp{e: e, key: key})
	}
}

// advanceOp continues a postponed workflow.
type advanceOp struct {
	e    *Engine
	id   flow.ID
	wide bool // the workflow has many children: its step may need a transaction's whole budget
}

func (o *advanceOp) want(t *transaction)                        { t.workflows.due[o.id] = true }
func (o *advanceOp) decide(context.Context, *transaction) error { return nil }
func (o *advanceOp) size() int                                  { return 0 }
func (o *advanceOp) class() class                               { return classFollowUp }
func (o *advanceOp) executions() []flow.ID                      { return []flow.ID{o.id} }
func (o *advanceOp) done(err error) {
	if err != nil && fault.Lasting(err) {
		o.e.followUp(&stuckOp{e: o.e, id: o.id, why: err})
	}
}

// waitListOp continues the wait list of a key. If that is refused, it tries the head alone; if that is refused too, it puts the head aside.
type waitListOp struct {
	e    *Engine
	key  string
	mode waitListMode
}

type waitListMode uint8

const (
	wholeWaitList  waitListMode = iota // as many as fit
	headOfWaitList                     // the first alone
	withoutHead                        // the others; the first is put aside
)

func (o *waitListOp) size() int             { return 0 }
func (o *waitListOp) class() class          { return classFollowUp }
func (o *waitListOp) executions() []flow.ID { return nil }
func (o *waitListOp) want(t *transaction) {
	t.keys.of(o.key).waitListDue = true
	if o.mode == headOfWaitList {
		t.budget.Rows = 1
	}
}

func (o *waitListOp) decide(ctx context.Context, t *transaction) error {
	if o.mode != withoutHead {
		return nil
	}
	if err := t.lockKeys(ctx, []string{o.key}); err != nil {
		return err
	}
	xs, err := t.tx.WaitList(ctx, o.key, 1)
	if err != nil {
		return fmt.Errorf("read the key's wait list: %w", err)
	}
	for _, d := range t.adopt(xs) {
		t.putAside(d, errors.New("the store does not take it as the holder of its key"))
	}
	return nil
}

func (o *waitListOp) done(err error) {
	switch {
	case err == nil || !fault.Lasting(err):
	case o.mode < withoutHead:
		o.e.followUp(&waitListOp{e: o.e, key: o.key, mode: o.mode + 1})
	default:
		o.e.counters.skipped.Add(1)
		o.e.opts.Log.Error("the wait list of a concurrency key cannot go on; it will be tried again", "key", o.key, telemetry.Err, err)
	}
}

// stuckOp ends a workflow whose next step the rules or the store refuse. It puts the workflow aside if its definition is of another version
// of the program, or if its end is refused as well.
type stuckOp struct {
	e     *Engine
	id    flow.ID
	why   error
	aside bool
}

func (o *stuckOp) want(t *transaction)   { t.wants.executions = append(t.wants.executions, o.id) }
func (o *stuckOp) size() int             { return 0 }
func (o *stuckOp) class() class          { return classFollowUp }
func (o *stuckOp) executions() []flow.ID { return []flow.ID{o.id} }
func (o *stuckOp) decide(_ context.Context, t *transaction) error {
	d := t.Draft(o.id)
	if d == nil || d.Place != flow.Held || d.Kind != flow.KindWorkflow {
		return nil
	}
	if o.aside || d.State.Cancel != nil || errors.As(o.why, new(*undefined)) {
		t.putAside(d, o.why)
		return nil
	}
	reason := "the engine could not carry out the workflow's next step: " + o.why.Error()
	err := d.Cancel(flow.Failed, flow.CodeInternal, flow.Clipped(reason, flow.AsideLimit), t.now)
	d.EndCleanup() // its next step is impossible, and a clean-up needs one
	if err != nil {
		return err
	}
	d.WakeAgainAt(notPostponed)
	t.cancelled(d)
	return nil
}

func (o *stuckOp) done(err error) {
	log := o.e.opts.Log.With(telemetry.Execution, o.id)
	switch {
	case err == nil:
		log.Error("the next step of a workflow was refused: the workflow is ended or put aside", telemetry.Err, o.why)
	case !fault.Lasting(err):
	case !o.aside:
		o.e.followUp(&stuckOp{e: o.e, id: o.id, why: errors.Join(o.why, err), aside: true})
	default:
		o.e.counters.skipped.Add(1)
		log.Error("a workflow can neither go on nor be put aside; it will be tried again", telemetry.Err, err)
	}
}

// putAside postpones an execution for a while, because a decision about it was refused.
func (t *transaction) putAside(d *flow.Draft, why error) {
	d.PutAside(why.Error(), t.now)
	t.Changed(d)
}

// tried runs a decision about a draft. If the rules refuse it, the execution is put aside without other changes, and the transaction
// continues with others.
func (t *transaction) tried(d *flow.Draft, decide func() error) error {
	state, events, outcome := d.State, len(d.Events), d.Outcome
	err := decide()
	if !errors.Is(err, flow.ErrIllegalMove) {
		return err
	}
	d.State, d.Events, d.Outcome = state, d.Events[:events], outcome
	t.putAside(d, err)
	return nil
}
