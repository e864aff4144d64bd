package postgres

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/storetest"
)

// batch is how many executions share a commit in the benchmarks.
const batch = 400

type bench struct {
	tb   testing.TB
	s    *Store
	made atomic.Uint64
	now  time.Time
}

func newBench(tb testing.TB) *bench {
	return &bench{tb: tb, s: open(tb, server(tb), emptySchema(tb)), now: time.Now().UTC().Truncate(time.Microsecond)}
}

// id returns an id like a UUIDv7: roughly in order of time, and random at the end.
func (b *bench) id() flow.ID {
	n := b.made.Add(1)
	var id flow.ID
	binary.BigEndian.PutUint64(id[:], 0x01934c5a7b100000+n>>8)
	binary.BigEndian.PutUint64(id[8:], n*0x9e3779b97f4a7c15)
	return id
}

func (b *bench) update(decide func(ctx context.Context, t store.Tx) error) {
	if err := b.s.Update(context.Background(), decide); err != nil {
		panic(err) // it runs in a goroutine of the benchmark
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
func (b *bench) claim(session flow.ID, n int) []flow.ID {
	var ids []flow.ID
	b.update(func(ctx context.Context, t store.Tx) error {
		taken, err := t.Take(ctx, []string{"default"}, n)
		if err != nil {
			return err
		}
		ids = make([]flow.ID, len(taken))
		drafts := make([]*flow.Draft, len(taken))
		for i, x := range taken {
			ids[i] = x.ID
			drafts[i] = flow.Load(x)
			if err := drafts[i].Claim(session, "bench-worker", b.now); err != nil {
				return err
			}
		}
		return t.Apply(ctx, store.Delta{Drafts: drafts})
	})
	return ids
}

// finish reports claimed executions as completed.
func (b *bench) finish(session flow.ID, ids []flow.ID) {
	b.update(func(ctx context.Context, t store.Tx) error {
		locked, err := t.Lock(ctx, ids, store.WithoutPayload)
		if err != nil {
			return err
		}
		drafts := make([]*flow.Draft, len(locked))
		for i, x := range locked {
			d := flow.Load(x)
			rc := d.Report(session, flow.Report{Execution: x.ID, Attempt: 1, Events: []flow.Event{
				{Seq: d.NextSeq, Attempt: 1, Type: flow.EvRunning, At: b.now},
				{Seq: d.NextSeq + 1, Attempt: 1, Type: flow.EvCompleted, At: b.now, Data: storetest.EndDataOf(d.Kind), Outcome: &flow.Outcome{Output: []byte("{}")}},
			}}, nil, nil, b.now, 0)
			if rc.Verdict != flow.Applied {
				return fmt.Errorf("report: %+v", rc)
			}
			drafts[i] = d
		}
		return t.Apply(ctx, store.Delta{Drafts: drafts})
	})
}

// measured runs work over n executions on several connections concurrently and reports its rate and its cost.
func measured(b *testing.B, n, connections int, work func(session flow.ID) int) {
	b.Helper()
	client, backend := cpu(b), serverCPU(b)
	began := time.Now()
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for c := range connections {
		wg.Go(func() {
			for left.Load() > 0 {
				did := work(flow.ID{byte(c + 1)})
				if did == 0 {
					return
				}
				left.Add(-int64(did))
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	b.ReportMetric(float64(n)/took.Seconds(), "executions/s")
	b.ReportMetric((cpu(b)-client)/float64(n), "client-µs/execution")
	b.ReportMetric((serverCPU(b)-backend)/float64(n), "server-µs/execution")
	b.ReportMetric(0, "ns/op")
}

// cpu returns the processor time of this process in microseconds.
func cpu(b *testing.B) float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}

// serverCPU returns the processor time of PostgreSQL's processes on this machine in microseconds, if there is a /proc.
func serverCPU(b *testing.B) (us float64) {
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "(postgres)") {
			continue // it has ended meanwhile, or is another program
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		for _, f := range fields[11:13] { // user and system time, in hundredths of a second
			ticks, err := strconv.ParseFloat(f, 64)
			if err != nil {
				b.Fatal(err)
			}
			us += ticks * 1e4
		}
	}
	return us
}

// total is the number of executions in a benchmark.
const total = 100_000

func BenchmarkSubmit(b *testing.B) {
	for _, connections := range []int{1, 2} {
		b.Run(fmt.Sprint(connections), func(b *testing.B) {
			for b.Loop() {
				x := newBench(b)
				measured(b, total, connections, func(flow.ID) int {
					x.submit(batch)
					return batch
				})
			}
		})
	}
}

// BenchmarkClaimFinish measures claims and finishes of executions that already wait, and the space of one in the end.
func BenchmarkClaimFinish(b *testing.B) {
	for _, connections := range []int{1, 2} {
		b.Run(fmt.Sprint(connections), func(b *testing.B) {
			for b.Loop() {
				x := newBench(b)
				for range total / batch {
					x.submit(batch)
				}
				measured(b, total, connections, func(session flow.ID) int {
					ids := x.claim(session, batch)
					x.finish(session, ids)
					return len(ids)
				})
				var size int64
				c := call{once: `SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
					WHERE n.nspname = $1 AND c.relname = 'ended'`, read: func(r *rows) error { size = r.int(); return nil }}
				var a args
				c.params = a.text(x.s.name).params
				if err := x.s.read(context.Background(), c); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(size)/total, "bytes/execution")
			}
		})
	}
}

// BenchmarkIdleTransaction measures claims and finishes while another connection keeps an old transaction open, so that deleted rows cannot
// be removed.
func BenchmarkIdleTransaction(b *testing.B) {
	for b.Loop() {
		x := newBench(b)
		ctx := context.Background()
		idle, err := pgx.Connect(ctx, server(b))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := idle.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT txid_current()`); err != nil {
			b.Fatal(err)
		}
		for range total / batch {
			x.submit(batch)
		}
		for part := range 4 {
			began := time.Now()
			measured(b, total/4, 2, func(session flow.ID) int {
				ids := x.claim(session, batch/4)
				x.finish(session, ids)
				return len(ids)
			})
			b.ReportMetric(float64(total/4)/time.Since(began).Seconds(), fmt.Sprintf("quarter%d/s", part+1))
		}
		if err := idle.Close(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAlone measures one execution at a time: submitted, claimed, finished, a commit each.
func BenchmarkAlone(b *testing.B) {
	x := newBench(b)
	session := flow.ID{1}
	for b.Loop() {
		x.submit(1)
		x.finish(session, x.claim(session, 1))
	}
}

var million = flag.Bool("million", false, "run the benchmark that fills a store with a million executions first")

// BenchmarkSearch searches for rare executions among a million, for half of them by one label, and for none at all; it takes minutes.
func BenchmarkSearch(b *testing.B) {
	if !*million {
		b.Skip("needs -million")
	}
	x, session := newBench(b), flow.ID{1, 2, 3}
	x.submitAs(20, flow.Request{Action: "rare", Kind: flow.KindNoop, Queue: "default", Labels: map[string]string{"set": "rare"}})
	x.finish(session, x.claim(session, 20))
	for n := 0; n < 1_000_000; n += 1000 {
		x.submit(500)
		x.submitAs(497, flow.Request{Action: "noop", Kind: flow.KindNoop, Queue: "default", Labels: map[string]string{"set": "half"}})
		x.submitAs(3, storetest.Graded)
		x.finish(session, x.claim(session, 1000))
	}
	storetest.BenchmarkSearches(b, x.s)
	storetest.BenchmarkWalks(b, x.s)
	storetest.BenchmarkDigests(b, x.s)
	storetest.BenchmarkCounts(b, x.s)
}
