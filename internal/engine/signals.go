package engine

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/automation"
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
	for {
		pause := e.jittered(purgePause(e.shortestKeep()))
		switch dropped, err := e.dropSignals(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			e.opts.Log.Error("removing old signals failed; it will be tried again", telemetry.Err, err)
		case dropped > 0:
			pause = signalsRest
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
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

// dropSignals removes some of the signals of each trigger that retention does not keep, and returns how many.
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
		for _, o := range all {
			after = o.Trigger
			keep := e.keepOf(set, o.Trigger)
			if before := now.Add(-keep); keep > 0 && o.At.Before(before) {
				n, err := e.dropOf(ctx, o.Trigger, before)
				dropped += n
				if err != nil && refused(err) { // the signals of the other triggers go
					e.counters.skipped.Add(1)
					e.opts.Log.Error("old signals of a trigger cannot be removed: they stay", "trigger", o.Trigger, telemetry.Err, err)
					err = nil
				}
				if err != nil {
					return dropped, err
				}
			}
		}
		if len(all) < triggersAtOnce {
			return dropped, nil
		}
	}
}

func (e *Engine) dropOf(ctx context.Context, trigger string, before time.Time) (dropped int, err error) {
	err = e.update(ctx, func(ctx context.Context, tx store.Tx) error {
		dropped, err = tx.DropSignals(ctx, trigger, before, signalsAtOnce)
		return err
	})
	return dropped, err
}
