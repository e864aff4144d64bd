// Package goworkflows runs the workloads on cschleiden/go-workflows with its PostgreSQL backend.
package goworkflows

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/cschleiden/go-workflows/backend"
	"github.com/cschleiden/go-workflows/backend/postgres"
	"github.com/cschleiden/go-workflows/client"
	"github.com/cschleiden/go-workflows/worker"
	"github.com/cschleiden/go-workflows/workflow"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/bench/trial"
)

const (
	connections = 20
	pollers     = 4                    // for workflows, and as many for activities
	poll        = 2 * time.Millisecond // the default of 200 ms would be most of every step's time
	patience    = time.Minute
)

type peer struct {
	dsn     string
	backend backend.Backend
	client  *client.Client
	worker  *worker.Worker
	stop    context.CancelFunc
}

// Open creates the tables and starts a worker.
func Open(ctx context.Context, s trial.Spec) (trial.Peer, error) {
	cfg, err := pgx.ParseConfig(s.DSN)
	if err != nil {
		return nil, err
	}
	// The backend formats the password into a DSN, where an empty one would swallow the next word.
	b := postgres.NewPostgresBackend(cfg.Host, int(cfg.Port), cfg.User, cmp.Or(cfg.Password, "none"), cfg.Database,
		postgres.WithBackendOptions(backend.WithLogger(slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1})))),
		postgres.WithPostgresOptions(func(db *sql.DB) {
			db.SetMaxOpenConns(connections)
			db.SetMaxIdleConns(connections)
		}))
	o := worker.DefaultOptions
	o.WorkflowPollers, o.ActivityPollers = pollers, pollers
	o.WorkflowPollingInterval, o.ActivityPollingInterval = poll, poll
	o.SingleWorkerMode = true
	p := &peer{dsn: s.DSN, backend: b, client: client.New(b), worker: worker.New(b, &o)}
	for _, f := range []workflow.Workflow{noop, chain, fanout} {
		if err := p.worker.RegisterWorkflow(f); err != nil {
			return nil, err
		}
	}
	if err := p.worker.RegisterActivity(next); err != nil {
		return nil, err
	}
	working, stop := context.WithCancel(ctx)
	p.stop = stop
	if err := p.worker.Start(working); err != nil {
		stop()
		return nil, err
	}
	return p, nil
}

func (p *peer) Close() {
	p.stop()
	_ = p.worker.WaitForCompletion()
	_ = p.backend.Close()
}

// Run implements trial.Peer.
func (p *peer) Run(ctx context.Context, w trial.Workload) (trial.Result, error) {
	switch w.Name {
	case trial.Alone:
		return trial.Loop(ctx, p.dsn, w, func(ctx context.Context) error { return p.call(ctx, noop, 0, 0) })
	case trial.Chain:
		return trial.Loop(ctx, p.dsn, w, func(ctx context.Context) error { return p.call(ctx, chain, 0, 3) })
	case trial.Fanout:
		return trial.Loop(ctx, p.dsn, w, func(ctx context.Context) error { return p.call(ctx, fanout, w.Width, w.Width) })
	default:
		return nil, trial.ErrUnsupported
	}
}

func (p *peer) call(ctx context.Context, f func(workflow.Context, int) (int, error), input, want int) error {
	instance, err := p.client.CreateWorkflowInstance(ctx, client.WorkflowInstanceOptions{InstanceID: uuid.NewString()}, f, input)
	if err != nil {
		return err
	}
	got, err := client.GetWorkflowResult[int](ctx, p.client, instance, patience)
	if err == nil && got != want {
		return fmt.Errorf("the workflow gave %d instead of %d", got, want)
	}
	return err
}

func next(_ context.Context, n int) (int, error) { return n + 1, nil }

func noop(workflow.Context, int) (int, error) { return 0, nil }

func step(ctx workflow.Context, n int) workflow.Future[int] {
	return workflow.ExecuteActivity[int](ctx, workflow.DefaultActivityOptions, next, n)
}

func chain(ctx workflow.Context, n int) (int, error) {
	var err error
	for range 3 {
		if n, err = step(ctx, n).Get(ctx); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func fanout(ctx workflow.Context, width int) (int, error) {
	if _, err := step(ctx, width).Get(ctx); err != nil {
		return 0, err
	}
	items := make([]workflow.Future[int], width)
	for i := range items {
		items[i] = step(ctx, i)
	}
	for _, item := range items {
		if _, err := item.Get(ctx); err != nil {
			return 0, err
		}
	}
	n, err := step(ctx, width-1).Get(ctx)
	return n, err
}
