package pawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"

	"github.com/pawl-run/pawl/bench/trial"
)

const (
	batch      = 500 // submissions in one request
	submitters = 4
	look       = 2 * time.Millisecond // interval at which the counters are read
)

var noop = engine.Submission{Action: string(flow.KindNoop)}

// bulk submits n executions to all servers in turn.
func (p *peer) bulk(ctx context.Context, n int) ([]flow.ID, error) {
	var mu sync.Mutex
	ids := make([]flow.ID, 0, n)
	var next atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	for i := range submitters {
		e := p.servers[i%len(p.servers)].engine
		g.Go(func() error {
			for {
				from := int(next.Add(batch)) - batch
				subs := make([]engine.Submission, max(min(batch, n-from), 0))
				if len(subs) == 0 {
					return nil
				}
				for i := range subs {
					subs[i] = noop
				}
				out, err := e.Submit(gctx, subs)
				if err != nil {
					return fmt.Errorf("submit: %w", err)
				}
				mu.Lock()
				for _, x := range out {
					err = errors.Join(err, x.Err)
					ids = append(ids, x.Execution)
				}
				mu.Unlock()
				if err != nil {
					return err
				}
			}
		})
	}
	return ids, g.Wait()
}

func (p *peer) ended() (n int64) {
	for _, s := range p.servers {
		n += s.engine.Stats().Finished
	}
	return n
}

// drain waits until n executions have ended.
func (p *peer) drain(ctx context.Context, n int64) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	last, since := int64(-1), time.Now()
	for {
		now := p.ended()
		if now >= n {
			return nil
		}
		if now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) > patience {
			return fmt.Errorf("%d of %d have ended, and none for %s", now, n, patience)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *peer) noop(ctx context.Context, w trial.Workload) (trial.Result, error) {
	before, err := trial.Size(ctx, p.dsn)
	if err != nil {
		return nil, err
	}
	already := p.ended()
	var ids []flow.ID
	fill := func() error {
		ids, err = p.bulk(ctx, w.Count)
		return err
	}
	work := func() (func(), error) { return p.work(ctx, w.Slots) }
	r, err := trial.Backlog(p.dsn, w.Count, fill, work, func() error { return p.drain(ctx, already+int64(w.Count)) })
	if err != nil {
		return nil, err
	}
	after, err := trial.Size(ctx, p.dsn)
	if err != nil {
		return nil, err
	}
	if err := verify(ctx, p.servers[0].engine, ids); err != nil {
		return nil, err
	}
	deadlocks, err := trial.DeadlockCount(ctx, p.dsn)
	if err != nil {
		return nil, err
	}
	r[trial.Bytes], r[trial.Deadlocks] = float64(after-before)/float64(w.Count), float64(deadlocks)
	return r, nil
}

// steady runs clients that submit one execution at a time while workers run.
func (p *peer) steady(ctx context.Context, w trial.Workload) (trial.Result, error) {
	e := p.servers[0].engine
	already := p.ended()
	return trial.Stream(ctx, p.dsn, w, func(ctx context.Context) error {
		_, err := submit(ctx, e, noop)
		return err
	}, func(n int64) error { return p.drain(ctx, already+n) })
}

// claim measures how long it takes to claim one execution with w.Load others in the queue.
func (p *peer) claim(ctx context.Context, w trial.Workload) (trial.Result, error) {
	e := p.servers[0].engine
	if _, err := p.bulk(ctx, w.Load); err != nil {
		return nil, err
	}
	session, err := e.Open(ctx, handoff.Session{Name: "bench", Embedded: true, Queues: []string{flow.DefaultQueue}, Slots: 1})
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	const warm = 50
	for i := range w.Count + warm {
		if _, err := submit(ctx, e, noop); err != nil {
			return nil, err
		}
		begin := time.Now()
		work, err := e.Take(ctx, session, 1)
		if err != nil {
			return nil, fmt.Errorf("take: %w", err)
		}
		if i >= warm {
			took = append(took, time.Since(begin))
		}
		for _, a := range work {
			if err := finish(ctx, e, session, a); err != nil {
				return nil, err
			}
		}
	}
	r := trial.Result{}
	r.Latency(took)
	return r, e.Close(ctx, session)
}

func finish(ctx context.Context, e *engine.Engine, session flow.ID, a handoff.Assignment) error {
	now := time.Now()
	receipts, err := e.Report(ctx, session, []flow.Report{{Execution: a.Execution, Attempt: a.Attempt, Events: []flow.Event{
		{Seq: a.NextSeq, Attempt: a.Attempt, Type: flow.EvRunning, At: now},
		{Seq: a.NextSeq + 1, Attempt: a.Attempt, Type: flow.EvCompleted, At: now, Outcome: &flow.Outcome{Output: a.Payload}},
	}}})
	if err == nil && receipts[0].Verdict != flow.Applied {
		err = fmt.Errorf("the end of %s was %s", a.Execution, receipts[0].Verdict)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// idle measures the cost of w.Load workers that only renew their leases and wait, for w.Count seconds. Workers behind a broker are in a
// separate process, whose time is not counted.
func (p *peer) idle(ctx context.Context, w trial.Workload) (trial.Result, error) {
	if p.spec.Peer == "pawl" {
		for range w.Load {
			stop, err := p.work(ctx, 1)
			if err != nil {
				return nil, err
			}
			defer stop()
		}
	} else {
		stop, err := p.fleet(ctx, w.Load)
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	if err := p.living(ctx, w.Load); err != nil {
		return nil, err
	}
	r := trial.Result{}
	meter, broker := trial.NewMeter(p.dsn), p.redisTime(ctx)
	select {
	case <-time.After(time.Duration(w.Count) * time.Second):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	meter.Stop(r, w.Count)
	r[trial.Core] = (r[trial.CPU] + r[trial.ServerCPU]) / 1e6 * 100
	if after := p.redisTime(ctx); after > 0 {
		r[trial.RedisCore] = (after - broker).Seconds() / float64(w.Count) * 100
	}
	r[trial.Lost] = float64(p.servers[0].engine.Stats().LostSessions)
	return r, p.living(ctx, w.Load)
}

// living waits until there are n sessions.
func (p *peer) living(ctx context.Context, n int) error {
	limited, cancel := context.WithTimeoutCause(ctx, 10*time.Minute, fmt.Errorf("%d workers have not come", n))
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		sessions, err := p.servers[0].engine.Reader().LiveSessions(limited)
		if err != nil {
			return errors.Join(err, context.Cause(limited))
		}
		if len(sessions) == n {
			return nil
		}
		select {
		case <-tick.C:
		case <-limited.Done():
			return context.Cause(limited)
		}
	}
}

// finished measures noop with w.Load finished executions in the tables, and with an idle transaction on another connection.
func (p *peer) finished(ctx context.Context, w trial.Workload) (trial.Result, error) {
	const portion = 100_000
	for done := 0; done < w.Load; done += portion {
		load := w
		load.Count = min(portion, w.Load-done)
		if _, err := p.noop(ctx, load); err != nil {
			return nil, fmt.Errorf("load: %w", err)
		}
	}
	if w.Idle == 0 {
		if err := trial.Settle(ctx, p.dsn); err != nil {
			return nil, err
		}
		return p.repeated(ctx, w)
	}
	// Work continues while the transaction is idle: rows that it keeps from being vacuumed pile up.
	type hold struct {
		release func()
		err     error
	}
	held := make(chan hold, 1)
	go func() {
		release, err := trial.HoldSnapshot(ctx, p.dsn, w.Idle)
		held <- hold{release, err}
	}()
	pause := time.Second
	if w.Pace > 0 {
		pause = time.Duration(w.Count) * time.Second / time.Duration(w.Pace)
	}
	for {
		if _, err := p.noop(ctx, w); err != nil {
			return nil, err
		}
		select {
		case h := <-held:
			if h.err != nil {
				return nil, h.err
			}
			defer h.release()
			return p.repeated(ctx, w)
		case <-time.After(pause):
		}
	}
}

// repeated runs noop several times, each about a second, and returns the run with the median throughput.
func (p *peer) repeated(ctx context.Context, w trial.Workload) (trial.Result, error) {
	const times = 7
	var all []trial.Result
	for range times {
		r, err := p.noop(ctx, w)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b trial.Result) int { return cmp.Compare(a[trial.Completed], b[trial.Completed]) })
	return all[times/2], nil
}
