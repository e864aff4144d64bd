package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// allowance is what a claimer may get in a transaction, with its session looked up and locked.
type allowance struct {
	refused error // why it may take nothing; nil: it may
	room    int   // how much more it takes
	looked  bool  // it has taken what waited in its queues, as far as it has room
}

// allow looks up a claimer's session.
func (t *turn) allow(ctx context.Context, k *claimer) (*allowance, error) {
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

// handOver gives what this transaction creates to claimers that have found nothing else in its queue, before it is written: an
// execution that would be put into a queue only to be claimed at once is written once, as its worker's.
func (t *turn) handOver(ctx context.Context) error {
	var fresh []*flow.Draft
	for _, d := range t.dirty {
		if d.New && d.Place == flow.Ready {
			fresh = append(fresh, d)
		}
	}
	slices.SortStableFunc(fresh, func(a, b *flow.Draft) int { return b.Priority - a.Priority })
	unserved := map[string]bool{} // queues into which no claimer with room looks
	for _, d := range fresh {
		if unserved[d.Queue] {
			continue
		}
		k, err := t.receiver(ctx, d.Queue)
		if err != nil {
			return err
		}
		if k == nil {
			unserved[d.Queue] = true
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

// receiver is a claimer that looks into a queue, has taken what was there before, and has room; nil when there is none.
func (t *turn) receiver(ctx context.Context, queue string) (*claimer, error) {
	for i := 0; i < len(*t.claimers) || t.pull(func(q string) bool { return q == queue }); i++ {
		k := (*t.claimers)[i]
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

// pull takes out one more of the claimers that wait, and reports whether there was one. wanted is called under the engine's mutex.
func (t *turn) pull(wanted func(queue string) bool) bool {
	if len(*t.claimers) >= claimersLimit {
		return false
	}
	k := t.e.pull(wanted)
	if k != nil {
		*t.claimers = append(*t.claimers, k)
	}
	return k != nil
}

// claimWaiting lets the claimers for which something may have waited take from the queues first: what this transaction creates
// comes behind it.
func (t *turn) claimWaiting(ctx context.Context) error {
	if len(*t.claimers) == 0 {
		return nil
	}
	if err := t.flushOld(ctx); err != nil {
		return err
	}
	for _, k := range *t.claimers {
		if t.allDry(k.queues) {
			continue
		}
		if _, err := t.take(ctx, k); err != nil {
			return err
		}
	}
	return t.flushOld(ctx)
}

// claimScheduled lets claimers take what this transaction has put into their queues and could not hand over at once.
func (t *turn) claimScheduled(ctx context.Context) error {
	waits := func(q string) bool { return t.scheduled[q] > 0 }
	for i := 0; i < len(*t.claimers) || t.somethingWaits() && t.pull(waits); i++ {
		k := (*t.claimers)[i]
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

// claimLate lets claimers that came while the transaction was under way take from queues in which there may be something. Otherwise
// each of them would cost a commit of its own: while a worker with 4 slots runs no-ops, its next call of Take comes while its
// ends are being written. Of 4,000 no-ops on SQLite that saves a fifth of the commits.
func (t *turn) claimLate(ctx context.Context) error {
	mayHold := func(q string) bool { return !t.dry[q] && !t.e.claimers.queues.dry[q] }
	for t.pull(mayHold) {
		if _, err := t.take(ctx, (*t.claimers)[len(*t.claimers)-1]); err != nil {
			return err
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

// take lets one claimer take from its queues, and reports whether it took all that is in them.
func (t *turn) take(ctx context.Context, k *claimer) (all bool, err error) {
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
		more = moved > 0 && !all && a.room > 0 && t.taken < store.TakeBytes // this worker may run the executions behind those that were moved away
	}
	if all {
		for _, q := range k.queues {
			t.dry[q] = true
		}
	}
	return all, nil
}

// takeFrom looks into a claimer's queues once: it claims the executions that it finds there, and moves misplaced ones to the
// lanes of their kinds.
func (t *turn) takeFrom(ctx context.Context, k *claimer, a *allowance) (found, moved int, err error) {
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
