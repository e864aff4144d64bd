package waits

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// loop correlates signals and waits: those of this replica at once, and those that other replicas have left.
func (k *Waits) loop(ctx context.Context) {
	loop.Repeat(ctx, k.Log, "looking for waits that new signals fit", retryAfter, k.wake, func(ctx context.Context) (time.Duration, error) {
		more, err := k.correlate(ctx)
		return loop.IdleUnless(more), err
	})
}

// correlation is an item that waits for its turn: a wait whose signals are scanned (AsideScan), or a signal that is compared with open
// waits (AsideCorrelation).
type correlation struct {
	kind store.AsideKind
	id   flow.ID
}

// correlationProgress is the progress of a correlation: the last tried signal's place, or the last tried wait's execution.
type correlationProgress struct {
	signal store.SignalPlace
	wait   flow.ID
}

// correlate scans the signals for some waits, compares some signals with the open waits, takes one turn of the slow ones, and reports
// whether there may be more to do. It puts aside what is refused or cannot be read.
func (k *Waits) correlate(ctx context.Context) (more bool, err error) {
	waiting := k.turns.Len() > 0
	err = k.unscanned.Look(waiting, func(after flow.ID) (last flow.ID, found bool, err error) {
		last, rest, err := k.scanBatch(ctx, after)
		more = more || rest || waiting && last != after
		return last, last != after, err
	})
	if err != nil {
		return false, err
	}
	err = k.uncorrelated.Look(waiting, func(after int64) (last int64, found bool, err error) {
		last, correlated, err := k.correlateBatch(ctx, after)
		more = more || correlated > 0 || waiting && last != after
		return last, last != after, err
	})
	if err != nil {
		return false, err
	}
	turned, err := k.correlateTurn(ctx)
	return more || turned, err
}

// correlateBatch compares signals after a number with the open waits. last is the number of the last one, correlated how many were compared
// with all.
func (k *Waits) correlateBatch(ctx context.Context, after int64) (last int64, correlated int, err error) {
	uncorrelated, err := k.Store.UncorrelatedSignals(ctx, time.Now(), after, correlationsAtOnce)
	if err != nil {
		return after, 0, err
	}
	var done []int64
	last = after
	budget := k.Budget
	for i := 0; i < len(uncorrelated) && !budget.Spent(); i++ {
		s, own := &uncorrelated[i], k.Budget
		key := correlation{store.AsideCorrelation, s.ID}
		if last = s.Number; k.turns.Has(key) {
			continue
		}
		_, correlated, err := k.correlateOrSetAside(ctx, s, flow.ID{}, &own, false)
		budget.Compute(k.Budget.Work - own.Work)
		switch {
		case err != nil:
			return last, 0, err
		case correlated == correlatedSome:
			k.turns.Add(key, correlationProgress{})
		case correlated == correlatedAll:
			done = append(done, s.Number)
		}
	}
	return last, len(done), k.noteCorrelated(ctx, done)
}

// correlated is with which open waits a signal has been compared.
type correlated uint8

const (
	correlatedAll  correlated = iota
	correlatedSome            // the others are compared in a turn
	correlatedNone            // it is put aside
)

// correlateOrSetAside calls correlateSignal, and puts a signal aside that is refused or cannot be read. The error is one of the store
// alone.
func (k *Waits) correlateOrSetAside(ctx context.Context, s *flow.Signal, after flow.ID, budget *txn.Budget,
	turn bool) (last flow.ID, correlated correlated, err error) {
	rest := false
	if err = fault.Damaged(s.Damage); s.Damage == "" {
		last, rest, err = k.correlateSignal(ctx, s, after, budget, turn)
	}
	switch {
	case err != nil && fault.Lasting(err):
		_, err = k.PutAside(ctx, store.AsideCorrelation, s.ID, err)
		return last, correlatedNone, err
	case rest:
		correlated = correlatedSome
	}
	return last, correlated, err
}

// noteCorrelated records that signals have been compared with all waits that were open.
func (k *Waits) noteCorrelated(ctx context.Context, correlated []int64) error {
	if len(correlated) == 0 {
		return nil
	}
	return txn.Do(ctx, k.Decide, nil, func(_ context.Context, t txn.Tx) error {
		p := txn.Part[part](t)
		p.correlated = append(p.correlated, correlated...)
		return nil
	})
}

// correlateTurn takes one turn of the turn queue, within the budget of a transaction, and reports whether anything had a turn.
func (k *Waits) correlateTurn(ctx context.Context) (bool, error) {
	key, sofar, waits := k.turns.Take()
	if !waits {
		return false, nil
	}
	next, rest, err := k.takeTurn(ctx, key, sofar)
	switch {
	case errors.Is(err, store.ErrNotFound): // the wait has ended, or retention has removed the signal
		err = nil
		fallthrough
	case err == nil && !rest:
		k.turns.Drop(key)
	case err == nil:
		k.turns.Turned(key, next)
	default:
		k.turns.Turned(key, sofar)
	}
	return true, err
}

func (k *Waits) takeTurn(ctx context.Context, key correlation, sofar correlationProgress) (next correlationProgress, rest bool, err error) {
	budget := k.Budget
	if key.kind == store.AsideScan {
		w, err := k.Store.Wait(ctx, key.id)
		if err != nil || w.Scanned || w.Signal != 0 {
			return next, false, err
		}
		l := newScan(w)
		l.turn = true
		if !sofar.signal.At.IsZero() {
			l.last = sofar.signal
		}
		if err := k.find(ctx, l, &budget); err != nil {
			return next, false, err
		}
		_, err = k.applyScans(ctx, []*scan{l})
		return correlationProgress{signal: l.last}, l.unfinished, err
	}
	s, err := k.Store.Signal(ctx, key.id)
	if err != nil {
		return next, false, err
	}
	last, correlated, err := k.correlateOrSetAside(ctx, &s, sofar.wait, &budget, true)
	if err == nil && correlated == correlatedAll {
		err = k.noteCorrelated(ctx, []int64{s.Number})
	}
	return correlationProgress{wait: last}, correlated == correlatedSome, err
}

// correlateSignal makes a new scan for every open wait, after an execution, that a signal fits: the wait takes the oldest fitting signal,
// which may be another one. If one of the waits was put aside, the error is the reason, and the signal is put aside as well: a wait that
// was scanned before is found only by its signals. rest reports that waits are left: costly ones without a turn, or those after last if the
// budget is spent.
func (k *Waits) correlateSignal(ctx context.Context, s *flow.Signal, after flow.ID, budget *txn.Budget,
	turn bool) (last flow.ID, rest bool, err error) {
	defer fault.Recovered(&err)
	var aside error
	last = after
	for {
		open, err := k.Store.OpenWaits(ctx, s.Trigger, s.Subject, last, openAtOnce)
		if err != nil {
			return last, true, err
		}
		var fitting []*scan
		n := 0
		for ; n < len(open) && (n == 0 || !budget.Spent()); n++ {
			w := &open[n]
			last = w.Execution
			fits, asked := k.fits(w, s, budget, turn)
			rest = rest || !asked
			if !fits {
				continue
			}
			l := newScan(*w)
			l.offered = s
			if l.turn = turn; !turn {
				err = k.find(ctx, l, budget)
			}
			if err != nil {
				return last, true, err
			}
			fitting = append(fitting, l)
		}
		why, err := k.applyScans(ctx, fitting)
		if err != nil {
			return last, true, err
		}
		aside = cmp.Or(aside, why)
		switch {
		case n < len(open):
			return last, true, aside
		case len(open) < openAtOnce:
			return last, rest, aside
		}
	}
}
