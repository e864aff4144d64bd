package waits

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

type scan struct {
	wait    flow.Wait
	fitting []flow.Signal // the oldest first
	last    store.SignalPlace
	more    bool // there may be more behind last

	turn       bool         // it is the wait's turn: its condition may take long
	offered    *flow.Signal // a fitting signal, used if the scan of all others does not end in time
	unfinished bool         // the scan continues after last, in a turn
	refused    error        // why the wait is put aside
}

func newScan(w flow.Wait) *scan {
	return &scan{wait: w, last: store.SignalPlace{At: w.Since}}
}

// find scans signals for a wait within the budget. If the wait is refused, the scan records the reason; the error is one of the store
// alone.
func (k *Waits) find(ctx context.Context, l *scan, budget *txn.Budget) error {
	err := k.Crashes.Refuses(CrashKind, l.wait.Execution.String())
	switch {
	case l.wait.Damage != "":
		err = fault.Damaged(l.wait.Damage)
	case err == nil:
		err = k.findFitting(ctx, l, budget)
	}
	if err != nil && fault.Lasting(err) {
		l.refused = err
		return nil
	}
	return err
}

// applyScans applies the results of scans to their waits. Waits that are refused or cannot be read are put aside; aside is the reason of
// the last one. Waits with an unfinished scan wait for their turns.
func (k *Waits) applyScans(ctx context.Context, all []*scan) (aside, err error) {
	found := make([]*scan, 0, len(all))
	leave := func(w *flow.Wait, why error) error {
		aside = fmt.Errorf("the wait of %s: %w", w.Execution, why)
		_, err := k.PutAside(ctx, store.AsideScan, w.Execution, why)
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
			k.turns.Add(correlation{store.AsideScan, l.wait.Execution}, correlationProgress{signal: l.last})
		case !l.wait.Scanned || len(l.fitting) > 0:
			found = append(found, l)
		}
	}
	if len(found) == 0 {
		return aside, nil
	}
	if err := k.assignSignals(ctx, found); err == nil || !fault.Lasting(err) {
		return aside, err
	}
	for _, l := range found {
		if err := k.assignSignals(ctx, []*scan{l}); err != nil && fault.Lasting(err) {
			if err := leave(&l.wait, err); err != nil {
				return nil, err
			}
		} else if err != nil {
			return nil, err
		}
	}
	return aside, nil
}

// findFitting reads signals until some fit, there are no more, or the budget is spent.
func (k *Waits) findFitting(ctx context.Context, l *scan, budget *txn.Budget) (err error) {
	defer fault.Recovered(&err)
	for l.fitting, l.unfinished = nil, false; ; {
		page, err := k.Store.SignalsAbout(ctx, l.wait.Trigger, l.wait.Subject, l.last, signalsPerScan)
		if err != nil {
			return err
		}
		l.more = len(page) > 0
		for i := range page {
			fits, asked := k.fits(&l.wait, &page[i], budget, l.turn)
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
			case budget.Spent():
				l.unfinished = len(l.fitting) == 0
				return nil
			}
		}
		if !l.more || len(l.fitting) > 0 {
			return nil
		}
	}
}

// assignSignals gives each wait the oldest signal that fits it and that no other wait of its workflow's attempt has taken. A wait without a
// fitting signal is recorded as scanned; if all its fitting signals were taken, it reads the signals after them.
func (k *Waits) assignSignals(ctx context.Context, all []*scan) error {
	ids := make([]flow.ID, len(all))
	for i, l := range all {
		ids[i] = l.wait.Execution
	}
	on, err := txn.In(ctx, k.Decide, ids, func(ctx context.Context, t txn.Tx) (on []*scan, err error) {
		stored, err := t.Store().WaitsOf(ctx, ids)
		if err != nil {
			return nil, err
		}
		storedByID := make(map[flow.ID]flow.Wait, len(stored))
		for _, w := range stored {
			storedByID[w.Execution] = w
		}
		for _, l := range all {
			d := t.Draft(l.wait.Execution)
			w, there := storedByID[l.wait.Execution]
			if changed, ok := txn.Part[part](t).put[l.wait.Execution]; ok {
				w = changed
			}
			if d == nil || d.Place != flow.Held || !there || w.Signal != 0 || w.Damage != "" || w.Attempt != l.wait.Attempt || !w.Since.Equal(l.wait.Since) {
				continue
			}
			took, err := take(ctx, t, d, w, l)
			switch {
			case err != nil:
				return nil, err
			case !took && len(l.fitting) > 0 && l.more:
				on = append(on, l)
			case !took && !w.Scanned:
				w.Scanned = true
				txn.Part[part](t).write(w)
			}
		}
		return on, nil
	})
	if err != nil {
		return err
	}
	budget := k.Budget
	again := on[:0]
	for _, l := range on {
		if err := k.findFitting(ctx, l, &budget); err != nil {
			return err
		}
		if l.unfinished {
			k.turns.Add(correlation{store.AsideScan, l.wait.Execution}, correlationProgress{signal: l.last})
			continue
		}
		again = append(again, l)
	}
	if len(again) > 0 {
		return k.assignSignals(ctx, again)
	}
	return nil
}

// take ends a wait with the first fitting signal that is not taken, and reports whether there was one.
func take(ctx context.Context, t txn.Tx, d *flow.Draft, w flow.Wait, l *scan) (bool, error) {
	if len(l.fitting) == 0 {
		return false, nil
	}
	workflowAttempt := store.WorkflowAttempt{ID: w.Workflow, Attempt: w.Attempt}
	numbers := make([]int64, len(l.fitting))
	for i := range l.fitting {
		numbers[i] = l.fitting[i].Number
	}
	p := txn.Part[part](t)
	taken, err := t.Store().Taken(ctx, workflowAttempt, numbers)
	if err != nil {
		return false, err
	}
	for i := range l.fitting {
		s := &l.fitting[i]
		key := takenSignal{workflowAttempt, s.Number}
		if p.taken[key] || slices.Contains(taken, s.Number) {
			continue
		}
		output, err := definition.SignalValue(s)
		if err != nil {
			continue // it has no value that could be taken
		}
		if err := d.Finish(flow.Completed, flow.Outcome{Output: output}, t.Now(), 0); err != nil {
			return false, err
		}
		if p.taken == nil {
			p.taken = map[takenSignal]bool{}
		}
		p.taken[key] = true
		w.Signal, w.Scanned = s.Number, true
		p.write(w)
		t.Changed(d)
		return true, nil
	}
	return false, nil
}

// scanBatch scans the signals for waits after an execution. last is the last of them; rest reports that there may be others.
func (k *Waits) scanBatch(ctx context.Context, after flow.ID) (last flow.ID, rest bool, err error) {
	unscanned, err := k.Store.UnscannedWaits(ctx, time.Now(), after, correlationsAtOnce)
	if err != nil {
		return after, false, err
	}
	var scans []*scan
	last, rest = after, len(unscanned) == correlationsAtOnce
	budget := k.Budget
	for i := range unscanned {
		if budget.Spent() {
			rest = true
			break
		}
		w := unscanned[i]
		if last = w.Execution; k.turns.Has(correlation{store.AsideScan, last}) {
			continue
		}
		l, own := newScan(w), k.Budget
		if err := k.find(ctx, l, &own); err != nil {
			return last, rest, err
		}
		budget.Compute(k.Budget.Work - own.Work)
		scans = append(scans, l)
	}
	_, err = k.applyScans(ctx, scans)
	return last, rest, err
}

// fits reports whether a signal fits a wait, or the wait cannot be read. asked is false if the wait's condition takes longer than a first
// scan may.
func (k *Waits) fits(w *flow.Wait, s *flow.Signal, budget *txn.Budget, turn bool) (fits, asked bool) {
	if w.Damage != "" {
		return true, true
	}
	if !turn && k.costly.Has(w.Execution.String()) {
		return false, false
	}
	work := definition.WorkWithin(definition.QuickWork)
	if turn {
		work = definition.WorkWithin(definition.SharedWork)
	}
	done, err := k.Crashes.Begin(CrashKind, w.Execution.String(), w.Trigger)
	if err != nil {
		return false, true
	}
	defer done()
	fits, err = k.Awaited.Fits(w, s, work)
	if w.If != "" {
		budget.Compute(work.Done + fixedWork)
		budget.Decode(len(s.Data) + len(w.Vars))
	}
	if !turn && work.Exceeded() {
		k.costly.Add(w.Execution.String())
		return false, false
	}
	return err == nil && fits, true
}

// CrashKind is the name of waits in the journal of evaluations that ended the process.
const CrashKind = "the wait of"

// fixedWork is the cost of evaluating any condition beside its expression, in operations.
const fixedWork = 100
