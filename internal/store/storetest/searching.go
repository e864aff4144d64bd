package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// BenchmarkSearches measures lists by each kind of filter, as the API asks for them, on a store in which twenty executions have the action "rare" and
// the label set=rare, half of the others the label set=half, and none has ended badly or is under way.
func BenchmarkSearches(b *testing.B, s store.Store) {
	for say, f := range map[string]store.Filter{
		"newest": {}, "top level": {TopLevel: true}, "action": {Action: "rare"}, "rare label": {Labels: map[string]string{"set": "rare"}},
		"half label": {Labels: map[string]string{"set": "half"}}, "half label, action": {Labels: map[string]string{"set": "half"}, Action: "rare"},
		"verdict": {Verdicts: []string{"oom"}}, "running": {Stages: []flow.Stage{flow.Provisioning, flow.Running}},
		"failed": {Stages: []flow.Stage{flow.Failed, flow.TimedOut}}, "time": {Until: time.Unix(1, 0)},
	} {
		b.Run(say, func(b *testing.B) {
			f.Limit, f.Reach = 100, 40_000
			var took []time.Duration
			for b.Loop() {
				begun := time.Now()
				if _, err := s.Search(b.Context(), f); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
