package simulation

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
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
	update   = flag.Bool("update", false, "write testdata/caught.txt: which seed catches each planted bug")
	part     = flag.String("sim.part", "", "which part of the seeds, or of the planted bugs, this process runs, as 0/2; set by the tests themselves")
)

// TestMain lets only one goroutine of this process run at a time. The simulation's scheduler then decides everything, down to the order in
// which the goroutines that one commit woke continue.
func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}

// TestSimulation runs many seeds, in one process per core, and fails with those that broke a promise.
func TestSimulation(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = defaultSeeds
	}
	switch {
	case *oneSeed != 0:
		replaySeed(t)
	case *part != "":
		runPart(t, n)
	default:
		runAll(t, n)
	}
}

func replaySeed(t *testing.T) {
	r := runSeed(t, *oneSeed, nil, true)
	if *verbose {
		t.Log("\n" + strings.Join(r.trace, "\n"))
	}
	report(t, r)
	t.Logf("seed %d: %s", r.seed, r)
}

// totals begins the line in which a process reports its counts to its parent.
const totals = "simulated: "

func runPart(t *testing.T, n int) {
	total := result{Faults: map[string]int{}}
	for i, of := partOf(t); i < n && !t.Failed(); i += of {
		r := runSeed(t, *firstOne+uint64(i), nil, false)
		report(t, r)
		total.add(r)
	}
	line, err := json.Marshal(total)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s%s\n", totals, line)
}

func runAll(t *testing.T, n int) {
	total := result{Faults: map[string]int{}}
	for line := range strings.Lines(inParts(t, fmt.Sprintf("-sim.seeds=%d", n), fmt.Sprintf("-sim.first=%d", *firstOne))) {
		var part result
		if text, ok := strings.CutPrefix(line, totals); ok && json.Unmarshal([]byte(text), &part) == nil {
			total.add(&part)
		}
	}
	t.Logf("%d seeds: %s", n, &total)
	if !t.Failed() && total.Seeds != n {
		t.Errorf("%d seeds were run, not %d", total.Seeds, n)
	}
}

// inParts runs the test again in one process per core, and returns their output.
func inParts(t *testing.T, args ...string) string {
	t.Helper()
	parts := runtime.NumCPU()
	printed := make([]string, parts)
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() {
			out, err := exec.CommandContext(t.Context(), os.Args[0], slices.Concat([]string{"-test.run=^" + t.Name() + "$", "-test.timeout=0", fmt.Sprintf("-sim.part=%d/%d", i, parts)}, args)...).CombinedOutput()
			if printed[i] = string(out); err != nil {
				t.Errorf("part %d: %v\n%s", i, err, out)
			}
		})
	}
	all.Wait()
	return strings.Join(printed, "")
}

// partOf returns which part of the seeds this process runs, and of how many.
func partOf(t *testing.T) (i, of int) {
	t.Helper()
	if _, err := fmt.Sscanf(*part, "%d/%d", &i, &of); err != nil {
		t.Fatalf("-sim.part %q: %v", *part, err)
	}
	return i, of
}

func (r *result) String() string {
	return fmt.Sprintf("%d steps, %d commits, %d executions, %d attempts, %s simulated, faults %v", r.Steps, r.Commits, r.Executions, r.Attempts, r.Simulated, r.Faults)
}

func (r *result) add(o *result) {
	r.Seeds += o.Seeds
	r.Steps += o.Steps
	r.Commits += o.Commits
	r.Executions += o.Executions
	r.Attempts += o.Attempts
	r.Simulated += o.Simulated
	for k, n := range o.Faults {
		r.Faults[k] += n
	}
}

// runSeed runs one seed in a synctest bubble of its own.
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
	if raceEnabled {
		t.Skip("the race detector shuffles goroutines")
	}
	for seed := uint64(1); seed <= 40; seed++ {
		a, b := runSeed(t, seed, nil, true), runSeed(t, seed, nil, true)
		// On a busy machine Go's scheduler treats a goroutine whose thread was stopped as one that runs too long, and lets others go first. That
		// is rare: most runs of a seed are the same. Where several sessions look for orders in one instant, as in seeds 2 and 20, there are two
		// or three possible schedules; the test then accepts any two equal runs of six.
		ways := map[uint64]bool{a.sum: true}
		for again := 0; !ways[b.sum] && again < 4; again++ {
			ways[b.sum] = true
			a, b = b, runSeed(t, seed, nil, true)
		}
		if ways[b.sum] {
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
