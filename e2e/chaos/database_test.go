package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/programtest"
)

// asServer runs one of PostgreSQL's programs as the server's user.
func (d *database) asServer(t *testing.T, program string, args ...string) error {
	t.Helper()
	bin, err := os.ReadFile(filepath.Join(d.state, "bin"))
	if err != nil {
		return err
	}
	all := append([]string{filepath.Join(strings.TrimSpace(string(bin)), program)}, args...)
	if os.Getuid() == 0 {
		all = append([]string{"setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "env", "LC_ALL=C.UTF-8"}, all...)
	}
	cmd := exec.Command(all[0], all[1:]...)
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(all, " "), err, out)
	}
	return nil
}

// standby starts a hot standby of the cluster and returns its DSN.
func (d *database) standby(t *testing.T) string {
	t.Helper()
	u := mustParse(t, d.dsn)
	data, port := d.roomForServer(t), programtest.FreePort(t)
	if err := d.asServer(t, "pg_basebackup", "-h", u.Hostname(), "-p", u.Port(), "-U", u.User.Username(), "-D", data, "-R", "-X", "stream", "-c", "fast"); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(filepath.Dir(data), "standby.log")
	if err := d.asServer(t, "pg_ctl", "-D", data, "-l", log, "-w", "-o", "-p "+port, "start"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.asServer(t, "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"); err != nil {
			t.Error(err)
		}
	})
	return through(d.dsn, "127.0.0.1:"+port)
}

// roomForServer returns a path at which the server's user can create a directory, which is removed when the test ends.
func (d *database) roomForServer(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(d.state), "room-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if out, err := exec.Command("chown", "postgres", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return filepath.Join(dir, "data")
}

// unready waits until a server gives this reason for not being ready.
func unready(t *testing.T, c *client.Client, why string) {
	t.Helper()
	last := ""
	defer func() {
		if t.Failed() {
			t.Logf("the last word of /readyz: %s", last)
		}
	}()
	until(t, "the server is not ready: "+why, func() bool {
		err := c.Ready(t.Context())
		last = fmt.Sprint(err)
		return err != nil && strings.Contains(last, why)
	})
}

// A standby is refused at the start. When an address begins to lead to a standby while a server runs, the server reports it and is not
// ready; back at the primary, everything goes on.
func TestStandby(t *testing.T) {
	t.Parallel()
	db := own(t)
	if !db.ours() {
		t.Skip("NOT TESTED: the programs of PostgreSQL are not at hand")
	}
	dsn := db.named(t)
	standby := withPath(db.standby(t), strings.TrimPrefix(mustParse(t, dsn).Path, "/"))
	path, err := programtest.Pawl("failpoints")
	if err != nil {
		t.Fatal(err)
	}
	if out, code := refusedStart(t, path, standby); code != 2 || !strings.Contains(out, "the server is a read-only standby") {
		t.Errorf("exit code %d: %s", code, out)
	}

	toStore, addr, dir := newProxy(t, hostOf(dsn)), "127.0.0.1:"+programtest.FreePort(t), t.TempDir()
	run(t, dir, "server", "server", "--listen", addr, "--state-dir", filepath.Join(dir, "state"), "--store", through(dsn, toStore.address()),
		"--runtime", "process", "--slots", "2", "--grace", "1s")
	c := connect(t, addr)
	ready(t, c)
	before, err := c.Submit(t.Context(), api.Submission{Action: "noop"})
	if err != nil {
		t.Fatal(err)
	}
	toStore.target(hostOf(standby))
	unready(t, c, "the server is a read-only standby")
	res, err := http.Post("http://"+addr+"/api/v1/executions", "application/json", strings.NewReader(`{"action":"noop"}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("a submission meanwhile: %s", res.Status)
	}
	toStore.target(hostOf(dsn))
	ready(t, c)
	after, err := c.Submit(t.Context(), api.Submission{Action: "noop"})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []*api.Execution{before, after} {
		if end, err := c.Wait(t.Context(), x.ID); err != nil || end.Status != api.Completed {
			t.Errorf("%+v, %v", end, err)
		}
	}
}

// target makes the proxy lead to another address, and cuts the connections to the old one.
func (p *proxy) target(address string) {
	p.mu.Lock()
	p.targets = []string{address}
	p.mu.Unlock()
	p.setCut(true)
	p.setCut(false)
}

// The disk is really full: the test fills a small file system beside the tables.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: only root can mount a small file system")
	}
	db := own(t)
	if !db.ours() {
		t.Skip("NOT TESTED: the programs of PostgreSQL are not at hand")
	}
	disk := filepath.Dir(db.roomForServer(t))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: a small file system cannot be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", disk).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	if out, err := exec.Command("chown", "postgres", disk).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	db.execute(t, "CREATE TABLESPACE small LOCATION '"+disk+"'", "CREATE DATABASE roomy TABLESPACE small", "CREATE DATABASE late TABLESPACE small", "CREATE DATABASE never TABLESPACE small")
	t.Cleanup(func() {
		db.execute(t, "DROP DATABASE IF EXISTS roomy WITH (FORCE)", "DROP DATABASE IF EXISTS late WITH (FORCE)", "DROP DATABASE IF EXISTS never WITH (FORCE)", "DROP TABLESPACE small")
	})
	dsn, late := withPath(db.dsn, "roomy"), withPath(db.dsn, "late")
	(&database{dsn: late}).execute(t, "SELECT 1") // the server keeps its notes beside a database that was used
	addr, dir := "127.0.0.1:"+programtest.FreePort(t), t.TempDir()
	run(t, dir, "server", "server", "--listen", addr, "--state-dir", filepath.Join(dir, "state"), "--store", dsn, "--runtime", "process", "--slots", "2", "--grace", "1s")
	c := connect(t, addr)
	ready(t, c)
	x, err := c.Submit(t.Context(), api.Submission{Action: "noop"})
	if err != nil {
		t.Fatal(err)
	}
	if end, err := c.Wait(t.Context(), x.ID); err != nil || end.Status != api.Completed {
		t.Fatalf("%+v, %v", end, err)
	}

	ballast := filepath.Join(disk, "ballast")
	out, _ := exec.Command("dd", "if=/dev/zero", "of="+ballast, "bs=64k").CombinedOutput() // until no space is left
	if !strings.Contains(string(out), "No space left") {
		t.Fatalf("the disk is not full: %s", out)
	}
	path, err := programtest.Pawl("failpoints")
	if err != nil {
		t.Fatal(err)
	}
	if out, code := refusedStart(t, path, late); code != 1 || !strings.Contains(out, "disk is full") {
		t.Errorf("start: exit code %d: %s", code, out)
	}
	if out, code := refusedStart(t, path, withPath(db.dsn, "never")); code != 1 || !strings.Contains(out, "refuses every connection") || !strings.Contains(out, "full disk") {
		t.Errorf("start on a database that was never used: exit code %d: %s", code, out)
	}
	// The database accepts what still fits into existing pages; at some point it accepts nothing more.
	large := fmt.Sprintf(`{"action":"noop","input":{"a":%q}}`, strings.Repeat("x", 100_000))
	var accepted []string
	until(t, "a submission is refused", func() bool {
		res, err := http.Post("http://"+addr+"/api/v1/executions", "application/json", strings.NewReader(large))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var a api.Execution
		if res.StatusCode == http.StatusAccepted && json.NewDecoder(res.Body).Decode(&a) == nil {
			accepted = append(accepted, a.ID)
		}
		return res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != ""
	})
	unready(t, c, "disk is full")

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	ready(t, c)
	x, err = c.Submit(t.Context(), api.Submission{Action: "noop", Input: []byte(`{"a":"` + strings.Repeat("x", 100_000) + `"}`)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, id := range append(accepted, x.ID) {
		if end, err := c.Wait(ctx, id); err != nil || end.Status != api.Completed {
			t.Errorf("%s: %+v, %v", id, end, err)
		}
	}
}

// A server of an old version is refused by its version. No such server is available, so the test plays one.
func TestOldServer(t *testing.T) {
	t.Parallel()
	shared(t)
	path, err := programtest.Pawl("failpoints")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go playOld(c)
		}
	}()
	old := url.URL{Scheme: "postgres", User: url.User("pawl"), Host: l.Addr().String(), Path: "/pawl", RawQuery: "sslmode=disable"}
	if out, code := refusedStart(t, path, old.String()); code != 2 || !strings.Contains(out, "the server is PostgreSQL 14.9: Pawl needs 15 or newer") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// playOld speaks enough of PostgreSQL's protocol to be asked for its version.
func playOld(c net.Conn) {
	defer c.Close()
	b := pgproto3.NewBackend(c, c)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.ParameterStatus{Name: "server_version", Value: "14.9"})
	b.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	b.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for b.Flush() == nil {
		m, err := b.Receive()
		if err != nil {
			return
		}
		if _, asked := m.(*pgproto3.Query); !asked {
			return
		}
		var row [][]byte
		var fields []pgproto3.FieldDescription
		for _, v := range []struct {
			oid   uint32
			value string
		}{{23, "140009"}, {25, "UTF8"}, {16, "f"}, {25, "off"}} {
			fields = append(fields, pgproto3.FieldDescription{Name: []byte("v"), DataTypeOID: v.oid, DataTypeSize: -1, TypeModifier: -1})
			row = append(row, []byte(v.value))
		}
		b.Send(&pgproto3.RowDescription{Fields: fields})
		b.Send(&pgproto3.DataRow{Values: row})
		b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	}
}

// Whichever right a running server's database user loses, /readyz names it, and the server is ready again when the right is back.
func TestNotReady(t *testing.T) {
	t.Parallel()
	db := shared(t)
	if !strings.Contains(db.dsn, "@") {
		t.Skipf("NOT TESTED: %s is %q, which names no server", dsnVar, db.dsn)
	}
	dsn := db.named(t)
	u := mustParse(t, dsn)
	name, role := strings.TrimPrefix(u.Path, "/"), fmt.Sprintf("chaos_%08x", rand.Uint32())
	db.execute(t, "CREATE ROLE "+role+" LOGIN", "GRANT CREATE ON DATABASE "+name+" TO "+role)
	t.Cleanup(func() {
		(&database{dsn: dsn}).execute(t, "DROP OWNED BY "+role)
		db.execute(t, "DROP ROLE "+role)
	})
	u.User = url.User(role)
	addr, dir := "127.0.0.1:"+programtest.FreePort(t), t.TempDir()
	p := run(t, dir, "server", "server", "--listen", addr, "--state-dir", filepath.Join(dir, "state"), "--store", u.String(), "--runtime", "process", "--slots", "2", "--grace", "1s")
	t.Cleanup(func() { p.end(syscall.SIGKILL) }) // before its role is dropped
	c := connect(t, addr)
	ready(t, c)
	leave := "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '" + role + "'"
	for _, f := range []struct{ name, take, give, why string }{
		{"the schema", "ALTER SCHEMA pawl RENAME TO away", "ALTER SCHEMA away RENAME TO pawl", "the schema is not as this program left it"},
		{"a right", "REVOKE ALL ON pawl.definitions FROM " + role, "GRANT ALL ON pawl.definitions TO " + role, "lacks a right"},
		{"connections", "ALTER ROLE " + role + " CONNECTION LIMIT 0", "ALTER ROLE " + role + " CONNECTION LIMIT -1", "too few connections"},
		{"writing", "ALTER ROLE " + role + " SET default_transaction_read_only = on", "ALTER ROLE " + role + " RESET default_transaction_read_only", "read-only"},
		{"the password", "ALTER ROLE " + role + " NOLOGIN", "ALTER ROLE " + role + " LOGIN", "not permitted to log in"},
	} {
		(&database{dsn: dsn}).execute(t, f.take, leave)
		unready(t, c, f.why)
		(&database{dsn: dsn}).execute(t, f.give, leave)
		ready(t, c)
		var x *api.Execution
		until(t, "it takes work again after "+f.name, func() (so bool) { // ended connections are found one by one
			var err error
			x, err = c.Submit(t.Context(), api.Submission{Action: "noop"})
			return err == nil
		})
		until(t, "it does its work again after "+f.name, func() bool {
			end, err := c.Get(t.Context(), x.ID)
			return err == nil && end.Status == api.Completed
		})
	}
}
