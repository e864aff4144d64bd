package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/bench/trial"
)

// table is the output.
type table struct {
	Date       time.Time         `json:"date"`
	Seconds    float64           `json:"seconds"`
	Rounds     int               `json:"rounds"`
	CPUs       int               `json:"cpus"`
	System     string            `json:"system"`
	Go         string            `json:"go"`
	PostgreSQL string            `json:"postgresql"`
	Latency    string            `json:"latency,omitempty"` // added to each round trip to PostgreSQL
	Peers      []string          `json:"peers"`
	Versions   map[string]string `json:"versions"`
	Skipped    map[string]string `json:"skipped,omitempty"`
	Lines      []line            `json:"lines"`
}

// line is one metric of one workload.
type line struct {
	Workload string               `json:"workload"`
	Metric   string               `json:"metric"`
	Median   map[string]float64   `json:"median"`
	All      map[string][]float64 `json:"all"`
	// Ratio is how many times better Pawl is than each peer: above 1 is better, both for metrics to maximize and to minimize.
	Ratio map[string]float64 `json:"ratio,omitempty"`
}

var modules = map[string]string{
	"river": "github.com/riverqueue/river", "dbos": "github.com/dbos-inc/dbos-transact-golang", "goworkflows": "github.com/cschleiden/go-workflows",
	"restate": "github.com/restatedev/sdk-go", "asynq": "github.com/hibiken/asynq", "amqploop": "github.com/rabbitmq/amqp091-go",
}

// temporalVersion is the module with which the program temporal is built; it is not a dependency of this module.
const temporalVersion = "go.temporal.io/server v1.32.0"

func (r *runner) table() *table {
	t := &table{
		Date: r.began.UTC().Truncate(time.Second), Seconds: math.Round(time.Since(r.began).Seconds()), Rounds: r.rounds, CPUs: goruntime.NumCPU(),
		System: goruntime.GOOS + "/" + goruntime.GOARCH, Go: goruntime.Version(), PostgreSQL: r.server, Versions: versions(r.peers), Skipped: r.skipped,
	}
	if r.latency > 0 {
		t.Latency = r.latency.String()
	}
	for _, p := range r.peers {
		if r.skipped[p] == "" && slices.ContainsFunc(r.groups, func(g group) bool { return slices.Contains(g.peers, p) }) {
			t.Peers = append(t.Peers, p)
		}
	}
	for _, g := range r.groups {
		for _, row := range g.rows {
			for _, m := range row.metrics {
				l := line{Workload: row.name, Metric: m, Median: map[string]float64{}, All: map[string][]float64{}, Ratio: map[string]float64{}}
				for _, p := range t.Peers {
					if all := r.measured[cell{row.name, m, p}]; len(all) > 0 {
						l.All[p], l.Median[p] = all, median(all)
					}
				}
				pawl, ok := l.Median[allPeers[0]]
				for p, v := range l.Median {
					if !ok || p == allPeers[0] || pawl == 0 || v == 0 {
						continue
					}
					if l.Ratio[p] = pawl / v; !moreIsBetter(m) {
						l.Ratio[p] = v / pawl
					}
				}
				t.Lines = append(t.Lines, l)
			}
		}
	}
	return t
}

func moreIsBetter(metric string) bool { return metric == trial.Completed || metric == trial.Submitted }

func median(all []float64) float64 {
	all = slices.Clone(all)
	slices.Sort(all)
	if n := len(all); n%2 == 0 {
		return (all[n/2-1] + all[n/2]) / 2
	}
	return all[len(all)/2]
}

func versions(peers []string) map[string]string {
	of := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			of[m.Path] = m.Version
		}
	}
	vs := map[string]string{}
	for _, p := range peers {
		if module := modules[p]; module != "" {
			vs[p] = module + " " + of[module]
		}
	}
	if slices.Contains(peers, "restate") {
		vs["restate"] = "restate-server " + restateVersion + ", " + vs["restate"]
	}
	if slices.Contains(peers, "temporal") {
		vs["temporal"] = temporalVersion
	}
	return vs
}

func (t *table) write(w io.Writer, format string) error {
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(t)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Medians of %d rounds, alternating; PostgreSQL %s with default durability, %d CPUs, %s, %s; %s, %.0f s.\n",
		t.Rounds, t.PostgreSQL, t.CPUs, t.System, t.Go, t.Date.Format(time.DateTime), t.Seconds)
	if t.Latency != "" {
		fmt.Fprintf(&b, "Each round trip to PostgreSQL took %s longer than on this machine alone.\n", t.Latency)
	}
	fmt.Fprint(&b, "In brackets: how many times better Pawl is (for times, bytes and memory, less is better).\n\n")
	fmt.Fprintf(&b, "| workload | metric | %s |\n|---|---|%s\n", strings.Join(t.Peers, " | "), strings.Repeat("---:|", len(t.Peers)))
	last := ""
	for _, l := range t.Lines {
		name := l.Workload
		if name == last {
			name = ""
		}
		last = l.Workload
		fmt.Fprintf(&b, "| %s | %s |", name, l.Metric)
		for _, p := range t.Peers {
			v, ok := l.Median[p]
			switch ratio := l.Ratio[p]; {
			case !ok:
				b.WriteString(" |")
			case ratio > 0:
				fmt.Fprintf(&b, " %s (%s ×) |", figure(v), figure(ratio))
			default:
				fmt.Fprintf(&b, " %s |", figure(v))
			}
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	for _, p := range slices.Concat(allPeers, carriers) {
		if v := t.Versions[p]; v != "" {
			if few := fewRounds[p]; few > 0 && few < t.Rounds {
				v += fmt.Sprintf("; medians of %d rounds", few)
			}
			fmt.Fprintf(&b, "- %s: %s\n", p, v)
		}
		if why := t.Skipped[p]; why != "" {
			fmt.Fprintf(&b, "- %s is not in the table: %s\n", p, why)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// figure shows a number with its significant digits.
func figure(v float64) string {
	switch {
	case v >= 100:
		return thousands(int(math.Round(v)))
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
