package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// op is one request to the committer. What comes while all committers are busy goes together in the next transaction; each request gets its
// own verdict.
type op interface {
	// want names what decide will need, so that one load serves the whole batch.
	want(*transaction)
	// decide changes drafts of the transaction. What is wrong with this request alone is kept for the requester; an error
	// returned ends the transaction.
	decide(context.Context, *transaction) error
	// done tells the requester: nil after the commit, or what went wrong.
	done(error)
	// size is about how many bytes the request holds.
	size() int
	// class says how the committer treats the request.
	class() class
	// executions are those that the request is about, for the log; new ones included.
	executions() []flow.ID
}

// class is how the committer treats a request.
type class uint8

const (
	classCall     class = iota // a caller's, or a loop's of the engine: it may create something that a worker can be given
	classSession               // a renewal or a look for orders: it creates nothing that a worker can be given, and goes before calls
	classFollowUp              // what a committed transaction has left to later ones
)

// enqueue hands requests to the committer.
func (e *Engine) enqueue(ops ...op) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed != nil {
		return e.closed
	}
	if err := e.batcher.add(ops, time.Now()); err != nil {
		return err
	}
	e.wakeCommitter()
	return nil
}

func (e *Engine) wakeCommitter() { loop.Wake(e.signal) }

// commitLoop writes: one batch after another, each in its transaction. There may be several such loops; what a caller
// has been answered is in the store before any of them reads it. It ends when ctx has ended and nothing is pending.
func (e *Engine) commitLoop(ctx context.Context) {
	work := context.WithoutCancel(ctx)
	for {
		b, again := e.gather(ctx)
		if b == nil {
			select {
			case <-e.signal:
				continue
			case <-again:
				continue
			case <-ctx.Done():
			}
			if e.close() {
				return
			}
			continue
		}
		e.rulesFresh(work, slices.ContainsFunc(b.ops, fromCaller))
		e.commit(work, b.ops, &roster{b.claimers}, b.batchSource)
		e.endBatch(b)
	}
}

// endBatch removes a batch from underWay, and wakes a committer where a follow-up or a contended call waited for this batch.
func (e *Engine) endBatch(b *batch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.batcher.done(b, time.Now()) {
		e.wakeCommitter()
	}
}

// close refuses further requests, answers the claimers that wait, and reports whether nothing is pending.
func (e *Engine) close() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = ErrClosed
	for _, k := range e.claimers.clear() {
		k.answer(nil, ErrClosed)
	}
	e.batcher.followUps = followUps{} // the next process finds in the rows what they were for
	return e.batcher.pending() == 0
}

// gather takes the next batch: requests, and the claimers in whose queues there may be work. It is nil when there is neither, or when
// it is too early; again fires when it no longer is.
func (e *Engine) gather(ctx context.Context) (b *batch, again <-chan time.Time) {
	stopping := ctx.Err() != nil
	e.mu.Lock()
	defer e.mu.Unlock()
	if wait := e.batcher.wait(time.Now()); wait > 0 && !stopping {
		return nil, time.After(wait)
	}
	b = e.batcher.next(stopping, time.Now())
	if e.batcher.startable() > 0 {
		e.wakeCommitter() // for another committer
	}
	e.claimers.stopped = e.claimers.stopped || stopping
	b.claimers = e.claimers.claimable()
	if len(b.ops)+len(b.claimers) == 0 {
		return nil, nil
	}
	e.batcher.begin(b, time.Now())
	return b, nil
}

// commit runs one batch as one transaction. A batch that fails for what its requests write (fault.OfBatch) is halved until the bad request
// stands alone: its neighbours never fail with it. Alone it is tried once more without what follows from it, which may be what is bad. A
// conflict while requests are decided splits a batch of plain calls (commitSplit). Any other conflict runs the transaction again, ten times
// at the most (store.Repeat), and then halves the batch.
//
// The claimers go with the second half of a batch that is halved, and with the first part of one that is split. deliver answers those that
// are given work or must be refused, and lets the others wait on.
func (e *Engine) commit(ctx context.Context, ops []op, claimers *roster, batchSource source) {
	began := time.Now()
	t, queueClock, err := e.transact(ctx, ops, claimers, batchSource, false)
	if s := (*splitBatch)(nil); errors.As(err, &s) {
		e.commitSplit(ctx, s, claimers)
		return
	}
	if err != nil && fault.OfBatch(err) && len(ops) > 0 {
		if len(ops) > 1 {
			e.opts.Log.Warn("halving a batch that cannot be committed", telemetry.Requests, len(ops), telemetry.Executions, named(ops), telemetry.Err, err)
			half := len(ops) / 2
			e.commit(ctx, ops[:half], &roster{}, batchSource)
			e.commit(ctx, ops[half:], claimers, batchSource)
			return
		}
		if fault.Lasting(err) {
			e.opts.Log.Warn("postponing what follows from a request that cannot be committed", telemetry.Executions, named(ops), telemetry.Err, err)
			t, queueClock, err = e.transact(ctx, ops, claimers, batchSource, true)
		}
	}
	if err == nil {
		e.committed(t, len(ops), began)
	} else {
		e.commitFailed(ops, err)
		err = fmt.Errorf("commit: %w", err)
	}
	for _, o := range ops {
		o.done(err)
	}
	if err == nil {
		e.measureClaims(t)
	}
	e.deliver(t, len(ops), claimers, queueClock, err)
}

// committed counts a commit, and carries out what follows from it.
func (e *Engine) committed(t *transaction, requests int, began time.Time) {
	failpoint.Hit(failpoint.AfterCommit)
	for _, point := range t.effects.failpoints {
		failpoint.Hit(point)
	}
	e.counters.committed(requests)
	if len(t.effects.written) > 0 {
		e.health.wrote()
	}
	e.distributions.commit.Observe(since(began))
	e.distributions.batch.Observe(float64(requests))
	e.afterCommit(t)
	failpoint.Hit(failpoint.AfterTell)
}

// commitFailed counts and logs a failed commit.
func (e *Engine) commitFailed(ops []op, err error) {
	e.counters.failedCommits.Add(1)
	e.health.failed(err)
	e.opts.Log.Error("commit failed", telemetry.Requests, len(ops), telemetry.Executions, named(ops), telemetry.Err, err)
	if errors.Is(err, store.ErrUnknown) {
		e.outcomeUnknown()
	}
}

// transact decides requests in one transaction and commits it. queueClock is the count of queueHints when the transaction began: what has
// come into a queue since has a higher one. postpones leaves everything that follows from the requests to transactions of its own.
func (e *Engine) transact(ctx context.Context, ops []op, claimers *roster, batchSource source,
	postpones bool) (t *transaction, queueClock uint64, err error) {
	began := time.Now()
	err = e.update(ctx, func(ctx context.Context, tx store.Tx) (err error) {
		defer fault.Recovered(&err)
		if t != nil {
			e.followed.giveBack(t.workflows.progress, false) // of the run before, which was not committed
		}
		queueClock = e.queueClock()
		t = e.newTransaction(tx, claimers)
		t.postpones, t.budget, t.leavesKeys = postpones, e.budgetOf(ops), !areFollowUps(ops)
		decides, work := time.Now(), t.budget.Work
		err = t.run(ctx, ops)
		e.counters.computed.raise(int64(work - t.budget.Work))
		e.noteSlow(t, ops, time.Since(decides))
		if err != nil {
			return t.split(ops, batchSource, err)
		}
		failpoint.Hit(failpoint.BeforeCommit)
		return nil
	})
	if t != nil {
		e.followed.giveBack(t.workflows.progress, err == nil)
		if areFollowUps(ops) {
			e.pace.took(time.Since(began), t.budget.Spent())
		}
	}
	return t, queueClock, err
}

// slowDecision is how long the decision of one transaction may take before the log says what it was about: others have waited for it.
const slowDecision = time.Second

// noteSlow notes how long a decision took, and logs one that took long, with the document whose expressions cost most in it.
func (e *Engine) noteSlow(t *transaction, ops []op, took time.Duration) {
	e.counters.longest.raise(int64(took))
	if took < slowDecision {
		return
	}
	e.opts.Log.Warn("a transaction took long, and other requests waited for it", "took", took.Round(time.Millisecond), telemetry.Requests, len(ops),
		telemetry.Executions, named(ops), telemetry.Document, t.costliest.name, "operations", t.costliest.work)
}

// update repeats a transaction whose rows changed under it.
func (e *Engine) update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	return store.Repeat(func(n int) error {
		if n > 1 {
			e.counters.conflicts.Add(1)
		}
		return e.opts.Store.Update(ctx, decide)
	})
}

// outcomeUnknown is called when a commit may have happened whose answer never came. It lets all claimers look again,
// signals all sessions and all watchers, and starts the sweep. What else such a commit may have begun is found by looks
// at the store: steps of workflows by the sweep, signals and windows by watchPending within 5 s, wait lists of keys within
// 10 s, ends of pauses within 15 s.
func (e *Engine) outcomeUnknown() {
	e.forgetQueues()
	e.sessions.orderAll()
	e.watch.broadcast()
	e.dueAt(time.Now())
}

// tellExecutions tells of the executions that a committed transaction has written: watchers, figures, the log, and the sweep, which is
// woken at the earliest moment at which something becomes due.
func (e *Engine) tellExecutions(t *transaction) {
	for _, x := range t.effects.aside {
		if a := x.Aside; a != nil { // else it was taken up again in the same transaction
			e.counters.aside.Add(1)
			e.opts.Log.Error("an execution was put aside: a decision about it was refused",
				telemetry.Execution, x.ID, "until", a.Until, "times", a.Times, telemetry.Why, a.Reason)
		}
	}
	e.recordTakenBack(t)
	for i, n := range t.effects.ended {
		e.counters.ended[i].Add(n)
	}
	if n := e.watch.changed(t.effects.written); n > 0 {
		e.mu.Lock()
		e.batcher.wokenWaiters += n
		e.mu.Unlock()
	}
	var due time.Time
	for _, x := range t.effects.written {
		if w := x.Wake(); !w.IsZero() && (due.IsZero() || w.Before(due)) {
			due = w
		}
	}
	if !due.IsZero() {
		e.dueAt(due)
	}
}
