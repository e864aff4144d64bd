package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// transaction is the unit of work of one batch. Its requests are decided on one set of executions, so that each sees what those
// before it have decided; what follows from them is decided as well; and all of it is committed together. Start with run.
//
// Its parts own one thing each:
//
//	wants      what the requests need: it is loaded together, before the first decision
//	loaded     what has been read, and is locked until the end
//	changes    what has been decided and is not written yet
//	keys       how full concurrency keys are, and whose wait list goes on
//	workflows  which workflows take their next step, and how far each of them is
//	dispatch   what the claimers that wait are given
//	effects    what happens after the commit
//	parts      rows and decisions of capabilities, which the transaction does not know
type transaction struct {
	e     *Engine
	store store.Tx // tx reads, and flush and writeRows write
	tx    view
	now   time.Time

	wants     wants
	loaded    loaded
	changes   changes
	keys      keyLedger
	workflows workflows
	dispatch  dispatch
	effects   effects
	parts     txn.Parts
	costliest costliest

	budget    txn.Budget
	deferred  func(*flow.Draft) bool // by the write that is under way: see flushExcept
	postpones bool                   // what follows from the requests is left to later transactions
	requested requestedWork          // what the requests themselves ask for, where what follows is postponed
	// leavesKeys is set in all transactions but those of follow-ups, to which the wait lists of contended keys are left: callers would wait
	// for the locks.
	leavesKeys bool
}

// wants is what requests need to be decided.
type wants struct {
	executions  []flow.ID
	workflows   []store.WorkflowAttempt // that will probably take a step; they are read with the executions, which are their tasks
	idempotency []string
	keys        []string // concurrency keys
	uploads     []blob.Sum
	// expectPauses is set by requests for what the engine runs itself: such an execution begins unless its action is paused, and no session
	// of a worker tells the transaction of pauses. The store reads the number of the latest pause with its first statement then.
	expectPauses bool
}

// effects is what happens once the transaction has been committed, beside the answers to its requests and claimers.
type effects struct {
	written     []*flow.Execution // one for each write, in the latest state
	lost        []flow.Draft      // as written: those that took an attempt back because its worker was lost, or had lost its history
	handedBack  []flow.Draft      // as written: those that took one back that its worker gave up, or whose machine was taken away
	aside       []*flow.Execution // of written, those that were put aside
	ended       byStatus[int64]   // how many executions have ended, by status
	gaps        int64             // attempts that were ended because an event never came
	routingKeys map[string]bool   // routing keys that something was put into
	failpoints  []string          // points of package failpoint that this commit hits
}

// wrote notes a draft that was written. lost and handedBack have copies: their Before and Events are of this write, and later decisions
// begin anew.
func (f *effects) wrote(d *flow.Draft) {
	f.written = append(f.written, d.Execution)
	switch {
	case d.HandedBack > d.Before.HandedBack:
		f.handedBack = append(f.handedBack, *d)
	case slices.ContainsFunc(d.Events, func(ev flow.Event) bool { return ev.Type == flow.EvLost }):
		f.lost = append(f.lost, *d)
	}
	if d.Aside != nil && d.Aside != d.Before.Aside {
		f.aside = append(f.aside, d.Execution)
	}
}

// costliest is the workflow whose step has computed most in a transaction, for the log of one that took long.
type costliest struct {
	name string
	work int
}

// addFailpoint has the commit hit a point of package failpoint.
func (f *effects) addFailpoint(name string) {
	if !slices.Contains(f.failpoints, name) {
		f.failpoints = append(f.failpoints, name)
	}
}

func (e *Engine) newTransaction(tx store.Tx, claimers *roster) *transaction {
	t := &transaction{
		e: e, store: tx, budget: e.budget,
		loaded:    newLoaded(),
		keys:      newKeyLedger(),
		workflows: newWorkflows(),
		dispatch:  newDispatch(claimers, e.pauses.latest.Load()),
	}
	t.tx = view{tx, t}
	return t
}

// run takes a batch from its requests to everything that follows from them.
func (t *transaction) run(ctx context.Context, ops []op) error {
	for _, o := range ops {
		o.want(t)
	}
	t.loaded.expect(len(ops) + len(t.wants.executions))
	if t.postpones {
		t.requested = t.collectRequested()
	}
	t.announceReads(ops)
	if err := t.loadWanted(ctx); err != nil {
		return err
	}
	for _, o := range ops {
		if err := o.decide(ctx, t); err != nil {
			return err
		}
	}
	return inOrder(ctx, t.claimWaiting, t.followThrough, t.claimQueued, t.claimLate, t.flush, t.atEnd, t.flush)
}

// inOrder takes steps until one fails.
func inOrder(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// loadWanted loads what the requests need.
func (t *transaction) loadWanted(ctx context.Context) (err error) {
	if len(t.wants.idempotency) > 0 {
		if t.loaded.idempotency, err = t.tx.Submitted(ctx, t.wants.idempotency); err != nil {
			return fmt.Errorf("load idempotency keys: %w", err)
		}
	}
	if err := t.loadSignals(ctx); err != nil {
		return err
	}
	if err := t.Load(ctx, t.wants.executions); err != nil {
		return err
	}
	if err := t.lockKeys(ctx, t.wants.keys); err != nil {
		return err
	}
	if err := t.lockUploads(ctx, t.wants.uploads); err != nil {
		return err
	}
	// After the locks: a time from before a wait for one could be earlier than what the transaction that had it wrote. It is seldom a round
	// trip of its own: PostgreSQL reads its clock with the first statement, and anew only after it has waited for locks.
	if t.now, err = t.tx.Now(ctx); err != nil {
		return err
	}
	return t.loadKept(ctx)
}

// followThrough writes what is decided and decides what follows from it, until nothing follows any more: freed keys admit the next of their
// wait lists, and workflows of which a task has ended take their next steps, which may start and end further executions.
func (t *transaction) followThrough(ctx context.Context) error {
	if t.postpones {
		return t.postponeAll(ctx)
	}
	for {
		if err := t.handOver(ctx); err != nil {
			return err
		}
		if err := t.flushExcept(ctx, t.beforeFirstStep); err != nil {
			return err
		}
		if more, err := t.follow(ctx); err != nil || !more {
			return err
		}
	}
}

// Changed notes a draft after a decision, and what follows from it.
func (t *transaction) Changed(d *flow.Draft) {
	t.changes.drafts = append(t.changes.drafts, d)
	t.keys.changed(d)
	if d.Place == flow.Finished && !d.Parent.IsZero() {
		t.workflows.childEnded(d)
	}
}

// flush writes everything that has been decided so far. The drafts stay loaded, as if they had just been read.
func (t *transaction) flush(ctx context.Context) error {
	return t.flushExcept(ctx, func(*flow.Draft) bool { return false })
}

// newExecution defers every new execution: it is written together with what is decided about it next.
func newExecution(d *flow.Draft) bool { return d.New }

// beforeFirstStep defers a new workflow until its first step: both are written at once. Three kinds of new workflows
// are not deferred, because something reads their rows before that:
//
//   - one with a key: the store counts who holds the key
//   - a rerun: its first step reads what it reuses, which is written with it
//   - the child of a workflow that takes a step now: that step counts its children
func (t *transaction) beforeFirstStep(d *flow.Draft) bool {
	return d.New && d.Key == "" && d.RerunOf.IsZero() && t.workflows.begun[d.ID] && !t.workflows.due[d.Parent]
}

// flushExcept writes what has been decided, except new executions for which deferred is true: they, and the marks, changes, reuses and keys
// that name them, wait for a later call.
func (t *transaction) flushExcept(ctx context.Context, deferred func(*flow.Draft) bool) error {
	for _, d := range t.changes.drafts {
		if !deferred(d) {
			t.keys.flushed(d)
		}
	}
	t.deferred = deferred
	if err := t.hooks(ctx, func(m *txn.Module) txn.Hook { return m.BeforeWrite }); err != nil {
		return err
	}
	delta, anyRows := t.changes.take(deferred, t.Draft)
	if !anyRows {
		return nil
	}
	if err := t.store.Apply(ctx, delta); err != nil {
		return err
	}
	t.effects.written = slices.Grow(t.effects.written, len(delta.Drafts))
	for _, d := range delta.Drafts {
		if d.Ended() {
			*t.effects.ended.as(d.Stage)++
		}
		if written := t.e.engineKind(d.Kind).Written; written != nil {
			written(t, d)
		}
		t.effects.wrote(d)
		d.Before, d.New, d.Events, d.InboxAdd, d.InboxBelow = d.State, false, nil, nil, 0
	}
	return nil
}

// writeRows writes the rows that have been decided beside executions, if some of them are among those that a read could find.
func (t *transaction) writeRows(ctx context.Context, selects func(*store.Delta) bool) error {
	rows := t.changes.rows
	if rows == nil || !selects(rows) {
		return nil
	}
	t.changes.rows = nil
	return t.store.Apply(ctx, *rows)
}

// announceReads tells a store that is a round trip away what the transaction will probably read, which it then reads
// with its first statement: the latest pause, the session and the queues of the claimer that will probably be given
// something, and the workflows of tasks that end. A batch of sessions alone creates nothing for a claimer, so no session is locked for it.
func (t *transaction) announceReads(ops []op) {
	tx, ok := t.tx.expecter()
	if !ok {
		return
	}
	if t.wants.expectPauses || len(t.wants.workflows) > 0 { // tasks that the engine runs itself
		defer tx.ExpectLastPause()
	}
	t.expectWorkflows(tx)
	if all := t.dispatch.claimers.all; len(all) > 0 {
		tx.ExpectSession(all[0].session)
		return
	}
	if !slices.ContainsFunc(ops, func(o op) bool { return o.class() != classSession }) {
		return
	}
	if session, queues := t.e.expected(); len(queues) > 0 {
		tx.ExpectSession(session)
		tx.ExpectEmpty(queues)
	}
}
