package loadtest

import (
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
)

// The check of bench must be able to find faults in histories.
func TestJudgeFindsBrokenHistories(t *testing.T) {
	t.Parallel()
	history := func(types ...flow.EventType) []flow.Event {
		var all []flow.Event
		attempt := 0
		for i, typ := range types {
			if typ == flow.EvRequested {
				attempt++
			}
			all = append(all, flow.Event{Seq: int64(i + 1), Attempt: attempt, Type: typ})
		}
		return all
	}
	good := history(flow.EvRequested, flow.EvWaiting, flow.EvScheduled, flow.EvProvisioning, flow.EvRunning, flow.EvFailed,
		flow.EvRequested, flow.EvScheduled, flow.EvProvisioning, flow.EvRunning, flow.EvProgress, flow.EvCompleted)
	if ok, ends := judge(good); !ok || ends != 1 {
		t.Errorf("a good history: in order %v, ends %d", ok, ends)
	}
	gap := history(flow.EvRequested, flow.EvScheduled, flow.EvProvisioning)
	gap[2].Seq = 4
	attempt := history(flow.EvRequested, flow.EvScheduled)
	attempt[1].Attempt = 2
	for name, events := range map[string][]flow.Event{
		"gap":     gap,
		"attempt": attempt,
		"skipped": history(flow.EvRequested, flow.EvScheduled, flow.EvRunning),
		"twice":   history(flow.EvRequested, flow.EvScheduled, flow.EvProvisioning, flow.EvRunning, flow.EvCompleted, flow.EvCompleted),
		"begins":  history(flow.EvRunning),
	} {
		if ok, _ := judge(events); ok {
			t.Errorf("%s: a broken history was found to be in order", name)
		}
	}
}
