package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/postgres"
	"github.com/pawl-run/pawl/internal/store/sqlite"
)

// rig is an engine on a store of its own: SQLite in memory, or a schema in PostgreSQL.
type rig struct {
	testing.TB
	ctx   context.Context
	e     *Engine
	store store.Store
	clock *clockwork
	stop  func()             // ends the engine
	again func() store.Store // opens the store once more, as another process does; nil if only one can
}

// clockwork is the clocks of the database and of the process, which tests can advance.
type clockwork struct {
	began time.Time

	mu     sync.Mutex
	ahead  time.Duration // of the process's own clock
	wall   time.Duration // of the database's
	leased time.Duration // of the database's clock of leases
}

func newClockwork() *clockwork { return &clockwork{began: time.Now()} }

// now is the database's clock.
func (c *clockwork) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.wall)
}

// leases is the database's clock of leases.
func (c *clockwork) leases() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.began) + c.leased
}

// uptime is the process's own clock.
func (c *clockwork) uptime() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.began) + c.ahead
}

// move advances each clock.
func (c *clockwork) move(own, wall, leased time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += own
	c.wall += wall
	c.leased += leased
}

// jump sets the database's clock, as when a PostgreSQL server's clock is set or the server sleeps: its times and leases, and nothing else.
func (c *clockwork) jump(d time.Duration) { c.move(0, d, d) }

func newRig(t testing.TB, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{TB: t, clock: newClockwork()}
	s, err := sqlite.Open(t.Context(), ":memory:", sqlite.Options{Now: r.clock.now, Uptime: r.clock.leases})
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	r.store = s
	return r.run(Options{Store: s, Exclusive: true, Uptime: r.clock.uptime}, change)
}

// newPostgresRig is a rig on a schema of its own in PostgreSQL, whose clock tests cannot set. It skips the test if there is no server.
func newPostgresRig(t testing.TB, change ...func(*Options)) *rig {
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
	r := &rig{TB: t, store: s, again: func() store.Store {
		s, err := postgres.Open(t.Context(), dsn, postgres.Options{Schema: schema})
		if err != nil {
			t.Fatalf("open store: %v", err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("close store: %v", err)
			}
		})
		return s
	}}
	return r.run(Options{Store: s, Committers: 4}, change)
}

// recoverUnstarted takes back attempts that were claimed and not begun, by the database's clock now.
func (r *rig) recoverUnstarted() error {
	at, err := inBatch(r.ctx, r.e, nil, func(ctx context.Context, t *transaction) (clockReading, error) { return t.readClock(ctx) })
	if err != nil {
		return err
	}
	return r.e.recoverUnstarted(r.ctx, at)
}

// onEachStore runs a test on SQLite and on PostgreSQL.
func onEachStore(t *testing.T, test func(*rig), change ...func(*Options)) {
	t.Run("sqlite", func(t *testing.T) { test(newRig(t, change...)) })
	t.Run("postgres", func(t *testing.T) { test(newPostgresRig(t, change...)) })
}

// run starts the engine and stops it, with the store, when the test ends.
func (r *rig) run(o Options, change []func(*Options)) *rig {
	r.Helper()
	r.ctx = r.TB.Context()
	o.Log = slog.New(slog.NewTextHandler(r.Output(), nil))
	for _, c := range change {
		c(&o)
	}
	r.begin(o)
	r.Cleanup(func() {
		r.verify()
		r.replayAll()
		r.stop()
		if err := r.store.Close(); err != nil {
			r.Errorf("close store: %v", err)
		}
	})
	return r
}

// begin makes and runs an engine until stop.
func (r *rig) begin(o Options) {
	r.Helper()
	var err error
	if r.e, err = New(o); err != nil {
		r.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.e.Run(ctx) }()
	r.stop = func() {
		stop()
		if err := <-done; err != nil {
			r.Errorf("engine: %v", err)
		}
	}
}

// restart ends the engine, and starts another one on its store.
func (r *rig) restart(change func(*Options)) {
	r.Helper()
	r.stop()
	o := r.e.opts
	change(&o)
	r.begin(o)
}

// verify verifies the rows.
func (r *rig) verify() {
	r.Helper()
	broken, err := r.e.Verify(context.Background())
	if err != nil {
		r.Errorf("check: %v", err)
	}
	for _, v := range broken {
		r.Errorf("invariant %d: %s: %s", v.Invariant, v.Execution, v.Say)
	}
}

// pass advances the clocks while the workers renew their sessions, and makes the sweep look.
func (r *rig) pass(d time.Duration) {
	r.Helper()
	r.clock.move(d, d, 0)
	r.decideDue()
}

// lapse advances the clocks while no worker renews its session.
func (r *rig) lapse(d time.Duration) {
	r.Helper()
	r.clock.move(d, d, d)
	r.decideDue()
}

func (r *rig) decideDue() {
	r.Helper()
	if _, err := r.e.decideDue(r.ctx); err != nil {
		r.Fatalf("sweep: %v", err)
	}
}

func (r *rig) submit(s Submission) flow.ID {
	r.Helper()
	out, err := r.e.Submit(r.ctx, []Submission{s})
	if err == nil {
		err = out[0].Err
	}
	if err != nil {
		r.Fatalf("submit %+v: %v", s, err)
	}
	return out[0].Execution
}

func (r *rig) get(id flow.ID) *flow.Execution {
	r.Helper()
	x, err := r.store.Get(r.ctx, id)
	if err != nil {
		r.Fatalf("get %s: %v", id, err)
	}
	return x
}

// ended waits for an execution's end.
func (r *rig) ended(id flow.ID) *flow.Execution {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, 3*time.Minute)
	defer cancel()
	end := r.e.WaitForEnd(id)
	defer end.Close()
	x, err := end.Wait(ctx)
	if err != nil {
		w, _ := r.e.Why(r.ctx, id)
		r.Fatalf("%s has not ended: %v: %+v", id, err, w)
	}
	return x
}

// define applies documents.
func (r *rig) define(src string) {
	r.Helper()
	defs, err := definition.Parse("test.yaml", []byte(src))
	if err == nil {
		_, err = r.e.Define(r.ctx, defs)
	}
	if err != nil {
		r.Fatalf("define: %v", err)
	}
}

// hand is a worker session that a test controls.
type hand struct {
	*rig
	session flow.ID
}

func (r *rig) worker(queues ...string) *hand {
	r.Helper()
	if len(queues) == 0 {
		queues = []string{flow.DefaultQueue}
	}
	id, err := r.e.Open(r.ctx, handoff.Session{Name: "hand", Queues: queues, Slots: 100})
	if err != nil {
		r.Fatalf("open session: %v", err)
	}
	return &hand{r, id}
}

// take claims up to n executions, or none if there are none at once.
func (h *hand) take(n int) []handoff.Assignment {
	h.Helper()
	work, err := h.e.Take(h.ctx, h.session, n)
	if err != nil {
		h.Fatalf("take: %v", err)
	}
	return work
}

// settled waits until no waiting claimer may find work.
func (r *rig) settled() {
	r.Helper()
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		r.e.mu.Lock()
		hopeful := len(r.e.claimers.waiting) == 0
		for _, k := range r.e.claimers.waiting {
			hopeful = hopeful || !k.paused && r.e.claimers.queues.any(k.queues)
		}
		r.e.mu.Unlock()
		if !hopeful {
			return
		}
		if time.Now().After(deadline) {
			r.Fatal("who waits for work has not looked into the queues")
		}
	}
}

func ev(a *handoff.Assignment, n int64, typ flow.EventType, o *flow.Outcome) flow.Event {
	return flow.Event{Seq: a.NextSeq + n, Attempt: a.Attempt, Type: typ, At: time.Now(), Outcome: o}
}

func (h *hand) report(a handoff.Assignment, events ...flow.Event) flow.Receipt {
	h.Helper()
	rs, err := h.e.Report(h.ctx, h.session, []flow.Report{{Execution: a.Execution, Attempt: a.Attempt, Events: events}})
	if err != nil {
		h.Fatalf("report: %v", err)
	}
	return rs[0]
}

func (h *hand) complete(a handoff.Assignment, output string) flow.Receipt {
	h.Helper()
	return h.report(a, ev(&a, 0, flow.EvRunning, nil), ev(&a, 1, flow.EvCompleted, &flow.Outcome{Output: json.RawMessage(output)}))
}

func (h *hand) fail(a handoff.Assignment, code string) flow.Receipt {
	h.Helper()
	return h.report(a, ev(&a, 0, flow.EvRunning, nil), ev(&a, 1, flow.EvFailed, &flow.Outcome{Error: &flow.Error{Code: code, Message: code}}))
}

// serve completes all work with the outputs of respond, until the test ends.
func (h *hand) serve(respond func(handoff.Assignment) (string, *flow.Error)) {
	ctx, stop := context.WithCancel(h.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			work, err := h.e.Take(ctx, h.session, 50)
			if err != nil {
				return
			}
			var reports []flow.Report
			for i := range work {
				a := &work[i]
				out, fault := respond(*a)
				end := ev(a, 1, flow.EvCompleted, &flow.Outcome{Output: json.RawMessage(out)})
				if fault != nil {
					end = ev(a, 1, flow.EvFailed, &flow.Outcome{Error: fault})
				}
				reports = append(reports, flow.Report{Execution: a.Execution, Attempt: a.Attempt, Events: []flow.Event{ev(a, 0, flow.EvRunning, nil), end}})
			}
			if _, err := h.e.Report(ctx, h.session, reports); err != nil && ctx.Err() == nil {
				h.Errorf("report: %v", err)
				return
			}
		}
	}()
	kept := make(chan struct{})
	go func() { // some tests take longer than a lease on a busy machine
		defer close(kept)
		renew := time.NewTicker(h.e.Lease() / 6)
		defer renew.Stop()
		for {
			select {
			case <-renew.C:
				_, _ = h.e.Renew(ctx, h.session) // a lost session shows in missing claims
			case <-ctx.Done():
				return
			}
		}
	}()
	h.Cleanup(func() { stop(); <-done; <-kept })
}

func echo(a handoff.Assignment) (string, *flow.Error) {
	if a.Payload == nil {
		return "null", nil
	}
	return string(a.Payload), nil
}

// history returns an execution's events, checking that they are numbered without gaps.
func (r *rig) history(id flow.ID) []flow.EventType {
	r.Helper()
	events, err := r.store.Events(r.ctx, id, 0, 10_000)
	if err != nil {
		r.Fatalf("events: %v", err)
	}
	types := make([]flow.EventType, len(events))
	for i, e := range events {
		if e.Seq != int64(i+1) {
			r.Errorf("event %d has number %d", i+1, e.Seq)
		}
		types[i] = e.Type
	}
	return types
}

// mostReplayed is how many histories are replayed after each test, the newest first.
const mostReplayed = 1000

// replayAll replays the histories of the store: the records must follow from the rules.
func (r *rig) replayAll() {
	r.Helper()
	ctx, f := context.Background(), store.Filter{Limit: 500}
	for n := 0; n < mostReplayed; {
		page, err := store.List(ctx, r.store, f)
		if err != nil {
			r.Errorf("list: %v", err)
		}
		if len(page) == 0 {
			return
		}
		for _, x := range page {
			n++
			f.Before = x.ID
			res, err := r.e.Histories().Replay(ctx, x.ID, 0)
			if err != nil {
				r.Errorf("replay %s: %v", x.ID, err)
				continue
			}
			for _, f := range res.Findings {
				r.Errorf("%s (%s): event %d: %s[%d]: by the rules %s, recorded %s: %s", x.ID, x.Kind, f.Seq, f.Task, f.Index, f.Rules, f.Recorded, f.Why)
			}
		}
	}
}

// why asks, and fails unless the whole answer has everything that is wanted and nothing that is not.
func (r *rig) why(id flow.ID, wants ...string) api.Why {
	r.Helper()
	w, err := r.e.Why(r.ctx, id)
	if err != nil {
		r.Fatal(err)
	}
	all := strings.Join(append([]string{w.Summary}, w.Facts...), "\n") + fmt.Sprintf("\n%+v", w.Unblock)
	for _, a := range w.Unblock {
		if strings.Contains(a.Text, "pawl ") || strings.Contains(a.Text, "--") {
			r.Errorf("%q has words of the command line, which the page shows as well", a.Text)
		}
	}
	for _, want := range wants {
		if not, ok := strings.CutPrefix(want, "!"); ok == strings.Contains(all, not) {
			r.Errorf("%q: found is %t in\n%s", want, ok, all)
		}
	}
	return w
}

func (r *rig) child(of flow.ID, task string, index int) flow.ID {
	r.Helper()
	x := r.kids(of)[fmt.Sprintf("%s[%d]", task, index)]
	if x == nil {
		r.Fatalf("%s has no child %s[%d]", of, task, index)
	}
	return x.ID
}
