package chaos

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const dsnVar = "PAWL_TEST_POSTGRES"

// database is a PostgreSQL database for one test: on a cluster of its own if the test takes the server down, otherwise on the server that
// all tests share.
type database struct {
	dsn   string // reaches the server directly
	state string // scripts/services keeps the cluster here; empty when it is not ours
}

// own starts a cluster for this test alone. A user who is not root and has no PostgreSQL installed gets none.
func own(t *testing.T) *database {
	t.Helper()
	shared(t)
	d := &database{state: filepath.Join(t.TempDir(), "pg")}
	if os.Getuid() == 0 { // the server runs as another user, who needs access to the directory
		dir, err := os.MkdirTemp("", "pawl-chaos-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		d.state = filepath.Join(dir, "pg")
	}
	out := d.services(t, "up")
	for _, word := range strings.Fields(strings.ReplaceAll(out, "\\", "")) {
		if dsn, ok := strings.CutPrefix(word, dsnVar+"="); ok {
			d.dsn = strings.Trim(dsn, "'")
		}
	}
	if d.dsn == "" {
		t.Fatalf("scripts/services up said %q", out)
	}
	t.Cleanup(func() { d.services(t, "down") })
	return d
}

// shared returns a database on the tests' server, which is dropped when the test ends.
func shared(t *testing.T) *database {
	t.Helper()
	dsn := os.Getenv(dsnVar)
	if dsn == "" {
		t.Skipf("NOT TESTED: %s names no PostgreSQL. Run `eval \"$(scripts/services up)\"` first.", dsnVar)
	}
	return &database{dsn: dsn}
}

// named makes a database of the test's own on the server.
func (d *database) named(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("chaos_%016x", rand.Uint64())
	d.execute(t, "CREATE DATABASE "+name)
	t.Cleanup(func() { d.execute(t, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return withPath(d.dsn, name)
}

func withPath(dsn, name string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		panic(err)
	}
	u.Path = "/" + name
	return u.String()
}

// through returns the DSN with another address.
func through(dsn, address string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		panic(err)
	}
	u.Host = address
	return u.String()
}

func hostOf(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		panic(err)
	}
	return u.Host
}

func (d *database) execute(t *testing.T, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, d.dsn)
	if err != nil {
		t.Errorf("connect: %v", err)
		return
	}
	defer c.Close(ctx)
	for _, s := range statements {
		if _, err := c.Exec(ctx, s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func (d *database) services(t *testing.T, what string) string {
	t.Helper()
	cmd := exec.Command("../../scripts/services", what)
	cmd.Env = append(without(os.Environ(), dsnVar), "PAWL_SERVICES_DIR="+d.state, "PAWL_TEST_DOCKER=not needed here")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("scripts/services %s: %v\n%s", what, err, complaints.String())
	}
	return string(out)
}

func without(env []string, name string) []string {
	var rest []string
	for _, kv := range env {
		if !strings.HasPrefix(kv, name+"=") {
			rest = append(rest, kv)
		}
	}
	return rest
}

// restart ends the server as a crash would, and starts it again.
func (d *database) restart(t *testing.T) {
	d.control(t, "-m", "immediate", "-w", "restart")
}

// ours reports whether the server's programs are available.
func (d *database) ours() bool {
	_, err := os.Stat(filepath.Join(d.state, "bin"))
	return err == nil
}

func (d *database) control(t *testing.T, args ...string) {
	t.Helper()
	bin, err := os.ReadFile(filepath.Join(d.state, "bin"))
	if err != nil {
		t.Errorf("the cluster's programs: %v", err)
		return
	}
	data := filepath.Join(d.state, "data")
	args = append([]string{strings.TrimSpace(string(bin)) + "/pg_ctl", "-D", data, "-l", filepath.Join(data, "server.log")}, args...)
	if os.Getuid() == 0 {
		args = append([]string{"setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "env", "LC_ALL=C.UTF-8"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// logged counts the lines of the server's log that contain a text.
func (d *database) logged(text string) int {
	b, err := os.ReadFile(filepath.Join(d.state, "data", "server.log"))
	if err != nil {
		return 0
	}
	return bytes.Count(b, []byte(text))
}

// crowd ends all connections to a database and takes every connection that the server gives. leave closes these.
func (d *database) crowd(dsn string) (leave func(), n int) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var all []*pgx.Conn
	end := func() {
		if len(all) > 0 { // if it fails, the others keep their connections
			_, _ = all[0].Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1`, strings.TrimPrefix(pathOf(dsn), "/"))
		}
	}
	for fails := 0; len(all) < 500 && fails < 3; {
		c, err := pgx.Connect(ctx, d.dsn)
		if err != nil {
			fails++
			end() // the connections that were made meanwhile
			continue
		}
		if all = append(all, c); len(all) == 1 {
			end()
		}
	}
	return func() {
		for _, c := range all {
			_ = c.Close(context.Background())
		}
	}, len(all)
}

func pathOf(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		panic(err)
	}
	return u.Path
}
