// Package brokertest tests that programs with handlers reach their servers through a broker.
package brokertest

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/handler"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/sqlite"
)

const token = "sesame"

// Suite is a broker under test.
type Suite struct {
	URL    string                              // of a running broker
	Broker func(url string) handler.Broker     // used by programs
	Open   func(url string) (Transport, error) // used by servers
}

// Transport is the servers' side of a broker.
type Transport interface {
	brokerrpc.Transport
	Close()
}

// server starts an engine behind a broker, with an action for the handler double.
func (s Suite) server(t *testing.T) *engine.Engine {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.InMemory, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{Store: st, Exclusive: true, Queues: []string{"double"}})
	if err != nil {
		t.Fatal(err)
	}
	at, err := s.Open(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	servers := brokerrpc.NewServer(brokerrpc.ServerOptions{Transport: at, Handoff: e, Key: []byte("key"), Tokens: []string{token}})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- e.Run(ctx) }()
	go func() { done <- servers.Run(ctx) }()
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

// Serve tests that a program behind a broker runs executions of its handlers, and that their logs and outputs arrive.
func (s Suite) Serve(t *testing.T) {
	e := s.server(t)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- handler.Serve(ctx, handler.Options{Broker: s.Broker(s.URL), Token: token, Log: slog.New(slog.DiscardHandler)}, handler.Map{
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
	waiting, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	end := e.WaitForEnd(out[0].Execution)
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

// OtherToken tests that a program with a wrong token is refused, and that Serve returns an error that says so.
func (s Suite) OtherToken(t *testing.T) {
	s.server(t)
	m := handler.Map{"x": func(context.Context, *handler.Task) (any, error) { return nil, nil }}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := handler.Serve(ctx, handler.Options{Broker: s.Broker(s.URL), Token: "other", Log: slog.New(slog.DiscardHandler)}, m); err == nil || !strings.Contains(err.Error(), "token") {
		t.Error(err)
	}
}
