package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

// Workflows that fail fast, nest and share keys: their reports, cancels and recoveries lock many of the same rows.
const tangled = `
name: item
input: {type: object}
action: noop
concurrency: {key: "${{ 'k' + string(input.key) }}", limit: 2}
---
name: fan
input: {type: object}
tasks:
  each:
    foreach: ${{ [1, 2, 3, 4, 5, 6] }}
    action: noop
    with: {n: "${{ item }}"}
  keyed:
    foreach: ${{ [0, 1, 2] }}
    action: item
    with: {key: "${{ item }}"}
  end: {needs: [each, keyed], action: noop}
---
name: outer
input: {type: object}
tasks:
  a: {action: fan, with: {n: 1}}
  b: {action: fan, with: {n: 2}}
  nap: {action: sleep, with: {for: 0.05}}
`

// tangle is several engines on one database, with their workers and clients.
type tangle struct {
	t       *testing.T
	engines []*engine.Engine
	ctx     context.Context
	stop    context.CancelFunc

	mu  sync.Mutex
	ids []flow.ID
}

// any returns one of the engines.
func (g *tangle) any() *engine.Engine { return g.engines[rand.IntN(len(g.engines))] }

// soon reports whether a repeated call may succeed.
func soon(err error) bool {
	return errors.Is(err, handoff.ErrUnavailable) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnavailable)
}

// submit submits batches. Twins share idempotency keys, in another order.
func (g *tangle) submit(name string, batches int, order func([]engine.Submission)) {
	for n := range batches {
		var subs []engine.Submission
		for i := range 6 {
			key := fmt.Sprintf("twin-%d-%d", n, i)
			switch i {
			case 0:
				subs = append(subs, engine.Submission{Action: "outer", Input: json.RawMessage(`{}`), IdempotencyKey: key})
			case 1:
				subs = append(subs, engine.Submission{Action: "fan", Input: json.RawMessage(`{}`), IdempotencyKey: key})
			default:
				s := engine.Submission{Action: "noop", IdempotencyKey: key, Key: fmt.Sprintf("k%d", i%3), KeyLimit: 2, Settings: flow.Settings{QueueTimeout: 20 * time.Millisecond}}
				if i == 5 {
					s.WhenFull = flow.WhenFullCancelOldest
				}
				subs = append(subs, s)
			}
		}
		order(subs)
		out, err := g.any().Submit(g.ctx, subs)
		if err != nil {
			g.t.Errorf("%s: submit: %v", name, err)
			return
		}
		g.mu.Lock()
		for _, o := range out {
			if o.Err != nil {
				g.t.Errorf("%s: submit: %v", name, o.Err)
				continue
			}
			g.ids = append(g.ids, o.Execution)
		}
		g.mu.Unlock()
	}
}

// cancel cancels about one in four of the newest executions.
func (g *tangle) cancel() {
	seen := 0
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-g.ctx.Done():
			return
		}
		g.mu.Lock()
		fresh := g.ids[seen:]
		seen = len(g.ids)
		g.mu.Unlock()
		for _, id := range fresh {
			if rand.IntN(4) > 0 {
				continue
			}
			if _, err := g.any().Cancel(g.ctx, id, ""); err != nil && !errors.Is(err, flow.ErrFinished) && !soon(err) && g.ctx.Err() == nil {
				g.t.Errorf("cancel: %v", err)
			}
		}
	}
}

// work takes and reports at any engine, and sometimes falls silent for longer than its lease.
func (g *tangle) work(name string) {
	for g.ctx.Err() == nil {
		session, err := g.any().Open(g.ctx, handoff.Session{Name: name, Queues: []string{"default"}, Slots: 8})
		if err != nil {
			continue
		}
		for range 20 + rand.IntN(40) {
			short, cancel := context.WithTimeout(g.ctx, 200*time.Millisecond)
			work, err := g.any().Take(short, session, 1+rand.IntN(8))
			cancel()
			if errors.Is(err, handoff.ErrSessionLost) || g.ctx.Err() != nil {
				break
			}
			if rand.IntN(3) == 0 {
				_, _ = g.any().Renew(g.ctx, session) // the next call notices a lost session
			}
			var begun, ended []flow.Report
			for _, a := range work {
				running := flow.Event{Seq: a.NextSeq, Attempt: a.Attempt, Type: flow.EvRunning, At: time.Now()}
				end := flow.Event{Seq: a.NextSeq + 1, Attempt: a.Attempt, Type: flow.EvCompleted, At: time.Now(), Outcome: &flow.Outcome{Output: json.RawMessage(`1`)}}
				if rand.IntN(10) == 0 {
					end.Type, end.Outcome = flow.EvFailed, &flow.Outcome{Error: &flow.Error{Code: "boom", Message: "boom"}}
				}
				begun = append(begun, flow.Report{Execution: a.Execution, Attempt: a.Attempt, Events: []flow.Event{running}})
				ended = append(ended, flow.Report{Execution: a.Execution, Attempt: a.Attempt, Events: []flow.Event{running, end}})
			}
			rand.Shuffle(len(begun), func(i, j int) { begun[i], begun[j] = begun[j], begun[i] })
			var both sync.WaitGroup
			for _, reports := range [][]flow.Report{begun, ended[:len(ended)/2], ended[len(ended)/2:]} {
				both.Go(func() {
					for g.ctx.Err() == nil {
						if _, err := g.any().Report(g.ctx, session, reports); !errors.Is(err, handoff.ErrUnavailable) {
							return
						}
					}
				})
			}
			both.Wait()
		}
		if rand.IntN(2) == 0 {
			_ = g.any().Close(g.ctx, session) // otherwise its lease runs out
		}
	}
}

// However reports, cancels, recoveries, timeouts and submissions meet on the rows, each transaction that needs several rows locks them in
// one order, so PostgreSQL never has to end a deadlock.
func TestNoDeadlocks(t *testing.T) {
	db := shared(t)
	dsn := db.named(t)
	g := &tangle{t: t}
	g.ctx, g.stop = context.WithCancel(context.Background())
	running, halt := context.WithCancel(context.Background())
	var engines, users, submitters sync.WaitGroup
	var stores []*postgres.Store
	for range 2 {
		s, err := postgres.Open(t.Context(), dsn, postgres.Options{Writers: 6})
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
		e, err := engine.New(engine.Options{Store: s, Committers: 4, Lease: time.Second, Poll: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		g.engines = append(g.engines, e)
		engines.Go(func() {
			if err := e.Run(running); err != nil {
				t.Errorf("engine: %v", err)
			}
		})
	}
	defs, err := definition.Parse("tangled.yaml", []byte(tangled))
	if err == nil {
		_, err = g.any().Define(t.Context(), defs)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		users.Go(func() { g.work(fmt.Sprintf("w%d", i)) })
	}
	users.Go(g.cancel)
	const batches = 100
	for i := range 4 {
		submitters.Go(func() {
			g.submit(fmt.Sprintf("c%d", i), batches, func(subs []engine.Submission) {
				rand.Shuffle(len(subs), func(i, j int) { subs[i], subs[j] = subs[j], subs[i] })
			})
		})
	}
	submitters.Wait()
	allEnded(t, stores[0], g.engines...)
	g.stop()
	users.Wait()
	halt()
	engines.Wait()
	broken, err := stores[0].Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range broken {
		t.Errorf("invariant %d: %s: %s", b.Invariant, b.Execution, b.Say)
	}
	conflicts := int64(0)
	for i, s := range stores {
		conflicts += g.engines[i].Stats().Conflicts
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	n := deadlocks(t, dsn)
	t.Logf("%d executions were submitted; %d transactions were decided again, %d deadlocks", len(g.ids), conflicts, n)
	if n > 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// allEnded waits until every execution of a store has ended, however long so many take on this machine. It fails when the engines have
// ended none for a minute.
func allEnded(t *testing.T, s *postgres.Store, engines ...*engine.Engine) {
	t.Helper()
	for open, most := true, int64(-1); open; {
		until(t, "another execution has ended", func() bool {
			sum, err := s.Survey(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			open = len(sum.Unfinished) > 0
			finished := int64(0)
			for _, e := range engines {
				finished += e.Stats().Finished
			}
			more := finished > most
			most = finished
			return more || !open
		})
	}
}

// deadlocks returns how many deadlocks PostgreSQL has found in a database.
func deadlocks(t *testing.T, dsn string) (n int) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	alone(t, c)
	if err := c.QueryRow(t.Context(), `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// alone waits until the test has the only connection to the database: PostgreSQL adds up the counters of a connection when it closes.
func alone(t *testing.T, c *pgx.Conn) {
	t.Helper()
	until(t, "the test's own connection is the last", func() bool {
		var others int
		err := c.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
			AND backend_type = 'client backend'`).Scan(&others)
		if err != nil {
			t.Fatal(err)
		}
		return others == 0
	})
}
