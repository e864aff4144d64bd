package engine

import (
	"errors"
	"testing"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/replay"
)

// A history beyond the bound takes no memory: a caller is refused, and a replay of all histories counts it as not known and goes on.
func TestLongHistoriesAreNotReplayed(t *testing.T) {
	r := newRig(t)
	h := r.worker()
	short := r.submit(Submission{Action: "noop"})
	long := r.submit(Submission{Action: "noop"})
	for _, a := range h.take(2) {
		if a.Execution == long {
			h.report(a, ev(&a, 0, flow.EvRunning, nil), ev(&a, 1, flow.EvCompleted, &flow.Outcome{}))
		}
	}
	histories := r.e.Histories()
	histories.Most = r.get(short).NextSeq - 1
	var refused *fault.Invalid
	if _, err := histories.Replay(r.ctx, long, 0); !errors.As(err, &refused) {
		t.Errorf("replay: %v", err)
	}
	if _, err := histories.Compare(r.ctx, long, &definition.Definition{}); !errors.As(err, &refused) {
		t.Errorf("compare: %v", err)
	}
	unknown := map[flow.ID]int{}
	if err := histories.All(r.ctx, func(id flow.ID, res *replay.Result) { unknown[id] = len(res.Unknown) }); err != nil {
		t.Fatal(err)
	}
	if len(unknown) != 2 || unknown[short] != 0 || unknown[long] != 1 {
		t.Errorf("replay of all: %v", unknown)
	}
}
