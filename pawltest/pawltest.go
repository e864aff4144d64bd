// Package pawltest runs a complete Pawl in the test's process, to test handlers, workflows and programs that use the client:
//
//	p := pawltest.Start(t)
//	p.Serve(handler.Map{"resize": resize})
//	p.Define("kind: action\nname: resize\nhandler: resize")
//	out, err := client.Run[picture, resized](t.Context(), p.Client, api.Submission{Action: "resize"}, picture{Width: 640})
//
// It is the server's engine, not an imitation: retries, timeouts, concurrency keys and idempotency work in the same way. The database is in
// memory, the HTTP API listens on a loopback port, and everything is gone after the test.
package pawltest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/handler"
	"github.com/pawl-run/pawl/internal/blob/file"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff/direct"
	"github.com/pawl-run/pawl/internal/handoff/remote"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/process"
	"github.com/pawl-run/pawl/internal/server"
	"github.com/pawl-run/pawl/internal/store/sqlite"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/task/outgoing"
	"github.com/pawl-run/pawl/internal/worker"
)

// Pawl is a server with a worker. It embeds a Client of the server; its own methods fail the test instead of returning an error.
type Pawl struct {
	*client.Client
	URL string // for programs with a client of their own, for example http://127.0.0.1:41873

	t testing.TB
}

const (
	slots = 4
	// patience is how long Idle waits for unfinished executions to end.
	patience = time.Minute
)

// Start starts a Pawl that is stopped at the end of the test. Its worker runs all built-in kinds except container. Programs of kind code
// run without a sandbox, as the test's own user. http and llm may call this machine. Its log, from level warn on, is part of the test's
// log.
func Start(t testing.TB) *Pawl {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, err := sqlite.Open(t.Context(), sqlite.InMemory, sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	blobs, err := file.Open(t.TempDir())
	must(t, err)
	t.Cleanup(func() { must(t, blobs.Close()) })
	e, err := engine.New(engine.Options{Store: s, Blobs: blobs, Log: log, Exclusive: true, Validate: payload.Validate, Needs: payload.Needs})
	must(t, err)
	run(t, "the engine", e.Run)

	w, err := worker.New(worker.Options{Handoff: direct.New(e), Slots: slots, Queues: []string{flow.DefaultQueue}, Log: log, Blobs: blobs, Handlers: builtIns(t)})
	must(t, err)
	key, err := e.Catalog().WorkerKey(t.Context())
	must(t, err)
	h, err := server.New(server.Options{Engine: e, Log: log, Version: "test", Workers: remote.Handler(e, key), Grace: time.Second})
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	run(t, "the server", func(ctx context.Context) error { return h.Serve(ctx, l) })
	run(t, "the worker", w.Run)

	p := &Pawl{URL: "http://" + l.Addr().String(), t: t}
	p.Client, err = client.New(p.URL)
	must(t, err)
	return p
}

// builtIns returns the handlers of the worker for the built-in kinds.
func builtIns(t testing.TB) task.Handlers {
	rt, err := process.New(process.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, rt.Close()) })
	code, err := task.NewCode(task.CodeOptions{Runtimes: []runtime.Runtime{rt}, Dir: t.TempDir()})
	must(t, err)
	egress, err := outgoing.NewEgress(outgoing.EgressOptions{AllowPrivate: true})
	must(t, err)
	llm, err := outgoing.NewLLM(outgoing.LLMOptions{Egress: egress})
	must(t, err)
	webhook, err := outgoing.NewWebhook(outgoing.WebhookOptions{Egress: egress})
	must(t, err)
	return task.Handlers{
		flow.KindCode: code, flow.KindHTTP: outgoing.HTTP{Egress: egress}, flow.KindLLM: llm, flow.KindWebhook: webhook,
		flow.KindInput: task.Pass{}, flow.KindOutput: task.Pass{}, flow.KindNoop: task.Pass{},
	}
}

// Serve serves handlers until the end of the test, four attempts at a time. Each has a queue with its name, which is the default of the
// actions that name the handler.
func (p *Pawl) Serve(m handler.Map) {
	p.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(m)) {
		p.Define(fmt.Sprintf("kind: queue\nname: %q\n", name))
	}
	run(p.t, "the handlers", func(ctx context.Context) error {
		return handler.Serve(ctx, handler.Options{Server: p.URL, Slots: slots, Log: slog.New(slog.NewTextHandler(p.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))}, m)
	})
}

// Define registers the documents of a YAML or JSON text, as pawl apply does.
func (p *Pawl) Define(documents string) {
	p.t.Helper()
	if _, err := p.Client.Define(p.t.Context(), []byte(documents), "definitions.yaml"); err != nil {
		p.t.Fatalf("define: %v", err)
	}
}

// Idle waits until everything that was submitted has ended. After a minute it fails the test, and says what everything waits for.
func (p *Pawl) Idle() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	for {
		open, err := p.open(ctx)
		for i := 0; i < len(open) && err == nil; i++ {
			_, err = p.Wait(ctx, open[i].ID)
		}
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			p.t.Fatalf("%v and not idle: %s", patience, p.why(open))
		case err != nil:
			p.t.Fatalf("wait until nothing runs: %v", err)
		case len(open) == 0:
			return
		}
	}
}

// open lists what has not ended.
func (p *Pawl) open(ctx context.Context) (all []api.Execution, err error) {
	unfinished := []api.Status{api.Requested, api.Scheduled, api.Provisioning, api.Running}
	for x, err := range p.All(ctx, client.Filter{TopLevel: true, Status: unfinished}) {
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

// why says what each of these executions waits for.
func (p *Pawl) why(open []api.Execution) string {
	var lines []string
	for _, x := range open {
		line := fmt.Sprintf("%s (%s)", x.ID, x.Action)
		if w, err := p.Why(p.t.Context(), x.ID); err == nil && w.Status.Terminal() {
			continue
		} else if err == nil {
			line += ": " + w.Summary
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

// run runs something until the test has ended; then it is waited for, and an error fails the test.
func run(t testing.TB, what string, do func(context.Context) error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
