package simulation

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

var (
	oneSeed  = flag.Uint64("sim.seed", 0, "run only this seed")
	seeds    = flag.Int("sim.seeds", 0, "how many seeds to run (0: 2000, with the race detector 200)")
	firstOne = flag.Uint64("sim.first", 1, "the first seed")
	verbose  = flag.Bool("sim.v", false, "print the whole trace")
)

// TestSimulation runs many seeds and fails with those that broke a promise.
func TestSimulation(t *testing.T) {
	if *oneSeed != 0 {
		r := runSeed(t, *oneSeed, nil, true)
		if *verbose {
			t.Log("\n" + strings.Join(r.trace, "\n"))
		}
		report(t, r)
		t.Logf("seed %d: %d steps, %d commits, %d executions, %d attempts, %s simulated, faults %v", r.seed, r.steps, r.commits, r.executions, r.attempts, r.simulated, r.faults)
		return
	}
	n := *seeds
	if n == 0 {
		n = defaultSeeds
	}
	if testing.Short() {
		n = min(n, 200)
	}
	var mu sync.Mutex
	total := result{faults: map[string]int{}}
	t.Cleanup(func() {
		t.Logf("%d seeds: %d steps, %d commits, %d executions, %d attempts, %s simulated, faults %v", n, total.steps, total.commits, total.executions, total.attempts, total.simulated, total.faults)
	})
	shards := runtime.GOMAXPROCS(0)
	for shard := range shards {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			for i := shard; i < n && !t.Failed(); i += shards {
				r := runSeed(t, *firstOne+uint64(i), nil, false)
				report(t, r)
				mu.Lock()
				total.add(r)
				mu.Unlock()
			}
		})
	}
}

func (r *result) add(o *result) {
	r.steps += o.steps
	r.commits += o.commits
	r.executions += o.executions
	r.attempts += o.attempts
	r.simulated += o.simulated
	for k, n := range o.faults {
		r.faults[k] += n
	}
}

// runSeed runs one seed in a bubble of its own.
func runSeed(t *testing.T, seed uint64, b *bug, trace bool) (r *result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if r, err = simulate(seed, b, trace); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	})
	return r
}

func report(t *testing.T, r *result) {
	t.Helper()
	if len(r.broken) == 0 {
		return
	}
	t.Errorf("%s\nreplay: go test ./e2e/simulation -run 'TestSimulation$' -sim.seed %d -sim.v", r.broken[0], r.seed)
}

// TestReplay runs seeds twice: the same seed must give the same schedule.
func TestReplay(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= 25; seed++ {
		a, b := runSeed(t, seed, nil, true), runSeed(t, seed, nil, true)
		if a.sum == b.sum {
			continue
		}
		for i := range a.trace {
			if i >= len(b.trace) || a.trace[i] != b.trace[i] {
				from := max(0, i-25)
				t.Fatalf("seed %d went two ways after line %d:\n%s\n\n%s", seed, i, strings.Join(a.trace[from:min(len(a.trace), i+5)], "\n"),
					strings.Join(b.trace[from:min(len(b.trace), i+5)], "\n"))
			}
		}
	}
}
