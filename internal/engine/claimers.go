package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// claimer is a call of Take that waits for work.
type claimer struct {
	session flow.ID
	name    string
	state   *sessionState
	queues  []string    // queues that it claims from; replaced when a routing key comes into use
	n       int         // the most executions that it claims
	paused  bool        // its worker was last known to be paused; the engine's mutex guards it
	gone    atomic.Bool // its caller has given up
	result  chan claimed
}

// claimed is what a call of Take returns.
type claimed struct {
	work []handoff.Assignment
	err  error
}

// answer ends the call. The channel has room for its one answer.
func (k *claimer) answer(work []handoff.Assignment, err error) { k.result <- claimed{work, err} }

// roster is the claimers of one batch: the first ones, and those that a run of its transaction has pulled since. A repeated run, or the
// other half of a halved batch, continues with all of them; deliver answers each once.
type roster struct{ all []*claimer }

// claimers are the waiting calls of Take, and what is known about their queues. The engine's mutex guards it.
//
//	Take ── add ──► waiting ── claimable, pull ──► a transaction ──► answer, or back into waiting
type claimers struct {
	waiting  []*claimer // the one that has waited longest first
	checked  int        // waiting[:checked] had nothing to claim when they were last looked at; ignored while queues.recheck is set
	queues   queueHints
	served   *claimer // the last one that got work: its worker is expected to call Take again within returnsWithin
	servedAt time.Time
	stopped  bool // no claimer gets work any more
}

const (
	// claimersLimit is how many claimers one transaction serves. More are not needed: a queue that one claimer finds empty is not read again
	// for the others until it gets work. Chosen, not measured.
	claimersLimit = 100
	// returnsWithin is how long a worker with new work is expected back. Transactions lock the session of the expected
	// claimer: if the worker never comes back, recovery needs that session. Chosen, not measured: a worker comes back
	// within milliseconds, and a lease is many seconds.
	returnsWithin = time.Second
)

// Take implements handoff.Handoff.
func (e *Engine) Take(ctx context.Context, session flow.ID, n int) ([]handoff.Assignment, error) {
	state, err := e.sessionOf(ctx, session)
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, fmt.Errorf("take %d executions: ask for at least 1", n)
	}
	if err := e.refreshRoutingKeys(ctx, state); err != nil {
		return nil, takeError(err)
	}
	k := &claimer{session: session, name: state.session.Name, state: state, n: n, result: make(chan claimed, 1)}
	e.mu.Lock()
	if e.closed != nil {
		e.mu.Unlock()
		return nil, handoff.ErrUnavailable
	}
	k.queues = e.routingKeys.of(state)
	e.claimers.add(k)
	e.wakeCommitter()
	e.mu.Unlock()
	select {
	case r := <-k.result:
		return r.work, takeError(r.err)
	case <-ctx.Done():
	}
	e.mu.Lock()
	waited := e.claimers.withdraw(k)
	e.mu.Unlock()
	if waited {
		return nil, ctx.Err()
	}
	// A transaction holds the claimer: its claims belong to this session, so the answer must be awaited.
	r := <-k.result
	if len(r.work) == 0 && r.err == nil {
		return nil, ctx.Err()
	}
	return r.work, takeError(r.err)
}

// mostCalls is how many calls of Take, and of Report, a worker in this process has at once. PostgreSQL has four committers, but more than
// two transactions are seldom under way, because besideFrom and besideAfter delay a third. With one call, the ends of executions would wait
// for the commit of earlier ends (decision 2).
const mostCalls = 2

// Calls implements handoff.Concurrent. If transactions run one after another, a second call would only split what one transaction could
// have taken.
func (e *Engine) Calls() int { return min(e.opts.Committers, mostCalls) }

func takeError(err error) error {
	if err == nil || errors.Is(err, handoff.ErrSessionLost) {
		return err
	}
	return fmt.Errorf("%w: %w", handoff.ErrUnavailable, err)
}

func (c *claimers) add(k *claimer) { c.waiting = append(c.waiting, k) }

// remove takes out the claimer at an index.
func (c *claimers) remove(i int) {
	c.waiting = slices.Delete(c.waiting, i, i+1)
	if i < c.checked {
		c.checked--
	}
}

// forget drops what is known about queues and pauses: every claimer may find work.
func (c *claimers) forget() {
	c.queues.forget()
	for _, k := range c.waiting {
		k.paused = false
	}
}

// withdraw removes a claimer whose caller has given up and reports whether it was still waiting. Otherwise a transaction holds it, and does
// not return it to waiting without work.
func (c *claimers) withdraw(k *claimer) bool {
	if i := slices.Index(c.waiting, k); i >= 0 {
		c.remove(i)
		return true
	}
	k.gone.Store(true)
	return false
}

// claimable takes out the claimers whose queues may hold work. Ten thousand idle workers each call Take every few seconds, so claimers that
// were checked before are checked again only when new work may have come, and not for each call.
func (c *claimers) claimable() (all []*claimer) {
	if c.stopped {
		return nil
	}
	if c.queues.recheck {
		c.checked, c.queues.recheck = 0, false
	}
	others := c.waiting[:c.checked]
	for _, k := range c.waiting[c.checked:] {
		claimable := !k.paused && c.queues.any(k.queues)
		c.queues.recheck = c.queues.recheck || claimable
		if claimable && len(all) < claimersLimit {
			all = append(all, k)
		} else {
			others = append(others, k)
		}
	}
	clear(c.waiting[len(others):])
	c.waiting, c.checked = others, len(others)
	return all
}

// pull takes out the first claimer, from an index on, with one of the wanted queues; nil if there is none. It may have come while the
// transaction was under way: a worker that got work in the last transaction is often back before this one knows what it can hand over.
func (c *claimers) pull(from int, wanted func(queue string) bool) *claimer {
	if c.stopped {
		return nil
	}
	for i, k := range c.waiting[from:] {
		if !k.paused && slices.ContainsFunc(k.queues, wanted) {
			c.remove(from + i)
			return k
		}
	}
	return nil
}

// pullLate is pull for queues that may hold work. The transaction has found the empty ones empty.
func (c *claimers) pullLate(empty map[string]bool) *claimer {
	from := c.checked
	if c.queues.recheck {
		from = 0
	}
	return c.pull(from, func(q string) bool { return !empty[q] && !c.queues.empty[q] })
}

// expected is the session that a transaction will probably give work to, and its queues: the first waiting one, or the last one that got
// work and is on its way back; no queues if there is neither.
func (c *claimers) expected(now time.Time) (session flow.ID, queues []string) {
	switch {
	case c.stopped:
	case len(c.waiting) > 0:
		return c.waiting[0].session, c.waiting[0].queues
	case c.served != nil && now.Sub(c.servedAt) < returnsWithin:
		return c.served.session, c.served.queues
	}
	return flow.ID{}, nil
}

// clear takes out every claimer.
func (c *claimers) clear() (all []*claimer) {
	all, c.waiting, c.checked = c.waiting, nil, 0
	return all
}

// expected calls claimers.expected for a transaction.
func (e *Engine) expected() (session flow.ID, queues []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.claimers.expected(time.Now())
}

// deliver answers the claimers of a batch after its commit. A claimer without work continues to wait. If the commit failed, a claimer gets
// err if the batch had no requests, or if any other batch would fail as well because the database does not answer. If the requests were at
// fault (fault.OfBatch), it continues to wait. queueClock is the count of queueHints when the transaction began: a queue that it found
// empty may have got work since.
func (e *Engine) deliver(t *transaction, requests int, claimers *roster, queueClock uint64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		for q := range t.dispatch.empty {
			e.claimers.queues.foundEmpty(q, queueClock)
		}
		for q, n := range t.dispatch.queued {
			if n > 0 && e.pauses.latest.Load().onRoutingKey(q, t.now) == nil { // else the resume, or the end of the pause, makes all claimers look
				e.claimers.queues.filled(q)
			}
		}
	}
	for _, k := range claimers.all {
		var a allowance
		var work []*flow.Execution
		if err == nil {
			work = t.dispatch.claimed[k]
			if known := t.dispatch.allowed[k]; known != nil {
				a = *known
			}
		}
		switch {
		case err != nil && (requests == 0 || !fault.OfBatch(err)):
			k.answer(nil, err)
		case a.refused != nil:
			k.answer(nil, a.refused)
		case len(work) > 0:
			e.counters.claimed.Add(int64(len(work)))
			e.claimers.served, e.claimers.servedAt = k, time.Now()
			if _, expects := t.tx.expecter(); expects {
				e.handed.add(work)
			}
			k.answer(e.assignments(work), nil)
		case k.gone.Load():
			k.answer(nil, nil)
		case e.closed != nil:
			k.answer(nil, e.closed)
		default:
			k.queues = e.routingKeys.of(k.state) // a routing key may have come into use
			k.paused = a.paused && t.dispatch.pauses.generation == e.pauses.latest.Load().generation
			e.claimers.add(k)
		}
	}
	if err == nil {
		e.announceResume(t)
	}
}

func (e *Engine) assignments(xs []*flow.Execution) []handoff.Assignment {
	assignments := make([]handoff.Assignment, len(xs))
	for i, x := range xs {
		assignments[i] = handoff.Assignment{
			Execution: x.ID, Attempt: x.Attempt, NextSeq: x.NextSeq,
			Action: x.Action, Kind: x.Kind, Payload: x.Payload(), Timeout: x.Timeout, Labels: x.Labels,
			Workflow: x.Parent, Task: x.Task, Index: x.Index,
			Traceparent: x.Traceparent, Chain: e.rules.chains.header(x.Rules), ClaimedAt: x.ClaimedAt,
		}
	}
	return assignments
}
