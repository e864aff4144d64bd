package why_test

import (
	"encoding/json"
	"testing"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/engine/enginetest"
	"github.com/pawl-run/pawl/internal/flow"
)

// TestWhySaysWhatAHandlerWaitsFor checks that the answer has the last note of the running attempt, and none of an earlier one.
func TestWhySaysWhatAHandlerWaitsFor(t *testing.T) {
	t.Parallel()
	enginetest.OnEachStore(t, func(r *enginetest.Rig) {
		h := r.Worker()
		id := r.Submit(engine.Submission{Action: "noop", Retry: &flow.Retry{MaxAttempts: 2}})
		a := h.Take(1)[0]
		note := func(i int64, data string) flow.Event {
			e := enginetest.Event(&a, i, flow.EvProgress, nil)
			e.Data = json.RawMessage(data)
			return e
		}
		h.Report(a, enginetest.Event(&a, 0, flow.EvRunning, nil), note(1, `{"waiting":"0/3 nodes are available"}`), note(2, `{"percent":5}`), note(3, `[1]`))
		explained(r, id, ", and waits: 0/3 nodes are available")
		h.Report(a, note(4, `{"waiting":""}`))
		explained(r, id, "!and waits")
		h.Report(a, note(5, `{"waiting":"the image"}`), enginetest.Event(&a, 6, flow.EvFailed, &flow.Outcome{Error: &flow.Error{Code: "oom", Message: "oom"}}))
		a = h.Take(1)[0]
		h.Report(a, enginetest.Event(&a, 0, flow.EvRunning, nil))
		explained(r, id, "on worker", "!and waits")
	})
}
