package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/definition"
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
//	keys       how full concurrency keys are, and whose line goes on
//	shares     whose turn is next in the lines that are shared fairly
//	workflows  which workflows take their next step, and how far each of them is
//	dispatch   what the claimers that wait are given
//	inquiries  the questions that are asked, answered and withdrawn
//	waits      which executions wait for signals, and which signals they have taken
//	effects    what happens after the commit
type transaction struct {
	e   *Engine
	tx  store.Tx
	now time.Time

	wants     wants
	loaded    loaded
	changes   changes
	keys      keyLedger
	shares    lineShares
	workflows workflows
	dispatch  dispatch
	inquiries inquiries
	waits     waits
	effects   effects

	budget    budget
	postpones bool // what follows from the requests is left to later transactions
	own       own  // what the requests themselves are to go on with, where they postpone what follows
	// leavesKeys is set where lines of contended keys are left to follow-ups, because callers wait.
	leavesKeys bool
}

// wants is what requests need to be decided.
type wants struct {
	executions  []flow.ID
	idempotency []string
	keys        []string // concurrency keys
	uploads     []blob.Sum
	signals     []store.SignalKey
	bodies      [][32]byte          // of signals
	kept        [][sha256.Size]byte // outcomes
	pauses      bool                // the latest, for what the engine runs itself
}

// effects is what happens once the transaction has been committed, beside the answers to its requests and claimers.
type effects struct {
	written []*flow.Draft    // all that was written; what was written twice is here twice, as it stood each time
	ended   byStatus[int64]  // how many executions have ended, by status
	gaps    int64            // attempts that were ended because an event never came
	lanes   map[string]bool  // lanes that something was put into
	emitted []string         // sources of the signals
	held    bool             // a window may close earlier than was known
	gone    map[flow.ID]bool // webhooks whose receivers want no more of them
	reruns  []flow.ID        // executions of kind rerun that are to be carried out
	said    bool             // there are new signals, about which the rules are to be asked
	kept    []string         // moments of package failpoint that come with this commit

	schedules map[string]*definition.Definition // documents that were read, by versionKey
}

// keeps notes a moment that comes with the commit.
func (f *effects) keeps(moment string) {
	if !slices.Contains(f.kept, moment) {
		f.kept = append(f.kept, moment)
	}
}

func (e *Engine) newTransaction(tx store.Tx, claimers *roster) *transaction {
	return &transaction{
		e: e, tx: tx, budget: e.budget,
		loaded:    newLoaded(),
		keys:      newKeyLedger(),
		workflows: newWorkflows(),
		dispatch:  newDispatch(claimers, e.pauses.latest.Load()),
	}
}

// run takes a batch from its requests to everything that follows from them.
func (t *transaction) run(ctx context.Context, ops []op) error {
	for _, o := range ops {
		o.want(t)
	}
	if t.postpones {
		t.own = t.wantedSteps()
	}
	t.expectClaimer(ops)
	if err := t.loadWanted(ctx); err != nil {
		return err
	}
	for _, o := range ops {
		if err := o.decide(ctx, t); err != nil {
			return err
		}
	}
	if err := t.claimWaiting(ctx); err != nil {
		return err
	}
	if err := t.settle(ctx); err != nil {
		return err
	}
	if err := t.claimQueued(ctx); err != nil {
		return err
	}
	if err := t.claimLate(ctx); err != nil {
		return err
	}
	if err := t.writeInquiries(ctx); err != nil {
		return err
	}
	return t.writeWaits(ctx)
}

// loadWanted loads what the requests need.
func (t *transaction) loadWanted(ctx context.Context) error {
	if len(t.wants.idempotency) > 0 {
		var err error
		if t.loaded.idempotency, err = t.tx.Submitted(ctx, t.wants.idempotency); err != nil {
			return fmt.Errorf("load idempotency keys: %w", err)
		}
	}
	if len(t.wants.signals) > 0 {
		var err error
		if t.loaded.signals, err = t.tx.Signalled(ctx, t.wants.signals); err != nil {
			return fmt.Errorf("load keys of signals: %w", err)
		}
	}
	if len(t.wants.bodies) > 0 {
		var err error
		if t.loaded.bodies, err = t.tx.SignalledBodies(ctx, t.wants.bodies); err != nil {
			return fmt.Errorf("load bodies of signals: %w", err)
		}
	}
	if err := t.load(ctx, t.wants.executions, store.WithoutPayload); err != nil {
		return err
	}
	if err := t.lockKeys(ctx, t.wants.keys); err != nil {
		return err
	}
	if err := t.lockUploads(ctx, t.wants.uploads); err != nil {
		return err
	}
	var err error
	if t.now, err = t.tx.Now(ctx); err != nil { // last of what is locked: a store that is a round trip away has told it with the first
		return err
	}
	return t.loadKept(ctx)
}

// settle writes what is decided and follows it up until nothing follows any more: freed keys admit the next of their lines, and
// workflows of which a task has ended take their next steps, which may start and end further executions.
func (t *transaction) settle(ctx context.Context) error {
	if t.postpones {
		return t.postponeAll(ctx)
	}
	for {
		if err := t.handOver(ctx); err != nil {
			return err
		}
		if err := t.flushBut(ctx, t.beforeFirstStep); err != nil {
			return err
		}
		again, err := t.admitLines(ctx)
		if err != nil {
			return err
		}
		if again {
			continue
		}
		if len(t.workflows.due) == 0 {
			return nil
		}
		if err := t.advance(ctx); err != nil {
			return err
		}
	}
}

// changed notes a draft after a decision, and what follows from it.
func (t *transaction) changed(d *flow.Draft) {
	t.changes.drafts = append(t.changes.drafts, d)
	t.keys.changed(d)
	if d.Place == flow.Finished && !d.Parent.IsZero() {
		t.workflows.childEnded(d)
	}
}

// flush writes everything that has been decided so far. The drafts stay loaded, as if they had just been read.
func (t *transaction) flush(ctx context.Context) error {
	return t.flushBut(ctx, func(*flow.Draft) bool { return false })
}

// existing defers every new execution: it is written together with what is decided about it next.
func existing(d *flow.Draft) bool { return d.New }

// beforeFirstStep defers a new workflow until its first step: both are written at once. One that holds a key must be there to be
// counted, one that runs another again must be there to have what it reuses, and so must the task of a workflow that is about to look at
// how far its tasks are.
func (t *transaction) beforeFirstStep(d *flow.Draft) bool {
	return d.New && d.Key == "" && d.RerunOf.IsZero() && t.workflows.begun[d.ID] && !t.workflows.due[d.Parent]
}

// flushBut is flush, but for the new executions that are deferred, with all that names them.
func (t *transaction) flushBut(ctx context.Context, deferred func(*flow.Draft) bool) error {
	for _, d := range t.changes.drafts {
		if !deferred(d) {
			t.keys.flushed(d)
		}
	}
	if err := t.sayEnds(ctx, deferred); err != nil {
		return err
	}
	if err := t.pauseGone(ctx, deferred); err != nil {
		return err
	}
	if err := t.writeMeters(ctx); err != nil {
		return err
	}
	if err := t.writeShares(ctx); err != nil {
		return err
	}
	if err := t.writeWindows(ctx); err != nil {
		return err
	}
	delta, some := t.changes.take(deferred, t.draft)
	if !some {
		return nil
	}
	if err := t.tx.Apply(ctx, delta); err != nil {
		return err
	}
	if err := t.keepOutcomes(ctx, delta.Drafts); err != nil {
		return err
	}
	for _, d := range delta.Drafts {
		if d.Ended() {
			*t.effects.ended.as(d.Stage)++
		}
		t.inquiries.leaves(d)
		t.waits.leaves(d)
		seen := *d
		t.effects.written = append(t.effects.written, &seen)
		d.Before, d.New, d.Events, d.InboxAdd, d.InboxBelow = d.State, false, nil, nil, 0
	}
	return nil
}

// expectClaimer tells the store of the session that will probably be given something: it is locked with the first statement, and not
// by one of its own.
func (t *transaction) expectClaimer(ops []op) {
	tx, is := t.tx.(store.Expecter)
	if !is {
		return
	}
	if t.wants.pauses {
		defer tx.ExpectLastPause()
	}
	if all := t.dispatch.claimers.all; len(all) > 0 {
		tx.ExpectSession(all[0].session)
		return
	}
	if !slices.ContainsFunc(ops, func(o op) bool { return o.class() != quietly }) {
		return
	}
	if session, queues := t.e.expected(); len(queues) > 0 {
		tx.ExpectSession(session)
		tx.ExpectEmpty(queues)
	}
}
