package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/remote"
	"github.com/pawl-run/pawl/internal/telemetry/otlp"
	"github.com/pawl-run/pawl/internal/worker"
)

func WorkerCommand(a *app.App) *cobra.Command {
	var name string
	var grace time.Duration
	c := &cobra.Command{
		Use:   "worker",
		Short: "Run work for a server on another machine",
		Long: `Take work from a server's queues and run it on this machine. The worker needs no database, and may come and go
at any time: work of a lost worker is tried again elsewhere. With --broker it uses a message broker that servers
also use (pawl server --broker), and needs to reach nothing else; docs/brokers.md says when to use one. A worker
that is restarted on the same state directory before its lease ends keeps the containers that it had started. It
waits for a server that does not answer; if a server refuses the worker because of its token or version, it
stops with exit code 1.

With --labels it also gets executions that require some of these labels (worker_labels in a definition,
--worker-label of pawl run and pawl eval): an execution only goes to a worker that has all labels it requires.

SIGTERM (or Ctrl-C) drains: the worker takes nothing new, and running work may finish within --grace. A second
signal ends it immediately.`,
		Example: `  pawl worker --server http://127.0.0.1:7411 --slots 8
  pawl worker --server https://pawl.example.com --token-file token --queues gpu
  pawl worker --server http://127.0.0.1:7411 --labels gpu=a100,zone=eu
  pawl worker --broker rediss://worker:secret@redis.example.com:6379 --token-file token
  pawl worker --broker amqps://worker:secret@rabbitmq.example.com/pawl --token-file token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return work(cmd.Context(), a, name, grace) },
	}
	c.Flags().StringVar(&name, "name", "", "name, for people (default: host name and process ID)")
	grace = 20 * time.Second
	app.DurationVar(c.Flags(), &grace, "grace", "how long running work may continue when this process is told to stop")
	return c
}

// distant is the hand-off of a worker in its own process.
type distant interface {
	handoff.Handoff
	Secret(session flow.ID) string
	Recall(session flow.ID, secret string)
}

// dialEngine connects to the engine: through a server's URL or a broker. place describes it for people, without passwords.
func dialEngine(ctx context.Context, a *app.App) (engine distant, place string, hangUp func(), err error) {
	server, broker := a.Config.Text("server"), a.Config.Text("broker")
	switch {
	case server == "" && broker == "":
		return nil, "", nil, exit.Usagef("a worker needs a server or a broker: name it with --server, PAWL_SERVER, --broker or PAWL_BROKER (pawl server has workers of its own)")
	case server != "" && broker != "":
		return nil, "", nil, exit.Usagef("a worker works for a server or through a broker: server is set by %s and broker by %s; leave one empty", a.Config.Source["server"], a.Config.Source["broker"])
	case server != "":
		c, err := remote.Dial(server, a.Config.Text("token"))
		if err != nil {
			return nil, "", nil, exit.Usagef("%v", err)
		}
		return c, server, func() {}, nil
	}
	transport, err := instance.OpenBroker(ctx, broker, "", a.Logger())
	if err != nil {
		return nil, "", nil, err
	}
	c := brokerrpc.NewClient(transport, a.Config.Text("token"))
	return c, config.Redacted(broker), func() {
		c.Stop()
		transport.Close()
	}, nil
}

func work(ctx context.Context, a *app.App, name string, grace time.Duration) error {
	ctx, stop := app.Interruptible(ctx)
	defer stop()
	engine, place, hangUp, err := dialEngine(ctx, a)
	if err != nil {
		return err
	}
	defer hangUp()
	keeps, err := instance.OpenMemory(ctx, a.Config.Text("state_dir"), place)
	if err != nil {
		return err
	}
	defer keeps.Close()
	keeps.Secret = engine.Secret
	if before, _ := keeps.Earlier(); !before.IsZero() {
		engine.Recall(before, keeps.Was.Secret)
	}
	instance.PreferToKeep()
	handlers, rt, err := instance.OpenHandlers(&a.Config, a.Say, true, keeps)
	if err != nil {
		return err
	}
	defer func() { _ = rt.Close() }()
	tracer, flush, err := otlp.Start(a.Getenv, "pawl-worker", app.Version())
	if err != nil {
		return err
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if flush != nil {
			_ = flush(last) // traces are an aid, and nothing depends on them
		}
	}()
	working := func() {
		a.Say("pawl: working for %s: %s for %s", place, output.Plural(a.Config.Slots(), "slot", "slots"), a.Config.Text("queues"))
	}
	w, err := worker.New(worker.Options{
		Handoff: engine, Handlers: handlers, Slots: a.Config.Slots(), Queues: a.Config.List("queues"), Labels: a.Config.Labels(), Name: name,
		Log: a.Logger(), Tracer: tracer, Memory: keeps, Grace: grace, Serving: working,
	})
	if err != nil {
		return err
	}
	presses := app.Interruptions(ctx)
	over := make(chan error, 1)
	run, drain := context.WithCancel(context.WithoutCancel(ctx))
	defer drain()
	go func() { over <- w.Run(run) }()
	select {
	case err := <-over:
		return fmt.Errorf("the worker has ended: %w", err)
	case <-presses.Pressed:
		a.Say("pawl: stopping; once more to stop at once")
		drain()
	}
	select {
	case err := <-over:
		return err
	case <-presses.Pressed:
		w.Abandon() // otherwise the runs that are killed now would be reported as cancelled
		return &exit.Error{Code: exit.Interrupted, Err: errors.New("stopped at once; running work is tried again elsewhere")}
	}
}
