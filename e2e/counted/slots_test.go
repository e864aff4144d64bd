package counted

import (
	"testing"

	sqlitestore "github.com/pawl-run/pawl/internal/store/sqlite"
)

// defaultSlots is a worker's default number of slots on a machine with four processors.
const defaultSlots = 4

// Executions that need no worker take no slots: with few slots, instant executions take hardly more commits than with many.
func TestInstantKindsTakeNoSlots(t *testing.T) {
	if raceEnabled {
		return // TestCounts runs the tests of this package once more without it
	}
	for _, w := range workloads {
		if w.name != "noops" && w.name != "chains" {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			few, many := commitsWith(t, w, defaultSlots), commitsWith(t, w, 64)
			t.Logf("commits each: %.4f with %d slots, %.4f with 64", few, defaultSlots, many)
			if few > 1.25*many { // chains depend on timing; without the rule it is 13 times as many
				t.Errorf("%.4f commits each with %d slots, and %.4f with 64", few, defaultSlots, many)
			}
		})
	}
}

// commitsWith returns how many commits one execution of a workload costs on SQLite with so many slots; the lower of two counts.
func commitsWith(t *testing.T, w workload, slots int) float64 {
	t.Helper()
	var least float64
	for range 2 {
		t.Run("run", func(t *testing.T) {
			counts := trace(t)
			s, err := sqlitestore.Open(t.Context(), sqlitestore.InMemory, sqlitestore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			var before int64
			commits := 0.0
			serve(t, s, 1, slots).run(w, func() { before = counts.commits.Load() }, func() {
				commits += float64(counts.commits.Load()-before) / float64(w.count*max(w.rounds, 1))
			})
			if least == 0 || commits < least {
				least = commits
			}
		})
	}
	return least
}
