package counted

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff/direct"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// The set-up is the one of bench/, whose figures are published: slots of one worker in the server's process, and concurrent transactions.
const (
	slots      = 2000
	committers = 4
	submitters = 4
	perCall    = 500 // submissions of one call in bulk
	patience   = 5 * time.Minute
)

// workload is the work behind one row of the table.
type workload struct {
	name    string
	count   int // executions that are submitted and counted
	clients int
	rounds  int // their sum counts, for work that depends on timing
	one     func(context.Context, *engine.Engine) error
	bulk    bool
}

var workloads = []workload{
	{name: "alone", count: 500, clients: 1, one: call(engine.Submission{Action: string(flow.KindNoop)}, "")},
	{name: "steady", count: 2000, clients: 32, rounds: 5, one: submit},
	{name: "chain", count: 100, clients: 1, one: call(engine.Submission{Action: "chain", Input: []byte(`{}`)}, `{"n":3}`)},
	{name: "chains", count: 500, clients: 100, rounds: 4, one: call(engine.Submission{Action: "chain", Input: []byte(`{}`)}, `{"n":3}`)},
	{name: "fanout", count: 20, clients: 1, one: call(engine.Submission{Action: "fanout", Input: []byte(`{"width":100}`)}, `{"count":100}`)},
	{name: "noops", count: 10_000, bulk: true},
}

const documents = `name: chain
tasks:
  first: {action: output, with: {n: 1}}
  second: {action: output, needs: first, with: {n: "${{ tasks.first.output.n + 1 }}"}}
  third: {action: output, needs: second, with: {n: "${{ tasks.second.output.n + 1 }}"}}
outputs: {n: "${{ tasks.third.output.n }}"}
---
name: fanout
input: {type: object, properties: {width: {type: integer}}}
tasks:
  split: {action: output, with: {items: "${{ lists.range(input.width) }}"}}
  each: {action: output, needs: split, foreach: "${{ tasks.split.output.items }}", with: {n: "${{ item }}"}}
  join: {action: output, needs: each, with: {count: "${{ tasks.each.output.size() }}"}}
outputs: {count: "${{ tasks.join.output.count }}"}
`

// server is an engine and its worker on a store.
type server struct {
	testing.TB
	engine *engine.Engine
	slots  int
}

func serve(tb testing.TB, s store.Store, side, slots int) *server {
	tb.Helper()
	e, err := engine.New(engine.Options{Store: s, Log: slog.New(slog.DiscardHandler), Validate: payload.Validate, Committers: side, Exclusive: side == 1})
	if err != nil {
		tb.Fatal(err)
	}
	background(tb, e.Run)
	defs, err := definition.Parse("counted.yaml", []byte(documents))
	if err == nil {
		_, err = e.Define(tb.Context(), defs)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return &server{tb, e, slots}
}

// background runs f until the test ends.
func background(tb testing.TB, f func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := f(ctx); err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(func() { stop(); running.Wait() })
}

func (s *server) work() {
	w, err := worker.New(worker.Options{Handoff: direct.New(s.engine), Handlers: task.Passes(nil), Slots: s.slots})
	if err != nil {
		s.Fatal(err)
	}
	background(s, w.Run)
}

// run runs a workload. It calls begin before the counted part of each round and end after it.
func (s *server) run(w workload, begin, end func()) {
	if w.bulk {
		begin()
		s.fill(w.count)
		s.work()
		s.drain(int64(w.count))
		end()
		return
	}
	s.work()
	done := s.loop(w, max(w.count/10, w.clients)) // connections open and caches fill
	for range max(w.rounds, 1) {
		begin()
		done += s.loop(w, w.count)
		s.drain(int64(done))
		end()
	}
}

// loop lets clients each run one execution after the other, until n are done.
func (s *server) loop(w workload, n int) int {
	var next atomic.Int64
	g, ctx := errgroup.WithContext(s.Context())
	for range w.clients {
		g.Go(func() error {
			for next.Add(1) <= int64(n) {
				if err := w.one(ctx, s.engine); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		s.Fatal(err)
	}
	return n
}

func (s *server) fill(n int) {
	var next atomic.Int64
	g, ctx := errgroup.WithContext(s.Context())
	for range submitters {
		g.Go(func() error {
			for int(next.Add(perCall)) <= n {
				subs := make([]engine.Submission, perCall)
				for i := range subs {
					subs[i] = engine.Submission{Action: string(flow.KindNoop)}
				}
				out, err := s.engine.Submit(ctx, subs)
				for _, x := range out {
					err = errors.Join(err, x.Err)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		s.Fatal(err)
	}
}

// drain waits until n executions or more have ended; the tasks of workflows are executions as well.
func (s *server) drain(n int64) {
	for deadline := time.Now().Add(patience); s.engine.Stats().Finished < n; {
		if time.Now().After(deadline) {
			s.Fatalf("%d of %d have ended within %s", s.engine.Stats().Finished, n, patience)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func submit(ctx context.Context, e *engine.Engine) error {
	out, err := e.Submit(ctx, []engine.Submission{{Action: string(flow.KindNoop)}})
	if err != nil {
		return err
	}
	return out[0].Err
}

// call submits an execution and waits for its end; want is its output, or "" for any.
func call(s engine.Submission, want string) func(context.Context, *engine.Engine) error {
	return func(ctx context.Context, e *engine.Engine) error {
		out, end, err := e.SubmitOne(ctx, s)
		if err == nil {
			err = out.Err
		}
		if err != nil {
			return err
		}
		defer end.Close()
		x, err := end.Wait(ctx)
		if err != nil {
			return err
		}
		if x.Stage != flow.Completed || want != "" && string(x.Outcome.Output) != want {
			return fmt.Errorf("%s of %s ended as %s", x.ID, x.Action, x.Stage)
		}
		return nil
	}
}
