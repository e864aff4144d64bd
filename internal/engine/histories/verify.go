package histories

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/replay"
	"github.com/pawl-run/pawl/internal/store"
)

// InvariantReplay is the number, in docs/invariants.md, of the promise that histories follow from the rules.
const InvariantReplay = 61

// mostViolations is how many findings of a replay are kept.
const mostViolations = 1000

// Replayed is the result of a replay of all histories.
type Replayed struct {
	Executions, Events, Unknown int
	Broken                      []store.Violation
}

// Verify replays every history of the store.
func (h *Histories) Verify(ctx context.Context) (*Replayed, error) {
	r := &Replayed{}
	err := h.All(ctx, func(id flow.ID, res *replay.Result) {
		r.Executions++
		r.Events += res.Events
		if len(res.Unknown) > 0 {
			r.Unknown++
		}
		for _, f := range res.Findings {
			if len(r.Broken) == mostViolations {
				return
			}
			where := ""
			if f.Task != "" {
				where = " of " + orchestration.Item{Task: f.Task, Index: f.Index}.Text()
			}
			r.Broken = append(r.Broken, store.Violation{Invariant: InvariantReplay, Execution: id,
				Say: fmt.Sprintf("event %d%s: by the rules %s, recorded %s: %s", f.Seq, where, f.Rules, f.Recorded, f.Why)})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("replay the histories: %w", err)
	}
	return r, nil
}
