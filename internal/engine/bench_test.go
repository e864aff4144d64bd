package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store/sqlite"
)

// bench is an engine on a SQLite file, with a worker that completes everything at once.
func bench(b *testing.B) *Engine {
	b.Helper()
	s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "pawl.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	e, err := New(Options{Store: s, Exclusive: true})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = e.Run(ctx) })
	b.Cleanup(func() {
		stop()
		wg.Wait()
		_ = s.Close()
	})
	worksAtOnce(b, e)
	return e
}

// onEachBench runs a benchmark on a SQLite file and on PostgreSQL, each with a worker that completes everything at once.
func onEachBench(b *testing.B, run func(*testing.B, *Engine)) {
	b.Run("sqlite", func(b *testing.B) { run(b, bench(b)) })
	b.Run("postgres", func(b *testing.B) {
		r := newPostgresRig(b)
		worksAtOnce(b, r.e)
		run(b, r.e)
	})
}

// worksAtOnce adds a worker that completes everything at once, until the benchmark ends.
func worksAtOnce(b *testing.B, e *Engine) {
	b.Helper()
	ctx, stop := context.WithCancel(context.Background())
	session, err := e.Open(ctx, handoff.Session{Name: "bench", Embedded: true, Queues: []string{flow.DefaultQueue}, Slots: 1000})
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				work, err := e.Take(ctx, session, 400)
				if err != nil {
					return
				}
				reports := make([]flow.Report, len(work))
				for i := range work {
					reports[i] = endedAtOnce(&work[i])
				}
				if _, err := e.Report(ctx, session, reports); err != nil {
					return
				}
			}
		})
	}
	wg.Go(func() {
		for tick := time.NewTicker(handoff.RenewEvery); ; {
			select {
			case <-tick.C:
				_, _ = e.Renew(ctx, session)
			case <-ctx.Done():
				tick.Stop()
				return
			}
		}
	})
	b.Cleanup(func() {
		stop()
		wg.Wait()
	})
}

func endedAtOnce(a *handoff.Assignment) flow.Report {
	return flow.Report{Execution: a.Execution, Attempt: a.Attempt, Events: []flow.Event{
		{Seq: a.NextSeq, Attempt: a.Attempt, Type: flow.EvRunning, At: time.Now()},
		{Seq: a.NextSeq + 1, Attempt: a.Attempt, Type: flow.EvCompleted, At: time.Now(), Outcome: &flow.Outcome{Output: a.Payload}},
	}}
}

// finished waits until the engine has ended n executions.
func finished(b *testing.B, e *Engine, n int64) {
	changed, stop := e.WatchAll()
	defer stop()
	for e.Stats().Finished < n {
		select {
		case <-changed:
		case <-b.Context().Done():
			return
		}
	}
}

func BenchmarkBulk(b *testing.B) {
	e := bench(b)
	b.ResetTimer()
	subs := make([]Submission, 0, 500)
	for i := range b.N {
		subs = append(subs, Submission{Action: "noop"})
		if len(subs) == cap(subs) || i == b.N-1 {
			if _, err := e.Submit(b.Context(), subs); err != nil {
				b.Fatal(err)
			}
			subs = subs[:0]
		}
	}
	finished(b, e, int64(b.N))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "executions/s")
}

// BenchmarkSignals is BenchmarkBulk with signals, each of which one rule turns into an execution.
func BenchmarkSignals(b *testing.B) {
	e := bench(b)
	defs, err := definition.Parse("rule.yaml", []byte("kind: rule\nname: r\non: t\nif: signal.data.severity == \"page\"\nrun: {action: noop, input: {host: '${{ signal.data.host }}'}}\n"))
	if err == nil {
		_, err = e.Define(b.Context(), defs)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	all := make([]Emission, 0, 500)
	for i := range b.N {
		all = append(all, Emission{Trigger: "t", Key: strconv.Itoa(i), Data: json.RawMessage(`{"severity":"page","host":"db1"}`)})
		if len(all) == cap(all) || i == b.N-1 {
			if _, err := e.Emit(b.Context(), all); err != nil {
				b.Fatal(err)
			}
			all = all[:0]
		}
	}
	finished(b, e, int64(b.N))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "signals/s")
}

func BenchmarkHundredClients(b *testing.B) {
	e := bench(b)
	b.ResetTimer()
	var wg sync.WaitGroup
	for c := range 100 {
		wg.Go(func() {
			for range b.N/100 + min(1, max(0, b.N%100-c)) {
				if _, err := e.Submit(b.Context(), []Submission{{Action: "noop"}}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	finished(b, e, int64(b.N))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "executions/s")
}

func BenchmarkAlone(b *testing.B) {
	e := bench(b)
	b.ResetTimer()
	for i := range b.N {
		if _, err := e.Submit(b.Context(), []Submission{{Action: "noop"}}); err != nil {
			b.Fatal(err)
		}
		finished(b, e, int64(i+1))
	}
}

func benchWorkflow(b *testing.B, src string, input json.RawMessage, perRun int64, clients int) {
	e := bench(b)
	defs, err := definition.Parse("bench.yaml", []byte(src))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := e.Define(b.Context(), defs); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for range b.N/clients + min(1, max(0, b.N%clients-c)) {
				out, end, err := e.SubmitOne(b.Context(), Submission{Action: defs[0].Name, Input: input})
				if err != nil || out.Err != nil {
					b.Error(err, out)
					return
				}
				_, err = end.Wait(b.Context())
				end.Close()
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "workflows/s")
}

const chain = `
name: chain
tasks:
  a: {action: noop}
  b: {needs: [a], action: noop, with: {v: "${{ tasks.a.output }}"}}
  c: {needs: [b], action: noop, with: {v: "${{ tasks.b.output.v }}"}}
outputs: {v: "${{ tasks.c.output.v }}"}
`

func BenchmarkChain(b *testing.B) {
	for _, clients := range []int{1, 100} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { benchWorkflow(b, chain, nil, 4, clients) })
	}
}

func BenchmarkFanOut(b *testing.B) {
	for _, width := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("width=%d", width), func(b *testing.B) {
			input, _ := json.Marshal(map[string]any{"items": make([]int, width)})
			benchWorkflow(b, `
name: fanout
tasks:
  start: {action: noop}
  each: {needs: [start], foreach: "${{ input.items }}", action: noop, with: {v: "${{ item }}"}}
  all: {needs: [each], action: noop, with: {n: "${{ size(tasks.each.output) }}"}}
outputs: {n: "${{ tasks.all.output.n }}"}
`, input, int64(width)+3, 1)
		})
	}
}
