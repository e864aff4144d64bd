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
	// signalsAtOnce is how many signals and enforcements one transaction of retention removes, or a page of their data: about 10 ms on
	// SQLite.
	signalsAtOnce = 500
	signalsRest   = 20 * time.Millisecond // between two of these: commits of others go between
)

// triggersAtOnce is how many triggers are looked at together for whether retention removes something of them.
const triggersAtOnce = 500

// sweepSignals removes the signals that retention does not keep: of each trigger by what its document says, or else the setting. Triggers
// are looked at one by one, in an index, so that signals which are kept for long do not stand in the way of others.
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

// keepOf is how long the signals of a trigger are kept; 0: for ever, as those are of which this server cannot read how long.
func (e *Engine) keepOf(set *automation.Set, trigger string) time.Duration {
	switch k := set.Triggers[trigger]; {
	case set.Unread[trigger]:
		return 0
	case k != nil && k.Keep > 0:
		return k.Keep
	}
	return e.opts.SignalRetention
}

// shortestKeep is the shortest time for which signals of some trigger are kept; where all are kept for ever it is a long one.
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

// dropRounds is how often one pass of retention comes to a trigger of which there is more to remove before it goes on to others.
const dropRounds = 20

// dropSignals removes signals that retention does not keep, some of each trigger in turn, and returns how many. Between two transactions
// it rests. It looks at each trigger once, and comes back only to those of which it has removed something.
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

// dropSome removes some signals of each trigger, and returns how many, and the triggers of which there may be more.
func (e *Engine) dropSome(ctx context.Context, triggers []string, before func(trigger string) time.Time) (dropped int, more []string, err error) {
	for _, trigger := range triggers {
		n, err := e.dropOf(ctx, trigger, before(trigger))
		dropped += n
		switch {
		case err != nil && fault.Lasting(err): // the signals of the other triggers go
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
