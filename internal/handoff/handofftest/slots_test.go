package handofftest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/direct"
	"github.com/pawl-run/pawl/internal/handoff/remote"
	"github.com/pawl-run/pawl/internal/store/sqlite"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// crowd counts how many handlers run at once.
type crowd struct{ now, most atomic.Int32 }

func (c *crowd) run(hold time.Duration, fails func(*task.Task) bool) task.Func {
	return func(ctx context.Context, t *task.Task) (json.RawMessage, error) {
		n := c.now.Add(1)
		defer c.now.Add(-1)
		for old := c.most.Load(); n > old && !c.most.CompareAndSwap(old, n); old = c.most.Load() {
		}
		held := time.NewTimer(hold)
		defer held.Stop()
		select {
		case <-held.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if fails(t) {
			return nil, task.Errorf("again", "attempt %d fails", t.Attempt)
		}
		return nil, nil
	}
}

// instantly is an instant handler that is slow enough to be observed.
type instantly struct{ task.Func }

func (instantly) Instant() {}

// A worker with n slots runs n executions at once and never more: under any routing key, instant or slow, in their first attempt or a later
// one, and beside another worker with other labels.
func TestOneExecutionPerSlot(t *testing.T) {
	t.Parallel()
	for name, carry := range map[string]func(t *testing.T, e *engine.Engine) handoff.Handoff{
		"direct":   func(_ *testing.T, e *engine.Engine) handoff.Handoff { return direct.New(e) },
		"model":    overModel,
		"rabbitmq": overRabbitMQ,
		"redis":    overRedis,
		"remote": func(t *testing.T, e *engine.Engine) handoff.Handoff {
			srv := httptest.NewServer(remote.Handler(e, nil))
			t.Cleanup(srv.Close)
			c, err := remote.Dial(srv.URL, "")
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
	} {
		for _, slots := range []int{1, 3} {
			t.Run(fmt.Sprint(name, slots), func(t *testing.T) {
				t.Parallel()
				onePerSlot(t, slots, carry)
			})
		}
	}
}

func onePerSlot(t *testing.T, slots int, carry func(t *testing.T, e *engine.Engine) handoff.Handoff) {
	st, err := sqlite.Open(t.Context(), sqlite.InMemory, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{Store: st, Exclusive: true, Log: slog.New(slog.DiscardHandler), Queues: []string{"slow", "instant"}})
	if err != nil {
		t.Fatal(err)
	}
	lines := []handoff.Handoff{carry(t, e), carry(t, e)}
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- e.Run(ctx) }()
	working, drain := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	t.Cleanup(func() {
		drain()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
		_ = st.Close()
	})
	crowds := []*crowd{{}, {}}
	for i, gpu := range []string{"a100", "t4"} {
		fails := func(t *task.Task) bool { return t.Attempt < 3 && t.Execution[15]%3 == 0 }
		w, err := worker.New(worker.Options{
			Handoff: lines[i], Slots: slots, Grace: time.Second, Queues: []string{"slow", "instant"}, Name: gpu,
			Labels: map[string]string{"gpu": gpu, "zone": "eu"},
			Handlers: task.Handlers{
				"slow": crowds[i].run(20*time.Millisecond, fails), "instant": instantly{crowds[i].run(time.Millisecond, fails)},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() { ended <- w.Run(working) }()
	}
	var subs []engine.Submission
	labels := []map[string]string{nil, {"gpu": "a100"}, {"gpu": "t4"}, {"zone": "eu"}, {"zone": "eu", "gpu": "a100"}}
	defs, err := definition.Parse("handlers.yaml", []byte("name: dawdle\nhandler: slow\n---\nname: dash\nhandler: instant\n"))
	if err == nil {
		_, err = e.Define(t.Context(), defs)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range 90 {
		subs = append(subs, engine.Submission{Action: []string{"dash", "dash", "dawdle"}[i%3], WorkerLabels: labels[i%len(labels)],
			Retry: &flow.Retry{MaxAttempts: 4, Backoff: flow.Constant, Delay: 10 * time.Millisecond}})
	}
	out, err := e.Submit(t.Context(), subs)
	if err != nil {
		t.Fatal(err)
	}
	retried := 0
	for i, s := range out {
		if s.Err != nil {
			t.Fatal(s.Err)
		}
		x := await(t, e, s.Execution)
		if x.Stage != flow.Completed {
			t.Errorf("%s: %+v", x.Stage, x.Outcome)
		}
		if x.Attempt > 1 {
			retried++
		}
		if want := flow.Reroute(x.Queue, "", labels[i%len(labels)]); x.Queue != want {
			t.Errorf("attempt %d was under routing key %q", x.Attempt, x.Queue)
		}
	}
	if retried == 0 {
		t.Error("nothing was tried again")
	}
	for i, c := range crowds {
		if most := int(c.most.Load()); most > slots || most < min(slots, 2) {
			t.Errorf("worker %d ran %d at once in %d slots", i, c.most.Load(), slots)
		}
	}
}

func await(t *testing.T, e *engine.Engine, id flow.ID) *flow.Execution {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	end := e.WaitForEnd(id)
	defer end.Close()
	x, err := end.Wait(ctx)
	if err != nil {
		t.Fatalf("%s has not ended: %v", id, err)
	}
	return x
}
