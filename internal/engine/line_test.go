package engine

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// A wait list that one transaction cannot admit completely continues in the next ones.
func TestLongLine(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		ids := []flow.ID{r.submit(Submission{Action: "noop", Key: "k", KeyLimit: 1}), r.submit(Submission{Action: "noop", Key: "k", KeyLimit: 1})}
		for range 25 {
			ids = append(ids, r.submit(Submission{Action: "noop", Key: "k", KeyLimit: 1000}))
		}
		h := r.worker()
		held := h.take(100)
		if len(held) != 1 {
			r.Fatalf("%d of one are held", len(held))
		}
		h.complete(held[0], "1")
		h.complete(h.take(100)[0], "1") // the head, alone or with the others
		r.within(time.Minute, "the line does not go on", func() bool {
			for _, id := range ids {
				if r.get(id).Place == flow.Waiting {
					return false
				}
			}
			return true
		})
	}, func(o *Options) { o.Rows = 3 })
}
