package handofftest_test

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/rabbitmq/rabbitmqtest"
	"github.com/pawl-run/pawl/internal/handoff/redis/redistest"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

var (
	noops = flag.Int("broker.noops", 5000, "how many executions there are while TestBrokerKilledAgainAndAgain kills a broker")
	kills = flag.Int("broker.kills", 2, "how often it is killed")
	again = flag.Duration("broker.again", time.Minute, "how soon after the broker answers something has to end again")
)

// runs counts how often each execution runs.
type runs struct {
	mu  sync.Mutex
	all map[flow.ID]int
}

func (r *runs) Run(_ context.Context, tk *task.Task) (json.RawMessage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[tk.Execution]++
	return nil, nil
}

// A broker is killed repeatedly while many executions run: each of them runs and ends once, and work continues soon after the broker
// answers.
func TestBrokerKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	type broker interface {
		Kill()
		Again()
	}
	for name, start := range map[string]func(*testing.T) (broker, func(*testing.T, *engine.Engine) handoff.Handoff){
		"redis": func(t *testing.T) (broker, func(*testing.T, *engine.Engine) handoff.Handoff) {
			s := redistest.Start(t, "--appendonly", "yes")
			return s, func(t *testing.T, e *engine.Engine) handoff.Handoff {
				return behind(t, e, transport(t, s.URL()), transport(t, s.URL()))
			}
		},
		"rabbitmq": func(t *testing.T) (broker, func(*testing.T, *engine.Engine) handoff.Handoff) {
			s := rabbitmqtest.Start(t)
			return s, func(t *testing.T, e *engine.Engine) handoff.Handoff {
				return behind(t, e, rabbit(t, s.URL(), "one"), rabbit(t, s.URL(), ""))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, carry := start(t)
			var e *engine.Engine
			// On a busy machine RabbitMQ takes minutes to start.
			rig := leased(t, 5*time.Minute, func(t *testing.T, made *engine.Engine) handoff.Handoff {
				e = made
				return carry(t, made)
			})
			ids := submitMany(t, e, *noops)
			ran := &runs{all: map[flow.ID]int{}}
			w, err := worker.New(worker.Options{Handoff: rig.Handoff, Slots: 64, Grace: time.Second, Handlers: task.Passes(task.Handlers{flow.KindNoop: ran}),
				Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- w.Run(ctx) }()
			defer func() {
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
			}()
			ended := func() int64 { return e.Stats().Finished }
			await := func(n int64, what string) time.Duration {
				t.Helper()
				for began := time.Now(); ; <-time.After(time.Millisecond) {
					if ended() >= n {
						return time.Since(began)
					}
					if time.Since(began) > 10*time.Minute {
						t.Fatalf("%s: %d of %d have ended", what, ended(), len(ids))
					}
				}
			}
			var worst time.Duration
			for i := range *kills {
				await(int64((i+1)**noops/(*kills+1)), "before a kill")
				b.Kill()
				stuck := ended()
				b.Again()
				worst = max(worst, await(min(stuck+1, int64(*noops)), "after a kill"))
			}
			await(int64(*noops), "after the last kill")
			t.Logf("%d executions, %d kills: something ended again at most %s after the broker answered", *noops, *kills, worst.Round(time.Millisecond))
			if worst > *again {
				t.Errorf("nothing ended for %s after the broker answered, want at most %s", worst, *again)
			}
			ran.mu.Lock()
			defer ran.mu.Unlock()
			for _, id := range ids {
				x, err := rig.Reader.Get(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				if x.Stage != flow.Completed || x.Spent() != 1 || ran.all[id] != 1 {
					t.Errorf("%s is %s after %d runs, of which %d count", id, x.Stage, ran.all[id], x.Spent())
				}
			}
		})
	}
}

func submitMany(t *testing.T, e *engine.Engine, n int) (ids []flow.ID) {
	t.Helper()
	for len(ids) < n {
		subs := make([]engine.Submission, min(500, n-len(ids)))
		for i := range subs {
			subs[i] = engine.Submission{Action: string(flow.KindNoop)}
		}
		out, err := e.Submit(t.Context(), subs)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range out {
			if x.Err != nil {
				t.Fatal(x.Err)
			}
			ids = append(ids, x.Execution)
		}
	}
	return ids
}
