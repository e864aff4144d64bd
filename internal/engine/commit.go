package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// op is one request to the store. Requests are gathered while the previous commit is under way and go together in the
// next; each gets its own verdict.
type op interface {
	// want names what decide will need, so that one load serves the whole batch.
	want(*turn)
	// decide changes drafts of the turn. What is wrong with this request alone is kept for the requester; an error
	// returned ends the transaction.
	decide(context.Context, *turn) error
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
	fromCaller class = iota // a caller's: it may create something that a worker can be given
	quietly                 // a caller's, which creates nothing of the kind
	fromEngine              // a follow-up: what a committed transaction has left to later ones
)

const (
	batchLimit   = 1000    // requests in one transaction: a few tens of milliseconds at the most
	batchBytes   = 8 << 20 // of these, after which no further request joins the transaction
	pendingLimit = 200_000 // requests waiting for a transaction; beyond it callers get ErrOverloaded
	pendingBytes = 256 << 20
	maxConflicts = 10 // times in a row that a batch is decided again before it is split
)

// enqueue hands requests to the committer.
func (e *Engine) enqueue(ops ...op) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed != nil {
		return e.closed
	}
	size := 0
	for _, o := range ops {
		size += o.size()
	}
	if len(e.pending)+len(ops) > pendingLimit || len(e.pending) > 0 && e.pendingSize+size > pendingBytes {
		return ErrOverloaded
	}
	e.pending, e.pendingSize = append(e.pending, ops...), e.pendingSize+size
	e.arrivals = append(e.arrivals, arrival{len(ops), time.Now()})
	e.kick()
	return nil
}

func (e *Engine) kick() {
	select {
	case e.signal <- struct{}{}:
	default:
	}
}

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
		e.commit(work, b.ops, b.takers)
		e.over(b)
	}
}

// arrival is one call of enqueue: at is when it came, requests how many of its requests are in no batch yet.
type arrival struct {
	requests int
	at       time.Time
}

// arrived removes the first n pending requests from the arrivals, because they go into a batch. It returns of how many calls the
// last request is among them.
func (e *Engine) arrived(n int) (callers int) {
	for callers < len(e.arrivals) && e.arrivals[callers].requests <= n {
		n -= e.arrivals[callers].requests
		callers++
	}
	if e.arrivals = e.arrivals[callers:]; len(e.arrivals) == 0 {
		e.arrivals = nil // frees their memory
	} else {
		e.arrivals[0].requests -= n
	}
	return callers
}

// ages returns how long the oldest transaction has been under way, and how long the oldest pending request has waited for
// one. An age is 0 where there is no transaction or no request.
func (e *Engine) ages() (commit, pending time.Duration) {
	if len(e.busy) > 0 {
		commit = time.Since(e.busy[0].began)
	}
	if len(e.pending) > 0 {
		pending = time.Since(e.arrivals[0].at)
	}
	return commit, pending
}

// batch is what goes into one transaction.
type batch struct {
	ops     []op
	callers int      // that are answered with this batch: their last request is in it
	takers  []*taker // in whose queues there may be work
	began   time.Time
	wide    bool // the step of a workflow that has many children
}

// over says that a batch is under way no more.
func (e *Engine) over(b *batch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.Index(e.busy, b)
	e.busy = slices.Delete(e.busy, i, i+1)
	if b.wide {
		if e.followUps.busy = false; len(e.followUps.wide) > 0 {
			e.kick()
		}
	}
	if b.callers < lingerFrom {
		return
	}
	if until := time.Now().Add(min(time.Since(b.began)/lingerPart, lingerMost)); until.After(e.lingers.until) {
		e.lingers = lingers{until, len(b.ops) / 2}
	}
}

// lingers says how long the next transaction waits for more requests, and of how many it does not. Those whom the last one
// has answered are about to come back, all at once; whoever is first would go alone while the others wait for its end.
type lingers struct {
	until time.Time
	most  int
}

// linger is how much longer the next transaction waits.
func (e *Engine) linger() time.Duration {
	if n := len(e.pending); n == 0 || n >= e.lingers.most || len(e.busy) > 0 || e.flood {
		return 0
	}
	return time.Until(e.lingers.until)
}

const (
	// besideFrom is how many requests are worth a transaction beside another: fewer are cheaper in the next one.
	besideFrom = 32
	// lingerFrom is how many callers a transaction has answered when their return is waited for, lingerPart for what part of
	// the time that it took, and lingerMost for how long. In an idle process a timer is a millisecond late.
	lingerFrom = 8
	lingerPart = 4
	lingerMost = 2 * time.Millisecond
	// takersMost is how many takers one transaction looks after: what the first find empty, the others need not look into.
	takersMost = 100
	// besideAfter is when a transaction takes so long that fewer do not wait for it.
	besideAfter = 20 * time.Millisecond
	// returnsWithin is how long a worker that was given something is expected back. Transactions lock the session of whom
	// they expect: that of a worker which never comes back must be free for whoever recovers what it held.
	returnsWithin = time.Second
)

// close refuses further requests, releases the takers, and reports whether nothing is pending.
func (e *Engine) close() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = ErrClosed
	for _, t := range e.takers {
		t.give(nil, ErrClosed)
	}
	e.takers, e.followUps = nil, followUps{} // the next process finds what they were for
	return len(e.pending) == 0
}

// gather takes the next batch: what is pending, or follow-ups, and takers; nil when there is nothing, or when it is too early.
// While another transaction is under way a little is left for the committer that runs it, and after one that answered many it
// lingers; again says when it would be time all the same.
func (e *Engine) gather(ctx context.Context) (b *batch, again <-chan time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.busy) > 0 && len(e.pending)+e.followUps.startable() < besideFrom && !e.flood && ctx.Err() == nil {
		if left := besideAfter - time.Since(e.busy[len(e.busy)-1].began); left > 0 {
			return nil, time.After(left)
		}
	}
	if left := e.linger(); left > 0 && ctx.Err() == nil {
		return nil, time.After(left)
	}
	b = &batch{}
	if ctx.Err() == nil {
		b.ops, b.wide = e.followUps.gather(len(e.pending) > 0)
	}
	if len(b.ops) == 0 {
		n, size := e.fitting()
		b.ops, b.callers = e.pending[:n:n], e.arrived(n)
		e.pending, e.pendingSize = e.pending[n:], e.pendingSize-size
	}
	if len(e.pending) == 0 {
		e.pending = nil
	}
	if len(e.pending)+e.followUps.startable() > 0 {
		e.kick() // for another committer
	}
	if ctx.Err() != nil {
		e.stopping = true
	} else {
		b.takers = e.hopeful()
	}
	if len(b.ops)+len(b.takers) == 0 {
		return nil, nil
	}
	b.began = time.Now()
	e.busy = append(e.busy, b)
	return b, nil
}

// fitting is how many of the pending requests go into one transaction, and how many bytes they hold.
func (e *Engine) fitting() (n, size int) {
	for n < min(len(e.pending), batchLimit) && size < batchBytes {
		size += e.pending[n].size()
		n++
	}
	return n, size
}

// hopeful takes out of the line the takers in whose queues there may be work.
func (e *Engine) hopeful() (takers []*taker) {
	if !e.ready.news {
		return nil
	}
	e.ready.news = false
	var others []*taker
	for _, t := range e.takers {
		hopeful := e.ready.any(t.queues)
		e.ready.news = e.ready.news || hopeful
		if hopeful && len(takers) < takersMost {
			takers = append(takers, t)
		} else {
			others = append(others, t)
		}
	}
	e.takers = others
	return takers
}

// pull takes out of the line the first taker that serves one of the queues for which wanted says so; nil when there is
// none. It may have come while the transaction was under way: a worker that was given something by the last one is back
// before this one knows what there is to hand over.
func (e *Engine) pull(wanted func(queue string) bool) *taker {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping {
		return nil
	}
	for i, k := range e.takers {
		if slices.ContainsFunc(k.queues, wanted) {
			e.takers = slices.Delete(e.takers, i, i+1)
			return k
		}
	}
	return nil
}

// nextTaker is whom a transaction will probably pull, and where that looks: the first in the line, or whoever was given
// something last and is on its way back; no queues when there is nobody.
func (e *Engine) nextTaker() (session flow.ID, queues []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.stopping:
	case len(e.takers) > 0:
		return e.takers[0].session, e.takers[0].queues // replaced, under mu, when a lane comes into use
	case e.given != nil && time.Since(e.gave) < returnsWithin:
		return e.given.session, e.given.queues
	}
	return flow.ID{}, nil
}

// commit runs one batch as one transaction. A batch that the data spoil is halved until the bad request stands alone:
// its neighbours never fail with it. Alone it is tried once more without what follows from it, which may be what is bad.
func (e *Engine) commit(ctx context.Context, ops []op, takers []*taker) {
	began := time.Now()
	t, moment, err := e.transact(ctx, ops, &takers, false)
	if err != nil && spoiled(err) && len(ops) > 0 {
		if len(ops) > 1 {
			e.opts.Log.Warn("halving a batch that cannot be committed", telemetry.Requests, len(ops), telemetry.Executions, named(ops), telemetry.Err, err)
			half := len(ops) / 2
			e.commit(ctx, ops[:half], nil)
			e.commit(ctx, ops[half:], takers)
			return
		}
		if refused(err) {
			e.opts.Log.Warn("postponing what follows from a request that cannot be committed", telemetry.Executions, named(ops), telemetry.Err, err)
			t, moment, err = e.transact(ctx, ops, &takers, true)
		}
	}
	if err == nil {
		failpoint.Hit(failpoint.AfterCommit)
		e.counters.committed(len(ops))
		if len(t.touched) > 0 {
			e.health.wrote()
		}
		e.distributions.commit.Observe(since(began))
		e.distributions.batch.Observe(float64(len(ops)))
		e.told(t)
		failpoint.Hit(failpoint.AfterTell)
	} else {
		e.counters.failedCommits.Add(1)
		e.health.failed(err)
		e.opts.Log.Error("commit failed", telemetry.Requests, len(ops), telemetry.Executions, named(ops), telemetry.Err, err)
		if errors.Is(err, store.ErrUnknown) {
			e.unsure()
		}
		err = fmt.Errorf("commit: %w", err)
	}
	for _, o := range ops {
		o.done(err)
	}
	if err == nil {
		e.handedOff(t)
	}
	e.deliver(t, len(ops), takers, moment, err)
}

// transact decides requests in one transaction and commits it. moment is when it began to look into queues. postpones leaves
// everything that follows from the requests to transactions of its own.
func (e *Engine) transact(ctx context.Context, ops []op, takers *[]*taker, postpones bool) (t *turn, moment uint64, err error) {
	err = e.update(ctx, func(ctx context.Context, tx store.Tx) (err error) {
		defer recovered(&err)
		if t != nil {
			e.followed.settle(t.workflows, false) // of the run before, which was not committed
		}
		moment = e.moment()
		t = e.newTurn(tx)
		t.takers, t.postpones, t.budget = takers, postpones, e.budgetOf(ops)
		if err := t.run(ctx, ops); err != nil {
			return err
		}
		failpoint.Hit(failpoint.BeforeCommit)
		return nil
	})
	if t != nil {
		e.followed.settle(t.workflows, err == nil)
	}
	return t, moment, err
}

// update repeats a transaction whose rows changed under it.
func (e *Engine) update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	for n := 1; ; n++ {
		err := e.opts.Store.Update(ctx, decide)
		if !errors.Is(err, store.ErrConflict) || n == maxConflicts {
			return err
		}
		e.counters.conflicts.Add(1)
	}
}

// recovered makes a panic of a decision the decision's error: the batch is halved until the request that causes it stands
// alone, and the process goes on.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("a decision panicked, which is a defect of Pawl: %v\n%s", p, debug.Stack())
	}
}

// spoiled reports whether an error lies in the data of a batch and not in the database or the caller.
func spoiled(err error) bool {
	return !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// unsure lets everybody look for what a commit may have written whose answer never came.
func (e *Engine) unsure() {
	e.anywhere()
	e.sessions.orderAll()
	e.watch.everybody()
	e.dueAt(time.Now())
}

// told does what may happen only after the commit: wake whoever watches, hand orders to sessions, and remember the
// earliest moment at which something becomes due.
func (e *Engine) told(t *turn) {
	for _, r := range t.resolved {
		e.catalog.remember(r)
	}
	var due time.Time
	for _, d := range t.touched {
		if w := d.Wake(); !w.IsZero() && (due.IsZero() || w.Before(due)) {
			due = w
		}
		if d.State.Cancel != nil && !d.Owner.IsZero() {
			e.sessions.order(d.Owner)
		}
		if a := d.Aside; a != nil && a != d.Before.Aside {
			e.counters.aside.Add(1)
			e.opts.Log.Error("an execution was put aside: a decision about it was refused", telemetry.Execution, d.ID, "until", a.Until, "times", a.Times, telemetry.Why, a.Reason)
		}
	}
	e.goOn(t)
	e.takenBack(t)
	e.keptLanes(t)
	for i, n := range t.ended {
		e.counters.ended[i].Add(n)
	}
	e.watch.changed(t.touched)
	if !due.IsZero() {
		e.dueAt(due)
	}
}
