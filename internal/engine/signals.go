package engine

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/automation"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	// signalsAtOnce is how many signals and enforcements, or pages of their data, one transaction of retention removes: about 10 ms on SQLite.
	signalsAtOnce = 500
	signalsRest   = 20 * time.Millisecond // between two of these: other requests are committed meanwhile
)

// triggersAtOnce is how many triggers are checked together for signals to remove.
const triggersAtOnce = 500

// sweepSignals removes signals older than their retention: that of their trigger's document, or else the setting. It checks each trigger in
// an index, so that signals with a long retention do not delay the removal of others.
func (e *Engine) sweepSignals(ctx context.Context) {
	var keep time.Duration
	var rest *tidying
	loop.Repeat(ctx, e.opts.Log, "removing old signals", purgeEvery, nil, func(ctx context.Context) (time.Duration, error) {
		if shortest := e.shortestKeep(); rest == nil || shortest != keep {
			keep, rest = shortest, newTidying(purgePause(shortest), min(tidyAtMost, shortest/purgePart))
		}
		dropped, err := e.dropSignals(ctx)
		if dropped > 0 {
			rest.next(true)
			return signalsRest, err
		}
		return e.jittered(rest.next(false)), err
	})
}

// keepOf is how long the signals of a trigger are kept; 0: for ever, also if this server cannot read its document.
func (e *Engine) keepOf(set *automation.Set, trigger string) time.Duration {
	switch k := set.Triggers[trigger]; {
	case set.Unread[trigger]:
		return 0
	case k != nil && k.Keep > 0:
		return k.Keep
	}
	return e.opts.SignalRetention
}

// shortestKeep is the shortest retention of any trigger; a long time if all are kept for ever.
func (e *Engine) shortestKeep() time.Duration {
	const never = 24 * time.Hour
	shortest := e.opts.SignalRetention
	if shortest <= 0 {
		shortest = never
	}
	if set := e.rules.current.Load(); set != nil {
		for _, t := range set.Triggers {
			if t.Keep > 0 {
				shortest = min(shortest, t.Keep)
			}
		}
	}
	return shortest
}

// dropRounds is how often one pass of retention returns to a trigger with more to remove before it continues with others.
const dropRounds = 20

// dropSignals removes old signals, some of each trigger in turn, and returns how many. It pauses between two transactions. It checks each
// trigger once, and returns only to those of which it has removed some.
func (e *Engine) dropSignals(ctx context.Context) (dropped int, err error) {
	set, err := e.rulesInForce(ctx)
	if err != nil {
		return 0, err
	}
	now, err := e.now(ctx)
	if err != nil {
		return 0, err
	}
	for after := ""; ; {
		all, err := e.opts.Store.OldestSignals(ctx, after, triggersAtOnce)
		if err != nil {
			return dropped, err
		}
		var old []string
		for _, o := range all {
			after = o.Trigger
			if keep := e.keepOf(set, o.Trigger); keep > 0 && o.At.Before(now.Add(-keep)) {
				old = append(old, o.Trigger)
			}
		}
		for round := 0; round < dropRounds && len(old) > 0; round++ {
			n := 0
			if n, old, err = e.dropSome(ctx, old, func(trigger string) time.Time { return now.Add(-e.keepOf(set, trigger)) }); err != nil {
				return dropped + n, err
			}
			dropped += n
		}
		if len(all) < triggersAtOnce {
			return dropped, nil
		}
	}
}

// dropSome removes some signals of each trigger, and returns their number and the triggers that may have more.
func (e *Engine) dropSome(ctx context.Context, triggers []string, before func(trigger string) time.Time) (dropped int, more []string, err error) {
	for _, trigger := range triggers {
		n, err := e.dropOf(ctx, trigger, before(trigger))
		dropped += n
		switch {
		case err != nil && fault.Lasting(err): // the signals of the other triggers are removed
			e.counters.skipped.Add(1)
			e.opts.Log.Error("old signals of a trigger cannot be removed: they stay", "trigger", trigger, telemetry.Err, err)
			continue
		case err != nil:
			return dropped, nil, err
		case n == 0:
			continue
		}
		more = append(more, trigger)
		if !loop.Sleep(ctx, signalsRest, nil) {
			return dropped, nil, ctx.Err()
		}
	}
	return dropped, more, nil
}

func (e *Engine) dropOf(ctx context.Context, trigger string, before time.Time) (dropped int, err error) {
	err = e.update(ctx, func(ctx context.Context, tx store.Tx) error {
		dropped, err = tx.DropSignals(ctx, trigger, before, signalsAtOnce)
		return err
	})
	return dropped, err
}
