// Package river runs the workloads on River, set up as its documentation says.
package river

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/pawl-run/pawl/bench/trial"
)

const (
	maxWorkers = 2000 // the value of its authors' benchmarks
	// The shortest intervals that River allows between two fetches, and between two polls for missed notifications.
	cooldown = time.Millisecond
	poll     = 20 * time.Millisecond

	connections = 20
	batch       = 5000
)

type args struct{}

func (args) Kind() string { return "noop" }

type worker struct{ river.WorkerDefaults[args] }

func (*worker) Work(context.Context, *river.Job[args]) error { return nil }

type peer struct {
	dsn  string
	pool *pgxpool.Pool
}

// Open makes River's tables.
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
	m, err := rivermigrate.New(riverpgxv5.New(p.pool), nil)
	if err == nil {
		_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return p, nil
}

func (p *peer) Close() { p.pool.Close() }

func (p *peer) client() (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{})
	return river.NewClient(riverpgxv5.New(p.pool), &river.Config{
		Logger:            slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1})),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: maxWorkers}},
		Workers:           workers,
		FetchCooldown:     cooldown,
		FetchPollInterval: poll,
	})
}

// Run implements trial.Peer.
func (p *peer) Run(ctx context.Context, w trial.Workload) (trial.Result, error) {
	c, err := p.client()
	if err != nil {
		return nil, err
	}
	// An event is sent after the commit that completed its job.
	ended, unsubscribe := c.SubscribeConfig(&river.SubscribeConfig{ChanSize: w.Count + 10_000, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer unsubscribe()
	switch w.Name {
	case trial.Noop:
		return p.noop(ctx, c, w, ended)
	case trial.Steady:
		return p.steady(ctx, c, w, ended)
	case trial.Alone:
		return p.alone(ctx, c, w, ended)
	default:
		return nil, trial.ErrUnsupported
	}
}

func start(ctx context.Context, c *river.Client[pgx.Tx]) (stop func(), err error) {
	if err := c.Start(ctx); err != nil {
		return nil, fmt.Errorf("start the client: %w", err)
	}
	return func() { _ = c.Stop(context.WithoutCancel(ctx)) }, nil
}

func (p *peer) noop(ctx context.Context, c *river.Client[pgx.Tx], w trial.Workload, ended <-chan *river.Event) (trial.Result, error) {
	before, err := trial.Size(ctx, p.dsn)
	if err != nil {
		return nil, err
	}
	fill := func() error {
		for from := 0; from < w.Count; from += batch {
			jobs := make([]river.InsertManyParams, min(batch, w.Count-from))
			for i := range jobs {
				jobs[i].Args = args{}
			}
			if _, err := c.InsertManyFast(ctx, jobs); err != nil {
				return fmt.Errorf("insert: %w", err)
			}
		}
		return nil
	}
	work := func() (func(), error) { return start(ctx, c) }
	r, err := trial.Backlog(p.dsn, w.Count, fill, work, func() error { return drain(ctx, ended, w.Count) })
	if err != nil {
		return nil, err
	}
	after, err := trial.Size(ctx, p.dsn)
	if err != nil {
		return nil, err
	}
	r[trial.Bytes] = float64(after-before) / float64(w.Count)
	return r, nil
}

func drain(ctx context.Context, ended <-chan *river.Event, n int) error {
	for range n {
		select {
		case <-ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (p *peer) steady(ctx context.Context, c *river.Client[pgx.Tx], w trial.Workload, ended <-chan *river.Event) (trial.Result, error) {
	stop, err := start(ctx, c)
	if err != nil {
		return nil, err
	}
	defer stop()
	var inserted atomic.Int64 // the warming up included
	begin := time.Now()
	r, err := trial.Loop(ctx, p.dsn, w, func(ctx context.Context) error {
		_, err := c.Insert(ctx, args{}, nil)
		inserted.Add(1)
		return err
	})
	if err != nil {
		return nil, err
	}
	n := int(inserted.Load())
	if err := drain(ctx, ended, n); err != nil {
		return nil, err
	}
	r[trial.Submitted], r[trial.Completed] = r[trial.Completed], float64(n)/time.Since(begin).Seconds()
	return r, nil
}

func (p *peer) alone(ctx context.Context, c *river.Client[pgx.Tx], w trial.Workload, ended <-chan *river.Event) (trial.Result, error) {
	stop, err := start(ctx, c)
	if err != nil {
		return nil, err
	}
	defer stop()
	return trial.Loop(ctx, p.dsn, w, func(ctx context.Context) error {
		row, err := c.Insert(ctx, args{}, nil)
		if err != nil {
			return err
		}
		for {
			select {
			case e := <-ended:
				if e.Job.ID == row.Job.ID {
					return nil
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
}
