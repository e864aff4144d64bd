package handler_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/handler"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff/direct"
	"github.com/pawl-run/pawl/internal/handoff/remote"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/sqlite"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// server starts an engine for workers, with the given actions.
func server(t *testing.T, actions string) (*engine.Engine, string) {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.InMemory, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{Store: st, Exclusive: true, Queues: []string{"sums"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	srv := httptest.NewServer(remote.Handler(e, nil))
	t.Cleanup(func() {
		srv.Close()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	defs, err := definition.Parse("actions.yaml", []byte(actions))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Define(t.Context(), defs); err != nil {
		t.Fatal(err)
	}
	return e, srv.URL
}

// submit waits until the queue is known, that is until its worker has registered, and submits.
func submit(t *testing.T, e *engine.Engine, action, input string) flow.ID {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		out, err := e.Submit(t.Context(), []engine.Submission{{Action: action, Input: json.RawMessage(input)}})
		if err == nil {
			err = out[0].Err
		}
		if err == nil {
			return out[0].Execution
		}
		if time.Now().After(deadline) {
			t.Fatalf("submit %s: %v", action, err)
		}
	}
}

func ended(t *testing.T, e *engine.Engine, id flow.ID) *flow.Execution {
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

const actions = `
name: double
handler: double
queue: sums
---
name: linger
handler: linger
queue: sums
worker_labels: {gpu: a100}
---
name: bad
handler: bad
queue: sums
`

type number struct {
	N int `json:"n"`
}

func TestServe(t *testing.T) {
	t.Parallel()
	e, url := server(t, actions)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- handler.Serve(ctx, handler.Options{Server: url, Queues: []string{"sums"}, Labels: map[string]string{"gpu": "a100"}, Slots: 3, Log: slog.New(slog.DiscardHandler)}, handler.Map{
			"double": handler.Func(func(ctx context.Context, t *handler.Task, in number) (number, error) {
				t.Logf("doubling %d for %s", in.N, t.IdempotencyKey)
				if err := t.Progress(ctx, map[string]int{"percent": 50}); err != nil {
					return number{}, err
				}
				if in.N < 0 {
					return number{}, &handler.Failure{Code: "negative", Message: "too small", Details: in}
				}
				return number{2 * in.N}, nil
			}),
			"linger": func(ctx context.Context, _ *handler.Task) (any, error) {
				<-ctx.Done()
				return "half done", context.Cause(ctx)
			},
			"bad": func(context.Context, *handler.Task) (any, error) { return make(chan int), nil },
		})
	}()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	id := submit(t, e, "double", `{"n":21}`)
	x := ended(t, e, id)
	if x.Stage != flow.Completed || string(x.Outcome.Output) != `{"n":42}` {
		t.Errorf("%s, %+v", x.Stage, x.Outcome)
	}
	logs, err := e.Reader().ReadLogs(t.Context(), store.LogQuery{Execution: id, Limit: 1000})
	if err != nil || len(logs) != 1 || string(logs[0].Data) != "doubling 21 for "+id.String()+"\n" {
		t.Errorf("logs %+v, %v", logs, err)
	}
	events, err := e.Reader().Events(t.Context(), id, 0, 100)
	if err != nil || len(events) != 6 || events[4].Type != flow.EvProgress || string(events[4].Data) != `{"percent":50}` {
		t.Errorf("events %+v, %v", events, err)
	}
	x = ended(t, e, submit(t, e, "double", `{"n":-1}`))
	if x.Stage != flow.Failed || x.Outcome.Error.Code != "negative" || string(x.Outcome.Error.Details) != `{"n":-1}` {
		t.Errorf("%s, %+v", x.Stage, x.Outcome.Error)
	}
	x = ended(t, e, submit(t, e, "double", `{"n":"many"}`))
	if x.Outcome.Error == nil || x.Outcome.Error.Code != flow.CodeInvalidInput {
		t.Errorf("%s, %+v", x.Stage, x.Outcome.Error)
	}
	x = ended(t, e, submit(t, e, "bad", `{}`))
	if x.Outcome.Error == nil || !strings.Contains(x.Outcome.Error.Message, "no JSON form") {
		t.Errorf("%s, %+v", x.Stage, x.Outcome.Error)
	}
	id = submit(t, e, "linger", `{}`)
	for ctx := t.Context(); ; {
		x, err := e.Reader().Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if x.Stage == flow.Running {
			break
		}
	}
	if _, err := e.Cancel(t.Context(), id, "enough"); err != nil {
		t.Fatal(err)
	}
	x = ended(t, e, id)
	if x.Stage != flow.Cancelled || x.Outcome.Error.Message != "enough" || string(x.Outcome.Output) != `"half done"` {
		t.Errorf("%s, %+v, %+v", x.Stage, x.Outcome, x.Outcome.Error)
	}
}

// A result that is too large to be recorded fails its attempt once, with an error code of its own; the worker keeps its session.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	e, url := server(t, "name: large\nhandler: large\nqueue: sums\n")
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	large := strings.Repeat("\x01", 100_000)
	go func() {
		done <- handler.Serve(ctx, handler.Options{Server: url, Queues: []string{"sums"}, Log: slog.New(slog.DiscardHandler)}, handler.Map{
			"large": handler.Func(func(ctx context.Context, t *handler.Task, what string) (string, error) {
				switch what {
				case "progress":
					return "", t.Progress(ctx, large)
				case "details":
					return "", &handler.Failure{Code: "mine", Message: "no", Details: large}
				case "code":
					return "", &handler.Failure{Code: large, Message: "no"}
				case "message":
					return "", &handler.Failure{Code: "mine", Message: "no: \xff" + large}
				}
				return strings.Repeat("x", 17<<20), nil
			}),
		})
	}()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	for what, want := range map[string]struct{ code, says string }{
		"progress": {flow.CodeHandlerError, "600002 bytes (at most 65536)"}, "details": {flow.CodeHandlerError, "mine: no"},
		"code": {"\x01\x01", "no"}, "message": {"mine", "no: \uFFFD\x01"}, "output": {flow.CodeHandlerError, "at most 16777216"},
	} {
		out, err := e.Submit(t.Context(), []engine.Submission{{Action: "large", Input: json.RawMessage(`"` + what + `"`)}})
		if err != nil || out[0].Err != nil {
			t.Fatal(err, out)
		}
		x := ended(t, e, out[0].Execution)
		if x.Stage != flow.Failed || x.Attempt != 1 || !strings.HasPrefix(x.Outcome.Error.Code, want.code) || !strings.Contains(x.Outcome.Error.Message, want.says) {
			t.Errorf("%s: %s in attempt %d, %.100q: %.300q", what, x.Stage, x.Attempt, x.Outcome.Error.Code, x.Outcome.Error.Message)
		}
	}
}

// The zero value of the options serves the handlers' own queues. Next to a server with a worker of its own, whose queues it may serve too,
// it neither takes nor fails executions of other handlers.
func TestServeBesideTheServersWorker(t *testing.T) {
	t.Parallel()
	for name, queues := range map[string][]string{"its own queues": nil, "the server's queue as well": {"default", "resize"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, url := server(t, "name: thumb\nhandler: resize\n---\nname: here\nhandler: resize\nqueue: default\n---\n"+
				"name: both\ntasks:\n  a: {action: here}\n  b: {action: noop}\n")
			ctx, stop := context.WithCancel(context.Background())
			w, err := worker.New(worker.Options{Handoff: direct.New(e), Slots: 1, Queues: []string{"default", "resize"}, Handlers: task.Passes(nil)})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 2)
			go func() { done <- w.Run(ctx) }()
			go func() {
				done <- handler.Serve(ctx, handler.Options{Server: url, Queues: queues, Slots: 8, Log: slog.New(slog.DiscardHandler)}, handler.Map{
					"resize": func(context.Context, *handler.Task) (any, error) { return "resized", nil },
				})
			}()
			defer func() {
				stop()
				for range 2 {
					if err := <-done; err != nil {
						t.Error(err)
					}
				}
			}()
			var built, custom []flow.ID
			for range 30 {
				built = append(built, submit(t, e, "noop", `{}`))
				custom = append(custom, submit(t, e, "thumb", `{}`))
			}
			if queues != nil {
				custom = append(custom, submit(t, e, "here", `{}`))
				built = append(built, submit(t, e, "both", `{}`))
			}
			for _, id := range built {
				if x := ended(t, e, id); x.Stage != flow.Completed || x.Attempt != 1 {
					t.Errorf("a built-in kind is %s in attempt %d: %+v", x.Stage, x.Attempt, x.Outcome)
				}
			}
			for _, id := range custom {
				if x := ended(t, e, id); x.Stage != flow.Completed || x.Attempt != 1 || string(x.Outcome.Output) != `"resized"` {
					t.Errorf("a custom kind is %s in attempt %d: %+v", x.Stage, x.Attempt, x.Outcome)
				}
			}
		})
	}
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	ping := func(context.Context, *handler.Task) (any, error) { return nil, nil }
	for say, c := range map[string]struct {
		o handler.Options
		m handler.Map
	}{
		"not an http or https URL":                            {handler.Options{Server: "nowhere"}, handler.Map{"a": ping}},
		"at least one handler":                                {handler.Options{}, nil},
		`"workflow" cannot name`:                              {handler.Options{}, handler.Map{"workflow": ping}},
		`"http" cannot name a handler: it is a built-in kind`: {handler.Options{}, handler.Map{"a": ping, "http": ping}},
		`"a-" cannot name`:                                    {handler.Options{}, handler.Map{"a-": ping}},
		`"a b" cannot name`:                                   {handler.Options{}, handler.Map{"a b": ping}},
		`"a" has no function`:                                 {handler.Options{}, handler.Map{"a": nil}},
		`"a b" is not a label's val`:                          {handler.Options{Labels: map[string]string{"gpu": "a b"}}, handler.Map{"a": ping}},
		"-1 slots: give at least 1":                           {handler.Options{Slots: -1}, handler.Map{"a": ping}},
	} {
		if err := handler.Serve(t.Context(), c.o, c.m); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v", say, err)
		}
	}
	if err := handler.Fail("code", "n is %d", 1); errors.Unwrap(err) != nil || err.Error() != "n is 1" {
		t.Errorf("%v", err)
	}
}
