package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-run/pawl/internal/store"
)

// with returns a changed DSN.
func with(tb testing.TB, dsn string, change func(*url.URL)) string {
	tb.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	change(u)
	return u.String()
}

func option(name, value string) func(*url.URL) {
	return func(u *url.URL) {
		q := u.Query()
		q.Set(name, value)
		u.RawQuery = q.Encode()
	}
}

// refused opens a store that must not open, and checks its error.
func refused(t *testing.T, dsn, schema string, want ...string) {
	t.Helper()
	s, err := Open(context.Background(), dsn, Options{Schema: schema})
	if err == nil {
		_ = s.Close()
		t.Fatalf("it opened; want an error about %q", want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error %q does not say %q", err, w)
		}
	}
}

func TestWrongDSN(t *testing.T) {
	t.Parallel()
	refused(t, "postgres://user:secret%zz@host/db", "", "the DSN cannot be read", "postgres://user:password@")
	if _, err := Open(context.Background(), "postgres://user:se cret@host:port/db", Options{}); err == nil || strings.Contains(err.Error(), "cret") {
		t.Errorf("the error for a wrong DSN repeats its password: %v", err)
	}
	refused(t, "postgres://nobody@127.0.0.1:1/db?sslmode=disable", "", "cannot reach the server", "127.0.0.1")
	dsn := server(t)
	refused(t, with(t, dsn, func(u *url.URL) { u.Path = "/no_such_database" }), "", "no such database")
	refused(t, with(t, dsn, func(u *url.URL) { u.User = url.User("nobody_we_know") }), "", "refused the user")
	refused(t, with(t, dsn, option("default_transaction_read_only", "on")), emptySchema(t), "read-only")
}

// The DSN for notifications must be for the store's database.
func TestNotifyDSN(t *testing.T) {
	t.Parallel()
	dsn := server(t)
	other := fmt.Sprintf("test_%016x", rand.Uint64())
	execute(t, dsn, `CREATE DATABASE `+other)
	t.Cleanup(func() { execute(t, dsn, `DROP DATABASE `+other+` WITH (FORCE)`) })
	cases := []struct {
		notify, say string
		unavailable bool
	}{
		{"postgres://user:s3@cret@host/db", "store_notify: the DSN cannot be read", false},
		{"postgres://nobody@127.0.0.1:1/db?sslmode=disable", "store_notify: database unavailable: cannot reach the server", true},
		{with(t, dsn, func(u *url.URL) { u.Path = "/" + other }), "store_notify reaches the database \"" + other, false},
		{dsn, "", false},
	}
	if dsn := os.Getenv("PAWL_TEST_PGBOUNCER"); dsn != "" {
		cases = append(cases, cases[0])
		cases[len(cases)-1].notify, cases[len(cases)-1].say = dsn, "as pgbouncer does"
	}
	for _, c := range cases {
		s, err := Open(t.Context(), pooler(t), Options{Schema: emptySchema(t), NotifyDSN: c.notify})
		if err == nil {
			_ = s.Close()
		}
		if said := fmt.Sprint(err); (err == nil) != (c.say == "") || !strings.Contains(said, c.say) || errors.Is(err, store.ErrUnavailable) != c.unavailable {
			t.Errorf("%s: %v; want %q", c.notify, err, c.say)
		}
	}
}

func TestMissingRights(t *testing.T) {
	t.Parallel()
	dsn, schema := server(t), emptySchema(t)
	role := schema + "_role"
	execute(t, dsn, `CREATE ROLE `+role+` LOGIN CONNECTION LIMIT 1`)
	t.Cleanup(func() { execute(t, dsn, `DROP OWNED BY `+role, `DROP ROLE `+role) })
	theirs := with(t, dsn, func(u *url.URL) { u.User = url.User(role) })
	refused(t, theirs, schema, "lacks a right", "GRANT CREATE ON DATABASE")

	open(t, dsn, schema) // now it exists, but belongs to another user
	refused(t, theirs, schema, "right")

	execute(t, dsn, `GRANT USAGE ON SCHEMA `+schema+` TO `+role, `GRANT ALL ON ALL TABLES IN SCHEMA `+schema+` TO `+role,
		`GRANT ALL ON ALL SEQUENCES IN SCHEMA `+schema+` TO `+role)
	// The privileges on the tables would be enough, but there are too few connections.
	refused(t, theirs, schema, "too few connections")
}

func TestOtherSchemas(t *testing.T) {
	t.Parallel()
	dsn, schema := server(t), emptySchema(t)
	execute(t, dsn, `CREATE SCHEMA `+schema, `CREATE TABLE `+schema+`.jobs (id int)`)
	refused(t, dsn, schema, "belongs to another program")
	execute(t, dsn, `DROP TABLE `+schema+`.jobs`)
	open(t, dsn, schema)

	execute(t, dsn, `UPDATE `+schema+`.pawl_migrations SET sum = 'x' || sum`)
	refused(t, dsn, schema, schema, "0001_base is not the one that this schema was made with", "Use that program, or name an empty database")
	execute(t, dsn, `UPDATE `+schema+`.pawl_migrations SET sum = substr(sum, 2)`,
		`INSERT INTO `+schema+`.pawl_migrations VALUES (9999, '9999_future', '', now())`)
	refused(t, dsn, schema, "version 9999", "use a newer pawl")
	// As made by a program from before the first release, which had 31 migrations.
	execute(t, dsn, `UPDATE `+schema+`.pawl_migrations SET sum = 'x' || sum`,
		`INSERT INTO `+schema+`.pawl_migrations SELECT n, 'step', '', now() FROM generate_series(2, 31) n`)
	refused(t, dsn, schema, "a pawl from before the first release", "Nothing was changed")
}

func TestMigrations(t *testing.T) {
	t.Parallel()
	ctx, dsn, o := context.Background(), server(t), Options{Schema: emptySchema(t)}
	before, err := Status(ctx, dsn, o)
	if err != nil || len(before) == 0 || !before[0].AppliedAt.IsZero() {
		t.Fatalf("status of nothing: %+v, %v", before, err)
	}
	var wg sync.WaitGroup
	for range 8 { // every replica migrates when it starts
		wg.Go(func() {
			if err := Migrate(ctx, dsn, o); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	after, err := Status(ctx, dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range after {
		if m.AppliedAt.IsZero() {
			t.Errorf("migration %s was not applied", m.Name)
		}
	}
}

// later is the schema with a second migration, which changes a row and adds a column.
func later(t *testing.T, dsn, schema string) target {
	t.Helper()
	to, err := targetOf(dsn, Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	base, err := scripts.ReadFile("schema/0001_base.sql")
	if err != nil {
		t.Fatal(err)
	}
	to.files = fstest.MapFS{"schema/0001_base.sql": {Data: base}, "schema/0002_colours.sql": {Data: []byte(
		`ALTER TABLE {s}.queues ADD COLUMN colour text NOT NULL DEFAULT 'none';
		UPDATE {s}.queues SET colour = 'green' WHERE name = 'kept'`)}}
	return to
}

// A schema of the first version is migrated with its content; with AsIs it is refused.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	dsn, schema := server(t), emptySchema(t)
	to := later(t, dsn, schema)
	asIs := func(want string) {
		t.Helper()
		err := to.upToDate(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("as it is: %v, want %q", err, want)
		}
	}
	asIs("is not there yet, and this program wants version 2 of it: run pawl migrate up")
	execute(t, dsn, `CREATE SCHEMA `+schema)
	asIs("run pawl migrate up")
	open(t, dsn, schema)
	execute(t, dsn, `INSERT INTO `+schema+`.queues (name, created_at) VALUES ('kept', 0), ('other', 0)`)
	asIs("is at version 1 and this program wants 2: run pawl migrate up")
	for range 2 {
		if err := to.migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	asIs("")
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	var got string
	err = c.QueryRow(t.Context(), `SELECT string_agg(name || ' ' || colour, ', ' ORDER BY name) FROM `+schema+`.queues`).Scan(&got)
	if want := "kept green, other none"; err != nil || got != want {
		t.Errorf("after the upgrade: %q, %v, want %q", got, err, want)
	}
	refused(t, dsn, schema, "version 2 and this program knows versions up to 1: use a newer pawl")
}

// A migration that fails changes nothing, and neither do those before it.
func TestFailingUpgrade(t *testing.T) {
	t.Parallel()
	dsn, schema := server(t), emptySchema(t)
	to := later(t, dsn, schema)
	to.files.(fstest.MapFS)["schema/0003_wrong.sql"] = &fstest.MapFile{Data: []byte(`ALTER TABLE {s}.nowhere ADD COLUMN colour text`)}
	open(t, dsn, schema)
	if err := to.migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "migration 0003_wrong: ") {
		t.Errorf("the third one: %v", err)
	}
	open(t, dsn, schema)
}

// Errors that cannot be caused here are tested by the server's messages.
func TestTranslations(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]struct {
		is  error
		say string
	}{
		"53100": {store.ErrUnavailable, "disk is full"},
		"53300": {store.ErrUnavailable, "too few connections"},
		"25006": {store.ErrUnavailable, "read-only standby"},
		"42501": {store.ErrUnavailable, "lacks a right"},
		"42P01": {store.ErrUnavailable, "dropped or changed by hand"},
		"57014": {store.ErrUnavailable, "timeout"},
		"57P01": {store.ErrUnavailable, "the server said so"},
		"XX001": {store.ErrUnavailable, "the server said so"},
		"23505": {store.ErrConflict, "exists already"},
		"PW409": {store.ErrConflict, "the server said so"},
		"PW410": {store.ErrNotFound, "the server said so"},
		"22021": {nil, "the server said so"},
		"54000": {nil, "the server said so"},
		"PW404": {nil, "the server said so"},
	} {
		err := translate(fmt.Errorf("run: %w", &pgconn.PgError{Code: code, Message: "the server said so"}))
		if !strings.Contains(err.Error(), want.say) {
			t.Errorf("%s: %q does not say %q", code, err, want.say)
		}
		for _, port := range []error{store.ErrUnavailable, store.ErrConflict, store.ErrUnknown, store.ErrNotFound} {
			if errors.Is(err, port) != (port == want.is) {
				t.Errorf("%s: %q is or is not %q", code, err, port)
			}
		}
	}
}
