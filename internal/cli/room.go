package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff/direct"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/server"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/postgres"
	"github.com/pawl-run/pawl/internal/store/sqlite"
	"github.com/pawl-run/pawl/internal/telemetry"
	"github.com/pawl-run/pawl/internal/telemetry/otlp"
	"github.com/pawl-run/pawl/internal/worker"
)

// room is everything of Pawl in one process: store, engine, server and, when it works, a worker and its runtime.
type room struct {
	app    *app
	lock   *os.File
	alone  *os.File // keeps other commands from joining while this process ends; nil until then
	store  store.Store
	blobs  *blobHouse
	engine *engine.Engine
	server *server.Server
	log    *slog.Logger
	parts  *parts

	keeps   *memory           // what the worker here remembers; nil when it is nothing
	runtime io.Closer         // of what works here; nil when nothing does
	tracer  *telemetry.Tracer // nil unless OTEL_… names a collector
	flush   func(context.Context) error

	stopWorker, stopServing, stopEngine func() // each waits until it has stopped
	closing                             sync.Once
}

// roomOptions say what a room is for.
type roomOptions struct {
	works  bool          // run work here
	stays  bool          // until it is stopped, and not only for one command's own work
	grace  time.Duration // how long running work may go on when the room closes
	drains time.Duration // how long requests may

	page    http.Handler // the web page; nil: there is none
	pageURL string       // where it is
}

// openRoom starts an engine on the locked state directory. The lock becomes the room's.
func (a *app) openRoom(ctx context.Context, lock *os.File, ro roomOptions) (_ *room, err error) {
	nothing := func() {}
	r := &room{app: a, lock: lock, log: a.logger(), parts: newParts(a.logger()), stopWorker: nothing, stopServing: nothing, stopEngine: nothing}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if err := checkTokens(a.tokens()); err != nil { // before the engine starts
		return nil, err
	}
	o := owner{PID: os.Getpid(), Command: command(), Since: time.Now().UTC(), Works: ro.works, Page: ro.pageURL}
	if err := o.write(lock); err != nil {
		return nil, err
	}
	if r.tracer, r.flush, err = otlp.Start(a.getenv, "pawl", version()); err != nil {
		return nil, err
	}
	dir := a.config.text("state_dir")
	if r.store, err = openStore(ctx, a.config.text("store"), dir, ""); err != nil {
		return nil, err
	}
	if r.blobs, err = a.config.openBlobs(ctx); err != nil {
		return nil, err
	}
	r.engine, err = engine.New(engine.Options{
		Store: r.store, Blobs: r.blobs, Log: r.log, Exclusive: !isPostgres(a.config.text("store")), Tracer: r.tracer, Retention: a.config.retention(),
		Queues: a.config.list("queues"), Validate: payload.Validating(r.knowsLanguage), Needs: payload.Needs, Languages: a.config.languages.Added(), Lease: a.config.lease(), Committers: committers(a.config.text("store")),
	})
	if err != nil {
		return nil, err
	}
	if ro.works && !isPostgres(a.config.text("store")) { // there, others may be at work on them
		unfinished, err := countUnfinished(ctx, r.store)
		if err != nil {
			return nil, err
		}
		if unfinished > 0 {
			a.say("pawl: resuming %s", unfinishedText(unfinished))
		}
	}
	r.stopEngine = r.parts.start("the engine", r.engine.Run)
	if err := r.serveState(ctx, o, dir, ro); err != nil {
		return nil, err
	}
	if ro.works {
		if err := r.startWorker(ctx, ro.grace, ro.stays); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// knowsLanguage leaves a language that cannot be looked up just now to the worker's word.
func (r *room) knowsLanguage(name string) bool {
	known, err := r.engine.KnowsLanguage(context.Background(), name)
	return known || err != nil
}

// serveState lets other commands on this state directory reach the engine.
func (r *room) serveState(ctx context.Context, o owner, dir string, ro roomOptions) error {
	tokens := r.app.tokens()
	workers, err := r.remoteWorkers(ctx)
	if err != nil {
		return err
	}
	if r.server, err = server.New(server.Options{Engine: r.engine, Log: r.log, Tracer: r.tracer, Version: version(), Tokens: tokens, Workers: workers, Grace: ro.drains, Page: ro.page, UploadLimit: r.app.config.size("upload_limit")}); err != nil {
		return err
	}
	l, remove, err := listenState(dir)
	if err != nil {
		return err
	}
	stop := r.serve(l)
	r.stopServing = func() { stop(); remove() }
	o.Address = l.Addr().String()
	if len(tokens) > 0 {
		o.Token = tokens[0]
	}
	return o.write(r.lock)
}

// serve answers on l in the background; the result stops that.
func (r *room) serve(l net.Listener) (stop func()) {
	return r.parts.start("the listener on "+l.Addr().String(), func(ctx context.Context) error { return r.server.Serve(ctx, l) })
}

// startWorker starts the worker of this process.
func (r *room) startWorker(ctx context.Context, grace time.Duration, stays bool) (err error) {
	c := &r.app.config
	o := worker.Options{
		Handoff: direct.New(r.engine), Slots: c.slots(), Queues: c.list("queues"), Labels: c.labels(),
		Log: r.log, Tracer: r.tracer, Blobs: r.blobs, InlineLogs: r.blobs.inDatabase, Grace: grace,
	}
	if stays && isPostgres(c.text("store")) { // elsewhere the sessions of a process end with it
		if r.keeps, err = openMemory(ctx, c.text("state_dir"), "the database"); err != nil {
			return err
		}
		o.Memory = r.keeps
	}
	handlers, rt, err := r.app.handlers(stays, r.keeps)
	if err != nil {
		return err
	}
	o.Handlers, r.runtime = handlers, rt
	w, err := worker.New(o)
	if err != nil {
		return err
	}
	r.stopWorker = r.parts.start("the worker", w.Run)
	return nil
}

func (r *room) client() *client.Client {
	return client.NewInProcess(r.server.Handler(), client.WithUserAgent("pawl/"+version()))
}

// close stops everything, the worker first, so that what it reports is still recorded.
func (r *room) close() {
	r.closing.Do(func() {
		if r.server != nil {
			r.server.Drain()
		}
		r.stopWorker()
		r.stopServing()
		r.stopEngine()
		if r.flush != nil {
			last, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			if err := r.flush(last); err != nil {
				r.log.Warn("some traces were not handed in", "err", err)
			}
			cancel()
		}
		if r.runtime != nil {
			if err := r.runtime.Close(); err != nil {
				r.log.Warn("the runtime did not close cleanly", "err", err)
			}
		}
		if r.keeps != nil {
			_ = r.keeps.Close() // only its lock matters by now
		}
		if r.store != nil {
			if err := r.store.Close(); err != nil {
				r.log.Warn("the store did not close cleanly", "err", err)
			}
		}
		if r.blobs != nil {
			_ = r.blobs.Close() // there is nothing to be said: only handles are given back
		}
		_ = r.lock.Truncate(0) // what it says is no longer so; the lock itself ends with the file
		_ = r.lock.Close()
		if r.alone != nil {
			_ = r.alone.Close()
		}
	})
}

// openStore opens the database that a setting names. Of PostgreSQL, schema holds the tables; "" is the usual one.
func openStore(ctx context.Context, dsn, dir, schema string) (store.Store, error) {
	if isPostgres(dsn) {
		return openPostgres(ctx, dsn, postgres.Options{Schema: schema})
	}
	path := sqlitePath(dsn, dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the database's directory: %w", err)
	}
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return nil, err // a nil *sqlite.Store must not become a store.Store
	}
	return s, nil
}

// sqlitePath is the file that a setting names.
func sqlitePath(dsn, dir string) string {
	if given, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		return given
	}
	return filepath.Join(dir, "pawl.db")
}

// countedUnfinished is up to where unfinished executions are counted.
const countedUnfinished = 1000

// unfinishedText says how many executions are unfinished, as countUnfinished counts them.
func unfinishedText(n int) string {
	if n >= countedUnfinished {
		return "1,000 or more unfinished executions"
	}
	return plural(n, "unfinished execution", "unfinished executions")
}

// countUnfinished counts what users submitted and what has not ended, up to countedUnfinished.
func countUnfinished(ctx context.Context, s store.Reader) (int, error) {
	xs, err := s.List(ctx, store.Filter{TopLevel: true, Limit: countedUnfinished, Stages: []flow.Stage{
		flow.Requested, flow.Scheduling, flow.Scheduled, flow.Provisioning, flow.Running}})
	if err != nil {
		return 0, fmt.Errorf("look for unfinished executions: %w", err)
	}
	return len(xs), nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// checkTokens refuses tokens that a server would refuse.
func checkTokens(tokens []string) error {
	for _, t := range tokens {
		if err := server.CheckToken(t); err != nil {
			return &exit{exitUsage, err}
		}
	}
	return nil
}

// tokens are those that the server asks for.
func (a *app) tokens() []string {
	if t := a.config.text("token"); t != "" {
		return []string{t}
	}
	return nil
}

// command is how this process was called, for those who wonder who holds a state directory.
func command() string {
	words := []string{"pawl"}
	for _, w := range os.Args[1:] {
		if strings.HasPrefix(w, "-") || len(words) > 2 {
			break // flags may hold secrets
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// logger writes to standard error, or wherever a view sends it.
func (a *app) logger() *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.config.text("log_level"))); err != nil {
		level = slog.LevelWarn // the setting was checked
	}
	return slog.New(slog.NewTextHandler(&a.logTo, &slog.HandlerOptions{Level: level}))
}

// logWriter is where log lines go: to a writer, or by way of a function that keeps them out of a live view's way.
type logWriter struct {
	mu  sync.Mutex
	say func(line string)
	app *app
}

func (l *logWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	say := l.say
	l.mu.Unlock()
	if say == nil {
		return l.app.err.Write(b)
	}
	say(strings.TrimRight(string(b), "\n"))
	return len(b), nil
}

// redirect sends lines to say; nil sends them to standard error again.
func (l *logWriter) redirect(say func(string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.say = say
}
