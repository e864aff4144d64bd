package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// taker is a worker session that waits for work.
type taker struct {
	session flow.ID
	name    string
	queues  []string
	n       int
	hopeful bool        // its queues may have held something when its batch was gathered; the committer's
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
	s := seat.session
	if n < 1 {
		return nil, fmt.Errorf("take %d executions: ask for at least 1", n)
	}
	k := &taker{session: session, name: s.Name, queues: s.Queues, n: n, result: make(chan taken, 1)}
	e.mu.Lock()
	if e.closed != nil {
		e.mu.Unlock()
		return nil, handoff.ErrUnavailable
	}
	e.takers = append(e.takers, k)
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

// claim hands work to the takers, in the same transaction that may have scheduled it.
func (t *turn) claim(ctx context.Context, takers []*taker) error {
	for _, k := range takers {
		if k.gone.Load() || t.allDry(k.queues) || !k.hopeful && !t.hasScheduled(k.queues) {
			continue
		}
		s, err := t.tx.LockSession(ctx, k.session)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("look up the session: %w", err)
		}
		if err != nil || !s.ExpiresAt.After(ended) { // what it claimed now, nobody would recover
			t.lost[k] = true
			continue
		}
		// What the taker before this one got must not be there to be taken again.
		if err := t.flush(ctx); err != nil {
			return err
		}
		xs, err := t.tx.Take(ctx, k.queues, k.n)
		if err != nil {
			return fmt.Errorf("take: %w", err)
		}
		if len(xs) < k.n {
			for _, q := range k.queues {
				t.dry[q] = true
			}
		}
		for _, x := range xs {
			d := flow.Load(x) // fresh from the store: what the turn decided has been flushed
			t.drafts[x.ID] = d
			if err := d.Claim(k.session, k.name, t.now); err != nil {
				return err
			}
			t.changed(d)
		}
		t.claimed[k] = xs
	}
	return t.flush(ctx)
}

// hasScheduled reports whether this turn has put something into one of the queues.
func (t *turn) hasScheduled(queues []string) bool {
	return slices.ContainsFunc(queues, func(q string) bool { return t.scheduled[q] })
}

func (t *turn) allDry(queues []string) bool {
	for _, q := range queues {
		if !t.dry[q] {
			return false
		}
	}
	return true
}

// deliver answers the takers of a batch after its commit; those without work go back into the line.
// What the transaction did not find in the queues may have come since the moment when it began to look.
func (e *Engine) deliver(t *turn, takers []*taker, moment uint64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		for q := range t.dry {
			e.ready.empty(q, moment)
		}
		for q := range t.scheduled {
			if !t.dry[q] {
				e.ready.filled(q)
			}
		}
	}
	for _, k := range takers {
		switch {
		case err != nil:
			k.give(nil, err)
		case t.lost[k]:
			k.give(nil, handoff.ErrSessionLost)
		case len(t.claimed[k]) > 0:
			e.counters.claimed.Add(int64(len(t.claimed[k])))
			k.give(assignments(t.claimed[k]), nil)
		case k.gone.Load():
			k.give(nil, nil)
		case e.closed != nil:
			k.give(nil, e.closed)
		default:
			e.takers = append(e.takers, k)
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
