package redis_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/handler"
	"github.com/pawl-run/pawl/handler/redis"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff/post"
	office "github.com/pawl-run/pawl/internal/handoff/redis"
	"github.com/pawl-run/pawl/internal/handoff/redis/redistest"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/sqlite"
)

const token = "sesame"

// server is an engine behind a broker, with an action for the handler double.
func server(t *testing.T, url string) *engine.Engine {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.InMemory, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{Store: st, Exclusive: true, Queues: []string{"double"}})
	if err != nil {
		t.Fatal(err)
	}
	at, err := office.Open(t.Context(), office.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	s := post.NewServer(post.ServerOptions{Office: at, Handoff: e, Key: []byte("key"), Tokens: []string{token}})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- e.Run(ctx) }()
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		at.Close()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	defs, err := definition.Parse("actions.yaml", []byte("name: double\nhandler: double\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Define(t.Context(), defs); err != nil {
		t.Fatal(err)
	}
	return e
}

type number struct {
	N int `json:"n"`
}

// A program behind a broker runs what the servers have for its handlers, and its logs and outputs come back.
func TestServeThroughRedis(t *testing.T) {
	t.Parallel()
	url := redistest.URL(t)
	e := server(t, url)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- handler.Serve(ctx, handler.Options{Broker: redis.Broker(url), Token: token, Log: slog.New(slog.DiscardHandler)}, handler.Map{
			"double": handler.Func(func(_ context.Context, t *handler.Task, in number) (number, error) {
				t.Logf("doubling %d", in.N)
				return number{2 * in.N}, nil
			}),
		})
	}()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	out, err := e.Submit(t.Context(), []engine.Submission{{Action: "double", Input: json.RawMessage(`{"n":21}`)}})
	if err != nil || out[0].Err != nil {
		t.Fatalf("submit: %v, %+v", err, out)
	}
	waiting, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	end := e.Ending(out[0].Execution)
	defer end.Close()
	x, err := end.Wait(waiting)
	if err != nil || x.Stage != flow.Completed || string(x.Outcome.Output) != `{"n":42}` {
		t.Fatalf("%+v, %v", x, err)
	}
	logs, err := e.Reader().ReadLogs(t.Context(), store.LogQuery{Execution: x.ID, Limit: 1000})
	if err != nil || len(logs) != 1 || string(logs[0].Data) != "doubling 21\n" {
		t.Errorf("logs %+v, %v", logs, err)
	}
}

// What is wrong with the way to the servers is said before anything is served.
func TestBadBrokers(t *testing.T) {
	m := handler.Map{"x": func(context.Context, *handler.Task) (any, error) { return nil, nil }}
	t.Setenv("PAWL_BROKER", "")
	for name, tc := range map[string]struct {
		o    handler.Options
		want string
	}{
		"none":                {handler.Options{Broker: redis.Broker("")}, "PAWL_BROKER"},
		"not a URL":           {handler.Options{Broker: redis.Broker("localhost:6379")}, "redis://127.0.0.1:6379"},
		"nobody there":        {handler.Options{Broker: redis.Broker("redis://127.0.0.1:1")}, "127.0.0.1:1"},
		"a server and broker": {handler.Options{Server: "http://127.0.0.1:1", Broker: redis.Broker("redis://127.0.0.1:1")}, "a server and a broker"},
	} {
		if err := handler.Serve(t.Context(), tc.o, m); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A program with another token is refused, and says so.
func TestOtherToken(t *testing.T) {
	t.Parallel()
	url := redistest.URL(t)
	server(t, url)
	m := handler.Map{"x": func(context.Context, *handler.Task) (any, error) { return nil, nil }}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := handler.Serve(ctx, handler.Options{Broker: redis.Broker(url), Token: "other", Log: slog.New(slog.DiscardHandler)}, m); err == nil || !strings.Contains(err.Error(), "token") {
		t.Error(err)
	}
}
