package browser

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const dsnVar = "PAWL_TEST_POSTGRES"

// onEachStore runs a test on SQLite and then on a PostgreSQL database of its own.
func onEachStore(t *testing.T, test func(t *testing.T, store string)) {
	t.Run("SQLite", func(t *testing.T) { test(t, "sqlite") })
	t.Run("PostgreSQL", func(t *testing.T) {
		dsn := os.Getenv(dsnVar)
		if dsn == "" {
			t.Skipf("NOT TESTED: %s names no PostgreSQL. Run `eval \"$(scripts/services up)\"` first.", dsnVar)
		}
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("browser_%016x", rand.Uint64())
		execute(t, dsn, "CREATE DATABASE "+name)
		t.Cleanup(func() { execute(t, dsn, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
		u.Path = "/" + name
		test(t, u.String())
	})
}

// execute runs one statement. It does not use the test's context, which may have ended.
func execute(t *testing.T, dsn, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close(ctx) }()
	if _, err := c.Exec(ctx, statement); err != nil {
		t.Error(err)
	}
}
