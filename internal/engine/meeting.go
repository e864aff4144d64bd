package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// meetWaits brings signals and waits together: those that this replica has committed at once, and those that others have left.
func (e *Engine) meetWaits(ctx context.Context) {
	e.repeat(ctx, "looking for waits that new signals fit", meetAgain, e.meetings, func(ctx context.Context) (time.Duration, error) {
		more, err := e.meet(ctx)
		return idleUnless(more), err
	})
}

// meetings is what the loop knows of waits and signals that take long.
type meetings struct {
	costly   costly // executions that wait, by the texts of their ids
	line     line[meeting, meetingTurn]
	unlooked cursor[flow.ID]
	unmet    cursor[int64]
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
func (e *Engine) meet(ctx context.Context) (more bool, err error) {
	k := &e.meets
	waiting := k.line.len() > 0
	err = k.unlooked.look(waiting, func(after flow.ID) (last flow.ID, some bool, err error) {
		last, rest, err := e.lookSome(ctx, after)
		more = more || rest || waiting && last != after
		return last, last != after, err
	})
	if err != nil {
		return false, err
	}
	err = k.unmet.look(waiting, func(after int64) (last int64, some bool, err error) {
		last, met, err := e.meetSome(ctx, after)
		more = more || met > 0 || waiting && last != after
		return last, last != after, err
	})
	if err != nil {
		return false, err
	}
	turned, err := e.meetTurn(ctx)
	return more || turned, err
}

// lookSome lets waits behind an execution look at the signals there are. last is the last of them; rest says that there may be others.
func (e *Engine) lookSome(ctx context.Context, after flow.ID) (last flow.ID, rest bool, err error) {
	unlooked, err := e.opts.Store.UnlookedWaits(ctx, time.Now(), after, meetingsAtOnce)
	if err != nil {
		return after, false, err
	}
	var some []*waitResult
	last, rest = after, len(unlooked) == meetingsAtOnce
	left := e.budget
	for i := range unlooked {
		if left.spent() {
			rest = true
			break
		}
		w := unlooked[i]
		if last = w.Execution; e.meets.line.has(meeting{store.AsideLooking, last}) {
			continue
		}
		l, own := newLook(w), e.budget
		if err := e.find(ctx, l, &own); err != nil {
			return last, rest, err
		}
		left.compute(e.budget.work - own.work)
		some = append(some, l)
	}
	_, err = e.lookAll(ctx, some)
	return last, rest, err
}

// meetSome lets signals behind a number meet open waits. last is the number of the last of them, met how many have met all.
func (e *Engine) meetSome(ctx context.Context, after int64) (last int64, met int, err error) {
	unmet, err := e.opts.Store.UnmetSignals(ctx, time.Now(), after, meetingsAtOnce)
	if err != nil {
		return after, 0, err
	}
	var done []int64
	last = after
	left := e.budget
	for i := 0; i < len(unmet) && !left.spent(); i++ {
		s, own := &unmet[i], e.budget
		key := meeting{store.AsideMeeting, s.ID}
		if last = s.Number; e.meets.line.has(key) {
			continue
		}
		_, met, err := e.meetOrLeave(ctx, s, flow.ID{}, &own, false)
		left.compute(e.budget.work - own.work)
		switch {
		case err != nil:
			return last, 0, err
		case met == metSome:
			e.meets.line.add(key, meetingTurn{})
		case met == metAll:
			done = append(done, s.Number)
		}
	}
	return last, len(done), e.noteMet(ctx, done)
}

// metWaits says which waits a signal has met.
type metWaits uint8

const (
	metAll  metWaits = iota
	metSome          // the others are asked in a turn
	metNone          // it is put aside
)

// meetOrLeave is meetSignal, which puts aside a signal that is refused, or cannot be read. The error is one of the store alone.
func (e *Engine) meetOrLeave(ctx context.Context, s *flow.Signal, after flow.ID, left *budget, turn bool) (last flow.ID, met metWaits, err error) {
	rest := false
	if err = damaged(s.Damage); s.Damage == "" {
		last, rest, err = e.meetSignal(ctx, s, after, left, turn)
	}
	switch {
	case err != nil && willFailAgain(err):
		_, err = e.leaveAside(ctx, store.AsideMeeting, s.ID, err)
		return last, metNone, err
	case rest:
		met = metSome
	}
	return last, met, err
}

// noteMet notes that signals have met all waits that were open.
func (e *Engine) noteMet(ctx context.Context, met []int64) error {
	if len(met) == 0 {
		return nil
	}
	return e.do(ctx, nil, func(_ context.Context, t *transaction) error {
		t.waits.met = append(t.waits.met, met...)
		return nil
	})
}

// meetTurn takes one turn of the line, within the budget of a transaction, and reports whether anything had a turn.
func (e *Engine) meetTurn(ctx context.Context) (bool, error) {
	k := &e.meets
	key, sofar, waits := k.line.take()
	if !waits {
		return false, nil
	}
	next, rest, err := e.takeTurn(ctx, key, sofar)
	switch {
	case errors.Is(err, store.ErrNotFound): // the wait has ended, or retention has removed the signal
		err = nil
		fallthrough
	case err == nil && !rest:
		k.line.drop(key)
	case err == nil:
		k.line.turned(key, next)
	default:
		k.line.turned(key, sofar)
	}
	return true, err
}

func (e *Engine) takeTurn(ctx context.Context, key meeting, sofar meetingTurn) (next meetingTurn, rest bool, err error) {
	left := e.budget
	if key.kind == store.AsideLooking {
		w, err := e.opts.Store.Wait(ctx, key.id)
		if err != nil || w.Looked || w.Signal != 0 {
			return next, false, err
		}
		l := newLook(w)
		l.turn = true
		if !sofar.signal.At.IsZero() {
			l.last = sofar.signal
		}
		if err := e.find(ctx, l, &left); err != nil {
			return next, false, err
		}
		_, err = e.lookAll(ctx, []*waitResult{l})
		return meetingTurn{signal: l.last}, l.unfinished, err
	}
	s, err := e.opts.Store.Signal(ctx, key.id)
	if err != nil {
		return next, false, err
	}
	last, met, err := e.meetOrLeave(ctx, &s, sofar.wait, &left, true)
	if err == nil && met == metAll {
		err = e.noteMet(ctx, []int64{s.Number})
	}
	return meetingTurn{wait: last}, met == metSome, err
}

// meetSignal lets every open wait behind an execution that a signal fits look again: it takes the oldest that fits, which may be another
// one. Where one of them was put aside the error says why, so that the signal is put aside as well: a wait that has looked before is found
// by its signals alone. rest says that there are waits to ask yet: costly ones without a turn, or those behind last where the budget is
// spent.
func (e *Engine) meetSignal(ctx context.Context, s *flow.Signal, after flow.ID, left *budget, turn bool) (last flow.ID, rest bool, err error) {
	defer fault.Recovered(&err)
	var aside error
	last = after
	for {
		open, err := e.opts.Store.OpenWaits(ctx, s.Trigger, s.Subject, last, openAtOnce)
		if err != nil {
			return last, true, err
		}
		var fitting []*waitResult
		n := 0
		for ; n < len(open) && (n == 0 || !left.spent()); n++ {
			w := &open[n]
			last = w.Execution
			fits, asked := e.fits(w, s, left, turn)
			rest = rest || !asked
			if !fits {
				continue
			}
			l := newLook(*w)
			l.offered = s
			if l.turn = turn; !turn {
				err = e.find(ctx, l, left)
			}
			if err != nil {
				return last, true, err
			}
			fitting = append(fitting, l)
		}
		why, err := e.lookAll(ctx, fitting)
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

// fits reports whether a signal is what a wait waits for, or the wait cannot be read. asked is false where the wait's condition takes
// longer than a first look may.
func (e *Engine) fits(w *flow.Wait, s *flow.Signal, left *budget, turn bool) (fits, asked bool) {
	if w.Damage != "" {
		return true, true
	}
	if !turn && e.meets.costly.has(w.Execution.String()) {
		return false, false
	}
	work := definition.WorkWithin(definition.QuickWork)
	if turn {
		work = definition.WorkWithin(definition.SharedWork)
	}
	done, err := e.opts.Crashes.Begin(waitKind, w.Execution.String(), w.Trigger)
	if err != nil {
		return false, true
	}
	defer done()
	fits, err = e.awaited.Fits(w, s, work)
	if w.If != "" {
		left.compute(work.Done + fixedWork + (len(s.Data)+len(w.Vars))/decodedPerOperation)
	}
	if !turn && work.Exceeded() {
		e.meets.costly.add(w.Execution.String())
		return false, false
	}
	return err == nil && fits, true
}

// waitKind tells the waits of executions from all else that the process may end with.
const waitKind = "the wait of"

// fixedWork is what the evaluation of any condition takes beside its expression, in operations.
const fixedWork = 100

// waitResult is what a look at the signals has found for a wait.
type waitResult struct {
	wait    flow.Wait
	fitting []flow.Signal // the oldest first
	last    store.SignalPlace
	more    bool // there may be more behind last

	turn       bool         // it is the wait's turn: its condition may take long
	offered    *flow.Signal // that fits, and is offered where the look at all others does not end in time
	unfinished bool         // the look goes on behind last, in a turn
	refused    error        // why the wait is put aside
}

func newLook(w flow.Wait) *waitResult {
	return &waitResult{wait: w, last: store.SignalPlace{At: w.Since}}
}

// find lets a wait look at signals within the budget. What it cannot take at all is noted in the look; the error is one of the store alone.
func (e *Engine) find(ctx context.Context, l *waitResult, left *budget) error {
	err := e.opts.Crashes.Refuses(waitKind, l.wait.Execution.String())
	switch {
	case l.wait.Damage != "":
		err = damaged(l.wait.Damage)
	case err == nil:
		err = e.findFitting(ctx, l, left)
	}
	if err != nil && willFailAgain(err) {
		l.refused = err
		return nil
	}
	return err
}

// lookAll carries out what waits have found. Those that are refused, or cannot be read, are put aside; aside is why the last of them was.
// Those whose look is unfinished wait for their turns.
func (e *Engine) lookAll(ctx context.Context, all []*waitResult) (aside, err error) {
	found := make([]*waitResult, 0, len(all))
	leave := func(w *flow.Wait, why error) error {
		aside = fmt.Errorf("the wait of %s: %w", w.Execution, why)
		_, err := e.leaveAside(ctx, store.AsideLooking, w.Execution, why)
		return err
	}
	for _, l := range all {
		if l.offered != nil && (l.unfinished || l.turn) && l.refused == nil {
			l.fitting, l.last, l.more, l.unfinished = []flow.Signal{*l.offered}, store.PlaceOf(l.offered), true, false
		}
		switch {
		case l.refused != nil:
			if err := leave(&l.wait, l.refused); err != nil {
				return nil, err
			}
		case l.unfinished:
			e.meets.line.add(meeting{store.AsideLooking, l.wait.Execution}, meetingTurn{signal: l.last})
		case !l.wait.Looked || len(l.fitting) > 0:
			found = append(found, l)
		}
	}
	if len(found) == 0 {
		return aside, nil
	}
	if err := e.giveSignals(ctx, found); err == nil || !willFailAgain(err) {
		return aside, err
	}
	for _, l := range found {
		if err := e.giveSignals(ctx, []*waitResult{l}); err != nil && willFailAgain(err) {
			if err := leave(&l.wait, err); err != nil {
				return nil, err
			}
		} else if err != nil {
			return nil, err
		}
	}
	return aside, nil
}

// findFitting reads signals on until some fit, there are no more, or the budget is spent.
func (e *Engine) findFitting(ctx context.Context, l *waitResult, left *budget) (err error) {
	defer fault.Recovered(&err)
	for l.fitting, l.unfinished = nil, false; ; {
		page, err := e.opts.Store.SignalsAbout(ctx, l.wait.Trigger, l.wait.Subject, l.last, signalsAtLook)
		if err != nil {
			return err
		}
		l.more = len(page) > 0
		for i := range page {
			fits, asked := e.fits(&l.wait, &page[i], left, l.turn)
			if !asked {
				l.unfinished = len(l.fitting) == 0
				return nil
			}
			l.last = store.PlaceOf(&page[i])
			if fits && page[i].Damage == "" {
				l.fitting = append(l.fitting, page[i])
			}
			switch {
			case len(l.fitting) == fittingAtMost:
				return nil
			case left.spent():
				l.unfinished = len(l.fitting) == 0
				return nil
			}
		}
		if !l.more || len(l.fitting) > 0 {
			return nil
		}
	}
}

// giveSignals gives each wait the oldest signal that fits it and that no other wait of its workflow's attempt has
// taken. A wait for which no signal fits is noted as looked; one for which all that fit were taken looks at the signals
// behind them.
func (e *Engine) giveSignals(ctx context.Context, all []*waitResult) error {
	ids := make([]flow.ID, len(all))
	for i, l := range all {
		ids[i] = l.wait.Execution
	}
	on, err := inBatch(ctx, e, ids, func(ctx context.Context, t *transaction) (on []*waitResult, err error) {
		stored, err := t.tx.WaitsOf(ctx, ids)
		if err != nil {
			return nil, err
		}
		as := make(map[flow.ID]flow.Wait, len(stored))
		for _, w := range stored {
			as[w.Execution] = w
		}
		for _, l := range all {
			d := t.draft(l.wait.Execution)
			w, there := as[l.wait.Execution]
			if changed, is := t.waits.put[l.wait.Execution]; is {
				w = changed
			}
			if d == nil || d.Place != flow.Held || !there || w.Signal != 0 || w.Damage != "" || w.Attempt != l.wait.Attempt || !w.Since.Equal(l.wait.Since) {
				continue
			}
			took, err := t.takeSignal(ctx, d, w, l)
			switch {
			case err != nil:
				return nil, err
			case !took && len(l.fitting) > 0 && l.more:
				on = append(on, l)
			case !took && !w.Looked:
				w.Looked = true
				t.waits.write(w)
			}
		}
		return on, nil
	})
	if err != nil {
		return err
	}
	left := e.budget
	again := on[:0]
	for _, l := range on {
		if err := e.findFitting(ctx, l, &left); err != nil {
			return err
		}
		if l.unfinished {
			e.meets.line.add(meeting{store.AsideLooking, l.wait.Execution}, meetingTurn{signal: l.last})
			continue
		}
		again = append(again, l)
	}
	if len(again) > 0 {
		return e.giveSignals(ctx, again)
	}
	return nil
}

// takeSignal ends a wait with the first of the fitting signals that is not taken, and reports whether there was one.
func (t *transaction) takeSignal(ctx context.Context, d *flow.Draft, w flow.Wait, l *waitResult) (bool, error) {
	if len(l.fitting) == 0 {
		return false, nil
	}
	of := store.WorkflowAttempt{ID: w.Workflow, Attempt: w.Attempt}
	numbers := make([]int64, len(l.fitting))
	for i := range l.fitting {
		numbers[i] = l.fitting[i].Number
	}
	taken, err := t.tx.Taken(ctx, of, numbers)
	if err != nil {
		return false, err
	}
	for i := range l.fitting {
		s := &l.fitting[i]
		key := takenSignal{of, s.Number}
		if t.waits.taken[key] || slices.Contains(taken, s.Number) {
			continue
		}
		output, err := definition.SignalValue(s)
		if err != nil {
			continue // it has no value that could be taken
		}
		if err := d.Finish(flow.Completed, flow.Outcome{Output: output}, t.now, 0); err != nil {
			return false, err
		}
		if t.waits.taken == nil {
			t.waits.taken = map[takenSignal]bool{}
		}
		t.waits.taken[key] = true
		w.Signal, w.Looked = s.Number, true
		t.waits.write(w)
		t.changed(d)
		return true, nil
	}
	return false, nil
}
