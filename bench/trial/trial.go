// Package trial is the interface between the comparing program and the processes that it starts: one process runs a
// few workloads for one peer on its own database, and prints its measurements.
package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Workload is one thing to run and measure.
type Workload struct {
	Name    string
	Count   int           // how many
	Clients int           // number of concurrent clients, where clients submit one at a time
	Width   int           // of a fan-out
	Load    int           // what the database contains at first: queued or finished executions
	Servers int           // number of servers that share the database
	Slots   int           // concurrent executions of Pawl's workers
	Idle    time.Duration // how long a transaction on another connection has been idle when the work starts
	Pace    int           // executions per second that are processed meanwhile; 0: as many as possible
}

// The workloads of a peer.
const (
	Noop     = "noop"     // Count executions that do nothing, submitted in bulk, then processed
	Steady   = "steady"   // Clients submit Count executions one at a time while workers run
	Alone    = "alone"    // one client submits one execution, waits for its end, and submits the next
	Chain    = "chain"    // workflows of three consecutive steps; Clients at a time
	Fanout   = "fanout"   // workflows of one step, then Width steps at once, then one
	Claim    = "claim"    // the time to claim one execution, with Load others queued
	Finished = "finished" // Noop with Load finished executions in the tables
	Workers  = "workers"  // Load workers have nothing to do for Count seconds
)

// Result is the result of a workload, by metric.
type Result map[string]float64

// Metrics. Times are milliseconds.
const (
	Submitted = "submitted/s"
	Completed = "completed/s"
	P50       = "p50 ms"
	P99       = "p99 ms"
	Bytes     = "bytes each"
	RSS       = "peak RSS MB"
	Deadlocks = "deadlocks"
	CPU       = "CPU µs each"        // of the peer's process
	ServerCPU = "PostgreSQL µs each" // the server's processes for its database
	Core      = "% of a core"        // the peer's process and PostgreSQL's for its database
	RedisCore = "Redis % of a core"
	Lost      = "sessions lost"
)

// Spec is the order for one process.
type Spec struct {
	Peer       string
	DSN        string // a database without other users
	Workloads  []Workload
	Dir        string // for files; removed afterwards
	Server     string // the peer's server program, if it has one
	Committers int    // concurrent transactions of one of Pawl's servers
	Redis      string // URL of a Redis, with a namespace for the trial
	RabbitMQ   string // and of a RabbitMQ
	Profile    string // file for a CPU profile; "": none
}

// Peer runs workloads. It is called for one at a time.
type Peer interface {
	Run(ctx context.Context, w Workload) (Result, error)
	Close()
}

// ErrUnsupported means that a peer does not have the workload.
var ErrUnsupported = errors.New("this peer has no such workload")

// Serve runs the workloads of the specification and prints the results, one for each workload, as JSON.
func Serve(spec string, open func(context.Context, Spec) (Peer, error)) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var s Spec
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return fmt.Errorf("read the trial's specification: %w", err)
	}
	results, err := s.run(ctx, open)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Peer, err)
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

func (s Spec) run(ctx context.Context, open func(context.Context, Spec) (Peer, error)) ([]Result, error) {
	p, err := open(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	defer p.Close()
	if s.Profile != "" {
		stop, err := profile(s.Profile)
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	var results []Result
	for _, w := range s.Workloads {
		r, err := p.Run(ctx, w)
		if err != nil {
			return nil, fmt.Errorf("workload %s: %w", w.Name, err)
		}
		if _, measured := r[RSS]; !measured {
			r[RSS] = peakRSS()
		}
		results = append(results, r)
	}
	return results, nil
}

func profile(path string) (stop func(), err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("make the profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			fmt.Fprintf(os.Stderr, "write the profile: %v\n", err)
		}
	}, nil
}

// Loop runs clients that each do one operation, wait for its end, and do the next, until w.Count are done. The first few are not counted,
// while connections open and caches fill. The DSN names the database whose processor time is measured; "": none.
func Loop(ctx context.Context, dsn string, w Workload, one func(context.Context) error) (Result, error) {
	warm := w
	warm.Count = min(max(w.Count/10, w.Clients, 1), 20*max(w.Clients, 1))
	if _, _, err := loop(ctx, warm, one); err != nil {
		return nil, err
	}
	meter := NewMeter(dsn)
	took, all, err := loop(ctx, w, one)
	if err != nil {
		return nil, err
	}
	r := Result{Completed: float64(w.Count) / all.Seconds()}
	meter.Stop(r, w.Count)
	r.Latency(took)
	return r, nil
}

// Backlog fills a queue with n tasks, and then runs workers, which work starts and stop ends, until they are done.
func Backlog(dsn string, n int, fill func() error, work func() (stop func(), err error), drain func() error) (Result, error) {
	begin := time.Now()
	if err := fill(); err != nil {
		return nil, err
	}
	filled := time.Since(begin)
	meter := NewMeter(dsn)
	begin = time.Now()
	stop, err := work()
	if err != nil {
		return nil, err
	}
	defer stop()
	if err := drain(); err != nil {
		return nil, err
	}
	r := Result{Submitted: float64(n) / filled.Seconds(), Completed: float64(n) / time.Since(begin).Seconds()}
	meter.Stop(r, n)
	return r, nil
}

// Stream runs clients that each submit one task after another while workers run, and waits until all have ended. The metric that Loop calls
// completed is called submitted here.
func Stream(ctx context.Context, dsn string, w Workload, submit func(context.Context) error, drain func(submitted int64) error) (Result, error) {
	var submitted atomic.Int64 // the warming up included
	begin := time.Now()
	r, err := Loop(ctx, dsn, w, func(ctx context.Context) error {
		submitted.Add(1)
		return submit(ctx)
	})
	if err != nil {
		return nil, err
	}
	if err := drain(submitted.Load()); err != nil {
		return nil, err
	}
	r[Submitted], r[Completed] = r[Completed], float64(submitted.Load())/time.Since(begin).Seconds()
	return r, nil
}

func loop(ctx context.Context, w Workload, one func(context.Context) error) ([]time.Duration, time.Duration, error) {
	var next atomic.Int64
	var mu sync.Mutex
	var all []time.Duration
	g, gctx := errgroup.WithContext(ctx)
	begin := time.Now()
	for range max(w.Clients, 1) {
		g.Go(func() error {
			var mine []time.Duration
			for next.Add(1) <= int64(w.Count) {
				began := time.Now()
				if err := one(gctx); err != nil {
					return err
				}
				mine = append(mine, time.Since(began))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
			return nil
		})
	}
	err := g.Wait()
	return all, time.Since(begin), err
}

// Latency adds the quantiles of durations.
func (r Result) Latency(ds []time.Duration) {
	slices.Sort(ds)
	at := func(q float64) float64 {
		return float64(ds[min(int(q*float64(len(ds))), len(ds)-1)].Microseconds()) / 1000
	}
	r[P50], r[P99] = at(0.50), at(0.99)
}

// peakRSS is the peak memory of this process in MB.
func peakRSS() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return float64(u.Maxrss) / 1e6
	}
	return float64(u.Maxrss) * 1024 / 1e6
}
