package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/admission"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// metered reports whether a draft that is due must first have a slot of its key's rate. It draws one for all its attempts.
func metered(d *flow.Draft) bool { return d.Rate.Key != "" && d.SlotAt.IsZero() }

// meterLock is the concurrency key that locks a rate's key.
func meterLock(r *flow.Request) string { return store.MeterLock + r.Rate.Key }

// loadMeters reads the meters of drafts that are due. The locks of their keys are held.
func (t *transaction) loadMeters(ctx context.Context, drafts []*flow.Draft) error {
	var keys []string
	for _, d := range drafts {
		if !metered(d) || !d.Due(t.now) {
			continue
		}
		if _, known := t.loaded.meters[d.Rate.Key]; !known {
			keys = append(keys, d.Rate.Key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	found, err := t.tx.Meters(ctx, keys)
	if err != nil {
		return err
	}
	if t.loaded.meters == nil {
		t.loaded.meters = map[string]time.Time{}
	}
	for _, key := range keys {
		t.loaded.meters[key] = found[key]
	}
	return nil
}

// meter draws a slot of its key's rate for a draft that is due. It reports whether the draft goes on now: otherwise it waits for its slot, or
// has ended because it does not want to wait.
func (t *transaction) meter(d *flow.Draft) (goes bool, err error) {
	r := &d.Rate
	begin, tat := admission.Reserve(t.loaded.meters[r.Key], t.now, r.Limit, r.Per, r.Burst)
	if begin.After(t.now) && r.Over == flow.OverDrop {
		return false, d.Finish(flow.Cancelled, flow.Outcome{Error: &flow.Error{
			Code:    flow.CodeRateExceeded,
			Message: fmt.Sprintf("the rate of key %q is used up until %s (%s), and over is drop", r.Key, begin.UTC().Format(time.RFC3339), r.Text()),
		}}, t.now, 0)
	}
	t.loaded.meters[r.Key] = tat
	if t.changes.meters == nil {
		t.changes.meters = map[string]time.Time{}
	}
	t.changes.meters[r.Key] = tat
	d.Slot(begin, t.now)
	return !begin.After(t.now), nil
}

// writeMeters writes the meters that have changed.
func (t *transaction) writeMeters(ctx context.Context) error {
	if len(t.changes.meters) == 0 {
		return nil
	}
	all := t.changes.meters
	t.changes.meters = nil
	return t.tx.Apply(ctx, store.Delta{Meters: all})
}

// sweepMeters deletes meters, the locks of meters and windows, shares of lines, notes of what was put aside, outcomes that are kept no longer, and
// ticks that retention does not keep: once a minute, and less often while there are none.
func (e *Engine) sweepMeters(ctx context.Context) {
	rest := newTidying(purgeEvery, tidyAtMost)
	for pause := rest.least; ; {
		select {
		case <-time.After(e.jittered(pause)):
		case <-ctx.Done():
			return
		}
		some := false
		old := func(of store.Outdated) func(context.Context) (int, error) {
			return func(ctx context.Context) (int, error) { return e.dropOld(ctx, of) }
		}
		for _, drop := range []func(context.Context) (int, error){old(store.OldMeters), e.dropLocks, old(store.OldShares), old(store.OldAsides), e.dropKept, old(store.OldTicks)} {
			dropped, err := drop(ctx)
			if err != nil && ctx.Err() == nil {
				e.opts.Log.Error("removing what is left of rates, windows, lines, asides, kept outcomes and ticks failed; it will be tried again", telemetry.Err, err)
			}
			some = some || dropped > 0 || err != nil
		}
		pause = rest.next(some)
	}
}

// dropLocks deletes the locks of meters and windows that are gone. It does not tell how many: those of meters go with them.
func (e *Engine) dropLocks(ctx context.Context) (int, error) {
	for last := ""; ; {
		err := e.update(ctx, func(ctx context.Context, tx store.Tx) error {
			next, err := tx.DropLocks(ctx, last, oldAtOnce)
			if err == nil {
				last = next
			}
			return err
		})
		if err != nil || last == "" {
			return 0, err
		}
	}
}

const (
	// sharesKept is for how long the shares of a line are kept that nothing comes to any more.
	sharesKept = time.Hour
	// oldAtOnce is how many rows one transaction drops.
	oldAtOnce = 1000
)

// keptFor is for how long rows of a kind are kept; 0: for good.
func (e *Engine) keptFor(of store.Outdated) time.Duration {
	switch of {
	case store.OldAsides:
		return asidesKept
	case store.OldMeters:
		return time.Minute
	case store.OldShares:
		return sharesKept
	case store.OldTicks:
		return e.opts.Retention
	}
	return 0
}

// dropOld deletes rows of a kind that are of no use any more.
func (e *Engine) dropOld(ctx context.Context, of store.Outdated) (int, error) {
	age := e.keptFor(of)
	if age <= 0 {
		return 0, nil
	}
	return e.dropAll(ctx, func(ctx context.Context, tx store.Tx, now time.Time) (int, error) {
		return tx.DropOld(ctx, of, now.Add(-age), oldAtOnce)
	})
}

// dropKept deletes outcomes of the cache that have expired, and those that are too many.
func (e *Engine) dropKept(ctx context.Context) (int, error) {
	return e.dropAll(ctx, func(ctx context.Context, tx store.Tx, now time.Time) (int, error) {
		return tx.DropKept(ctx, now, keptMost, oldAtOnce)
	})
}

// dropAll deletes some rows in each transaction, until there are fewer than oldAtOnce.
func (e *Engine) dropAll(ctx context.Context, some func(context.Context, store.Tx, time.Time) (int, error)) (all int, err error) {
	for {
		dropped := 0
		err := e.update(ctx, func(ctx context.Context, tx store.Tx) error {
			now, err := tx.Now(ctx)
			if err == nil {
				dropped, err = some(ctx, tx, now)
			}
			return err
		})
		if all += dropped; err != nil || dropped < oldAtOnce {
			return all, err
		}
	}
}
