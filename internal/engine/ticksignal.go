package engine

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

type tickData struct {
	Schedule string `json:"schedule"`
	definition.Tick
	Execution flow.ID `json:"execution"` // started by the tick
}

// recordTick keeps a signal of a tick that has started an execution, if a rule listens to the schedule: it exists exactly if the tick does.
// As for ends, another transaction evaluates the rules.
func (t *transaction) recordTick(ctx context.Context, d *definition.Definition, tick *store.Tick, previous time.Time) error {
	trigger := flow.TriggerTick + d.Name
	generation, ok := t.Listens(trigger)
	if !ok {
		return nil
	}
	s := flow.Signal{Trigger: trigger, Key: tick.Nominal.UTC().Format(time.RFC3339Nano), Subject: d.Name, Source: schedulePrefix + d.Name}
	known, err := t.tx.Signalled(ctx, []store.SignalKey{store.KeyOf(&s)})
	if err != nil || len(known) > 0 {
		return err
	}
	return t.Record(ctx, s, generation, tickData{d.Name, d.Schedule.TickOf(tick.Nominal, previous, tick.Why), tick.Execution})
}
