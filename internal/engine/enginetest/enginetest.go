// Package enginetest runs an engine for the tests of the packages beside it, which see only what the engine exports.
package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/blob/file"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/postgres"
	"github.com/pawl-run/pawl/internal/store/sqlite"
)

// Rig is an engine on a store of its own, with a blob store.
type Rig struct {
	testing.TB
	Ctx    context.Context
	Engine *engine.Engine
	Store  store.Store
	Blobs  blob.Store
}

// Open makes a rig, such as OnSQLite.
type Open func(testing.TB, ...func(*engine.Options)) *Rig

// Stores are the functions that make a rig, by the name of its store.
var Stores = map[string]Open{"sqlite": OnSQLite, "postgres": OnPostgres}

// OnEachStore runs a test on SQLite and on PostgreSQL.
func OnEachStore(t *testing.T, test func(*Rig), change ...func(*engine.Options)) {
	for name, open := range Stores {
		t.Run(name, func(t *testing.T) { test(open(t, change...)) })
	}
}

// OnSQLite is a rig on SQLite in memory.
func OnSQLite(t testing.TB, change ...func(*engine.Options)) *Rig {
	t.Helper()
	s, err := sqlite.Open(t.Context(), ":memory:", sqlite.Options{})
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	return run(t, engine.Options{Store: s, Exclusive: true}, change)
}

// OnPostgres is a rig on a schema of its own in PostgreSQL. It skips the test if there is no server.
func OnPostgres(t testing.TB, change ...func(*engine.Options)) *Rig {
	t.Helper()
	dsn := os.Getenv("PAWL_TEST_POSTGRES")
	if dsn == "" {
		t.Skip("NOT TESTED on PostgreSQL: PAWL_TEST_POSTGRES is not set (scripts/with-services sets it)")
	}
	schema := fmt.Sprintf("engine_%016x", rand.Uint64())
	s, err := postgres.Open(t.Context(), dsn, postgres.Options{Schema: schema})
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	t.Cleanup(func() { // after the store is closed: cleanups run in reverse order
		c, err := pgx.Connect(context.Background(), dsn)
		if err != nil {
			t.Errorf("drop schema: %v", err)
			return
		}
		defer func() { _ = c.Close(context.Background()) }()
		if _, err := c.Exec(context.Background(), "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Errorf("drop schema: %v", err)
		}
	})
	return run(t, engine.Options{Store: s, Committers: 4}, change)
}

// run starts the engine. When the test ends, it verifies the rows and replays the histories; then it stops the engine and the store.
func run(t testing.TB, o engine.Options, change []func(*engine.Options)) *Rig {
	t.Helper()
	blobs, err := file.Open(t.TempDir())
	if err != nil {
		t.Fatalf("open blobs: %v", err)
	}
	o.Blobs, o.Log = blobs, slog.New(slog.NewTextHandler(t.Output(), nil))
	for _, c := range change {
		c(&o)
	}
	e, err := engine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r := &Rig{TB: t, Ctx: t.Context(), Engine: e, Store: o.Store, Blobs: blobs}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		r.verify()
		stop()
		if err := <-done; err != nil {
			t.Errorf("engine: %v", err)
		}
		if err := o.Store.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
		_ = blobs.Close()
	})
	return r
}

// verify verifies the rows, and replays the 1,000 newest histories.
func (r *Rig) verify() {
	r.Helper()
	ctx := context.Background()
	broken, err := r.Engine.Verify(ctx)
	if err != nil {
		r.Errorf("check: %v", err)
	}
	for _, v := range broken {
		r.Errorf("invariant %d: %s: %s", v.Invariant, v.Execution, v.Say)
	}
	newest, err := store.List(ctx, r.Store, store.Filter{Limit: 1000})
	if err != nil {
		r.Errorf("list: %v", err)
	}
	for _, x := range newest {
		res, err := r.Engine.Histories().Replay(ctx, x.ID, 0)
		if err != nil {
			r.Errorf("replay %s: %v", x.ID, err)
			continue
		}
		for _, f := range res.Findings {
			r.Errorf("%s (%s): event %d: %s[%d]: by the rules %s, recorded %s: %s", x.ID, x.Kind, f.Seq, f.Task, f.Index, f.Rules, f.Recorded, f.Why)
		}
	}
}

// Submit submits an execution that must be accepted.
func (r *Rig) Submit(s engine.Submission) flow.ID {
	r.Helper()
	out, err := r.Engine.Submit(r.Ctx, []engine.Submission{s})
	if err == nil {
		err = out[0].Err
	}
	if err != nil {
		r.Fatalf("submit %+v: %v", s, err)
	}
	return out[0].Execution
}

// Get returns an execution that must exist.
func (r *Rig) Get(id flow.ID) *flow.Execution {
	r.Helper()
	x, err := r.Store.Get(r.Ctx, id)
	if err != nil {
		r.Fatalf("get %s: %v", id, err)
	}
	return x
}

// Ended waits for an execution's end.
func (r *Rig) Ended(id flow.ID) *flow.Execution {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Ctx, 3*time.Minute)
	defer cancel()
	end := r.Engine.WaitForEnd(id)
	defer end.Close()
	x, err := end.Wait(ctx)
	if err != nil {
		w, _ := r.Engine.Why(r.Ctx, id)
		r.Fatalf("%s has not ended: %v: %+v", id, err, w)
	}
	return x
}

// Children are the tasks of a workflow's attempt, by task and index, such as build[0].
func (r *Rig) Children(id flow.ID) map[string]*flow.Execution {
	r.Helper()
	all, err := r.Store.Children(r.Ctx, store.WorkflowAttempt{ID: id, Attempt: r.Get(id).Attempt}, "", -1, 10_000)
	if err != nil {
		r.Fatal(err)
	}
	children := map[string]*flow.Execution{}
	for _, c := range all {
		children[fmt.Sprintf("%s[%d]", c.Task, c.Index)] = r.Get(c.Execution)
	}
	return children
}

// Define applies documents.
func (r *Rig) Define(src string) {
	r.Helper()
	defs, err := definition.Parse("test.yaml", []byte(src))
	if err == nil {
		_, err = r.Engine.Define(r.Ctx, defs)
	}
	if err != nil {
		r.Fatalf("define: %v", err)
	}
}

// Worker is a worker's session that a test controls.
type Worker struct {
	*Rig
	Session flow.ID
}

// Worker opens a session of 100 slots for some queues, or for the default one.
func (r *Rig) Worker(queues ...string) *Worker {
	r.Helper()
	if len(queues) == 0 {
		queues = []string{flow.DefaultQueue}
	}
	return r.Open(handoff.Session{Name: "hand", Queues: queues, Slots: 100})
}

// Open opens a session.
func (r *Rig) Open(s handoff.Session) *Worker {
	r.Helper()
	id, err := r.Engine.Open(r.Ctx, s)
	if err != nil {
		r.Fatalf("open session: %v", err)
	}
	return &Worker{r, id}
}

// Take waits until there is work and takes at most n executions.
func (w *Worker) Take(n int) []handoff.Assignment {
	w.Helper()
	work, err := w.Engine.Take(w.Ctx, w.Session, n)
	if err != nil {
		w.Fatalf("take: %v", err)
	}
	return work
}

// Event is the event that follows n others in the same report.
func Event(a *handoff.Assignment, n int64, typ flow.EventType, o *flow.Outcome) flow.Event {
	return flow.Event{Seq: a.NextSeq + n, Attempt: a.Attempt, Type: typ, At: time.Now(), Outcome: o}
}

// Report reports events of an attempt.
func (w *Worker) Report(a handoff.Assignment, events ...flow.Event) {
	w.Helper()
	if _, err := w.Engine.Report(w.Ctx, w.Session, []flow.Report{{Execution: a.Execution, Attempt: a.Attempt, Events: events}}); err != nil {
		w.Fatalf("report: %v", err)
	}
}

// Complete reports that an attempt began and completed.
func (w *Worker) Complete(a handoff.Assignment, output string) {
	w.Helper()
	w.Report(a, Event(&a, 0, flow.EvRunning, nil), Event(&a, 1, flow.EvCompleted, &flow.Outcome{Output: json.RawMessage(output)}))
}

// Fail reports that an attempt began and failed.
func (w *Worker) Fail(a handoff.Assignment, code string) {
	w.Helper()
	w.Report(a, Event(&a, 0, flow.EvRunning, nil), Event(&a, 1, flow.EvFailed, &flow.Outcome{Error: &flow.Error{Code: code, Message: code}}))
}

// Serve answers all work until the test ends.
func (w *Worker) Serve(respond func(handoff.Assignment) (output string, fault *flow.Error)) {
	ctx, stop := context.WithCancel(w.Ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			work, err := w.Engine.Take(ctx, w.Session, 50)
			if err != nil {
				return
			}
			var reports []flow.Report
			for i := range work {
				a := &work[i]
				output, fault := respond(*a)
				end := Event(a, 1, flow.EvCompleted, &flow.Outcome{Output: json.RawMessage(output)})
				if fault != nil {
					end = Event(a, 1, flow.EvFailed, &flow.Outcome{Error: fault})
				}
				reports = append(reports, flow.Report{Execution: a.Execution, Attempt: a.Attempt, Events: []flow.Event{Event(a, 0, flow.EvRunning, nil), end}})
			}
			if _, err := w.Engine.Report(ctx, w.Session, reports); err != nil && ctx.Err() == nil {
				w.Errorf("report: %v", err)
				return
			}
		}
	}()
	w.Cleanup(func() { stop(); <-done })
}

// Echo returns an attempt's input as its output.
func Echo(a handoff.Assignment) (string, *flow.Error) {
	if a.Payload == nil {
		return "null", nil
	}
	return string(a.Payload), nil
}
