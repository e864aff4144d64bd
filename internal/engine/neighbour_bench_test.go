package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/sqlite"
)

// The benchmarks below are the worst that one user's work can do to a transaction. They measure how long a submission of another user takes
// meanwhile, and the memory of the process. They are run with -benchtime 1x.

// benchOnEachStore runs a benchmark on a SQLite file and on PostgreSQL, each fully durable.
func benchOnEachStore(b *testing.B, run func(*rig), change ...func(*Options)) {
	b.Run("sqlite", func(b *testing.B) {
		s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "pawl.db"), sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		r := &rig{TB: b, clock: &clockwork{}, store: s}
		run(r.run(Options{Store: s, Exclusive: true}, change))
	})
	b.Run("postgres", func(b *testing.B) { run(newPostgresRig(b, change...)) })
}

// neighbour submits no-ops one after the other and records how long each took, until stopped.
type neighbour struct {
	r    *rig
	stop context.CancelFunc
	done chan struct{}
	took []time.Duration
	peak uint64 // bytes of memory that the process had from the system
}

func (r *rig) neighbour() *neighbour {
	ctx, stop := context.WithCancel(r.ctx)
	n := &neighbour{r: r, stop: stop, done: make(chan struct{})}
	runtime.GC()
	go func() {
		defer close(n.done)
		for ctx.Err() == nil {
			began := time.Now()
			if _, err := r.e.Submit(ctx, []Submission{{Action: "noop", Queue: "neighbour"}}); err != nil {
				if ctx.Err() == nil {
					r.Errorf("a neighbour's submission: %v", err)
				}
				return
			}
			n.took = append(n.took, time.Since(began))
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			n.peak = max(n.peak, m.Sys-m.HeapReleased)
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	return n
}

// report stops the neighbour and reports its measurements.
func (n *neighbour) report(b *testing.B) {
	n.stop()
	<-n.done
	slices.Sort(n.took)
	b.ReportMetric(float64(n.took[len(n.took)/2].Microseconds())/1000, "neighbour-p50-ms")
	b.ReportMetric(float64(n.took[len(n.took)-1].Microseconds())/1000, "neighbour-worst-ms")
	b.ReportMetric(float64(n.peak>>20), "peak-MB")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkNeighbourOfLargeFanOut creates 2,000 children with 600 KB of input each.
func BenchmarkNeighbourOfLargeFanOut(b *testing.B) {
	benchOnEachStore(b, func(r *rig) {
		r.define(`
name: w
input: {type: object, properties: {items: {type: array}}}
tasks:
  a: {action: noop}
  each: {needs: [a], foreach: "${{ input.items }}", action: noop, with: {data: "${{ tasks.a.output }}", i: "${{ item }}"}}
`)
		h := r.worker()
		id := r.submit(Submission{Action: "w", Input: ints(2000)})
		a := h.take(1)[0]
		out, err := json.Marshal(strings.Repeat("x", 600<<10))
		if err != nil {
			r.Fatal(err)
		}
		n := r.neighbour()
		began := time.Now()
		h.complete(a, string(out))
		r.within(10*time.Minute, "the fan-out is not over", func() bool {
			all, err := r.store.Children(r.ctx, store.WorkflowAttempt{ID: id, Attempt: 1}, "each", 1998, 10)
			return err == nil && len(all) == 1
		})
		r.TB.(*testing.B).ReportMetric(time.Since(began).Seconds(), "fan-out-s")
		n.report(r.TB.(*testing.B))
	}, func(o *Options) { o.Queues = []string{"neighbour"} })
}

// BenchmarkNeighbourOfRetention removes 200 workflows of 10,000 tasks each.
func BenchmarkNeighbourOfRetention(b *testing.B) {
	const workflows, tasks = 200, 10_000
	benchOnEachStore(b, func(r *rig) {
		r.define(`
name: w
input: {type: object, properties: {items: {type: array}}}
tasks:
  each: {foreach: "${{ input.items }}", action: sleep, with: {for: 1ms}}
`)
		for range workflows {
			r.submit(Submission{Action: "w", Input: ints(tasks)})
		}
		r.within(time.Hour, "the workflows have not ended", func() bool { return r.e.Stats().Finished >= workflows*(tasks+1) })
		n := r.neighbour()
		began := time.Now()
		p := newPurger(r.e, time.Millisecond)
		for r.e.Stats().Purged < workflows*(tasks+1) {
			pause, err := p.next(r.ctx)
			if err != nil {
				r.Fatal(err)
			}
			<-time.After(min(pause, time.Second))
		}
		r.TB.(*testing.B).ReportMetric(workflows*(tasks+1)/time.Since(began).Seconds(), "removed/s")
		n.report(r.TB.(*testing.B))
	}, func(o *Options) { o.Queues = []string{"neighbour"} })
}

// BenchmarkFailingWide records reports of a failing workflow, while workers hold so many of its children.
func BenchmarkFailingWide(b *testing.B) {
	for _, n := range []int{2000, 10_000, 30_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			benchOnEachStore(b, func(r *rig) {
				r.define(`
name: w
input: {type: object, properties: {items: {type: array}}}
tasks:
  each: {foreach: "${{ input.items }}", action: noop, with: {i: "${{ item }}"}}
`)
				id, err := r.e.Open(r.ctx, handoff.Session{Name: "hand", Queues: []string{flow.DefaultQueue}, Slots: n})
				if err != nil {
					r.Fatal(err)
				}
				h := &hand{r, id}
				r.submit(Submission{Action: "w", Input: ints(n)})
				var all []handoff.Assignment
				for len(all) < n {
					all = append(all, h.take(n)...)
				}
				h.fail(all[0], "boom")
				h.complete(all[1], "1")
				began := time.Now()
				const reports = 200
				for _, a := range all[2 : 2+reports] {
					h.complete(a, "1")
				}
				b := r.TB.(*testing.B)
				b.ReportMetric(float64(time.Since(began).Microseconds())/1000/reports, "ms/report")
				b.ReportMetric(0, "ns/op")
			}, func(o *Options) { o.Lease = 10 * time.Minute })
		})
	}
}
