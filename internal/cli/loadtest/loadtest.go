// Package loadtest measures an engine in this process: its throughput, its latencies, and whether its histories are correct.
package loadtest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
)

// Options are the flags of `pawl bench`.
type Options struct {
	Workload    string
	Count       int
	Concurrency int
	Submit      string
	Width       int
	Repeat      int
	Store       string
	Slots       int
	Runtime     string

	Config   *config.Config
	Log      *slog.Logger
	Say      func(format string, args ...any) // a line for people
	Progress io.Writer                        // a terminal gets a progress bar
}

// Report is the result of one run of `pawl bench`.
type Report struct {
	Workload    string `json:"workload"`
	Store       string `json:"store"`
	Submit      string `json:"submit"`
	Concurrency int    `json:"concurrency"`
	Slots       int    `json:"slots"`

	Count      int     `json:"count"`
	Executions int     `json:"executions"` // tasks of workflows included
	Seconds    float64 `json:"seconds"`    // from the first submission to the last end
	PerSecond  float64 `json:"per_second"` // of count

	SubmitToStart quantiles `json:"submit_to_start_ms"` // from acceptance to the start of the work
	EndToEnd      quantiles `json:"end_to_end_ms"`      // as the submitter measures it; in bulk, by the store's times

	Stuck         int     `json:"stuck"`        // not ended within the time limit
	Failed        int     `json:"failed"`       // ended otherwise than completed
	OutOfOrder    int     `json:"out_of_order"` // histories with gaps, repetitions or moves that the lifecycle forbids
	Duplicates    int     `json:"duplicates"`   // ended twice, or created twice
	Checked       int     `json:"checked"`      // histories that were read for these counts
	UnappliedP99  float64 `json:"unapplied_events_p99"`
	RSSMB         float64 `json:"rss_mb"` // peak of this process
	BytesPerExec  float64 `json:"bytes_per_execution"`
	BareMS        float64 `json:"bare_ms,omitempty"`  // eval: the same program without Pawl, p50
	AddedMS       float64 `json:"added_ms,omitempty"` // eval, alone: the time that Pawl adds to it, p50
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

// Workloads are the names of the workloads.
var Workloads = []string{"noop", "chain", "fanout", "eval"}

// Complete fills in the defaults and checks the other fields.
func (o *Options) Complete() error {
	if !slices.Contains(Workloads, o.Workload) {
		return exit.Usagef("--workload %q: one of %s", o.Workload, strings.Join(Workloads, ", "))
	}
	if o.Count == 0 {
		o.Count = map[string]int{"noop": 20_000, "chain": 2_000, "fanout": 20, "eval": 200}[o.Workload]
	}
	if o.Submit == "" {
		o.Submit = "bulk"
		if o.Concurrency == 1 {
			o.Submit = "one"
		}
	}
	if o.Concurrency == 0 {
		o.Concurrency = map[string]int{"bulk": 4, "one": 100}[o.Submit]
	}
	if o.Submit != "bulk" && o.Submit != "one" {
		return exit.Usagef("--submit %q: bulk or one", o.Submit)
	}
	if o.Count < 1 || o.Concurrency < 1 || o.Width < 1 || o.Repeat < 1 {
		return exit.Usagef("--count, --concurrency, --width and --repeat must be at least 1")
	}
	return nil
}

// Run runs the workload as often as requested and returns the median run.
func Run(ctx context.Context, o Options) (*Report, error) {
	dir, err := os.MkdirTemp("", "pawl-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a place for the bench: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var all []*Report
	for i := range o.Repeat {
		place := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(place, 0o700); err != nil {
			return nil, fmt.Errorf("make a place for the bench: %w", err)
		}
		b := &trial{Options: o, dir: place}
		r, err := b.run(ctx)
		if err != nil {
			return nil, err
		}
		if o.Repeat > 1 {
			o.Say("run %d of %d: %.0f/s", i+1, o.Repeat, r.PerSecond)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *Report) int { return int(a.PerSecond - b.PerSecond) })
	return all[len(all)/2], nil
}

// Write shows the report as a table.
func (r *Report) Write(w io.Writer) {
	t := &output.Table{}
	ms := func(q quantiles) string { return fmt.Sprintf("p50 %.2f  p95 %.2f  p99 %.2f ms", q.P50, q.P95, q.P99) }
	t.Row("workload", fmt.Sprintf("%s, %s, %d at once, %d slots, store %s", r.Workload, r.Submit, r.Concurrency, r.Slots, r.Store))
	t.Row("count", fmt.Sprintf("%d in %.2f s (%d executions, %.0f commits/s)", r.Count, r.Seconds, r.Executions, r.CommitsPerSec))
	t.Row("per second", fmt.Sprintf("%.1f", r.PerSecond))
	t.Row("submit to start", ms(r.SubmitToStart))
	t.Row("end to end", ms(r.EndToEnd))
	if r.BareMS > 0 {
		bare := fmt.Sprintf("p50 %.2f ms", r.BareMS)
		if r.AddedMS != 0 {
			bare += fmt.Sprintf(", so Pawl adds %.2f ms", r.AddedMS)
		}
		t.Row("without Pawl", bare)
	}
	t.Row("in order", fmt.Sprintf("%d stuck, %d failed, %d out of order, %d duplicates (%d histories read), unapplied events p99 %.0f",
		r.Stuck, r.Failed, r.OutOfOrder, r.Duplicates, r.Checked, r.UnappliedP99))
	t.Row("memory", fmt.Sprintf("%.0f MB", r.RSSMB))
	t.Row("on disk", fmt.Sprintf("%.0f bytes per execution", r.BytesPerExec))
	t.Write(w)
}
