// Package pawl runs the workloads on Pawl's own engine, worker and PostgreSQL store, in this process like the other libraries.
package pawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/heap"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/store/postgres"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"

	"github.com/pawl-run/pawl/bench/trial"
)

const (
	defaultSlots = 2000 // of one server's worker
	patience     = time.Minute
)

// peer is one or more servers on one database.
type peer struct {
	spec    trial.Spec
	dsn     string
	servers []*server
	closers []func()
}

// server is the parts of one Pawl process.
type server struct {
	engine  *engine.Engine
	store   *postgres.Store
	carrier carrier
}

// Open creates the tables and starts one server, without a worker.
func Open(ctx context.Context, s trial.Spec) (trial.Peer, error) {
	heap.Grow() // as the program does at its start
	p := &peer{spec: s, dsn: s.DSN}
	if err := p.serve(ctx, 1); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Close stops all servers.
func (p *peer) Close() {
	for i := len(p.closers) - 1; i >= 0; i-- {
		p.closers[i]()
	}
}

// serve starts servers until there are n.
func (p *peer) serve(ctx context.Context, n int) error {
	for len(p.servers) < n {
		st, err := postgres.Open(ctx, p.dsn, postgres.Options{})
		if err != nil {
			return err
		}
		p.closers = append(p.closers, func() { _ = st.Close() })
		e, err := engine.New(engine.Options{Store: st, Log: slog.New(slog.DiscardHandler), Validate: payload.Validate, Committers: p.spec.Committers})
		if err != nil {
			return err
		}
		p.closers = append(p.closers, background(e.Run))
		c, err := carry(ctx, p.spec, e)
		if err != nil {
			return err
		}
		p.closers = append(p.closers, c.close)
		p.servers = append(p.servers, &server{engine: e, store: st, carrier: c})
	}
	return nil
}

// work starts a worker in every server.
func (p *peer) work(ctx context.Context, slots int) (stop func(), err error) {
	if slots == 0 {
		slots = defaultSlots
	}
	var stops []func()
	stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
	for _, s := range p.servers {
		h, hangUp, err := s.carrier.dial(ctx)
		if err != nil {
			stop()
			return nil, err
		}
		stops = append([]func(){hangUp}, stops...)
		w, err := worker.New(worker.Options{
			Handoff:  h,
			Handlers: task.Passes(nil),
			Slots:    max(slots/len(p.servers), 1),
		})
		if err != nil {
			stop()
			return nil, err
		}
		stops = append([]func(){background(w.Run)}, stops...)
	}
	return stop, nil
}

// background runs f until the returned function is called, which waits for f to return.
func background(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := f(ctx); err != nil {
			panic(fmt.Sprintf("pawl stopped by itself: %v", err)) // a trial without its server would report wrong figures
		}
	})
	return func() { cancel(); wg.Wait() }
}

// Run implements trial.Peer.
func (p *peer) Run(ctx context.Context, w trial.Workload) (trial.Result, error) {
	if err := p.serve(ctx, max(w.Servers, 1)); err != nil {
		return nil, err
	}
	switch w.Name {
	case trial.Noop:
		return p.noop(ctx, w)
	case trial.Finished:
		return p.finished(ctx, w)
	case trial.Workers:
		return p.idle(ctx, w)
	case trial.Claim:
		return p.claim(ctx, w)
	}
	stop, err := p.work(ctx, w.Slots)
	if err != nil {
		return nil, err
	}
	defer stop()
	e := p.servers[0].engine
	switch w.Name {
	case trial.Steady:
		return p.steady(ctx, w)
	case trial.Alone:
		return trial.Loop(ctx, p.dsn, w, func(ctx context.Context) error {
			return call(ctx, e, engine.Submission{Action: string(flow.KindNoop)}, ``)
		})
	case trial.Chain:
		if err := define(ctx, e, chain); err != nil {
			return nil, err
		}
		s := engine.Submission{Action: "chain", Input: []byte(`{}`)}
		return trial.Loop(ctx, p.dsn, w, func(ctx context.Context) error { return call(ctx, e, s, `{"n":3}`) })
	case trial.Fanout:
		if err := define(ctx, e, fanout); err != nil {
			return nil, err
		}
		s := engine.Submission{Action: "fanout", Input: fmt.Appendf(nil, `{"width":%d}`, w.Width)}
		want := fmt.Sprintf(`{"count":%d}`, w.Width)
		return trial.Loop(ctx, p.dsn, w, func(ctx context.Context) error { return call(ctx, e, s, want) })
	}
	return nil, trial.ErrUnsupported
}

const chain = `name: chain
tasks:
  first: {action: output, with: {n: 1}}
  second: {action: output, needs: first, with: {n: "${{ tasks.first.output.n + 1 }}"}}
  third: {action: output, needs: second, with: {n: "${{ tasks.second.output.n + 1 }}"}}
outputs: {n: "${{ tasks.third.output.n }}"}
`

const fanout = `name: fanout
input: {type: object, properties: {width: {type: integer}}}
tasks:
  split: {action: output, with: {items: "${{ lists.range(input.width) }}"}}
  each: {action: output, needs: split, foreach: "${{ tasks.split.output.items }}", with: {n: "${{ item }}"}}
  join: {action: output, needs: each, with: {count: "${{ tasks.each.output.size() }}"}}
outputs: {count: "${{ tasks.join.output.count }}"}
`

func define(ctx context.Context, e *engine.Engine, text string) error {
	defs, err := definition.Parse("bench.yaml", []byte(text))
	if err != nil {
		return err
	}
	_, err = e.Define(ctx, defs)
	return err
}

// submit submits one execution.
func submit(ctx context.Context, e *engine.Engine, s engine.Submission) (flow.ID, error) {
	out, err := e.Submit(ctx, []engine.Submission{s})
	if err == nil {
		err = out[0].Err
	}
	if err != nil {
		return flow.ID{}, err
	}
	return out[0].Execution, nil
}

// call submits one execution and waits for its end.
func call(ctx context.Context, e *engine.Engine, s engine.Submission, want string) error {
	out, end, err := e.SubmitOne(ctx, s)
	if err == nil {
		err = out.Err
	}
	if err != nil {
		return err
	}
	defer end.Close()
	patient, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%s has not ended after %s", out.Execution, patience))
	defer cancel()
	x, err := end.Wait(patient)
	if err != nil {
		return errors.Join(err, context.Cause(patient))
	}
	return asWanted(x, want)
}

func asWanted(x *flow.Execution, want string) error {
	if x.Stage != flow.Completed || x.Outcome == nil {
		return fmt.Errorf("%s ended as %s", x.ID, x.Stage)
	}
	if want != "" && string(x.Outcome.Output) != want {
		return fmt.Errorf("%s gave %s instead of %s", x.ID, x.Outcome.Output, want)
	}
	return nil
}

// verify reads some histories: each must be complete, from acceptance to the end.
func verify(ctx context.Context, e *engine.Engine, ids []flow.ID) error {
	const most = 200
	for i := 0; i < len(ids); i += max(len(ids)/most, 1) {
		x, err := e.Reader().Get(ctx, ids[i])
		if err != nil {
			return err
		}
		if err := asWanted(x, ""); err != nil {
			return err
		}
		events, err := e.Reader().Events(ctx, ids[i], 0, 100)
		if err != nil {
			return err
		}
		if len(events) < 5 || events[len(events)-1].Type != flow.EvCompleted || events[len(events)-1].Seq != int64(len(events)) {
			return errors.New("a history is not whole: " + ids[i].String())
		}
	}
	return nil
}
