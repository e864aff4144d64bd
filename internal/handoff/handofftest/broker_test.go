package handofftest_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc/brokerrpctest"
	"github.com/pawl-run/pawl/internal/handoff/handofftest"
	"github.com/pawl-run/pawl/internal/handoff/rabbitmq"
	"github.com/pawl-run/pawl/internal/handoff/rabbitmq/rabbitmqtest"
	"github.com/pawl-run/pawl/internal/handoff/redis"
	"github.com/pawl-run/pawl/internal/handoff/redis/redistest"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// behind is a worker's hand-off to an engine through brokers, with a connection for the server and one for the worker.
func behind(t *testing.T, e *engine.Engine, servers, workers brokerrpc.Transport) *brokerrpc.Client {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s := brokerrpc.NewServer(brokerrpc.ServerOptions{Transport: servers, Handoff: e, Key: []byte("shared by the servers"),
		Tokens: []string{"sesame"}, Log: log})
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- s.Run(ctx) }()
	c := brokerrpc.NewClient(workers, "sesame")
	t.Cleanup(func() {
		c.Stop()
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	return c
}

func overModel(t *testing.T, e *engine.Engine) handoff.Handoff {
	m := &brokerrpctest.Model{}
	return behind(t, e, m, m)
}

func transport(t *testing.T, url string) *redis.Broker {
	t.Helper()
	f, err := redis.Open(t.Context(), redis.Options{URL: url, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func overRedis(t *testing.T, e *engine.Engine) handoff.Handoff {
	url := redistest.URL(t)
	return behind(t, e, transport(t, url), transport(t, url))
}

func TestModel(t *testing.T) {
	t.Parallel()
	handofftest.Exercise(t, func(t *testing.T) *handofftest.Rig { return build(t, overModel) })
}

func TestRedis(t *testing.T) {
	t.Parallel()
	handofftest.Exercise(t, func(t *testing.T) *handofftest.Rig { return build(t, overRedis) })
}

// The rights in docs/brokers.md are enough for everything that servers and workers do.
func TestRedisWithRights(t *testing.T) {
	t.Parallel()
	handofftest.Exercise(t, func(t *testing.T) *handofftest.Rig {
		return build(t, func(t *testing.T, e *engine.Engine) handoff.Handoff {
			s := redistest.Start(t)
			s.Rights()
			return behind(t, e, transport(t, s.As("servers")), transport(t, s.As("plant")))
		})
	})
}

// rabbit is a connection to a RabbitMQ: a server's, which has an installation, or a worker's.
func rabbit(t *testing.T, url, installation string) brokerrpc.Transport {
	t.Helper()
	f, err := rabbitmq.Open(t.Context(), rabbitmq.Options{URL: url, Installation: installation, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func overRabbitMQ(t *testing.T, e *engine.Engine) handoff.Handoff {
	url := rabbitmqtest.URL(t)
	return behind(t, e, rabbit(t, url, "one"), rabbit(t, url, ""))
}

func TestRabbitMQ(t *testing.T) {
	t.Parallel()
	handofftest.Exercise(t, func(t *testing.T) *handofftest.Rig { return build(t, overRabbitMQ) })
}

// bad is the fate of messages in a broker with every fault that the port allows, for example two deliveries.
func bad(seed uint64) func(string) brokerrpctest.Fate {
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(seed, 1))
	return func(string) brokerrpctest.Fate {
		mu.Lock()
		defer mu.Unlock()
		var f brokerrpctest.Fate
		if dice.Float64() < 0.3 {
			f.Delay = time.Duration(dice.Float64() * float64(50*time.Millisecond))
		}
		if dice.Float64() < 0.1 {
			f.Copies = 1 + dice.IntN(2)
		}
		f.Lost = dice.Float64() < 0.03
		return f
	}
}

// A worker behind a broker that loses, duplicates, delays and reorders does everything once.
func TestWorkerBehindABadBroker(t *testing.T) {
	t.Parallel()
	runOnce(t, 60, build(t, func(t *testing.T, e *engine.Engine) handoff.Handoff {
		m := &brokerrpctest.Model{Fate: bad(7)}
		return behind(t, e, m, m)
	}), func() {})
}

// once is a handler that counts its runs.
type once struct {
	mu   sync.Mutex
	runs map[flow.ID]int
}

func (o *once) Run(_ context.Context, tk *task.Task) (json.RawMessage, error) {
	o.mu.Lock()
	o.runs[tk.Execution]++
	o.mu.Unlock()
	_, err := io.WriteString(tk.Log("log"), "hello")
	return tk.Payload, err
}

// runOnce submits and runs executions while trouble happens, and expects that each ran once, in its first attempt, with a complete log.
func runOnce(t *testing.T, n int, rig *handofftest.Rig, trouble func()) {
	t.Helper()
	o := &once{runs: map[flow.ID]int{}}
	w, err := worker.New(worker.Options{Handoff: rig.Handoff, Slots: 4, Grace: time.Second, Handlers: task.Passes(task.Handlers{flow.KindNoop: o}),
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
	var ids []flow.ID
	half, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		<-half
		trouble()
	}()
	defer func() { <-over }()
	for i := range n {
		if i == n/2 {
			close(half)
		}
		ids = append(ids, rig.Submit(t, flow.KindNoop, json.RawMessage(`{"a":1}`)))
	}
	deadline := time.Now().Add(10 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, id := range ids {
		for {
			x, err := rig.Reader.Get(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if x.Stage.Terminal() {
				if x.Stage != flow.Completed || x.Spent() != 1 || string(x.Outcome.Output) != `{"a":1}` {
					t.Errorf("%s in attempt %d, %d count: %+v", x.Stage, x.Attempt, x.Spent(), x.Outcome)
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is still %s", id, x.Stage)
			}
			<-tick.C
		}
		chunks, err := rig.Reader.ReadLogs(t.Context(), store.LogQuery{Execution: id, Limit: 1 << 20})
		if err != nil || len(chunks) != 1 || string(chunks[0].Data) != "hello" {
			t.Errorf("log of %s: %+v, %v", id, chunks, err)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, n := range o.runs {
		if n != 1 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
}

// Redis is killed and restarted, with or without its data, and is emptied, during work: nothing is lost or done twice, and the work
// continues.
func TestRedisIsKilled(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"everysec": {"--appendonly", "yes", "--appendfsync", "everysec"},
		"empty":    {"--appendonly", "no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, args...)
			runOnce(t, 1000, build(t, func(t *testing.T, e *engine.Engine) handoff.Handoff {
				return behind(t, e, transport(t, s.URL()), transport(t, s.URL()))
			}), func() {
				for range 3 {
					s.Kill()
					s.Again()
					<-time.After(300 * time.Millisecond)
				}
			})
		})
	}
	t.Run("FLUSHALL", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t)
		runOnce(t, 1000, build(t, func(t *testing.T, e *engine.Engine) handoff.Handoff {
			return behind(t, e, transport(t, s.URL()), transport(t, s.URL()))
		}), func() {
			for range 5 {
				s.Do("FLUSHALL")
				<-time.After(200 * time.Millisecond)
			}
		})
	})
}

// The leader of several Redis servers is killed, another replaces it, and it comes back: work pauses and continues,
// nothing is lost or done twice.
func TestRedisLeaderIsKilled(t *testing.T) {
	t.Parallel()
	for name, several := range map[string]func(*testing.T) *redistest.Several{"sentinel": redistest.Sentinel, "cluster": redistest.Cluster} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := several(t)
			// A takeover takes seconds; on a busy machine it may take longer than two thirds of the usual lease.
			runOnce(t, 1000, leased(t, 5*time.Minute, func(t *testing.T, e *engine.Engine) handoff.Handoff {
				return behind(t, e, transport(t, s.URL()), transport(t, s.URL()))
			}), func() {
				for range 2 {
					s.Fail("pawl:{default}:tell")
					<-time.After(300 * time.Millisecond)
				}
			})
		})
	}
}

// RabbitMQ is killed and restarted, all connections are closed, and queues and reply queues are deleted, during work.
func TestRabbitMQIsKilled(t *testing.T) {
	t.Parallel()
	s := rabbitmqtest.Start(t)
	for _, c := range []struct {
		name    string
		trouble func(url string)
	}{
		{"killed", func(string) {
			for range 2 {
				s.Kill()
				s.Again()
				<-time.After(300 * time.Millisecond)
			}
		}},
		{"cut-off", func(string) {
			for range 5 {
				s.Ctl("close_all_connections", "test")
				<-time.After(200 * time.Millisecond)
			}
		}},
		{"deleted", func(namespace string) {
			for range 5 {
				s.Delete("pawl." + namespace + ".")
				<-time.After(200 * time.Millisecond)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) { // one after another: they share the server
			url := s.URL() + "?namespace=" + c.name
			// On a busy machine a starting RabbitMQ takes longer than two thirds of the usual lease: up to three minutes.
			runOnce(t, 1000, leased(t, 5*time.Minute, func(t *testing.T, e *engine.Engine) handoff.Handoff {
				return behind(t, e, rabbit(t, url, "one"), rabbit(t, url, ""))
			}), func() { c.trouble(c.name) })
		})
	}
}

// The node of a RabbitMQ cluster that leads a line is killed, another one leads it, and the node comes back: work
// pauses and continues, nothing is lost or done twice.
func TestRabbitMQLeaderIsKilled(t *testing.T) {
	t.Parallel()
	c := rabbitmqtest.Cluster(t)
	runOnce(t, 1000, leased(t, 5*time.Minute, func(t *testing.T, e *engine.Engine) handoff.Handoff {
		return behind(t, e, rabbit(t, c.URL(), "one"), rabbit(t, c.URL(), ""))
	}), func() { c.Fail("pawl.default.tell") })
}
