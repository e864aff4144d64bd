package engine

import (
	"encoding/json"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// The benchmarks of this file measure automation beside no-ops of the same run, since figures of different runs, or machines, do not
// compare: go test ./internal/engine -run xxx -bench Bar -benchtime 1x.

// inParts calls send for n things in parts of 500.
func inParts(b *testing.B, n int, send func(from, to int) error) {
	b.Helper()
	for from := 0; from < n; from += 500 {
		if err := send(from, min(n, from+500)); err != nil {
			b.Fatal(err)
		}
	}
}

// noopPace is how many no-ops a second are submitted in bulk and completed.
func noopPace(b *testing.B, e *Engine, n int) float64 {
	b.Helper()
	ended, begun := e.Stats().Finished, time.Now()
	inParts(b, n, func(from, to int) error {
		_, err := e.Submit(b.Context(), slices.Repeat([]Submission{{Action: "noop"}}, to-from))
		return err
	})
	finished(b, e, ended+int64(n))
	return float64(n) / time.Since(begun).Seconds()
}

func emitted(b *testing.B, e *Engine, n int, trigger, data string) {
	b.Helper()
	inParts(b, n, func(from, to int) error {
		_, err := e.Emit(b.Context(), slices.Repeat([]Emission{{Trigger: trigger, Data: json.RawMessage(data)}}, to-from))
		return err
	})
}

func applied(b *testing.B, e *Engine, src string) {
	b.Helper()
	defs, err := definition.Parse("bench.yaml", []byte(src))
	if err == nil {
		_, err = e.Define(b.Context(), defs)
	}
	if err != nil {
		b.Fatal(err)
	}
	e.Settle(b.Context())
}

// BenchmarkBarSignals measures signals that one rule turns into no-ops, or gathers by the hundred, as a ratio to no-ops alone.
func BenchmarkBarSignals(b *testing.B) {
	const n = 10_000
	onEachBench(b, func(b *testing.B, e *Engine) {
		applied(b, e, "kind: rule\nname: one\non: one\nif: signal.data.severity == \"page\"\nrun: {action: noop, input: {host: '${{ signal.data.host }}'}}\n---\n"+
			"kind: rule\nname: many\non: many\nbatch: {key: k, size: 100, wait: 1s}\nrun: {action: noop, input: '${{ signals }}'}\n")
		work := map[string]func() float64{
			"noops":   func() float64 { return noopPace(b, e, n) },
			"signals": func() float64 { return signalPace(b, e, n, n, "one", `{"severity":"page","host":"db1"}`) },
			"batched": func() float64 { return signalPace(b, e, n, n/100, "many", `{"host":"db1"}`) },
		}
		paces := map[string][]float64{}
		for b.Loop() {
			for range 5 { // in turns, because the speed of the machine changes
				for what, do := range work {
					paces[what] = append(paces[what], do())
				}
			}
		}
		for what := range work {
			b.ReportMetric(median(paces[what]), what+"/s")
		}
		b.ReportMetric(median(paces["signals"])/median(paces["noops"]), "signals/noop")
		b.ReportMetric(0, "ns/op")
	})
}

// signalPace is how many signals a second are emitted in bulk and their executions completed.
func signalPace(b *testing.B, e *Engine, n, executions int, trigger, data string) float64 {
	b.Helper()
	ended, begun := e.Stats().Finished, time.Now()
	emitted(b, e, n, trigger, data)
	finished(b, e, ended+int64(executions))
	return float64(n) / time.Since(begun).Seconds()
}

func median(all []float64) float64 { return slices.Sorted(slices.Values(all))[len(all)/2] }

// BenchmarkBarRules measures signals on a trigger with a thousand rules, none of which holds. The rules differ by an equality, by other
// comparisons, or have nothing in common ("own", and "cel", which only CEL computes). It also measures no-ops beside these rules, as a
// ratio to no-ops without any.
func BenchmarkBarRules(b *testing.B) {
	const n, rules = 10_000, 1000
	kinds := []struct{ trigger, condition string }{
		{"equal", `signal.data.host == "h%d"`}, {"apart", `signal.data.n > %d`}, {"begins", `signal.data.host.startsWith("h%d")`},
		{"any", `size(signal.data.host) + signal.data.n == %d + 100`}, {"own", `signal.data.n * %d + size(signal.data.host) == -7000`},
		{"cel", `signal.data.host.split("-").exists(p, p == "h%d")`},
	}
	onEachBench(b, func(b *testing.B, e *Engine) {
		for b.Loop() {
			before := noopPace(b, e, n)
			for _, k := range kinds {
				for from := 0; from < rules; from += 100 {
					var doc strings.Builder
					for i := range 100 {
						fmt.Fprintf(&doc, "---\nkind: rule\nname: %s%d\non: %s\nif: %q\nrun: {action: noop}\n", k.trigger, from+i, k.trigger, fmt.Sprintf(k.condition, from+i))
					}
					applied(b, e, strings.TrimPrefix(doc.String(), "---\n"))
				}
			}
			for _, k := range kinds {
				begun := time.Now()
				emitted(b, e, n/20, k.trigger, `{"host":"none","n":-1}`)
				b.ReportMetric(float64(n/20)/time.Since(begun).Seconds(), k.trigger+"/s")
			}
			b.ReportMetric(noopPace(b, e, n)/before, "noop-beside/noop")
		}
		b.ReportMetric(0, "ns/op")
	})
}

// BenchmarkBarAlone measures the time on an idle engine from emitting a signal until a worker has its rule's execution.
func BenchmarkBarAlone(b *testing.B) {
	const n = 500
	each := func(b *testing.B, e *Engine) {
		applied(b, e, "kind: rule\nname: r\non: t\nif: signal.data.severity == \"page\"\nrun: {action: noop}\n")
		session, err := e.Open(b.Context(), handoff.Session{Name: "alone", Embedded: true, Queues: []string{flow.DefaultQueue}, Slots: 10})
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			var took []time.Duration
			for range n {
				got := make(chan handoff.Assignment, 1)
				go func() {
					if work, err := e.Take(b.Context(), session, 1); err == nil && len(work) == 1 {
						got <- work[0]
					}
					close(got)
				}()
				awaitTakers(b, e, 1)
				begun := time.Now()
				if _, err := e.Emit(b.Context(), []Emission{{Trigger: "t", Data: json.RawMessage(`{"severity":"page"}`)}}); err != nil {
					b.Fatal(err)
				}
				a, ok := <-got
				if !ok {
					b.Fatal("nothing was started")
				}
				took = append(took, time.Since(begun))
				if _, err := e.Report(b.Context(), session, []flow.Report{endedAtOnce(&a)}); err != nil {
					b.Fatal(err)
				}
			}
			percentiles(b, took, "")
		}
		b.ReportMetric(0, "ns/op")
	}
	b.Run("sqlite", func(b *testing.B) { each(b, newRig(b).e) })
	b.Run("postgres", func(b *testing.B) { each(b, newPostgresRig(b).e) })
}

func percentiles(b *testing.B, took []time.Duration, of string) {
	slices.Sort(took)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(took[min(len(took)-1, len(took)*p/100)].Microseconds())/1000, fmt.Sprintf("%sp%d-ms", of, p))
	}
}

// BenchmarkBarSchedules measures how late the executions are of 10,000 schedules that are due at one moment.
func BenchmarkBarSchedules(b *testing.B) {
	const schedules = 10_000
	onEachBench(b, func(b *testing.B, e *Engine) {
		for b.Loop() {
			due := time.Now().Add(40 * time.Second).Truncate(time.Second)
			offset := due.Sub(due.Truncate(time.Hour))
			for from := 0; from < schedules; from += 500 {
				var doc strings.Builder
				for i := range 500 {
					fmt.Fprintf(&doc, "---\nkind: schedule\nname: s%d\nevery: 1h\noffset: %s\noverlap: allow\nrun: {action: noop, labels: {of: tick}}\n", from+i, offset)
				}
				applied(b, e, strings.TrimPrefix(doc.String(), "---\n"))
			}
			if left := time.Until(due); left < 0 {
				b.Fatalf("the schedules were defined %s too late", -left)
			}
			finished(b, e, schedules)
			var late []time.Duration
			for f := (store.Filter{Labels: map[string]string{"of": "tick"}, Limit: 1000}); ; {
				page, err := store.List(b.Context(), e.opts.Store, f)
				if err != nil {
					b.Fatal(err)
				}
				for _, x := range page {
					late = append(late, x.CreatedAt.Sub(due))
					f.Before = x.ID
				}
				if len(page) == 0 {
					break
				}
			}
			if len(late) != schedules {
				b.Fatalf("%d executions of %d schedules", len(late), schedules)
			}
			percentiles(b, late, "lag-")
		}
		b.ReportMetric(0, "ns/op")
	})
}

var opened = flag.Int("open", 0, "how many questions and waits BenchmarkBarOpen leaves open")

// BenchmarkBarOpen compares, in turns, an engine whose store has many open questions and waits with one on an empty store. A million take
// minutes: go test ./internal/engine -run xxx -bench BarOpen/sqlite -benchtime 1x -open 1000000 -timeout 1h.
func BenchmarkBarOpen(b *testing.B) {
	if *opened == 0 {
		b.Skip("needs -open 1000000")
	}
	const n = 10_000
	each := func(b *testing.B, empty, full *Engine) {
		applied(b, full, "kind: trigger\nname: t\nwaits: true\n")
		for b.Loop() {
			var before, after runtime.MemStats
			noopPace(b, full, n)
			b.ReportMetric(100*idleFor(b, 20*time.Second), "idle-empty-%") // of both engines, as below
			runtime.GC()
			runtime.ReadMemStats(&before)
			small, err := full.opts.Store.Size(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			begun := time.Now()
			inParts(b, *opened, func(from, to int) error {
				subs := make([]Submission, to-from)
				for i := range subs {
					subs[i] = Submission{Action: "ask", Input: json.RawMessage(`{"title":"Release?","form":{"type":"boolean"}}`)}
					if i%2 == 1 {
						subs[i] = Submission{Action: "wait", Input: json.RawMessage(fmt.Sprintf(`{"signal":"t","subject":"s%d"}`, from+i))}
					}
				}
				_, err := full.Submit(b.Context(), subs)
				return err
			})
			b.ReportMetric(float64(*opened)/time.Since(begun).Seconds(), "opened/s")
			runtime.GC()
			runtime.ReadMemStats(&after)
			large, err := full.opts.Store.Size(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(large-small)/float64(*opened), "bytes/open")
			b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/(1<<20), "heap-MB")
			engines := []*Engine{empty, full}
			var paces, costs [2][]float64
			for round := range 8 {
				for turn := range engines {
					of := (round + turn) % len(engines) // neither is always the second one, which works while the log of the first is folded
					before := processorTime(b)
					paces[of] = append(paces[of], noopPace(b, engines[of], n))
					costs[of] = append(costs[of], float64(processorTime(b)-before))
				}
			}
			b.ReportMetric(median(paces[1]), "noops/s")
			b.ReportMetric(median(paces[1])/median(paces[0]), "noop/noop-empty")
			b.ReportMetric(median(costs[0])/median(costs[1]), "cpu-empty/cpu") // more stable than the pace if others use the machine
			// The remaining work of the load, such as the end of a write-ahead log and memory to be given back, is not the cost of open questions.
			b.ReportMetric(100*idleFor(b, 20*time.Second), "idle-after-load-%")
			b.ReportMetric(100*idleFor(b, time.Minute), "idle-%")
			begun = time.Now()
			if _, err := full.opts.Store.Survey(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(time.Since(begun).Milliseconds()), "survey-ms")
		}
		b.ReportMetric(0, "ns/op")
	}
	b.Run("sqlite", func(b *testing.B) { each(b, bench(b), bench(b)) })
	b.Run("postgres", func(b *testing.B) {
		empty, full := newPostgresRig(b), newPostgresRig(b)
		worksAtOnce(b, empty.e)
		worksAtOnce(b, full.e)
		each(b, empty.e, full.e)
	})
}

// idleFor is the share of a processor that the process takes while nothing happens.
func idleFor(b *testing.B, span time.Duration) float64 {
	b.Helper()
	before := processorTime(b)
	select {
	case <-time.After(span):
	case <-b.Context().Done():
	}
	return float64(processorTime(b)-before) / float64(span)
}

// processorTime is the processor time of the process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
