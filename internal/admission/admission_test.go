package admission

import (
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
	"pgregory.net/rapid"
)

// With any arrivals, departures and changes, holders never exceed the limit, and no slot stays free while an execution waits.
func TestLimitHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, holders, waiting := rapid.IntRange(1, 5).Draw(t, "limit"), 0, 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			before := holders
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				switch Arrive(holders, waiting, limit, flow.WhenFullQueue) {
				case Admit:
					holders++
				case Wait:
					waiting++
				}
			case 1:
				holders = max(0, holders-1)
			case 2:
				limit = rapid.IntRange(1, 5).Draw(t, "limit")
			}
			n := Admissible(holders, waiting, limit)
			holders, waiting = holders+n, waiting-n
			if holders > limit && holders > before {
				t.Fatalf("%d holders over limit %d", holders, limit)
			}
			if waiting > 0 && holders < limit {
				t.Fatalf("%d wait while %d of %d slots are free", waiting, limit-holders, limit)
			}
		}
	})
}
