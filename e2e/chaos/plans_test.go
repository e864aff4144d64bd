package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

// small are the tables that stay small, however many executions have ended; only summaries read them as a whole.
var small = map[string]bool{"live": true, "sessions": true, "keys": true, "definitions": true, "pawl_migrations": true}

const planned = `
name: pair
input: {type: object}
tasks:
  one: {action: noop, with: {n: 1}}
  two: {needs: [one], foreach: "${{ [1, 2] }}", action: noop, with: {n: "${{ item }}"}}
`

// A server's statements are planned once, when it starts. On a new database all tables are empty then, and the planner knows that. The
// plans must still be good with many rows: the work for one execution must not read more rows the more executions have ended.
func TestPlansOfAnEmptyDatabase(t *testing.T) {
	executions, most := 40_000, 20.0
	if *long {
		executions = 200_000
	}
	dsn := shared(t).named(t)
	db := &database{dsn: dsn}
	if err := postgres.Migrate(t.Context(), dsn, postgres.Options{}); err != nil {
		t.Fatal(err)
	}
	// The planner knows that the tables are empty and does not look again, because a new look would make new plans.
	db.execute(t, `DO $$ DECLARE r regclass; BEGIN
		FOR r IN SELECT c.oid FROM pg_class c WHERE c.relnamespace = 'pawl'::regnamespace AND c.relkind = 'r' LOOP
			EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', r);
		END LOOP; END $$`, `VACUUM ANALYZE`)
	s, err := postgres.Open(t.Context(), dsn, postgres.Options{Writers: 2, Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{Store: s, Committers: 2, Lease: 10 * time.Minute, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		if err := e.Run(ctx); err != nil {
			t.Errorf("engine: %v", err)
		}
	})
	defs, err := definition.Parse("planned.yaml", []byte(planned))
	if err == nil {
		_, err = e.Define(ctx, defs)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		session, err := e.Open(ctx, handoff.Session{Name: "w", Queues: []string{"default", "other"}, Slots: 500})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { swallow(t, ctx, e, session) })
	}
	began := time.Now()
	var last flow.ID
	for done := 0; done < executions; {
		var subs []engine.Submission
		for i := range 400 {
			n := done + i
			sub := engine.Submission{Action: "noop", Input: json.RawMessage(`{}`)}
			switch n % 20 {
			case 0:
				sub.Action = "pair"
				done += 3 // children
			case 1, 2:
				sub.Key, sub.KeyLimit = fmt.Sprintf("k%d", n%7), 3
			case 3, 4:
				sub.IdempotencyKey = fmt.Sprintf("i%d", n)
			case 5:
				sub.Labels = map[string]string{"n": fmt.Sprint(n)}
			case 6:
				sub.Retry = &flow.Retry{MaxAttempts: 2, Delay: time.Millisecond}
				sub.Input = json.RawMessage(`{"fails":1}`)
			}
			subs = append(subs, sub)
		}
		out, err := e.Submit(ctx, subs)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range out {
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			last = o.Execution
		}
		done += len(subs)
		for range 3 { // readers' statements are replanned a few times
			read(t, s, last)
		}
	}
	allEnded(t, s, e)
	took := time.Since(began)
	if x, err := s.Get(ctx, last); err != nil || x.Stage != flow.Completed {
		t.Errorf("the last one: %+v, %v", x, err)
	}
	stop()
	all.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("%d executions in %s", executions, took.Round(time.Millisecond))
	readRows(t, dsn, func(table string, rows, scanned int64) {
		t.Logf("%-12s %7.2f rows read per execution, %d of them in scans of the whole table", table, float64(rows)/float64(executions), scanned)
		if scanned > 0 && !small[table] {
			t.Errorf("%s: %d rows were read from its beginning to its end", table, scanned)
		}
		if float64(rows) > most*float64(executions) {
			t.Errorf("%s: %.0f rows were read for each execution: a statement walks through the table", table, float64(rows)/float64(executions))
		}
	})
}

// read reads an execution in each way that clients use often.
func read(t *testing.T, s *postgres.Store, id flow.ID) {
	t.Helper()
	_, err := s.Get(t.Context(), id)
	if err == nil {
		_, err = s.Events(t.Context(), id, 0, 100)
	}
	if err == nil {
		_, err = s.Children(t.Context(), store.WorkflowAttempt{ID: id, Attempt: 1}, "", -1, 100)
	}
	if err == nil {
		_, err = store.List(t.Context(), s, store.Filter{Limit: 20})
	}
	if err == nil {
		_, err = s.Removable(t.Context(), store.RemovableQuery{Before: time.Now().Add(-time.Hour), Count: 100, Bytes: 1 << 20})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// swallow is a worker that ends every execution at once.
func swallow(t *testing.T, ctx context.Context, e *engine.Engine, session flow.ID) {
	for ctx.Err() == nil {
		work, err := e.Take(ctx, session, 500)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, handoff.ErrUnavailable) {
				t.Errorf("take: %v", err)
			}
			return
		}
		var reports []flow.Report
		for _, a := range work {
			end := flow.Event{Seq: a.NextSeq + 1, Attempt: a.Attempt, Type: flow.EvCompleted, At: time.Now(), Outcome: &flow.Outcome{Output: json.RawMessage(`1`)}}
			if a.Attempt == 1 && string(a.Payload) == `{"fails":1}` {
				end.Type, end.Outcome = flow.EvFailed, &flow.Outcome{Error: &flow.Error{Code: "boom", Message: "boom"}}
			}
			reports = append(reports, flow.Report{Execution: a.Execution, Attempt: a.Attempt, Events: []flow.Event{
				{Seq: a.NextSeq, Attempt: a.Attempt, Type: flow.EvRunning, At: time.Now()}, end}})
		}
		if _, err := e.Report(ctx, session, reports); err != nil && ctx.Err() == nil {
			t.Errorf("report: %v", err)
			return
		}
	}
}

// readRows passes, for each table, how many rows and index entries have been read since the table was made.
func readRows(t *testing.T, dsn string, say func(table string, rows, scanned int64)) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	alone(t, c)
	rows, err := c.Query(t.Context(), `SELECT t.relname, t.seq_tup_read + coalesce((SELECT sum(i.idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid), 0)::bigint,
		t.seq_tup_read FROM pg_stat_user_tables t WHERE t.schemaname = 'pawl' ORDER BY 2 DESC`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table string
		var n, scanned int64
		if err := rows.Scan(&table, &n, &scanned); err != nil {
			t.Fatal(err)
		}
		say(table, n, scanned)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
