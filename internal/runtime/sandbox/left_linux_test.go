package sandbox

import (
	"flag"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime/runtimetest"
)

var leftRuns = flag.Int("sandbox.runs", 100, "how many runs TestNothingLeft has in each configuration")

// TestNothingLeft compares the host before and after many runs: cold, from a pool, and without cgroups.
func TestNothingLeft(t *testing.T) {
	for name, options := range map[string]Options{"cold": {}, "warm": {Warm: 4}, "without cgroups": {WithoutCgroups: true}} {
		t.Run(name, func(t *testing.T) { runtimetest.NothingLeft(t, factory(options), *leftRuns) })
	}
}
