// Package dbos runs the workloads on DBOS Transact for Go: workflows are called directly, in this process.
package dbos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-run/pawl/bench/trial"
)

const connections = 20

type peer struct {
	dsn  string
	ctx  dbos.Context
	pool *pgxpool.Pool
}

// Open creates the tables, registers the workflows and launches DBOS.
func Open(ctx context.Context, s trial.Spec) (trial.Peer, error) {
	cfg, err := pgxpool.ParseConfig(s.DSN)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = connections
	p := &peer{dsn: s.DSN}
	if p.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, err
	}
	p.ctx, err = dbos.NewContext(ctx, dbos.Config{
		AppName: "bench", SystemDBPool: p.pool, ApplicationVersion: "1",
		Logger: slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1})),
	})
	if err != nil {
		p.pool.Close()
		return nil, err
	}
	dbos.RegisterWorkflow(p.ctx, noop)
	dbos.RegisterWorkflow(p.ctx, chain)
	dbos.RegisterWorkflow(p.ctx, fanout)
	if err := dbos.Launch(p.ctx); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *peer) Close() {
	_ = dbos.Shutdown(p.ctx, 5*time.Second)
	p.pool.Close()
}

// Run implements trial.Peer.
func (p *peer) Run(ctx context.Context, w trial.Workload) (trial.Result, error) {
	switch w.Name {
	case trial.Alone:
		return trial.Loop(ctx, p.dsn, w, func(context.Context) error { return call(p.ctx, noop, 0, 0) })
	case trial.Chain:
		return trial.Loop(ctx, p.dsn, w, func(context.Context) error { return call(p.ctx, chain, 1, 3) })
	case trial.Fanout:
		return trial.Loop(ctx, p.dsn, w, func(context.Context) error { return call(p.ctx, fanout, w.Width, w.Width) })
	default:
		return nil, trial.ErrUnsupported
	}
}

func call(ctx dbos.Context, f dbos.Workflow[int, int], input, want int) error {
	h, err := dbos.RunWorkflow(ctx, f, input)
	if err != nil {
		return err
	}
	got, err := h.GetResult()
	if err == nil && got != want {
		return fmt.Errorf("the workflow gave %d instead of %d", got, want)
	}
	return err
}

func noop(dbos.Context, int) (int, error) { return 0, nil }

func chain(ctx dbos.Context, n int) (int, error) {
	first, err := dbos.RunAsStep(ctx, func(context.Context) (int, error) { return n, nil })
	if err != nil {
		return 0, err
	}
	second, err := dbos.RunAsStep(ctx, func(context.Context) (int, error) { return first + 1, nil })
	if err != nil {
		return 0, err
	}
	return dbos.RunAsStep(ctx, func(context.Context) (int, error) { return second + 1, nil })
}

func fanout(ctx dbos.Context, width int) (int, error) {
	n, err := dbos.RunAsStep(ctx, func(context.Context) (int, error) { return width, nil })
	if err != nil {
		return 0, err
	}
	var items []<-chan dbos.StepOutcome[int]
	for i := range n {
		item, err := dbos.Go(ctx, func(context.Context) (int, error) { return i, nil })
		if err != nil {
			return 0, err
		}
		items = append(items, item)
	}
	var errs []error
	for _, item := range items {
		errs = append(errs, (<-item).Err)
	}
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	return dbos.RunAsStep(ctx, func(context.Context) (int, error) { return len(items), nil })
}
