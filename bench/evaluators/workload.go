package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// program is one Python program. Its result is right if it exits with 0 and its standard output, without surrounding white space,
// is stdout.
type program struct {
	source string
	stdout string
	// imports is a module whose import takes most of the program's time; a peer with warm interpreters uses one that has imported it.
	imports string
	// problem is set for a program of HumanEval, for a harness that needs its parts.
	problem *problem
}

// problem is a line of HumanEval's file.
type problem struct {
	Prompt     string `json:"prompt"`
	EntryPoint string `json:"entry_point"`
	Solution   string `json:"canonical_solution"`
	Test       string `json:"test"`
}

// workload is run by one or more clients, each of which runs one program after another.
type workload struct {
	name     string
	clients  int
	programs []program
	cases    int // instead of programs: runs of one C++ program, shared by the clients
	metrics  []string
}

// The metrics. Processor time is that of the whole machine: of the peer, the programs and this client.
const (
	p50       = "p50 ms"
	p99       = "p99 ms"
	rate      = "per second"
	processor = "processor ms each"
)

func workloads(o options) ([]workload, error) {
	n := func(count int) int { return max(2, int(float64(count)*o.scale)) }
	printed := program{source: "print(1)\n", stdout: "1"}
	numpy := program{source: "import numpy\nprint(int(numpy.arange(10).sum()))\n", stdout: "45", imports: "numpy"}
	work := []workload{
		{name: "print(1), one at a time", clients: 1, programs: slices.Repeat([]program{printed}, n(200)), metrics: []string{p50}},
		{name: "print(1), 2 at a time", clients: 2, programs: slices.Repeat([]program{printed}, n(600)), metrics: []string{rate, processor}},
		{name: "print(1), 256 clients", clients: 256, programs: slices.Repeat([]program{printed}, n(1024)), metrics: []string{rate, p99}},
		{name: "1,000 cases of a C++ program, 2 at a time", clients: 2, cases: n(1000), metrics: []string{rate, processor}},
		{name: "import numpy, 2 at a time", clients: 2, programs: slices.Repeat([]program{numpy}, n(100)), metrics: []string{rate, processor}},
	}
	solutions, err := humanEval(o.problems)
	if err != nil {
		return nil, fmt.Errorf("-problems: %w", err)
	}
	return append(work, workload{name: "HumanEval's solutions, 2 at a time", clients: 2, programs: solutions[:min(len(solutions), n(164))],
		metrics: []string{rate, processor}}), nil
}

func humanEval(path string) ([]program, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []program
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var p problem
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(all)+1, err)
		}
		all = append(all, program{source: p.Prompt + p.Solution + "\n" + p.Test + "\ncheck(" + p.EntryPoint + ")\n", problem: &p})
	}
	return all, lines.Err()
}

// measure runs the workload on the peer, and returns its metrics. A program whose result is wrong is an error.
func (w workload) measure(ctx context.Context, p peer) (map[string]float64, error) {
	count := len(w.programs)
	if w.cases == 0 {
		if err := p.run(ctx, w.programs[0]); err != nil { // not measured: the first run fills caches
			return nil, err
		}
	} else {
		count = w.cases
	}
	took := make([]time.Duration, count)
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	began, busy := time.Now(), machineTime()
	for range w.clients {
		g.Go(func() error {
			if w.cases > 0 {
				return p.cases(ctx, w.cases/w.clients)
			}
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				start := time.Now()
				if err := p.run(ctx, w.programs[i]); err != nil {
					return err
				}
				took[i] = time.Since(start)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	elapsed, busy := time.Since(began), machineTime()-busy
	slices.Sort(took)
	figures := map[string]float64{
		p50: ms(took[count/2]), p99: ms(took[count*99/100]), rate: float64(count) / elapsed.Seconds(), processor: ms(busy) / float64(count),
	}
	for metric := range figures {
		if !slices.Contains(w.metrics, metric) {
			delete(figures, metric)
		}
	}
	return figures, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// machineTime is how long the machine's processors have worked since its start, from /proc/stat: the first line has the times
// of user, nice, system, idle, iowait, irq and softirq in hundredths of a second.
func machineTime() time.Duration {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	var sum time.Duration
	for i, word := range strings.Fields(line)[1:] {
		if i == 3 || i == 4 || i > 6 {
			continue
		}
		n, _ := strconv.ParseInt(word, 10, 64) // the kernel writes digits
		sum += time.Duration(n) * 10 * time.Millisecond
	}
	return sum
}
