package sqlite

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/storetest"
)

var million = flag.Bool("million", false, "run the benchmark that fills a store with a million executions first")

// BenchmarkWithMillionFinished compares a full store with an empty one; it takes a minute.
func BenchmarkWithMillionFinished(b *testing.B) {
	if !*million {
		b.Skip("needs -million")
	}
	const sample = 100_000
	x := newBench(b)
	timed := func() float64 {
		start := time.Now()
		x.run(sample)
		return sample / time.Since(start).Seconds()
	}
	empty := timed()
	x.run(1_000_000 - sample)
	full := max(timed(), timed())
	b.ReportMetric(empty, "empty/s")
	b.ReportMetric(full, "full/s")
	b.ReportMetric(100*full/empty, "%")
	size, err := x.s.Size(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(size)/1_200_000, "bytes/execution")
	start := time.Now()
	old, err := x.s.Removable(context.Background(), store.RemovableQuery{Before: x.now.Add(time.Hour), Count: 500, Bytes: 1 << 20})
	if err != nil || len(old.IDs) != 500 {
		b.Fatalf("found %d old executions: %v", len(old.IDs), err)
	}
	b.ReportMetric(float64(time.Since(start).Milliseconds()), "find-500-old-ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSearch searches for rare executions among a million, for half of them by one label, and for none at all; it takes a minute.
func BenchmarkSearch(b *testing.B) {
	if !*million {
		b.Skip("needs -million")
	}
	x := newBench(b)
	rare := flow.Request{Action: "rare", Kind: flow.KindNoop, Queue: "default", Labels: map[string]string{"set": "rare"}}
	x.submitAs(20, rare)
	x.finish(x.claim(20))
	for n := 0; n < 1_000_000; n += 2 * batch {
		x.run(batch)
		x.submitAs(batch-1, flow.Request{Action: "noop", Kind: flow.KindNoop, Queue: "default", Labels: map[string]string{"set": "half"}})
		x.submitAs(1, storetest.Graded)
		x.finish(x.claim(batch))
	}
	storetest.BenchmarkSearches(b, x.s)
	storetest.BenchmarkWalks(b, x.s)
	storetest.BenchmarkDigests(b, x.s)
	storetest.BenchmarkCounts(b, x.s)
}

// BenchmarkAlone measures one execution at a time: each of its three writes waits for the disk separately.
func BenchmarkAlone(b *testing.B) {
	x := newBench(b)
	var worst time.Duration
	for b.Loop() {
		start := time.Now()
		x.submit(1)
		x.finish(x.claim(1))
		worst = max(worst, time.Since(start))
	}
	b.ReportMetric(float64(worst.Microseconds()), "worst-µs")
}
