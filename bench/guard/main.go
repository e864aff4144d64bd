// Command guard compares the published workloads of two builds of bench, a commit's and the release's, and appends their ratios to a
// history. The baseline is the release: a series of commits that each lose 2 % does not pass.
//
//	go run ./guard -release PROGRAM=NAME -commit PROGRAM=NAME [-rounds 5] [-history history.csv] [-workload noop,steady,latency,chain]
package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "guard:", err)
		stop()
		os.Exit(1)
	}
}

// build is a program built from the bench/ of a commit.
type build struct{ program, name string }

// line is one figure in a build's output.
type line struct {
	Workload string
	Metric   string
	Median   map[string]float64
}

// compared are the metrics whose ratios are recorded. Higher is better for those that end in /s, lower for the others.
var compared = []string{"submitted/s", "completed/s", "p50 ms", "CPU µs each", "PostgreSQL µs each", "bytes each"}

// figure is one metric of a workload, in each round.
type figure struct {
	workload, metric string
	release, commit  []float64
}

func run(ctx context.Context) error {
	release, commit := flag.String("release", "", "PROGRAM=NAME of the release"), flag.String("commit", "", "PROGRAM=NAME of the commit")
	rounds := flag.Int("rounds", 5, "how often, in turn")
	scale := flag.String("scale", "1", "passed on to both")
	history := flag.String("history", "history.csv", "where the ratios are appended")
	workloads := flag.String("workload", "noop,steady,latency,chain", "passed on to both")
	flag.Parse()
	var builds [2]build
	for i, text := range []string{*release, *commit} {
		var ok bool
		if builds[i].program, builds[i].name, ok = strings.Cut(text, "="); !ok {
			return fmt.Errorf("%q is not PROGRAM=NAME: scripts/bench-guard builds both and gives -release and -commit", text)
		}
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds %d: at least 1", *rounds)
	}
	var all []*figure
	for round := range *rounds {
		order := []int{0, 1}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, i := range order {
			lines, err := measure(ctx, builds[i], *workloads, *scale)
			if err != nil {
				return err
			}
			all = add(all, lines, i == 0)
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, *rounds, builds[i].name)
		}
	}
	if len(all) == 0 {
		return errors.New("no workload has a metric that is compared")
	}
	return report(all, builds, *history)
}

func measure(ctx context.Context, b build, workloads, scale string) ([]line, error) {
	c := exec.CommandContext(ctx, b.program, "-peers", "pawl", "-rounds", "1", "-o", "json", "-workload", workloads, "-scale", scale)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.name, err)
	}
	var t struct{ Lines []line }
	if err := json.Unmarshal(out, &t); err != nil {
		return nil, fmt.Errorf("read the figures of %s: %w", b.name, err)
	}
	return t.Lines, nil
}

// add adds the figures of one round.
func add(all []*figure, lines []line, release bool) []*figure {
	for _, l := range lines {
		v, ok := l.Median["pawl"]
		if !ok || !slices.Contains(compared, l.Metric) {
			continue
		}
		i := slices.IndexFunc(all, func(f *figure) bool { return f.workload == l.Workload && f.metric == l.Metric })
		if i < 0 {
			all = append(all, &figure{workload: l.Workload, metric: l.Metric})
			i = len(all) - 1
		}
		if release {
			all[i].release = append(all[i].release, v)
		} else {
			all[i].commit = append(all[i].commit, v)
		}
	}
	return all
}

// ratio is the commit's figure relative to the release's: the ratio of medians, and the lowest and highest ratio of single rounds.
func (f *figure) ratio() (ratio, least, most float64) {
	var each []float64
	for i := range min(len(f.release), len(f.commit)) {
		each = append(each, f.commit[i]/f.release[i])
	}
	if len(each) == 0 {
		return 0, 0, 0
	}
	return median(f.commit) / median(f.release), slices.Min(each), slices.Max(each)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// head is the header of the history.
var head = []string{"date", "commit", "release", "machine", "workload", "metric", "of the commit", "of the release", "ratio", "least", "most"}

func report(all []*figure, builds [2]build, history string) error {
	fmt.Printf("Medians of %s beside %s. Of figures per second more is better, of the others less.\n\n", builds[1].name, builds[0].name)
	fmt.Printf("| workload | metric | %s | %s | ratio | of single rounds |\n|---|---|---:|---:|---:|---|\n", builds[1].name, builds[0].name)
	fresh := false
	if _, err := os.Stat(history); errors.Is(err, os.ErrNotExist) {
		fresh = true
	}
	file, err := os.OpenFile(history, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the history: %w", err)
	}
	w := csv.NewWriter(file)
	if fresh {
		_ = w.Write(head) // an error is kept until Flush
	}
	date, on := time.Now().UTC().Format(time.RFC3339), machine()
	short := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	for _, f := range all {
		if len(f.release) == 0 || len(f.commit) == 0 {
			continue // only one of them has the workload
		}
		ratio, least, most := f.ratio()
		fmt.Printf("| %s | %s | %s | %s | %.2f | %.2f to %.2f |\n", f.workload, f.metric, short(median(f.commit)), short(median(f.release)), ratio, least, most)
		_ = w.Write([]string{date, builds[1].name, builds[0].name, on, f.workload, f.metric, short(median(f.commit)), short(median(f.release)),
			fmt.Sprintf("%.3f", ratio), fmt.Sprintf("%.3f", least), fmt.Sprintf("%.3f", most)})
	}
	w.Flush()
	return errors.Join(w.Error(), file.Close())
}

// machine is the number and model of the processors: figures of different machines are not comparable.
func machine() string {
	kind := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for l := range strings.Lines(string(text)) {
			if name, model, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(name) == "model name" {
				kind = strings.TrimSpace(model)
				break
			}
		}
	}
	return fmt.Sprintf("%d x %s, %s", runtime.NumCPU(), kind, runtime.GOOS)
}
