package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// taker is a worker session that waits for work.
type taker struct {
	session flow.ID
	name    string
	seat    *seat
	queues  []string
	n       int
	gone    atomic.Bool // nobody waits for it any more: without work it need not go back into the line
	result  chan taken
}

type taken struct {
	work []handoff.Assignment
	err  error
}

// give answers a taker. Its channel has room for the one answer that it gets.
func (k *taker) give(work []handoff.Assignment, err error) { k.result <- taken{work, err} }

// Take implements handoff.Handoff.
func (e *Engine) Take(ctx context.Context, session flow.ID, n int) ([]handoff.Assignment, error) {
	seat, err := e.seat(ctx, session)
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, fmt.Errorf("take %d executions: ask for at least 1", n)
	}
	if err := e.lookForLanes(ctx, seat); err != nil {
		return nil, takeError(err)
	}
	k := &taker{session: session, name: seat.session.Name, seat: seat, n: n, result: make(chan taken, 1)}
	e.mu.Lock()
	if e.closed != nil {
		e.mu.Unlock()
		return nil, handoff.ErrUnavailable
	}
	k.queues = e.lanes.of(seat)
	e.takers = append(e.takers, k)
	e.ready.news = true
	e.kick()
	e.mu.Unlock()
	select {
	case r := <-k.result:
		return r.work, takeError(r.err)
	case <-ctx.Done():
	}
	if e.withdraw(k) {
		return nil, ctx.Err()
	}
	// The committer has it: what it claims is this session's, so its answer must be waited for.
	r := <-k.result
	if len(r.work) == 0 && r.err == nil {
		return nil, ctx.Err()
	}
	return r.work, takeError(r.err)
}

func takeError(err error) error {
	if err == nil || errors.Is(err, handoff.ErrSessionLost) {
		return err
	}
	return fmt.Errorf("%w: %w", handoff.ErrUnavailable, err)
}

// withdraw takes a taker back from the line and reports whether it still stood there.
func (e *Engine) withdraw(k *taker) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, other := range e.takers {
		if other == k {
			e.takers = append(e.takers[:i], e.takers[i+1:]...)
			return true
		}
	}
	k.gone.Store(true)
	return false
}

// allowance is what a taker may get in a turn, with its session looked up and locked.
type allowance struct {
	refused error // why it may take nothing; nil: it may
	room    int   // how much more it takes
	looked  bool  // it has taken what waited in its queues, as far as it has room
}

// allow looks up a taker's session.
func (t *turn) allow(ctx context.Context, k *taker) (*allowance, error) {
	if a := t.allowed[k]; a != nil {
		return a, nil
	}
	session, runs, err := t.tx.LockSession(ctx, k.session)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("look up the session: %w", err)
	}
	a := &allowance{}
	switch {
	case runs:
		a.room = k.n
	case err != nil || session.ExpiresAt.IsZero():
		a.refused = handoff.ErrSessionLost // its recovery has begun, and would miss a claim of now
	default:
		a.refused = errors.New("the session's lease has run out: renew it") // the renewal finds out whether that is for good
	}
	t.allowed[k] = a
	return a, nil
}

// handOver gives what this turn creates to takers that have found nothing else in its queue, before it is written: what
// would be put into a queue only to be taken out again is written once, as its worker's.
func (t *turn) handOver(ctx context.Context) error {
	var fresh []*flow.Draft
	for _, d := range t.dirty {
		if d.New && d.Place == flow.Ready {
			fresh = append(fresh, d)
		}
	}
	slices.SortStableFunc(fresh, func(a, b *flow.Draft) int { return b.Priority - a.Priority })
	nobody := map[string]bool{} // queues that nobody with room serves
	for _, d := range fresh {
		if nobody[d.Queue] {
			continue
		}
		k, err := t.receiver(ctx, d.Queue)
		if err != nil {
			return err
		}
		if k == nil {
			nobody[d.Queue] = true
			continue
		}
		if err := d.Claim(k.session, k.name, t.now); err != nil {
			return err
		}
		t.allowed[k].room--
		t.scheduled[d.Queue]--
		t.claimed[k] = append(t.claimed[k], d.Execution)
	}
	return nil
}

// receiver is a taker that serves a queue, has looked into what was there before, and has room; nil when there is none.
func (t *turn) receiver(ctx context.Context, queue string) (*taker, error) {
	for i := 0; i < len(*t.takers) || t.pull(func(q string) bool { return q == queue }); i++ {
		k := (*t.takers)[i]
		if !slices.Contains(k.queues, queue) {
			continue
		}
		if a := t.allowed[k]; a == nil || !a.looked {
			if _, err := t.take(ctx, k); err != nil {
				return nil, err
			}
		}
		if a := t.allowed[k]; a != nil && a.room > 0 {
			return k, nil
		}
	}
	return nil, nil
}

// pull takes one more taker out of the line, and reports whether there was one.
func (t *turn) pull(wanted func(queue string) bool) bool {
	if len(*t.takers) >= takersMost {
		return false
	}
	k := t.e.pull(wanted)
	if k != nil {
		*t.takers = append(*t.takers, k)
	}
	return k != nil
}

// claimWaiting lets the takers for whom something may have waited take from the queues first: what this turn creates
// comes behind it.
func (t *turn) claimWaiting(ctx context.Context) error {
	if len(*t.takers) == 0 {
		return nil
	}
	if err := t.flushOld(ctx); err != nil {
		return err
	}
	for _, k := range *t.takers {
		if t.allDry(k.queues) {
			continue
		}
		if _, err := t.take(ctx, k); err != nil {
			return err
		}
	}
	return t.flushOld(ctx)
}

// claimScheduled lets takers take what this turn has put into their queues and could not hand over at once.
func (t *turn) claimScheduled(ctx context.Context) error {
	waits := func(q string) bool { return t.scheduled[q] > 0 }
	for i := 0; i < len(*t.takers) || t.somethingWaits() && t.pull(waits); i++ {
		k := (*t.takers)[i]
		if !slices.ContainsFunc(k.queues, waits) {
			continue
		}
		if err := t.flush(ctx); err != nil {
			return err
		}
		all, err := t.take(ctx, k)
		if err != nil {
			return err
		}
		if all {
			for _, q := range k.queues {
				t.scheduled[q] = 0
			}
		}
	}
	return t.flush(ctx)
}

func (t *turn) somethingWaits() bool {
	for _, n := range t.scheduled {
		if n > 0 {
			return true
		}
	}
	return false
}

// take lets one taker take from its queues, and reports whether it took all that is in them.
func (t *turn) take(ctx context.Context, k *taker) (all bool, err error) {
	if k.gone.Load() {
		return false, nil
	}
	began := time.Now()
	defer func() { t.claiming += time.Since(began) }()
	a, err := t.allow(ctx, k)
	if err != nil || a.room == 0 {
		return false, err
	}
	a.looked = true
	for more := t.taken < store.TakeBytes; more; {
		looked := a.room
		found, moved, err := t.takeFrom(ctx, k, a)
		if err != nil {
			return false, err
		}
		all = found < looked && t.taken < store.TakeBytes
		more = moved > 0 && !all && a.room > 0 && t.taken < store.TakeBytes // this taker may run the executions behind those that were moved away
	}
	if all {
		for _, q := range k.queues {
			t.dry[q] = true
		}
	}
	return all, nil
}

// takeFrom looks into a taker's queues once: it claims the executions that it finds there, and moves misplaced ones to the
// lanes of their kinds.
func (t *turn) takeFrom(ctx context.Context, k *taker, a *allowance) (found, moved int, err error) {
	// Earlier claims of this transaction are written first, or the look would find the same executions again.
	if err := t.flushOld(ctx); err != nil {
		return 0, 0, err
	}
	all, err := t.tx.Take(ctx, k.queues, a.room)
	if err != nil {
		return 0, 0, fmt.Errorf("take: %w", err)
	}
	for _, x := range all {
		t.taken += x.PayloadSize()
	}
	xs, err := t.relane(ctx, all)
	if err != nil {
		return 0, 0, fmt.Errorf("take: %w", err)
	}
	for _, x := range xs {
		d := flow.Load(x) // fresh from the store: what the turn decided has been flushed
		t.drafts[x.ID] = d
		if err := t.tried(d, func() error { return d.Claim(k.session, k.name, t.now) }); err != nil {
			return 0, 0, err
		}
		t.changed(d)
		if d.Place == flow.Held {
			a.room--
			t.claimed[k] = append(t.claimed[k], x)
		}
	}
	return len(all), len(all) - len(xs), nil
}

func (t *turn) allDry(queues []string) bool {
	for _, q := range queues {
		if !t.dry[q] {
			return false
		}
	}
	return true
}

// deliver answers the takers of a batch after its commit; those without work go back into the line, and so do those who came
// with requests that could not be committed: that is not theirs. What the transaction did not find in the queues may have come since the moment when it began to look.
func (e *Engine) deliver(t *turn, requests int, takers []*taker, moment uint64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		for q := range t.dry {
			e.ready.empty(q, moment)
		}
		for q, n := range t.scheduled {
			if n > 0 {
				e.ready.filled(q)
			}
		}
	}
	for _, k := range takers {
		switch {
		case err != nil && (requests == 0 || !spoiled(err)):
			k.give(nil, err)
		case err == nil && t.allowed[k] != nil && t.allowed[k].refused != nil:
			k.give(nil, t.allowed[k].refused)
		case err == nil && len(t.claimed[k]) > 0:
			e.counters.claimed.Add(int64(len(t.claimed[k])))
			e.flood = len(t.claimed[k]) >= batchLimit/4
			e.given, e.gave = k, time.Now()
			k.give(assignments(t.claimed[k]), nil)
		case k.gone.Load():
			k.give(nil, nil)
		case e.closed != nil:
			k.give(nil, e.closed)
		default:
			k.queues = e.lanes.of(k.seat) // one may have come into use
			e.takers = append(e.takers, k)
			e.ready.news = true
		}
	}
}

func assignments(xs []*flow.Execution) []handoff.Assignment {
	as := make([]handoff.Assignment, len(xs))
	for i, x := range xs {
		as[i] = handoff.Assignment{
			Execution: x.ID, Attempt: x.Attempt, NextSeq: x.NextSeq,
			Action: x.Action, Kind: x.Kind, Payload: x.Payload(), Timeout: x.Timeout, Labels: x.Labels,
			Workflow: x.Parent, Task: x.Task, Index: x.Index,
			Traceparent: x.Traceparent, ClaimedAt: x.ClaimedAt,
		}
	}
	return as
}
