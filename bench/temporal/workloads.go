package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.temporal.io/server/temporal"

	"github.com/pawl-run/pawl/bench/trial"
)

const (
	trialVisibility = trial.SecondDatabase
	taskQueue       = "bench"
	stepTimeout     = time.Minute
)

type peer struct {
	dsn    string
	server temporal.Server
	client client.Client
	worker worker.Worker
}

func open(ctx context.Context, s trial.Spec) (_ *peer, err error) {
	p := &peer{dsn: s.DSN}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	var address string
	if p.server, address, err = startServer(ctx, s.DSN); err != nil {
		return nil, err
	}
	quiet := sdklog.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1})))
	if p.client, err = client.DialContext(ctx, client.Options{HostPort: address, Namespace: namespace, Logger: quiet}); err != nil {
		return nil, fmt.Errorf("dial the server: %w", err)
	}
	p.worker = worker.New(p.client, taskQueue, worker.Options{MaxConcurrentActivityTaskPollers: 10, MaxConcurrentWorkflowTaskPollers: 10})
	p.worker.RegisterWorkflow(noop)
	p.worker.RegisterWorkflow(chain)
	p.worker.RegisterWorkflow(fanout)
	p.worker.RegisterActivity(next)
	if err := p.worker.Start(); err != nil {
		return nil, fmt.Errorf("start the worker: %w", err)
	}
	return p, p.call(ctx, noop, 0, 0)
}

// Close implements trial.Peer.
func (p *peer) Close() {
	if p.worker != nil {
		p.worker.Stop()
	}
	if p.client != nil {
		p.client.Close()
	}
	if p.server != nil {
		_ = p.server.Stop()
	}
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
	run, err := p.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: taskQueue}, f, input)
	if err != nil {
		return err
	}
	var got int
	if err := run.Get(ctx, &got); err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("the workflow gave %d instead of %d", got, want)
	}
	return nil
}

func next(_ context.Context, n int) (int, error) { return n + 1, nil }

func step(ctx workflow.Context, n int) workflow.Future {
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: stepTimeout}), next, n)
}

func noop(workflow.Context, int) (int, error) { return 0, nil }

func chain(ctx workflow.Context, n int) (int, error) {
	for range 3 {
		if err := step(ctx, n).Get(ctx, &n); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func fanout(ctx workflow.Context, width int) (int, error) {
	var n int
	if err := step(ctx, width-1).Get(ctx, &n); err != nil {
		return 0, err
	}
	items := make([]workflow.Future, n)
	for i := range items {
		items[i] = step(ctx, i)
	}
	for _, item := range items {
		if err := item.Get(ctx, nil); err != nil {
			return 0, err
		}
	}
	err := step(ctx, len(items)-1).Get(ctx, &n)
	return n, err
}
