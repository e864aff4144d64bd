package sqlite

import (
	"context"
	"encoding/binary"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/storetest"
)

// batch is how many executions share a commit in the benchmarks.
const batch = 200

type bench struct {
	tb      testing.TB
	s       *Store
	session flow.ID
	made    uint64
	now     time.Time
}

func newBench(tb testing.TB) *bench {
	s, err := Open(context.Background(), filepath.Join(tb.TempDir(), "bench.db"), Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return &bench{tb: tb, s: s, session: flow.ID{1, 2, 3}, now: time.Now().UTC().Truncate(time.Microsecond)}
}

func (b *bench) id() flow.ID {
	b.made++
	var id flow.ID
	binary.BigEndian.PutUint64(id[:], 0x01934c5a7b100000+b.made>>8)
	binary.BigEndian.PutUint64(id[8:], b.made*0x9e3779b97f4a7c15)
	return id
}

func (b *bench) update(decide func(ctx context.Context, t store.Tx) error) {
	b.tb.Helper()
	if err := b.s.Update(context.Background(), decide); err != nil {
		b.tb.Fatal(err)
	}
}

// submit stores n executions that are ready to be claimed.
func (b *bench) submit(n int) {
	b.submitAs(n, flow.Request{Action: "noop", Kind: flow.KindNoop, Queue: "default", Input: []byte("{}")})
}

func (b *bench) submitAs(n int, r flow.Request) {
	r.CreatedAt = b.now
	b.update(func(ctx context.Context, t store.Tx) error {
		first, err := t.Tickets(ctx, n)
		if err != nil {
			return err
		}
		d := store.Delta{Drafts: make([]*flow.Draft, n)}
		for i := range n {
			x := flow.Submit(b.id(), r)
			if err := x.Schedule(first+int64(i), b.now); err != nil {
				return err
			}
			d.Drafts[i] = x
		}
		return t.Apply(ctx, d)
	})
}

// claim hands off up to n executions.
func (b *bench) claim(n int) []*flow.Draft {
	var drafts []*flow.Draft
	b.update(func(ctx context.Context, t store.Tx) error {
		taken, err := t.Take(ctx, []string{"default"}, n)
		if err != nil {
			return err
		}
		drafts = make([]*flow.Draft, len(taken))
		for i, x := range taken {
			drafts[i] = flow.Load(x)
			if err := drafts[i].Claim(b.session, "bench-worker", b.now); err != nil {
				return err
			}
		}
		return t.Apply(ctx, store.Delta{Drafts: drafts})
	})
	return drafts
}

// finish reports claimed executions as completed.
func (b *bench) finish(claimed []*flow.Draft) {
	ids := make([]flow.ID, len(claimed))
	for i, d := range claimed {
		ids[i] = d.ID
	}
	b.update(func(ctx context.Context, t store.Tx) error {
		locked, err := t.Lock(ctx, ids, store.WithoutPayload)
		if err != nil {
			return err
		}
		drafts := make([]*flow.Draft, len(locked))
		for i, x := range locked {
			d := flow.Load(x)
			rc := d.Report(b.session, flow.Report{Execution: x.ID, Attempt: 1, Events: []flow.Event{
				{Seq: d.NextSeq, Attempt: 1, Type: flow.EvRunning, At: b.now},
				{Seq: d.NextSeq + 1, Attempt: 1, Type: flow.EvCompleted, At: b.now, Data: storetest.EndDataOf(d.Kind), Outcome: &flow.Outcome{Output: []byte("{}")}},
			}}, nil, nil, b.now, 0)
			if rc.Verdict != flow.Applied {
				b.tb.Fatalf("report: %+v", rc)
			}
			drafts[i] = d
		}
		return t.Apply(ctx, store.Delta{Drafts: drafts})
	})
}

func (b *bench) run(n int) {
	for done := 0; done < n; done += batch {
		b.submit(batch)
		b.finish(b.claim(batch))
	}
}

// measured runs a benchmark's step, which handles a batch, and reports executions per second and their cost: on a shared machine the
// processor time is the steadier figure.
func measured(b *testing.B, step func()) int {
	n := 0
	before := cpu(b)
	for b.Loop() {
		step()
		n += batch
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "executions/s")
	b.ReportMetric((cpu(b)-before)/float64(n), "cpu-µs/execution")
	b.ReportMetric(0, "ns/op")
	return n
}

// cpu returns the processor time of this process in microseconds.
func cpu(b *testing.B) float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}

func BenchmarkSubmit(b *testing.B) {
	x := newBench(b)
	measured(b, func() { x.submit(batch) })
}

// BenchmarkClaimFinish measures claims and finishes of executions that already wait.
func BenchmarkClaimFinish(b *testing.B) {
	x := newBench(b)
	for range 1000 {
		x.submit(batch)
	}
	measured(b, func() {
		claimed := x.claim(batch)
		if len(claimed) < batch {
			b.Fatal("nothing is left to claim: run it for a shorter time")
		}
		x.finish(claimed)
	})
}

// BenchmarkLife measures all three writes.
func BenchmarkLife(b *testing.B) {
	x := newBench(b)
	n := measured(b, func() { x.run(batch) })
	size, err := x.s.Size(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(size)/float64(n), "bytes/execution")
}

// BenchmarkProgress measures the reads of a workflow of 10,000 items after some of them have ended.
func BenchmarkProgress(b *testing.B) {
	x := newBench(b)
	wf := flow.Submit(x.id(), flow.Request{Action: "wf", Kind: flow.KindWorkflow, Queue: "default", CreatedAt: x.now})
	drafts := []*flow.Draft{wf}
	for i := range 10_000 {
		drafts = append(drafts, flow.Submit(x.id(), flow.Request{Parent: wf.ID, ParentAttempt: 1, Task: "each", Index: i,
			Action: "noop", Kind: flow.KindNoop, Queue: "default", CreatedAt: x.now}))
	}
	x.update(func(ctx context.Context, t store.Tx) error { return t.Apply(ctx, store.Delta{Drafts: drafts}) })
	x.update(func(ctx context.Context, t store.Tx) error {
		n, before := 0.0, cpu(b)
		defer func() { b.ReportMetric((cpu(b)-before)/n, "cpu-µs/op") }()
		for b.Loop() {
			n++
			got, err := t.LockWorkflows(ctx, []store.KnownWorkflow{{WorkflowAttempt: store.WorkflowAttempt{ID: wf.ID, Attempt: 1}, Change: store.NothingKnown}})
			if err != nil || got[0].Tasks[0].Open != 10_000 {
				b.Fatal(got, err)
			}
		}
		return nil
	})
}
