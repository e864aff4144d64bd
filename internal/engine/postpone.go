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

// What follows from the requests of a batch is bounded in each transaction, and may fail by itself: a workflow creates more
// children than fit, or a step of it that the store does not take. The rest is postponed: the workflow's row says that the
// engine is to go on with it, and a request of its own does so at once.
//
//	a request fails together with what follows from it
//	 1. its batch is halved until it stands alone
//	 2. alone, it is decided again with everything that follows postponed, and is committed
//	 3. each workflow goes on by an advanceOp, each wait list of a key by a waitListOp: these fail alone, and are decided again with what
//	    follows from their own step postponed
//	 4. a workflow whose advanceOp fails all the same is ended as failed by a stuckOp, which says why
//	 5. what cannot even be ended is put aside, and tried again later and later

// A transaction creates, admits and ends so many executions beyond those of its requests, which takes 10 to 30 ms, with about
// so many bytes of input.
const (
	budgetRows  = 1000
	budgetBytes = 4 << 20
	// budgetWork is 20 ms of a processor. One value of a document may take 25 times as much: it is then the only one of its transaction.
	budgetWork = 200_000
	// callersRows is what a transaction of callers' requests does beyond them, and as many more as it has requests: what each
	// caller waits for is not the fan-out of another one's workflow. A fifth of budgetRows, so 2 to 6 ms: chosen, not measured.
	callersRows = 200
)

// budgetOf is what the transaction of some requests may do beyond them, now.
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

// goOnLeast is how long a workflow that was postponed stays so at least before the sweep goes on with it.
const goOnLeast = 5 * time.Second

// notPostponed, given to WakeAgainAt, takes a postponement back: the workflow goes on when one of its tasks has ended.
var notPostponed = time.Time{}

// postpone leaves a workflow's next step to the next transaction. l is what the store told of it; nil: the transaction knows it.
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

// noteFollowUp notes the follow-up of a workflow that was postponed, once.
func (t *transaction) noteFollowUp(id flow.ID, p *progress) {
	if !slices.ContainsFunc(t.workflows.postponed, func(o *advanceOp) bool { return o.id == id }) {
		t.workflows.postponed = append(t.workflows.postponed, &advanceOp{e: t.e, id: id, wide: p.wide()})
	}
}

// noteEnds takes the children of a workflow that have ended in the transaction. fresh brings the tracker forward by them; otherwise it
// has been made from rows that say so already.
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

// recordChange keeps a change of a workflow that has many children, for the replicas that follow it.
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

// recordUnknownEnds tells the replicas that follow a workflow that this transaction ended children of it without saying
// which: they count them anew.
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

// requestedWork is what follow-ups ask for themselves: steps of workflows, or the wait list of a key. A transaction that
// postpones everything else carries this out. What is postponed is what comes of it: the end of a workflow may admit
// another one to its key, or let the workflow above it take a step, and it may be that step which the store refuses.
type requestedWork struct {
	steps    map[flow.ID]bool
	waitList bool
}

// collectRequested is what the requests of the transaction ask for themselves. It is called before they are decided: a
// decision adds to both.
func (t *transaction) collectRequested() (o requestedWork) {
	o.steps = maps.Clone(t.workflows.due)
	for _, k := range t.keys.all {
		o.waitList = o.waitList || k.waitListDue
	}
	return o
}

// postponeAll carries out what the requests ask for themselves, and postpones everything that follows from it.
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

// handInFollowUps hands in follow-ups for what a committed transaction has postponed.
func (e *Engine) handInFollowUps(t *transaction) {
	for _, o := range t.workflows.postponed {
		e.followUp(o)
	}
	for _, key := range t.keys.postponed {
		e.followUp(&waitListOp{e: e, key: key})
	}
}

// advanceOp lets a workflow go on that has been postponed.
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

// waitListOp lets the wait list of a key go on. Where that is refused its head is tried alone, and put aside when it is the head.
type waitListOp struct {
	e    *Engine
	key  string
	mode waitListMode
}

type waitListMode uint8

const (
	wholeWaitList  waitListMode = iota // as many as may go
	headOfWaitList                     // the first alone
	withoutHead                        // the others, and the first is put aside
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

// stuckOp ends a workflow whose next step the rules or the store refuse, or puts it aside where that is no use: its definition
// is of another version of the program, or its end is refused as well.
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
	d.EndCleanup() // its next step is impossible: a clean-up would take it
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

// putAside leaves an execution alone for a while, because a decision about it was refused.
func (t *transaction) putAside(d *flow.Draft, why error) {
	d.PutAside(why.Error(), t.now)
	t.Changed(d)
}

// tried runs a decision about a draft. One that the rules refuse changes nothing but that the execution is put aside: those
// beside it go on.
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
