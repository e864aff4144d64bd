package loadtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/pawl-run/pawl/internal/blob/file"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff/direct"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/sandbox"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/postgres"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// batchSize is the number of executions in one bulk submission.
const batchSize = 500

// patience is how long no execution may end before the remaining ones count as stuck.
const patience = 60 * time.Second

// trial is one measurement: an engine and a worker on a database, as a Go program would embed them.
type trial struct {
	Options
	dir string

	store  store.Store
	engine *engine.Engine

	mu    sync.Mutex
	ids   []flow.ID
	waits []time.Duration // end to end, one by one
	unapp []int           // unapplied events of executions under way, sampled
}

func (b *trial) run(ctx context.Context) (_ *Report, err error) {
	before := b.size()
	schema := ""
	if config.IsPostgres(b.Options.Store) {
		schema = fmt.Sprintf("pawl_bench_%d_%s", os.Getpid(), filepath.Base(b.dir))
		defer func() { err = errors.Join(err, dropSchema(ctx, b.Options.Store, schema)) }()
	}
	if b.store, err = instance.OpenStore(ctx, b.Options.Store, b.dir, postgres.Options{Schema: schema}); err != nil {
		return nil, err
	}
	defer func() {
		if b.store != nil {
			err = errors.Join(err, b.store.Close())
		}
	}()
	blobs, err := file.Open(filepath.Join(b.dir, "blobs"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = blobs.Close() }()
	b.engine, err = engine.New(engine.Options{Store: b.store, Blobs: blobs, Log: b.Log, Exclusive: !config.IsPostgres(b.Options.Store), Validate: payload.Validate})
	if err != nil {
		return nil, err
	}
	parts := instance.NewParts(b.Log)
	ctx, release := parts.Within(ctx)
	defer release()
	defer func() {
		if err != nil && parts.Failure() != nil {
			err = parts.Failure()
		}
	}()
	stopEngine := parts.Start("the engine", b.engine.Run)
	defer stopEngine()
	stopWorker, err := b.startWorker(parts, blobs)
	if err != nil {
		return nil, err
	}
	defer stopWorker()
	report := &Report{Workload: b.Workload, Store: config.Redacted(b.Options.Store), Submit: b.Submit, Concurrency: b.Concurrency, Slots: b.Slots, Count: b.Count}
	if b.Workload == "eval" {
		if report.BareMS, err = bareEval(ctx); err != nil {
			return nil, err
		}
	}
	submission, err := b.submission(ctx)
	if err != nil {
		return nil, err
	}
	watchers := b.watch()
	begin := time.Now()
	if b.Submit == "bulk" {
		err = b.bulk(ctx, submission)
	} else {
		err = b.oneByOne(ctx, submission)
	}
	if err != nil {
		return nil, err
	}
	report.Seconds = time.Since(begin).Seconds()
	watchers()
	report.PerSecond = float64(b.Count) / report.Seconds
	report.CommitsPerSec = float64(b.engine.Stats().Commits) / report.Seconds
	if err := b.verify(ctx, report); err != nil {
		return nil, err
	}
	stopWorker()
	stopEngine()
	inUse, err := b.store.Size(ctx)
	if err != nil {
		return nil, err
	}
	err = b.store.Close()
	b.store = nil
	if err != nil {
		return nil, err
	}
	if schema == "" {
		inUse = b.size() - before // the journal's content has been written back
	}
	report.BytesPerExec = float64(inUse) / float64(max(report.Executions, 1))
	report.RSSMB = float64(peakMemory()) / 1e6
	if b.Workload == "eval" && b.Submit == "one" && b.Concurrency == 1 {
		report.AddedMS = report.EndToEnd.P50 - report.BareMS
	}
	return report, nil
}

// dropSchema removes a run's tables from PostgreSQL.
func dropSchema(ctx context.Context, dsn, schema string) error {
	c, err := pgx.Connect(context.WithoutCancel(ctx), dsn)
	if err != nil {
		return fmt.Errorf("remove schema %s: %w", schema, err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	if _, err := c.Exec(context.WithoutCancel(ctx), "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE"); err != nil {
		return fmt.Errorf("remove schema %s: %w", schema, err)
	}
	return nil
}

// size is the size of the database's files, in bytes, while no process has them open.
func (b *trial) size() int64 {
	path := filepath.Join(b.dir, "pawl.db")
	if given, ok := strings.CutPrefix(b.Options.Store, "sqlite:"); ok {
		path = given
	}
	files, err := filepath.Glob(path + "*")
	if err != nil {
		return 0 // an invalid pattern matches no files
	}
	var total int64
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			total += info.Size()
		}
	}
	return total
}

func (b *trial) startWorker(parts *instance.Parts, blobs *file.Store) (stop func(), err error) {
	handlers := task.Passes(nil)
	closeRuntime := func() {}
	if b.Workload == "eval" {
		rt, err := instance.OpenRuntime(b.Config, b.Runtime, sandbox.Options{Warm: b.Slots}, nil)
		if err != nil {
			return nil, err
		}
		closeRuntime = func() { _ = rt.Close() }
		code, err := task.NewCode(task.CodeOptions{Runtimes: []runtime.Runtime{rt}, Dir: filepath.Join(b.dir, "work")})
		if err != nil {
			closeRuntime()
			return nil, err
		}
		handlers[flow.KindCode] = code
	}
	w, err := worker.New(worker.Options{Handoff: direct.New(b.engine), Handlers: handlers, Slots: b.Slots, Blobs: blobs, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		closeRuntime()
		return nil, err
	}
	stopWorker := parts.Start("the worker", w.Run)
	return sync.OnceFunc(func() { stopWorker(); closeRuntime() }), nil
}

const chain = `name: bench-chain
tasks:
  first: {action: output, with: {n: 1}}
  second: {action: output, needs: first, with: {n: "${{ tasks.first.output.n + 1 }}"}}
  third: {action: output, needs: second, with: {n: "${{ tasks.second.output.n + 1 }}"}}
outputs: {n: "${{ tasks.third.output.n }}"}
`

const fanout = `name: bench-fanout
input: {type: object, properties: {width: {type: integer}}}
tasks:
  split: {action: output, with: {items: "${{ lists.range(input.width) }}"}}
  each: {action: output, needs: split, foreach: "${{ tasks.split.output.items }}", with: {n: "${{ item }}"}}
  join: {action: output, needs: each, with: {count: "${{ tasks.each.output.size() }}"}}
outputs: {count: "${{ tasks.join.output.count }}"}
`

// submission prepares the submission of the workload.
func (b *trial) submission(ctx context.Context) (engine.Submission, error) {
	switch b.Workload {
	case "noop":
		return engine.Submission{Action: string(flow.KindNoop)}, nil
	case "eval":
		return engine.Submission{Action: string(flow.KindCode), Input: json.RawMessage(`{"language":"python","source":"print(1)\n"}`)}, nil
	}
	text, s := chain, engine.Submission{Action: "bench-chain", Input: json.RawMessage(`{}`)}
	if b.Workload == "fanout" {
		text, s = fanout, engine.Submission{Action: "bench-fanout", Input: fmt.Appendf(nil, `{"width":%d}`, b.Width)}
	}
	defs, err := definition.Parse("bench.yaml", []byte(text))
	if err != nil {
		return s, err
	}
	_, err = b.engine.Define(ctx, defs)
	return s, err
}

// bulk submits everything in batches and waits until it has ended.
func (b *trial) bulk(ctx context.Context, s engine.Submission) error {
	var next atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	for range b.Concurrency {
		g.Go(func() error {
			for {
				from := int(next.Add(batchSize)) - batchSize
				n := min(batchSize, b.Count-from)
				if n <= 0 {
					return nil
				}
				batch := make([]engine.Submission, n)
				for i := range batch {
					batch[i] = s
				}
				if err := b.send(gctx, batch); err != nil {
					return err
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return b.drained(ctx)
}

func (b *trial) send(ctx context.Context, batch []engine.Submission) error {
	out, err := b.engine.Submit(ctx, batch)
	if errors.Is(err, engine.ErrOverloaded) {
		if err := instance.WaitFor(ctx, 5*time.Millisecond); err != nil {
			return err
		}
		return b.send(ctx, batch)
	}
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range out {
		if x.Err != nil {
			return x.Err
		}
		b.ids = append(b.ids, x.Execution)
	}
	return nil
}

// executionsEach is the number of executions per submission.
func (b *trial) executionsEach() int {
	switch b.Workload {
	case "chain":
		return 4
	case "fanout":
		return b.Width + 3
	}
	return 1
}

// drained waits until nothing is left to do, or until nothing has ended for patience.
func (b *trial) drained(ctx context.Context) error {
	changed, stop := b.engine.WatchAll()
	defer stop()
	last, since := int64(-1), time.Now()
	for {
		finished := b.engine.Stats().Finished
		if finished >= int64(b.Count*b.executionsEach()) { // counting the remaining ones takes the machine's time
			sums, err := b.engine.Reader().Survey(ctx)
			if err != nil {
				return err
			}
			if total(sums.Stages()) == 0 {
				return nil
			}
		}
		if finished != last {
			last, since = finished, time.Now()
		} else if time.Since(since) > patience {
			return nil // the remaining ones are stuck, and are counted
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func total(counts map[flow.Stage]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// oneByOne runs clients that each submit one execution, wait for its end, and repeat.
func (b *trial) oneByOne(ctx context.Context, s engine.Submission) error {
	var next atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	for range b.Concurrency {
		g.Go(func() error {
			for next.Add(1) <= int64(b.Count) {
				begin := time.Now()
				id, err := b.call(gctx, s)
				if err != nil {
					return err
				}
				took := time.Since(begin)
				b.mu.Lock()
				b.ids = append(b.ids, id)
				b.waits = append(b.waits, took)
				b.mu.Unlock()
			}
			return nil
		})
	}
	return g.Wait()
}

// call submits one execution and waits for its end; one that does not end in time counts as stuck.
func (b *trial) call(ctx context.Context, s engine.Submission) (flow.ID, error) {
	out, end, err := b.engine.SubmitOne(ctx, s)
	if err == nil {
		err = out.Err
	}
	if err != nil {
		return flow.ID{}, err
	}
	defer end.Close()
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := end.Wait(patient); err != nil && (patient.Err() == nil || ctx.Err() != nil) {
		return flow.ID{}, err
	}
	return out.Execution, nil
}

// bareRuns is how often the program runs without Pawl.
const bareRuns = 20

// bareEval is the p50 time in milliseconds of the workload's program without Pawl.
func bareEval(ctx context.Context) (float64, error) {
	// The name in PATH may be a wrapper; the evaluation runs the interpreter itself.
	real, err := exec.CommandContext(ctx, "python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return 0, fmt.Errorf("find the python3 interpreter: %w", err)
	}
	path := filepath.Join(os.TempDir(), fmt.Sprintf("pawl-bare-%d.py", os.Getpid()))
	if err := os.WriteFile(path, []byte("print(1)\n"), 0o600); err != nil {
		return 0, fmt.Errorf("write the bare program: %w", err)
	}
	defer func() { _ = os.Remove(path) }()
	var all []time.Duration
	for range bareRuns {
		begin := time.Now()
		if err := exec.CommandContext(ctx, strings.TrimSpace(string(real)), path).Run(); err != nil {
			return 0, fmt.Errorf("run the bare program: %w", err)
		}
		all = append(all, time.Since(begin))
	}
	return quantilesOf(all).P50, nil
}
