package chaos

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

// When a worker that held very many executions is lost, they are taken back batch by batch, and fresh work goes on meanwhile: invariant 36.
func TestFreshWorkDuringRecovery(t *testing.T) {
	stale := 5_000
	if *long {
		stale = 100_000
	}
	dsn := shared(t).named(t)
	s, err := postgres.Open(t.Context(), dsn, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The test renews neither session: thousands of consecutive commits may take longer than the usual lease.
	e, err := engine.New(engine.Options{Store: s, Committers: 2, Queues: []string{"stale", "fresh"}, Lease: 10 * time.Minute, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		if err := e.Run(ctx); err != nil {
			t.Errorf("engine: %v", err)
		}
	})
	t.Cleanup(func() {
		stop()
		all.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	open := func(queue string) flow.ID {
		id, err := e.Open(ctx, handoff.Session{Name: queue, Queues: []string{queue}, Slots: stale})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	lost, alive := open("stale"), open("fresh")
	for held := 0; held < stale; {
		out, err := e.Submit(ctx, slices.Repeat([]engine.Submission{{Action: "noop", Queue: "stale", Input: json.RawMessage(`1`)}}, 1000))
		if err != nil {
			t.Fatal(err)
		}
		for taken := 0; taken < len(out); {
			work, err := e.Take(ctx, lost, 1000)
			if err != nil {
				t.Fatal(err)
			}
			taken += len(work)
			held += len(work)
		}
	}
	// fresh submits one execution, claims and ends it, and returns how long the claim took.
	fresh := func() time.Duration {
		began := time.Now()
		if _, err := e.Submit(ctx, []engine.Submission{{Action: "noop", Queue: "fresh"}}); err != nil {
			t.Fatal(err)
		}
		work, err := e.Take(ctx, alive, 1)
		took := time.Since(began)
		if err != nil || len(work) != 1 {
			t.Fatalf("%v, %v", work, err)
		}
		a := work[0]
		_, err = e.Report(ctx, alive, []flow.Report{{Execution: a.Execution, Attempt: a.Attempt, Events: []flow.Event{
			{Seq: a.NextSeq, Attempt: a.Attempt, Type: flow.EvRunning, At: time.Now()},
			{Seq: a.NextSeq + 1, Attempt: a.Attempt, Type: flow.EvCompleted, At: time.Now(), Outcome: &flow.Outcome{}}}}})
		if err != nil {
			t.Fatal(err)
		}
		return took
	}
	left := func() (n int) {
		x, err := s.Survey(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range x.Unfinished {
			if u.Stage == flow.Provisioning || u.Stage == flow.Running {
				n += u.Count
			}
		}
		return n
	}
	var usual, during []time.Duration
	for range 1000 {
		usual = append(usual, fresh())
	}
	if n := left(); n != stale {
		t.Fatalf("%d are held", n)
	}
	(&database{dsn: dsn}).execute(t, `UPDATE pawl.sessions SET expires_at = 1 WHERE slots = `+jsonOf(stale)+` AND name = 'stale'`)
	began := time.Now()
	for n := 0; ; n++ {
		during = append(during, fresh())
		if n%50 == 0 && left() == 0 {
			break
		}
		if time.Since(began) > 3*time.Minute {
			t.Fatalf("%d are still held after %s", left(), time.Since(began))
		}
	}
	took := time.Since(began)
	t.Logf("%d taken back within %s, %d/s; claims of fresh work: p50 %s and p99 %s, usually %s and %s", stale, took.Round(time.Millisecond),
		int(float64(stale)/took.Seconds()), quantile(during, 0.5), quantile(during, 0.99), quantile(usual, 0.5), quantile(usual, 0.99))
	if half := quantile(during, 0.5); *long && half > 2*quantile(usual, 0.5) { // the p99 depends on the machine's other load
		t.Errorf("invariant 36: half of the claims took more than %s", half)
	}
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func quantile(all []time.Duration, q float64) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[int(q*float64(len(all)-1))].Round(10 * time.Microsecond)
}
