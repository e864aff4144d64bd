package histories_test

import (
	"errors"
	"testing"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/engine/enginetest"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/replay"
)

// A history beyond the bound is not read into memory: a caller is refused, and a replay of all histories counts it as unknown and
// continues.
func TestLongHistoriesAreNotReplayed(t *testing.T) {
	r := enginetest.OnSQLite(t)
	h := r.Worker()
	short := r.Submit(engine.Submission{Action: "noop"})
	long := r.Submit(engine.Submission{Action: "noop"})
	for _, a := range h.Take(2) {
		if a.Execution == long {
			h.Report(a, enginetest.Event(&a, 0, flow.EvRunning, nil), enginetest.Event(&a, 1, flow.EvCompleted, &flow.Outcome{}))
		}
	}
	all := r.Engine.Histories()
	all.Most = r.Get(short).NextSeq - 1
	var refused *fault.Invalid
	if _, err := all.Replay(r.Ctx, long, 0); !errors.As(err, &refused) {
		t.Errorf("replay: %v", err)
	}
	if _, err := all.Compare(r.Ctx, long, &definition.Definition{}); !errors.As(err, &refused) {
		t.Errorf("compare: %v", err)
	}
	unknown := map[flow.ID]int{}
	if err := all.All(r.Ctx, func(id flow.ID, res *replay.Result) { unknown[id] = len(res.Unknown) }); err != nil {
		t.Fatal(err)
	}
	if len(unknown) != 2 || unknown[short] != 0 || unknown[long] != 1 {
		t.Errorf("replay of all: %v", unknown)
	}
}
