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

// transaction is the unit of work of one batch. Its requests are decided on one set of executions, so that each sees the decisions of the
// earlier ones; their follow-ups are decided as well; and all of it is committed together. Start with run.
//
// Its parts own one thing each:
//
//	wants      what the requests need: it is loaded together, before the first decision
//	loaded     rows that have been read, and are locked until the end
//	changes    decisions that are not written yet
//	keys       how full concurrency keys are, and which wait lists must be served
//	workflows  which workflows take their next step, and their progress
//	dispatch   executions for the waiting claimers
//	effects    actions after the commit
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
	deferred  func(*flow.Draft) bool // of the running write: see flushExcept
	postpones bool                   // follow-ups are left to later transactions
	requested requestedWork          // the requests' own work, if follow-ups are postponed
	// leavesKeys is set in all transactions except follow-ups, which serve the wait lists of contended keys: callers would wait for the locks.
	leavesKeys bool
}

// wants is what the decisions of requests need.
type wants struct {
	requests    int // how many there are
	executions  []flow.ID
	known       []*flow.Execution       // their rows are not read, and compared with them by the write
	workflows   []store.WorkflowAttempt // they will probably take a step; they are read with the executions, which are their tasks
	idempotency []string
	keys        []string // concurrency keys
	uploads     []blob.Sum
	// expectPauses is set by requests for executions that the engine runs itself: they begin unless their action is paused, and no worker's
	// session brings the pauses. Then the store reads the number of the latest pause with its first statement.
	expectPauses bool
}

// effects is what happens after the commit, beside the answers to its requests and claimers.
type effects struct {
	written     []*flow.Execution // one for each write, in the latest state
	lost        []flow.Draft      // as written: attempts that were taken back because their worker was lost, or had lost its history
	handedBack  []flow.Draft      // as written: attempts that their worker gave up, or whose machine was taken away
	aside       []*flow.Execution // of written: put aside
	ended       byStatus[int64]   // ended executions, by status
	gaps        int64             // attempts that were ended because an event never came
	routingKeys map[string]bool   // routing keys into which something was put
	failpoints  []string          // points of package failpoint that this commit hits
}

// wrote records a written draft. lost and handedBack hold copies, with Before and Events of this write, because later decisions start anew.
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

// costliest is the workflow whose step has computed most in a transaction, for the log of a slow one.
type costliest struct {
	name string
	work int
}

// addFailpoint makes the commit hit a point of package failpoint.
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

// run decides the requests of a batch and all their follow-ups.
func (t *transaction) run(ctx context.Context, ops []op) error {
	t.wants.requests = len(ops)
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

// inOrder runs steps until one fails.
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
	t.lockKnown()
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
	// After the locks: a time read before the wait for a lock could be earlier than the times that the lock's previous holder wrote. It is
	// seldom a separate round trip: PostgreSQL reads its clock with the first statement, and again only after it has waited for locks.
	if t.now, err = t.readNow(ctx); err != nil {
		return err
	}
	return t.loadKept(ctx)
}

// lockKnown adds the known executions to the transaction, and has the store lock their rows.
func (t *transaction) lockKnown() {
	tx, ok := t.tx.expecter()
	if !ok || len(t.wants.known) == 0 {
		return
	}
	ids := make([]flow.ID, len(t.wants.known))
	for i, x := range t.wants.known {
		ids[i] = x.ID
		t.add(flow.Load(x))
	}
	tx.LockKnown(ids)
}

// readsNothing reports whether the transaction has no reason to read: all its requests are ends of known executions, and none is a task.
func (t *transaction) readsNothing() bool {
	return t.wants.requests == len(t.wants.known) && len(t.wants.workflows) == 0 && len(t.dispatch.claimers.all) == 0
}

func (t *transaction) readNow(ctx context.Context) (time.Time, error) {
	if tx, ok := t.tx.expecter(); ok && t.readsNothing() {
		if now, ok := tx.RecentNow(); ok {
			return now, nil
		}
	}
	return t.tx.Now(ctx)
}

// followThrough writes the decisions and decides their follow-ups, until there are none: freed keys admit the next of their wait lists, and
// workflows with an ended task take their next steps, which may start and end further executions.
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

// Changed records a draft after a decision, and its follow-ups.
func (t *transaction) Changed(d *flow.Draft) {
	t.changes.drafts = append(t.changes.drafts, d)
	t.keys.changed(d)
	if d.Place == flow.Finished && !d.Parent.IsZero() {
		t.workflows.childEnded(d)
	}
}

// flush writes all decisions so far. The drafts stay loaded, as if they had just been read.
func (t *transaction) flush(ctx context.Context) error {
	return t.flushExcept(ctx, func(*flow.Draft) bool { return false })
}

// newExecution defers every new execution: it is written together with the next decision about it.
func newExecution(d *flow.Draft) bool { return d.New }

// beforeFirstStep defers a new workflow until its first step: both are written at once. Three kinds of new workflows are not deferred,
// because their rows are read before that:
//
//   - one with a key: the store counts who holds the key
//   - a rerun: its first step reads what it reuses, which is written with it
//   - the child of a workflow that takes a step now: that step counts its children
func (t *transaction) beforeFirstStep(d *flow.Draft) bool {
	return d.New && d.Key == "" && d.RerunOf.IsZero() && t.workflows.begun[d.ID] && !t.workflows.due[d.Parent]
}

// flushExcept writes the decisions, except new executions for which deferred is true: they, and the marks, changes, reuses and keys that
// name them, wait for a later call.
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

// writeRows writes the decided rows other than executions, if a read could find some of them.
func (t *transaction) writeRows(ctx context.Context, selects func(*store.Delta) bool) error {
	rows := t.changes.rows
	if rows == nil || !selects(rows) {
		return nil
	}
	t.changes.rows = nil
	return t.store.Apply(ctx, *rows)
}

// announceReads tells a remote store what the transaction will probably read, so that the store reads it with its first statement: the
// latest pause, the session and the queues of the claimer that will probably get work, and the workflows of tasks that end. A batch of
// sessions alone creates nothing for a claimer, so no session is locked for it.
func (t *transaction) announceReads(ops []op) {
	tx, ok := t.tx.expecter()
	if !ok || t.readsNothing() {
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
