package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/storetest"
)

const dsnVar = "PAWL_TEST_POSTGRES"

// server returns the DSN of the tests' server.
func server(tb testing.TB) string {
	tb.Helper()
	dsn := os.Getenv(dsnVar)
	if dsn == "" {
		tb.Skipf("NOT TESTED: %s names no PostgreSQL. Run `eval \"$(scripts/services up)\"` first.", dsnVar)
	}
	return dsn
}

// emptySchema returns the name of a new schema for this test, which is dropped at its end.
func emptySchema(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("test_%016x", rand.Uint64())
	tb.Cleanup(func() { execute(tb, server(tb), `DROP SCHEMA IF EXISTS `+name+` CASCADE`) })
	return name
}

// execute runs statements on the server, bypassing the store.
func execute(tb testing.TB, dsn string, statements ...string) {
	tb.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close(ctx)
	for _, s := range statements {
		if _, err := c.Exec(ctx, s); err != nil {
			tb.Fatalf("%s: %v", s, err)
		}
	}
}

func open(tb testing.TB, dsn, schema string) *Store {
	tb.Helper()
	s, err := Open(context.Background(), dsn, Options{Schema: schema})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	server(t)
	storetest.Exercise(t, func(t *testing.T) store.Store { return open(t, server(t), emptySchema(t)) })
}

// pooler returns the DSN of a pooler in transaction mode for the tests' server. Without one it returns the server itself, which the store
// then uses as if every transaction ran on another connection.
func pooler(tb testing.TB) string {
	tb.Helper()
	if dsn := os.Getenv("PAWL_TEST_PGBOUNCER"); dsn != "" {
		return dsn
	}
	tb.Log("PAWL_TEST_PGBOUNCER is not set: tested without a pooler in between")
	return with(tb, server(tb), option("default_query_exec_mode", "exec"))
}

func TestStoreBehindPooler(t *testing.T) {
	server(t)
	storetest.Exercise(t, func(t *testing.T) store.Store { return open(t, pooler(t), emptySchema(t)) })
}

func TestSharedBehindPooler(t *testing.T) {
	server(t)
	storetest.Shared(t, func(t *testing.T) (both [2]store.Store) {
		schema := emptySchema(t)
		for i := range both {
			s, err := Open(t.Context(), pooler(t), Options{Schema: schema, NotifyDSN: server(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			both[i] = s
		}
		return both
	})
}

func TestReopen(t *testing.T) {
	storetest.Reopen(t, emptySchema(t), func(t *testing.T, schema string) store.Store { return open(t, server(t), schema) })
}

func TestMain(m *testing.M) {
	if os.Getenv(dsnVar) == "" {
		fmt.Fprintf(os.Stderr, "The PostgreSQL store is NOT TESTED: %s is not set. Run `eval \"$(scripts/services up)\"`.\n", dsnVar)
	}
	os.Exit(m.Run())
}

func TestShared(t *testing.T) {
	server(t)
	storetest.Shared(t, func(t *testing.T) [2]store.Store {
		schema := emptySchema(t)
		return [2]store.Store{open(t, server(t), schema), open(t, server(t), schema)}
	})
}

func TestCrash(t *testing.T) {
	server(t) // skips the test if there is no server, before it starts a process
	storetest.Crash(t, emptySchema(t), func(t *testing.T, schema string) store.Store { return open(t, server(t), schema) })
}

func TestUnreadable(t *testing.T) {
	schema := emptySchema(t)
	storetest.Unreadable(t, open(t, server(t), schema), func(ids ...flow.ID) {
		for _, id := range ids {
			execute(t, server(t), fmt.Sprintf(`UPDATE %s.live SET state = '\xff' WHERE id = '%x'`, schema, id[:]))
		}
	})
}

// The table of open executions accepts only the places that fit each stage: place 0 is nowhere, 1 delayed, 2 in its key's wait list, 3 in
// its queue, 4 held.
func TestChecks(t *testing.T) {
	t.Parallel()
	schema := emptySchema(t)
	open(t, server(t), schema)
	db, err := pgx.Connect(t.Context(), server(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	var check string
	err = db.QueryRow(t.Context(), `SELECT pg_get_expr(conbin, conrelid) FROM pg_constraint WHERE conname = 'live_place' AND conrelid = '`+schema+`.live'::regclass`).Scan(&check)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query(t.Context(), `SELECT place || ' ' || stage FROM generate_series(-1, 9) place, generate_series(-1, 99) stage WHERE `+check+` ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if want := []string{"0 1", "0 2", "1 1", "1 3", "2 1", "2 2", "2 3", "3 3", "4 4", "4 5"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%s takes %q, %v, want %q", check, got, err, want)
	}
}

func TestDamaged(t *testing.T) {
	schema := emptySchema(t)
	storetest.Damaged(t, open(t, server(t), schema), func(table, column string, ids ...flow.ID) {
		for _, id := range ids {
			execute(t, server(t), fmt.Sprintf(`UPDATE %s.%s SET detail = '{"rules": 1, "timeout": "x"}' WHERE %s = '%x'`, schema, table, column, id[:]))
		}
	})
}

// Rows that exist only for locks are removed with their meters and windows, except those that a transaction has locked.
func TestLocksOfWhatIsGone(t *testing.T) {
	t.Parallel()
	schema := emptySchema(t)
	s := open(t, server(t), schema)
	update := func(do func(context.Context, store.Tx) error) {
		t.Helper()
		if err := s.Update(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	window := store.Window{WindowKey: store.WindowKey{Rule: "r", Key: "a:b"}, Opened: time.Now(), Wake: time.Now(), Count: 1, First: 1, Last: 1}
	update(func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.LockKeys(ctx, []string{"k", "@rate:a:b", "@rate:gone", "@rate:held", "@window:r:a:b", "@window:r:gone", "@window:gone:a:b"}); err != nil {
			return err
		}
		if err := tx.Apply(ctx, store.Delta{Meters: map[string]time.Time{"a:b": time.Now()}}); err != nil {
			return err
		}
		return tx.Apply(ctx, store.Delta{Windows: store.WindowRows{Open: []store.Window{window}}})
	})
	update(func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.LockKeys(ctx, []string{"@rate:held"}); err != nil {
			return err
		}
		for last := ""; ; {
			err := s.Update(context.Background(), func(ctx context.Context, tx store.Tx) (err error) {
				last, err = tx.DropLocks(ctx, last, 2)
				return err
			})
			if err != nil || last == "" {
				return err
			}
		}
	})
	c, err := pgx.Connect(t.Context(), server(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	var left string
	if err := c.QueryRow(t.Context(), `SELECT string_agg(key, ' ' ORDER BY key) FROM `+schema+`.keys`).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if want := "@rate:a:b @rate:held @window:r:a:b k"; left != want {
		t.Errorf("left: %s, want %s", left, want)
	}
}

func TestViews(t *testing.T) {
	t.Parallel()
	schema := emptySchema(t)
	s := open(t, server(t), schema)
	c, err := pgx.Connect(t.Context(), with(t, server(t), option("search_path", schema)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	storetest.Views(t, s, func(text string) (all [][]string) {
		results, err := c.PgConn().Exec(t.Context(), text).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for _, values := range results[0].Rows {
			line := make([]string, len(values))
			for i, v := range values {
				line[i] = string(v)
			}
			all = append(all, line)
		}
		return all
	})
}
