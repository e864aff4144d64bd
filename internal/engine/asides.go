package engine

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	// asidesKept is how long a note about a row put aside is kept after its time. A loop that finds the row again puts it aside for ten
	// minutes at the most.
	asidesKept = time.Hour
)

// leaveAside puts a signal, or the wait of an execution, aside because a decision about it was refused or its row cannot be read. The loop
// tries it again later and continues with other rows now. The times are those of this process. The error is one of the store; if a row
// cannot be put aside, that is counted and the row is skipped. aside reports whether the row is aside now.
func (e *Engine) leaveAside(ctx context.Context, kind store.AsideKind, id flow.ID, why error) (aside bool, err error) {
	now := time.Now().UTC().Truncate(time.Microsecond)
	before, err := e.opts.Store.Aside(ctx, kind, id)
	last := &before
	switch {
	case errors.Is(err, store.ErrNotFound):
		last = nil
	case err != nil:
		return false, err
	case before.Until.After(now):
		return true, nil // by another server, or found by a loop that does not check for it
	}
	a := store.Aside{Kind: kind, ID: id, Aside: *last.Again(why.Error(), now)}
	err = e.do(ctx, nil, func(_ context.Context, t *transaction) error {
		rows := t.changes.add()
		rows.Asides = append(rows.Asides, a)
		return nil
	})
	prefix := flow.SignalPrefix
	if kind == store.AsideScan {
		prefix = ""
	}
	log := e.opts.Log.With(telemetry.Row, id.Text(prefix))
	switch {
	case err == nil:
		e.counters.aside.Add(1)
		log.Error("a signal or a wait was put aside: a decision about it was refused", "until", a.Until, "times", a.Times, telemetry.Why, a.Reason)
	case fault.Lasting(err):
		e.counters.skipped.Add(1)
		log.Error("a signal or a wait can neither be decided about nor be put aside; it will be tried again", telemetry.Err, errors.Join(why, err))
		return false, nil
	}
	return err == nil, err
}
