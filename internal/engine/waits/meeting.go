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

// loop brings signals and waits together: those that this replica has committed at once, and those that others have left.
func (k *Waits) loop(ctx context.Context) {
	loop.Repeat(ctx, k.Log, "looking for waits that new signals fit", meetAgain, k.wake, func(ctx context.Context) (time.Duration, error) {
		more, err := k.meet(ctx)
		return loop.IdleUnless(more), err
	})
}

// meeting is what waits for its turn: a wait that looks at the signals there are (AsideLooking), or a signal that meets open waits
// (AsideMeeting).
type meeting struct {
	kind store.AsideKind
	id   flow.ID
}

// meetingTurn is how far a meeting has come: the place of the signal, or the execution of the wait, that was tried last.
type meetingTurn struct {
	signal store.SignalPlace
	wait   flow.ID
}

// meet lets some waits look, and some signals meet open waits, takes one turn of those that take long, and reports whether there may be
// more to do. What is refused, or cannot be read, is put aside.
func (k *Waits) meet(ctx context.Context) (more bool, err error) {
	waiting := k.line.Len() > 0
	err = k.unlooked.Look(waiting, func(after flow.ID) (last flow.ID, some bool, err error) {
		last, rest, err := k.lookSome(ctx, after)
		more = more || rest || waiting && last != after
		return last, last != after, err
	})
	if err != nil {
		return false, err
	}
	err = k.unmet.Look(waiting, func(after int64) (last int64, some bool, err error) {
		last, met, err := k.meetSome(ctx, after)
		more = more || met > 0 || waiting && last != after
		return last, last != after, err
	})
	if err != nil {
		return false, err
	}
	turned, err := k.meetTurn(ctx)
	return more || turned, err
}

// meetSome lets signals behind a number meet open waits. last is the number of the last of them, met how many have met all.
func (k *Waits) meetSome(ctx context.Context, after int64) (last int64, met int, err error) {
	unmet, err := k.Store.UnmetSignals(ctx, time.Now(), after, meetingsAtOnce)
	if err != nil {
		return after, 0, err
	}
	var done []int64
	last = after
	left := k.Budget
	for i := 0; i < len(unmet) && !left.Spent(); i++ {
		s, own := &unmet[i], k.Budget
		key := meeting{store.AsideMeeting, s.ID}
		if last = s.Number; k.line.Has(key) {
			continue
		}
		_, met, err := k.meetOrLeave(ctx, s, flow.ID{}, &own, false)
		left.Compute(k.Budget.Work - own.Work)
		switch {
		case err != nil:
			return last, 0, err
		case met == metSome:
			k.line.Add(key, meetingTurn{})
		case met == metAll:
			done = append(done, s.Number)
		}
	}
	return last, len(done), k.noteMet(ctx, done)
}

// metWaits says which waits a signal has met.
type metWaits uint8

const (
	metAll  metWaits = iota
	metSome          // the others are asked in a turn
	metNone          // it is put aside
)

// meetOrLeave is meetSignal, which puts aside a signal that is refused, or cannot be read. The error is one of the store alone.
func (k *Waits) meetOrLeave(ctx context.Context, s *flow.Signal, after flow.ID, left *txn.Budget, turn bool) (last flow.ID, met metWaits, err error) {
	rest := false
	if err = fault.Damaged(s.Damage); s.Damage == "" {
		last, rest, err = k.meetSignal(ctx, s, after, left, turn)
	}
	switch {
	case err != nil && fault.Lasting(err):
		_, err = k.PutAside(ctx, store.AsideMeeting, s.ID, err)
		return last, metNone, err
	case rest:
		met = metSome
	}
	return last, met, err
}

// noteMet notes that signals have met all waits that were open.
func (k *Waits) noteMet(ctx context.Context, met []int64) error {
	if len(met) == 0 {
		return nil
	}
	return txn.Do(ctx, k.Decide, nil, func(_ context.Context, t txn.Tx) error {
		p := txn.Part[part](t)
		p.met = append(p.met, met...)
		return nil
	})
}

// meetTurn takes one turn of the line, within the budget of a transaction, and reports whether anything had a turn.
func (k *Waits) meetTurn(ctx context.Context) (bool, error) {
	key, sofar, waits := k.line.Take()
	if !waits {
		return false, nil
	}
	next, rest, err := k.takeTurn(ctx, key, sofar)
	switch {
	case errors.Is(err, store.ErrNotFound): // the wait has ended, or retention has removed the signal
		err = nil
		fallthrough
	case err == nil && !rest:
		k.line.Drop(key)
	case err == nil:
		k.line.Turned(key, next)
	default:
		k.line.Turned(key, sofar)
	}
	return true, err
}

func (k *Waits) takeTurn(ctx context.Context, key meeting, sofar meetingTurn) (next meetingTurn, rest bool, err error) {
	left := k.Budget
	if key.kind == store.AsideLooking {
		w, err := k.Store.Wait(ctx, key.id)
		if err != nil || w.Looked || w.Signal != 0 {
			return next, false, err
		}
		l := newLook(w)
		l.turn = true
		if !sofar.signal.At.IsZero() {
			l.last = sofar.signal
		}
		if err := k.find(ctx, l, &left); err != nil {
			return next, false, err
		}
		_, err = k.lookAll(ctx, []*waitResult{l})
		return meetingTurn{signal: l.last}, l.unfinished, err
	}
	s, err := k.Store.Signal(ctx, key.id)
	if err != nil {
		return next, false, err
	}
	last, met, err := k.meetOrLeave(ctx, &s, sofar.wait, &left, true)
	if err == nil && met == metAll {
		err = k.noteMet(ctx, []int64{s.Number})
	}
	return meetingTurn{wait: last}, met == metSome, err
}

// meetSignal lets every open wait behind an execution that a signal fits look again: it takes the oldest that fits, which may be another
// one. Where one of them was put aside the error says why, so that the signal is put aside as well: a wait that has looked before is found
// by its signals alone. rest says that there are waits to ask yet: costly ones without a turn, or those behind last where the budget is
// spent.
func (k *Waits) meetSignal(ctx context.Context, s *flow.Signal, after flow.ID, left *txn.Budget, turn bool) (last flow.ID, rest bool, err error) {
	defer fault.Recovered(&err)
	var aside error
	last = after
	for {
		open, err := k.Store.OpenWaits(ctx, s.Trigger, s.Subject, last, openAtOnce)
		if err != nil {
			return last, true, err
		}
		var fitting []*waitResult
		n := 0
		for ; n < len(open) && (n == 0 || !left.Spent()); n++ {
			w := &open[n]
			last = w.Execution
			fits, asked := k.fits(w, s, left, turn)
			rest = rest || !asked
			if !fits {
				continue
			}
			l := newLook(*w)
			l.offered = s
			if l.turn = turn; !turn {
				err = k.find(ctx, l, left)
			}
			if err != nil {
				return last, true, err
			}
			fitting = append(fitting, l)
		}
		why, err := k.lookAll(ctx, fitting)
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
