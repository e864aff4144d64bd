// Package asynq runs the workloads on hibiken/asynq, set up as its documentation says, on a separate Redis database.
package asynq

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/pawl-run/pawl/bench/trial"
)

const (
	database    = 9   // Redis database, which is emptied
	concurrency = 256 // more gave no more
	submitters  = 32
)

type peer struct {
	at     asynq.RedisClientOpt
	client *asynq.Client
	redis  *redis.Client
	ended  atomic.Int64
	end    chan struct{} // capacity 1: a job has ended
}

// Open empties the database.
func Open(ctx context.Context, s trial.Spec) (trial.Peer, error) {
	url, _, _ := strings.Cut(s.Redis, "?")
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("-redis: %w", err)
	}
	o.DB = database
	p := &peer{
		at:    asynq.RedisClientOpt{Addr: o.Addr, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig, DB: o.DB},
		redis: redis.NewClient(o), end: make(chan struct{}, 1),
	}
	if err := p.redis.FlushDB(ctx).Err(); err != nil {
		return nil, err
	}
	p.client = asynq.NewClient(p.at)
	return p, nil
}

// Close implements trial.Peer.
func (p *peer) Close() {
	_ = p.client.Close()
	_ = p.redis.FlushDB(context.Background()).Err()
	_ = p.redis.Close()
}

func (p *peer) enqueue(ctx context.Context) error {
	_, err := p.client.EnqueueContext(ctx, asynq.NewTask("noop", nil))
	return err
}

// work starts a server, which processes the queue.
func (p *peer) work() (stop func(), err error) {
	s := asynq.NewServer(p.at, asynq.Config{Concurrency: concurrency, LogLevel: asynq.FatalLevel, Logger: quiet{}})
	err = s.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		p.ended.Add(1)
		select {
		case p.end <- struct{}{}:
		default: // no client waits for this job
		}
		return nil
	}))
	return s.Shutdown, err
}

// quiet is a logger without output.
type quiet struct{}

func (quiet) Debug(args ...any) {}
func (quiet) Info(args ...any)  {}
func (quiet) Warn(args ...any)  {}
func (quiet) Error(args ...any) {}
func (quiet) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// drain waits until the queue is empty: the end is stored after the handler has returned.
func (p *peer) drain(ctx context.Context, n int64) error {
	inspector := asynq.NewInspector(p.at)
	defer func() { _ = inspector.Close() }()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if p.ended.Load() >= n {
			q, err := inspector.GetQueueInfo("default")
			if err != nil {
				return err
			}
			if q.Size == 0 {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Run implements trial.Peer.
func (p *peer) Run(ctx context.Context, w trial.Workload) (trial.Result, error) {
	switch w.Name {
	case trial.Noop:
		return p.noop(ctx, w)
	case trial.Steady, trial.Alone:
	default:
		return nil, trial.ErrUnsupported
	}
	stop, err := p.work()
	if err != nil {
		return nil, err
	}
	defer stop()
	if w.Name == trial.Alone {
		return trial.Loop(ctx, "", w, func(ctx context.Context) error {
			select { // from earlier jobs
			case <-p.end:
			default:
			}
			if err := p.enqueue(ctx); err != nil {
				return err
			}
			select {
			case <-p.end:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}
	already := p.ended.Load()
	return trial.Stream(ctx, "", w, p.enqueue, func(n int64) error { return p.drain(ctx, already+n) })
}

func (p *peer) noop(ctx context.Context, w trial.Workload) (trial.Result, error) {
	already := p.ended.Load()
	fill := func() error {
		var next atomic.Int64
		g, gctx := errgroup.WithContext(ctx)
		for range submitters {
			g.Go(func() error {
				for next.Add(1) <= int64(w.Count) {
					if err := p.enqueue(gctx); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return g.Wait()
	}
	return trial.Backlog("", w.Count, fill, p.work, func() error { return p.drain(ctx, already+int64(w.Count)) })
}
