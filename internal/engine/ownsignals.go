package engine

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/wirejson"
)

// Record keeps one of Pawl's own signals (flow.OwnTrigger) in the transaction of its cause, so that it exists exactly if the cause does:
// the end of an execution, the tick of a schedule, the pause of a rule, a change of an inquiry. The rules, of the given generation, are
// evaluated in another transaction. A signal with a key that this transaction has kept before is skipped: its cause was decided about
// twice.
func (t *transaction) Record(ctx context.Context, s flow.Signal, generation int64, data any) (err error) {
	signals := txn.Part[keptSignals](t)
	if _, said := signals.keys[store.KeyOf(&s)]; said && s.Key != "" {
		return nil
	}
	if s.Data, err = wirejson.Marshal(data); err != nil {
		return fmt.Errorf("describe signal %s about %q: %w", s.Trigger, s.Subject, err)
	}
	s.ID, s.State, s.Generation, s.Hash = t.e.opts.NewID(), flow.SignalNew, generation, sha256.Sum256(s.Data)
	signals.unasked = true
	return t.keepSignal(ctx, &s)
}
