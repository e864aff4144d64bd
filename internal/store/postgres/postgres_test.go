package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/storetest"
)

const dsnVar = "PAWL_TEST_POSTGRES"

// server is the DSN of the tests' server.
func server(tb testing.TB) string {
	tb.Helper()
	dsn := os.Getenv(dsnVar)
	if dsn == "" {
		tb.Skipf("NOT TESTED: %s names no PostgreSQL. Run `eval \"$(scripts/services up)\"` first.", dsnVar)
	}
	return dsn
}

// emptySchema names a schema of the test's own, gone when the test ends.
func emptySchema(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("test_%016x", rand.Uint64())
	tb.Cleanup(func() { execute(tb, server(tb), `DROP SCHEMA IF EXISTS `+name+` CASCADE`) })
	return name
}

// execute runs statements on the server, beside the store.
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

// pooler is the DSN of a pooler in transaction mode before the tests' server; where there is none, the server itself, to
// which the store then speaks as if every transaction came to another connection.
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
	server(t) // skips without one, before a process of the test's own is started
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
