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

// op is one request to the committer. Requests that come while all committers are busy go together into the next transaction; each gets its
// own verdict.
type op interface {
	// want names what decide will need, so that one load serves the whole batch.
	want(*transaction)
	// decide changes drafts of the transaction. An error of this request alone is kept for the requester; a returned error ends the
	// transaction.
	decide(context.Context, *transaction) error
	// done answers the requester: nil after the commit, or the error.
	done(error)
	// size is about how many bytes the request holds.
	size() int
	// class is how the committer treats the request.
	class() class
	// executions are the executions of the request, for the log; new ones included.
	executions() []flow.ID
}

// class is how the committer treats a request.
type class uint8

const (
	classCall     class = iota // of a caller or a loop of the engine: it may create work for a worker
	classSession               // a renewal or a look for orders: it creates no work for workers, and goes before calls
	classFollowUp              // work that a committed transaction has postponed
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

// commitLoop commits one batch after another, each in its transaction. Several loops may run; a caller's answer is in
// the store before any of them reads it. It ends when ctx has ended and nothing is pending.
func (e *Engine) commitLoop(ctx context.Context) {
	work := context.WithoutCancel(ctx)
	again := time.NewTimer(0)
	for {
		b := e.gather(ctx, again)
		if b == nil {
			select {
			case <-e.signal:
				continue
			case <-again.C:
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

// endBatch removes a batch from underWay, and wakes a committer if a follow-up or a contended call waited for this batch.
func (e *Engine) endBatch(b *batch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.batcher.done(b, time.Now()) {
		e.wakeCommitter()
	}
}

// close refuses further requests, answers the waiting claimers, and reports whether nothing is pending.
func (e *Engine) close() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = ErrClosed
	for _, k := range e.claimers.clear() {
		k.answer(nil, ErrClosed)
	}
	e.batcher.followUps = followUps{} // the next process finds their work in the rows
	return e.batcher.pending() == 0
}

// gather takes the next batch: requests, and the claimers whose queues may hold work. It is nil if there is neither, or if it is too early;
// then again fires when it is time.
func (e *Engine) gather(ctx context.Context, again *time.Timer) (b *batch) {
	stopping := ctx.Err() != nil
	e.mu.Lock()
	defer e.mu.Unlock()
	if wait := e.batcher.wait(time.Now()); wait > 0 && !stopping {
		again.Reset(wait)
		return nil
	}
	b = e.batcher.next(stopping, time.Now())
	if e.batcher.startable() > 0 {
		e.wakeCommitter() // for another committer
	}
	e.claimers.stopped = e.claimers.stopped || stopping
	b.claimers = e.claimers.claimable()
	if len(b.ops)+len(b.claimers) == 0 {
		return nil
	}
	e.batcher.begin(b, time.Now())
	return b
}

// commit runs one batch as one transaction. If a batch fails because of what its requests write (fault.OfBatch), it is halved until the bad
// request is alone: its neighbours never fail with it. The lone request is tried once more without its follow-ups, because one of them may
// be bad. A conflict while requests are decided splits a batch of plain calls (commitSplit). Any other conflict runs the transaction again,
// ten times at the most (store.Repeat), and then halves the batch.
//
// The claimers go with the second half of a halved batch, and with the first part of a split one. deliver answers those that get work or
// must be refused, and returns the others to waiting.
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

// committed counts a commit and performs its effects.
func (e *Engine) committed(t *transaction, requests int, began time.Time) {
	failpoint.Hit(failpoint.AfterCommit)
	for _, point := range t.effects.failpoints {
		failpoint.Hit(point)
	}
	e.counters.committed(requests)
	if len(t.effects.written) > 0 {
		e.health.wrote()
	}
	e.distributions.commit.Observe(time.Since(began).Seconds())
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

// transact decides requests in one transaction and commits it. queueClock is the count of queueHints when the transaction began: a queue
// that has got work since has a higher one. postpones leaves all follow-ups of the requests to separate transactions.
func (e *Engine) transact(ctx context.Context, ops []op, claimers *roster, batchSource source,
	postpones bool) (t *transaction, queueClock uint64, err error) {
	began := time.Now()
	err = e.update(ctx, func(ctx context.Context, tx store.Tx) (err error) {
		defer fault.Recovered(&err)
		if t != nil {
			e.followed.giveBack(t.workflows.progress, false) // of the previous run, which was not committed
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

// slowDecision is how long the decision of one transaction may take before it is logged: other requests have waited for it.
const slowDecision = time.Second

// noteSlow measures a decision, and logs a slow one with the document whose expressions cost most in it.
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

// outcomeUnknown is called when a commit may have happened whose answer was lost. It makes all claimers look again, signals all sessions
// and all watchers, and starts the sweep. Other effects of such a commit are found by periodic reads of the store: steps of workflows by
// the sweep, signals and windows by watchPending within 5 s, wait lists of keys within 10 s, ends of pauses within 15 s.
func (e *Engine) outcomeUnknown() {
	e.forgetQueues()
	e.sessions.orderAll()
	e.watch.broadcast()
	e.dueAt(time.Now())
}

// tellExecutions announces the executions that a committed transaction has written to watchers, counters, the log, and the sweep. The sweep
// is woken at the earliest time at which something becomes due.
func (e *Engine) tellExecutions(t *transaction) {
	for _, x := range t.effects.aside {
		if a := x.Aside; a != nil { // else the same transaction ended the aside
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
		if x.State.Cancel != nil {
			e.handed.forget(x.ID) // its row has the order
		}
		if w := x.Wake(); !w.IsZero() && (due.IsZero() || w.Before(due)) {
			due = w
		}
	}
	if !due.IsZero() {
		e.dueAt(due)
	}
}
