package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// benchOptions are the flags of `pawl bench`.
type benchOptions struct {
	workload    string
	count       int
	concurrency int
	submit      string
	width       int
	repeat      int
	store       string
	slots       int
	runtime     string
}

// benchReport is what one run of `pawl bench` found.
type benchReport struct {
	Workload    string `json:"workload"`
	Store       string `json:"store"`
	Submit      string `json:"submit"`
	Concurrency int    `json:"concurrency"`
	Slots       int    `json:"slots"`

	Count      int     `json:"count"`
	Executions int     `json:"executions"` // tasks of workflows included
	Seconds    float64 `json:"seconds"`    // from the first submission to the last end
	PerSecond  float64 `json:"per_second"` // of count

	SubmitToStart quantiles `json:"submit_to_start_ms"` // from acceptance to the beginning of the work
	EndToEnd      quantiles `json:"end_to_end_ms"`      // as the submitter sees it; in bulk, as the store has it

	Stuck         int     `json:"stuck"`        // not ended when the time was up
	Failed        int     `json:"failed"`       // ended otherwise than completed
	OutOfOrder    int     `json:"out_of_order"` // histories with gaps, repetitions or moves that the lifecycle forbids
	Duplicates    int     `json:"duplicates"`   // ended twice, or created twice
	Checked       int     `json:"checked"`      // histories that were read for this
	UnappliedP99  float64 `json:"unapplied_events_p99"`
	RSSMB         float64 `json:"rss_mb"` // of this process, at its largest
	BytesPerExec  float64 `json:"bytes_per_execution"`
	BareMS        float64 `json:"bare_ms,omitempty"`  // eval: the same program without Pawl, p50
	AddedMS       float64 `json:"added_ms,omitempty"` // eval, alone: what Pawl adds to that, p50
	CommitsPerSec float64 `json:"commits_per_second"`
}

// quantiles are in milliseconds.
type quantiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

func quantilesOf(ds []time.Duration) quantiles {
	if len(ds) == 0 {
		return quantiles{}
	}
	slices.Sort(ds)
	at := func(q float64) float64 {
		return float64(ds[min(int(q*float64(len(ds))), len(ds)-1)].Microseconds()) / 1000
	}
	return quantiles{at(0.50), at(0.95), at(0.99)}
}

var workloads = []string{"noop", "chain", "fanout", "eval"}

func (a *app) benchCommand() *cobra.Command {
	var o benchOptions
	var f format
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine: throughput, latency, and whether everything was in order",
		Long: `Submit executions to an engine in this process, work them off, and read every history back.

  noop     executions that do nothing: the cost of Pawl itself
  chain    workflows of three tasks, one after the other
  fanout   workflows of one task, then --width tasks, then one
  eval     evaluations of Python's print(1) in the sandbox

With --submit bulk everything is submitted in batches and worked off as it comes. With --submit one, --concurrency clients
each submit one, wait until it has ended, and submit the next; with --concurrency 1 that is the latency of an idle system.
The database is a fresh temporary file with full durability unless --store names one.`,
		Example: `  pawl bench --workload noop --count 20000
  pawl bench --workload noop --submit one --concurrency 100
  pawl bench --workload eval --count 200 -o json
  pawl bench --workload chain --count 2000 --repeat 5      the median of five runs`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("store") {
				o.store = "sqlite" // what is configured holds somebody's work
			} else {
				o.store = a.config.text("store")
			}
			o.slots = a.config.slots() // as a server has by default, so that the figures are what users get
			o.runtime = a.config.list("runtime")[0]
			if err := o.complete(); err != nil {
				return err
			}
			report, err := a.bench(cmd.Context(), o)
			if err != nil {
				return err
			}
			if f != asTable {
				err = writeData(a.out, f, report)
			} else {
				report.write(a)
			}
			if err == nil && report.Stuck+report.OutOfOrder+report.Duplicates > 0 {
				return fmt.Errorf("promises were broken: %d stuck, %d out of order, %d duplicates", report.Stuck, report.OutOfOrder, report.Duplicates)
			}
			return err
		},
	}
	fl := c.Flags()
	fl.StringVar(&o.workload, "workload", "noop", "one of "+strings.Join(workloads, ", "))
	fl.IntVar(&o.count, "count", 0, "how many (default 20000 noop, 2000 chain, 20 fanout, 200 eval)")
	fl.IntVar(&o.concurrency, "concurrency", 0, "how many clients submit at once (default 4 in bulk, 100 one by one)")
	fl.StringVar(&o.submit, "submit", "", "bulk, or one (default bulk; one with --concurrency 1)")
	fl.IntVar(&o.width, "width", 100, "how wide fanout is")
	fl.IntVar(&o.repeat, "repeat", 1, "run this often, on fresh databases, and print the median run")
	_ = c.RegisterFlagCompletionFunc("workload", cobra.FixedCompletions(workloads, cobra.ShellCompDirectiveNoFileComp))
	formatFlag(c, &f, asTable, asJSON, asYAML)
	return c
}

// complete fills in the defaults and checks the rest.
func (o *benchOptions) complete() error {
	if !slices.Contains(workloads, o.workload) {
		return usage("--workload %q: one of %s", o.workload, strings.Join(workloads, ", "))
	}
	if o.count == 0 {
		o.count = map[string]int{"noop": 20_000, "chain": 2_000, "fanout": 20, "eval": 200}[o.workload]
	}
	if o.submit == "" {
		o.submit = "bulk"
		if o.concurrency == 1 {
			o.submit = "one"
		}
	}
	if o.concurrency == 0 {
		o.concurrency = map[string]int{"bulk": 4, "one": 100}[o.submit]
	}
	if o.submit != "bulk" && o.submit != "one" {
		return usage("--submit %q: bulk or one", o.submit)
	}
	if o.count < 1 || o.concurrency < 1 || o.width < 1 || o.repeat < 1 {
		return usage("--count, --concurrency, --width and --repeat must be at least 1")
	}
	return nil
}

// bench runs the workload as often as asked and returns the median run.
func (a *app) bench(ctx context.Context, o benchOptions) (*benchReport, error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	dir, err := os.MkdirTemp("", "pawl-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a place for the bench: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var all []*benchReport
	for i := range o.repeat {
		place := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(place, 0o700); err != nil {
			return nil, fmt.Errorf("make a place for the bench: %w", err)
		}
		b := &benchRun{benchOptions: o, dir: place, app: a}
		r, err := b.run(ctx)
		if err != nil {
			return nil, err
		}
		if o.repeat > 1 {
			a.say("run %d of %d: %.0f/s", i+1, o.repeat, r.PerSecond)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *benchReport) int { return int(a.PerSecond - b.PerSecond) })
	return all[len(all)/2], nil
}

func (r *benchReport) write(a *app) {
	t := &table{}
	ms := func(q quantiles) string { return fmt.Sprintf("p50 %.2f  p95 %.2f  p99 %.2f ms", q.P50, q.P95, q.P99) }
	t.row("workload", fmt.Sprintf("%s, %s, %d at once, %d slots, store %s", r.Workload, r.Submit, r.Concurrency, r.Slots, r.Store))
	t.row("count", fmt.Sprintf("%d in %.2f s (%d executions, %.0f commits/s)", r.Count, r.Seconds, r.Executions, r.CommitsPerSec))
	t.row("per second", fmt.Sprintf("%.1f", r.PerSecond))
	t.row("submit to start", ms(r.SubmitToStart))
	t.row("end to end", ms(r.EndToEnd))
	if r.BareMS > 0 {
		bare := fmt.Sprintf("p50 %.2f ms", r.BareMS)
		if r.AddedMS != 0 {
			bare += fmt.Sprintf(", so Pawl adds %.2f ms", r.AddedMS)
		}
		t.row("without Pawl", bare)
	}
	t.row("in order", fmt.Sprintf("%d stuck, %d failed, %d out of order, %d duplicates (%d histories read), unapplied events p99 %.0f",
		r.Stuck, r.Failed, r.OutOfOrder, r.Duplicates, r.Checked, r.UnappliedP99))
	t.row("memory", fmt.Sprintf("%.0f MB", r.RSSMB))
	t.row("on disk", fmt.Sprintf("%.0f bytes per execution", r.BytesPerExec))
	t.write(a.out)
}
