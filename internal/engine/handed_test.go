package engine

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// The engine decides a worker's report of an end without a read of the row, if it has handed the execution to that worker itself. If the
// row has changed meanwhile, for example by a cancel order, it decides by the row: no attempt follows a cancel.
func TestEndsOfKnownExecutions(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		h := r.worker()
		twice := Submission{Action: "noop", Retry: &flow.Retry{MaxAttempts: 2, Delay: time.Hour}}
		completes, fails := r.submit(Submission{Action: "noop"}), r.submit(twice)
		orderedHere, orderedElsewhere := r.submit(twice), r.submit(twice)
		work := h.take(4)
		other := r.replica(func(o *Options) { o.Uptime = nil })
		for id, by := range map[flow.ID]*Engine{orderedHere: r.e, orderedElsewhere: other} {
			if _, err := by.Cancel(r.ctx, id, "enough"); err != nil {
				t.Fatal(err)
			}
		}
		h.complete(work[0], "1")
		for _, a := range work[1:] {
			h.fail(a, "boom")
		}
		for id, want := range map[flow.ID]flow.Place{
			completes: flow.Finished, fails: flow.Delayed, orderedHere: flow.Finished, orderedElsewhere: flow.Finished,
		} {
			if x := r.get(id); x.Place != want {
				t.Errorf("%s is %s in place %v, not %v", id, x.Stage, x.Place, want)
			}
		}
	})
}
