package engine

import (
	"encoding/json"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
)

// TestWhySaysWhatAHandlerWaitsFor has the last note of the attempt in hand, and none of an earlier attempt's.
func TestWhySaysWhatAHandlerWaitsFor(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		h := r.worker()
		id := r.submit(Submission{Action: "noop", Retry: &flow.Retry{MaxAttempts: 2}})
		a := h.take(1)[0]
		note := func(i int64, data string) flow.Event {
			e := ev(&a, i, flow.EvProgress, nil)
			e.Data = json.RawMessage(data)
			return e
		}
		h.report(a, ev(&a, 0, flow.EvRunning, nil), note(1, `{"waiting":"0/3 nodes are available"}`), note(2, `{"percent":5}`), note(3, `[1]`))
		r.why(id, ", and waits: 0/3 nodes are available")
		h.report(a, note(4, `{"waiting":""}`))
		r.why(id, "!and waits")
		h.report(a, note(5, `{"waiting":"the image"}`), ev(&a, 6, flow.EvFailed, &flow.Outcome{Error: &flow.Error{Code: "oom", Message: "oom"}}))
		a = h.take(1)[0]
		h.report(a, ev(&a, 0, flow.EvRunning, nil))
		r.why(id, "on worker", "!and waits")
	})
}
