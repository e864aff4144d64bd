package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
)

// An unreachable database is an error, because the next start may succeed; a DSN that cannot be parsed is wrong usage. Neither message
// contains the password or a part of it.
func TestRefusedDatabase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dsn, say string
		code     int
	}{
		{"postgres://fpawl:s3@cr/et:w0rd@127.0.0.1:1/db", "the DSN cannot be read", exit.Misuse},
		{"postgres://fpawl:s3cret:w0rd@127.0.0.1:1/db?sslmode=disable", "cannot reach the server", exit.General},
	} {
		for _, command := range [][]string{
			{"server", "--listen", "127.0.0.1:0", "--no-worker"},
			{"migrate", "up"},
			{"migrate", "status"},
			{"doctor", "--verify"},
		} {
			var out bytes.Buffer
			a := &app.App{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(string) string { return "" }}
			code := execute(a, append(command, "--state-dir", t.TempDir(), "--store", c.dsn))
			said := out.String()
			if code != c.code || !strings.Contains(said, c.say) {
				t.Errorf("pawl %v: exit code %d, want %d and %q:\n%s", command, code, c.code, c.say, said)
			}
			if helps := strings.Contains(said, "--help"); helps != (c.code == exit.Misuse) {
				t.Errorf("pawl %v names its help: %v:\n%s", command, helps, said)
			}
			for _, part := range []string{"s3", "cr/", "et:", "w0rd"} {
				if strings.Contains(said, part) {
					t.Errorf("pawl %v shows %q:\n%s", command, part, said)
				}
			}
		}
	}
}

// Servers behind a pooler notify each other through store_notify, which must reach the store's database. Doctor reports when they cannot.
func TestStoreNotify(t *testing.T) {
	t.Parallel()
	dsn := emptyDatabase(t)
	pooled := dsn + "&default_query_exec_mode=exec"
	elsewhere := os.Getenv("PAWL_TEST_POSTGRES")
	for _, c := range []struct {
		command       []string
		store, notify string
		say           string
		code          int
	}{
		{[]string{"doctor"}, pooled, "", "-    notifications: a pooler in transaction mode passes no notifications on; servers find each other's changes by looking, every half second\n" +
			"     → set store_notify (PAWL_STORE_NOTIFY)", exit.OK},
		{[]string{"doctor"}, pooled, dsn, "ok   notifications: servers hear", exit.OK},
		{[]string{"doctor"}, dsn, "", "ok   notifications: servers hear", exit.OK},
		{[]string{"server", "--listen", "127.0.0.1:0"}, pooled, elsewhere, "store_notify reaches the database", exit.Misuse},
		{[]string{"server"}, "sqlite", dsn, "store_notify ($PAWL_STORE_NOTIFY): it is for a store on PostgreSQL that several servers share, and the store is sqlite", exit.Misuse},
		{[]string{"server"}, pooled, "redis://:s3cret@db", `store_notify ($PAWL_STORE_NOTIFY): "redis://:xxxxx@db" is not a PostgreSQL database`, exit.Misuse},
	} {
		var out bytes.Buffer
		a := &app.App{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(name string) string {
			return map[string]string{"PAWL_STORE": c.store, "PAWL_STORE_NOTIFY": c.notify}[name]
		}}
		code := execute(a, append(c.command, "--state-dir", t.TempDir(), "--runtime", "process"))
		if said := out.String(); code != c.code || !strings.Contains(said, c.say) {
			t.Errorf("pawl %v, store %s, notifications by %q: exit code %d, want %d and %q:\n%s", c.command, c.store, c.notify, code, c.code, c.say, said)
		}
	}
}
