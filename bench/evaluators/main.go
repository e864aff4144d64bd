// Command evaluators compares Pawl with other ways to run programs that models wrote: the same programs, one peer after another, on one
// machine.
//
//	go run ./evaluators [-peers pawl,pool] [-rounds 3] [-go-judge PROGRAM] [-human-eval DIR] [-sandboxfusion URL] [-problems humaneval.jsonl]
//
// It must run as root on Linux with /usr/bin/python3 and g++. ../README.md says how each peer is installed and what it isolates.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "evaluators:", err)
		stop()
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	peers         []string
	rounds        int
	scale         float64
	problems      string
	goJudge       string
	humanEval     string
	sandboxFusion string
}

func parse(args []string) (options, error) {
	var o options
	var peers string
	f := flag.NewFlagSet("evaluators", flag.ContinueOnError)
	f.StringVar(&peers, "peers", strings.Join(names(), ","), "peers to measure, in the order of the columns")
	f.IntVar(&o.rounds, "rounds", 1, "how often each peer does each workload; medians are printed")
	f.Float64Var(&o.scale, "scale", 1, "multiplies the number of programs: 0.05 shows that everything runs")
	f.StringVar(&o.problems, "problems", "../../shared/data/humaneval.jsonl", "HumanEval's problems with their solutions")
	f.StringVar(&o.goJudge, "go-judge", "", "go-judge's program, built from its source")
	f.StringVar(&o.humanEval, "human-eval", "", "directory with the Python package human_eval")
	f.StringVar(&o.sandboxFusion, "sandboxfusion", "", "address of a SandboxFusion server, as in http://127.0.0.1:8080")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.peers = strings.Split(peers, ",")
	for _, name := range o.peers {
		if !slices.Contains(names(), name) {
			return o, fmt.Errorf("-peers: no peer is called %q; there are %s", name, strings.Join(names(), ", "))
		}
	}
	if o.rounds < 1 || o.scale <= 0 {
		return o, errors.New("-rounds and -scale must be above 0")
	}
	return o, nil
}

// column is one peer with the rounds of each figure, by row.
type column struct {
	name    string
	skipped error
	figures map[string][]float64
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	work, err := workloads(o)
	if err != nil {
		return err
	}
	columns := make([]column, len(o.peers))
	for i, name := range o.peers {
		columns[i] = column{name: name, figures: map[string][]float64{}}
	}
	for round := range o.rounds {
		for i := range columns {
			c := &columns[i]
			if c.skipped != nil {
				continue
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, o.rounds, c.name)
			if err := c.measure(ctx, o, work); err != nil {
				if ctx.Err() != nil {
					return err
				}
				c.skipped = err
			}
		}
	}
	write(o, work, columns)
	return nil
}

// measure starts the peer, runs all workloads that it supports, and stops it.
func (c *column) measure(ctx context.Context, o options, work []workload) error {
	p, err := open(ctx, c.name, o)
	if err != nil {
		return err
	}
	defer p.close()
	for _, w := range work {
		figures, err := w.measure(ctx, p)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
		case err != nil:
			return fmt.Errorf("%s: %w", w.name, err)
		}
		for metric, v := range figures {
			row := w.name + ", " + metric
			c.figures[row] = append(c.figures[row], v)
		}
	}
	return nil
}

func write(o options, work []workload, columns []column) {
	fmt.Printf("Medians of %d rounds; %d processors, %s; %s.\n\n| workload | %s |\n|---|%s\n", o.rounds, runtime.NumCPU(), runtime.Version(),
		time.Now().UTC().Format(time.DateTime), strings.Join(o.peers, " | "), strings.Repeat("---:|", len(o.peers)))
	for _, w := range work {
		for _, metric := range w.metrics {
			row := w.name + ", " + metric
			fmt.Printf("| %s |", row)
			for _, c := range columns {
				if all := c.figures[row]; len(all) > 0 {
					slices.Sort(all)
					fmt.Printf(" %.1f", all[len(all)/2])
				}
				fmt.Print(" |")
			}
			fmt.Println()
		}
	}
	for _, c := range columns {
		if c.skipped != nil {
			fmt.Printf("\n%s is not measured: %v\n", c.name, c.skipped)
		}
	}
}
