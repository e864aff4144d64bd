// Package instance is Pawl in one process: it opens the store, the engine, the listeners and a worker on a state directory, closes
// them in the opposite order, and prevents other processes from using that directory. Only this package names stores and runtimes.
package instance

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/crashloop"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff/direct"
	"github.com/pawl-run/pawl/internal/handoff/remote"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/secret"
	"github.com/pawl-run/pawl/internal/server"
	"github.com/pawl-run/pawl/internal/server/compat/judge0"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/postgres"
	"github.com/pawl-run/pawl/internal/store/sqlite"
	"github.com/pawl-run/pawl/internal/telemetry"
	"github.com/pawl-run/pawl/internal/telemetry/otlp"
	"github.com/pawl-run/pawl/internal/worker"
)

// Instance is a whole Pawl in one process: store, engine, server and, if it runs work, a worker and its runtimes.
type Instance struct {
	Options
	lock   *os.File
	alone  *os.File // its lock keeps other commands from joining while this process ends; nil until then
	store  store.Store
	blobs  *BlobPlaces
	engine *engine.Engine
	server *server.Server
	parts  *Parts
	broker *brokered // nil without a broker

	crashes *crashloop.Journal
	keeps   *memory           // the session of this process's worker, for the next process; nil if not kept
	runtime io.Closer         // the runtimes of this process's worker; nil without one
	tracer  *telemetry.Tracer // nil unless OTEL_… names a collector
	flush   func(context.Context) error

	stopWorker, stopCallbacks, stopServing, stopBroker, stopEngine func() // each stops its part and waits for its end
	closing                                                        sync.Once
}

// Options configure an instance for its purpose.
type Options struct {
	Config  *config.Config
	Log     *slog.Logger
	Say     func(format string, args ...any) // prints a line for people
	Getenv  func(string) string
	Version string // the version that the instance reports

	Works  bool          // run work here
	Stays  bool          // it runs until it is stopped, and not only for one command
	Grace  time.Duration // how long running work may continue when the instance closes
	Drains time.Duration // how long requests may continue when the instance closes

	Page    http.Handler // the web page; may be nil
	PageURL string       // its address
}

// Open starts an engine on the locked state directory. The instance takes over the lock.
func Open(ctx context.Context, lock *os.File, ro Options) (_ *Instance, err error) {
	nothing := func() {}
	r := &Instance{Options: ro, lock: lock, parts: NewParts(ro.Log), stopWorker: nothing, stopCallbacks: nothing, stopServing: nothing, stopBroker: nothing, stopEngine: nothing}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	if err := CheckTokens(ro.Config.Tokens()); err != nil { // before the engine starts
		return nil, err
	}
	o := Owner{PID: os.Getpid(), Command: command(), Since: time.Now().UTC(), Works: ro.Works, Page: ro.PageURL}
	if err := o.Write(lock); err != nil {
		return nil, err
	}
	if r.tracer, r.flush, err = otlp.Start(ro.Getenv, "pawl", ro.Version); err != nil {
		return nil, err
	}
	dir := ro.Config.Text("state_dir")
	if r.store, err = OpenStore(ctx, ro.Config.Text("store"), dir, postgres.Options{NotifyDSN: ro.Config.Text("store_notify")}); err != nil {
		return nil, err
	}
	if r.blobs, err = OpenBlobs(ctx, ro.Config); err != nil {
		return nil, err
	}
	var drainBroker func(context.Context) error
	var unreachable func(flow.ID) bool
	if ro.Stays && ro.Config.Text("broker") != "" {
		r.broker = &brokered{ready: make(chan struct{})}
		drainBroker, unreachable = r.broker.drainBroker, r.broker.unreachable
	}
	if r.crashes, err = crashloop.Open(filepath.Join(dir, "evaluating"), ro.Version, ro.Log); err != nil {
		return nil, err
	}
	var before flow.ID
	if ro.Works && ro.Stays && config.IsPostgres(ro.Config.Text("store")) { // on SQLite the sessions of a process end with it
		if r.keeps, err = OpenMemory(ctx, dir, "the database"); err != nil {
			return nil, err
		}
		before, _ = r.keeps.Earlier()
	}
	r.engine, err = engine.New(engine.Options{
		Store: r.store, Blobs: r.blobs, Log: r.Log, Exclusive: !config.IsPostgres(ro.Config.Text("store")), Tracer: r.tracer, Retention: ro.Config.Duration("retention"), SignalRetention: ro.Config.Duration("signal_retention"),
		Queues: ro.queues(), Validate: r.operator().Validate, Needs: payload.Needs, Languages: languagesOf(ro),
		Lease: ro.Config.Duration("lease"), Committers: committers(ro.Config.Text("store")), DrainBroker: drainBroker, Unreachable: unreachable,
		Crashes: r.crashes, Before: before,
	})
	if err != nil {
		return nil, err
	}
	if ro.Works && !config.IsPostgres(ro.Config.Text("store")) { // on PostgreSQL, other processes may be working on them
		unfinished, err := CountUnfinished(ctx, r.store)
		if err != nil {
			return nil, err
		}
		if unfinished > 0 {
			ro.Say("pawl: resuming %s", UnfinishedText(unfinished))
		}
	}
	r.stopEngine = r.parts.Start("the engine", r.engine.Run)
	if r.broker != nil {
		if err := r.startBroker(ctx); err != nil {
			return nil, err
		}
	}
	if err := r.serveState(ctx, o, dir, ro); err != nil {
		return nil, err
	}
	if ro.Works {
		if err := r.startWorker(ctx, ro.Grace, ro.Stays); err != nil {
			return nil, err
		}
	}
	if ro.callbacks() {
		if err := r.startCallbacks(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// queues are those that exist before any worker serves them.
func (o *Options) queues() []string {
	queues := o.Config.List("queues")
	if o.callbacks() {
		queues = append(slices.Clip(queues), judge0.CallbackQueue)
	}
	return queues
}

// languagesOf are the languages, other than the built-in ones, that are known before a worker registers. A tool of this host counts
// only if work runs here.
func languagesOf(ro Options) []string {
	if ro.Works {
		return ro.Config.Languages.Added()
	}
	return ro.Config.Languages.Configured()
}

// operator is the configuration that submissions are checked against.
func (r *Instance) operator() payload.Operator {
	return payload.Operator{
		Knows:  r.knowsLanguage,
		Meant:  func(name string) string { return r.engine.Languages().Meant(context.Background(), name) },
		Taken:  r.Config.Languages.Taken,
		Images: runsImages,
		Most:   r.ceilings(),
	}
}

// ceilings are those of all workers that may get what is submitted here. For a command without other workers they are its own; a server
// may have workers on larger machines, and each worker refuses what exceeds its own automatic limits.
func (r *Instance) ceilings() payload.Ceilings {
	if r.Works && !r.Stays {
		return ceilingsHere(r.Config)
	}
	return ceilings(r.Config, 0)
}

// knowsLanguage also accepts a language if the look-up fails: the worker will decide.
func (r *Instance) knowsLanguage(name string) bool {
	known, err := r.engine.Languages().Knows(context.Background(), name)
	return known || err != nil
}

// serveState lets other commands on this state directory use the engine.
func (r *Instance) serveState(ctx context.Context, o Owner, dir string, ro Options) error {
	tokens := r.Config.Tokens()
	workers, err := r.remoteWorkers(ctx)
	if err != nil {
		return err
	}
	secrets, err := secret.Parse(r.Config.List("webhook_secrets"))
	if err != nil {
		return fmt.Errorf("webhook_secrets: %w", err)
	}
	r.server, err = server.New(server.Options{
		Engine: r.engine, Log: r.Log, Tracer: r.tracer, Version: r.Version, Tokens: tokens, Workers: workers,
		Broker: r.brokerFigures(), Grace: ro.Drains, Page: ro.Page, UploadLimit: r.Config.Size("upload_limit"), Secret: secrets.Here, Wires: r.wires(),
		Most: r.ceilings(),
	})
	if err != nil {
		return err
	}
	l, remove, err := ListenState(dir)
	if err != nil {
		return err
	}
	stop := r.listen(l)
	r.stopServing = func() { stop(); remove() }
	o.Address = l.Addr().String()
	if len(tokens) > 0 {
		o.Token = tokens[0]
	}
	return o.Write(r.lock)
}

// listen serves l in the background; the returned function stops that.
func (r *Instance) listen(l net.Listener) (stop func()) {
	return r.parts.Start("the listener on "+l.Addr().String(), func(ctx context.Context) error { return r.server.Serve(ctx, l) })
}

// Serve also serves l until the instance closes.
func (r *Instance) Serve(l net.Listener) {
	stop, before := r.listen(l), r.stopServing
	r.stopServing = func() { stop(); before() }
}

// Ended is closed when a part of the instance has ended by itself, so that requests are no longer answered or work no longer runs.
func (r *Instance) Ended() <-chan struct{} { return r.parts.ended.Done() }

// Reason is the reason why a part has ended by itself; nil if none has.
func (r *Instance) Reason() error { return context.Cause(r.parts.ended) }

// Failure is Reason as the error of a command.
func (r *Instance) Failure() error { return r.parts.Failure() }

// OnEnd calls do once a part has ended by itself.
func (r *Instance) OnEnd(do func(error)) {
	context.AfterFunc(r.parts.ended, func() { do(r.Failure()) })
}

// CloseToOthers keeps other commands from joining, or returns ErrHeld while one has joined.
func (r *Instance) CloseToOthers() (err error) {
	r.alone, err = LockJoin(r.Config.Text("state_dir"), unix.LOCK_EX)
	return err
}

func (r *Instance) startWorker(ctx context.Context, grace time.Duration, stays bool) (err error) {
	c := r.Config
	o := worker.Options{
		Handoff: direct.New(r.engine), Slots: c.Slots(), Queues: c.List("queues"), Labels: c.Labels(),
		Log: r.Log, Tracer: r.tracer, Blobs: r.blobs, InlineLogs: r.blobs.InlineLogs, Grace: grace,
	}
	if r.keeps != nil {
		o.Memory = r.keeps
	}
	handlers, rt, err := OpenHandlers(r.Config, r.Say, stays, r.keeps)
	if err != nil {
		return err
	}
	o.Handlers, r.runtime = handlers, rt
	w, err := worker.New(o)
	if err != nil {
		return err
	}
	r.stopWorker = r.parts.Start("the worker", w.Run)
	return nil
}

// Client calls the instance within the process.
func (r *Instance) Client() *client.Client {
	return client.NewInProcess(r.server.Handler(), client.WithUserAgent("pawl/"+r.Version))
}

// Close stops all parts. The worker stops first, so that its reports are still recorded.
func (r *Instance) Close() {
	r.closing.Do(func() {
		if r.server != nil {
			r.server.Drain()
		}
		r.stopWorker()
		r.stopCallbacks()
		r.stopServing()
		r.stopBroker()
		if r.broker != nil && r.broker.transport != nil {
			r.broker.transport.Close()
		}
		r.stopEngine()
		if r.flush != nil {
			last, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			if err := r.flush(last); err != nil {
				r.Log.Warn("some traces were not handed in", "err", err)
			}
			cancel()
		}
		if r.runtime != nil {
			if err := r.runtime.Close(); err != nil {
				r.Log.Warn("the runtime did not close cleanly", "err", err)
			}
		}
		if r.crashes != nil {
			_ = r.crashes.Close() // no evaluation runs any more
		}
		if r.keeps != nil {
			_ = r.keeps.Close() // closing releases its lock
		}
		if r.store != nil {
			if err := r.store.Close(); err != nil {
				r.Log.Warn("the store did not close cleanly", "err", err)
			}
		}
		if r.blobs != nil {
			_ = r.blobs.Close() // closing only frees handles
		}
		_ = r.lock.Truncate(0) // its text is no longer true; closing the file releases the lock
		_ = r.lock.Close()
		if r.alone != nil {
			_ = r.alone.Close()
		}
	})
}

// OpenStore opens the database of a setting. The options are for PostgreSQL.
func OpenStore(ctx context.Context, dsn, dir string, o postgres.Options) (store.Store, error) {
	if config.IsPostgres(dsn) {
		s, err := OpenPostgres(ctx, dsn, o)
		if err != nil {
			return nil, err // a nil *postgres.Store must not become a store.Store
		}
		return s, nil
	}
	path := SQLitePath(dsn, dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the database's directory: %w", err)
	}
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return nil, err // a nil *sqlite.Store must not become a store.Store
	}
	return s, nil
}

func SQLitePath(dsn, dir string) string {
	if given, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		return given
	}
	return filepath.Join(dir, "pawl.db")
}

// countedUnfinished is where the count of unfinished executions stops.
const countedUnfinished = 1000

func UnfinishedText(n int) string {
	if n >= countedUnfinished {
		return "1,000 or more unfinished executions"
	}
	return output.Plural(n, "unfinished execution", "unfinished executions")
}

// CountUnfinished counts unfinished executions that users have submitted, up to countedUnfinished.
func CountUnfinished(ctx context.Context, s store.Reader) (int, error) {
	xs, err := store.List(ctx, s, store.Filter{TopLevel: true, Limit: countedUnfinished, Stages: []flow.Stage{
		flow.Requested, flow.Scheduled, flow.Provisioning, flow.Running}})
	if err != nil {
		return 0, fmt.Errorf("look for unfinished executions: %w", err)
	}
	return len(xs), nil
}

// CheckTokens refuses tokens that a server would refuse.
func CheckTokens(tokens []string) error {
	for _, t := range tokens {
		if err := server.CheckToken(t); err != nil {
			return &exit.Error{Code: exit.Misuse, Err: err}
		}
	}
	return nil
}

// command is the command line of this process, for users who find the state directory in use.
func command() string {
	words := []string{"pawl"}
	for _, w := range os.Args[1:] {
		if strings.HasPrefix(w, "-") || len(words) > 2 {
			break // further arguments may contain secrets
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// remoteWorkers serves workers in other processes, including those whose session another server of the database has opened.
func (r *Instance) remoteWorkers(ctx context.Context) (http.Handler, error) {
	key, err := r.engine.Catalog().WorkerKey(ctx)
	if err != nil {
		return nil, err
	}
	return remote.Handler(r.engine, key), nil
}
