package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/remote"
	"github.com/pawl-run/pawl/internal/programtest"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

// one starts a server on a database of its own; toStore can cut it off.
func one(t *testing.T, args ...string) (p *part, addr, dsn string, toStore *proxy) {
	t.Helper()
	db := shared(t)
	if _, err := url.Parse(db.dsn); err != nil || !strings.Contains(db.dsn, "@") {
		t.Skipf("NOT TESTED: %s is %q, which names no server", dsnVar, db.dsn)
	}
	dsn = db.named(t)
	toStore = newProxy(t, hostOf(dsn))
	addr = "127.0.0.1:" + programtest.FreePort(t)
	dir := t.TempDir()
	p = run(t, dir, "server", append([]string{"server", "--listen", addr, "--state-dir", filepath.Join(dir, "state"),
		"--store", through(dsn, toStore.address()), "--slots", "2", "--runtime", "process", "--lease", lease.String(), "--grace", "1s"}, args...)...)
	return p, addr, dsn, toStore
}

// ready waits until a server is ready.
func ready(t *testing.T, c *client.Client) {
	t.Helper()
	until(t, "the server is ready", func() bool { return c.Ready(t.Context()) == nil })
}

// patience bounds how long a condition may take to become true: with 30 programs on two processors a server takes half a minute to start.
const patience = 3 * time.Minute

func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// Workers with a wrong token, a wrong version or a forged session are refused and logged, and change nothing.
func TestBadWorkers(t *testing.T) {
	t.Parallel()
	const token = "sesame-opens-the-door"
	p, addr, dsn, _ := one(t, "--token", token, "--no-worker")
	c, err := client.New("http://"+addr, client.WithToken(token))
	if err != nil {
		t.Fatal(err)
	}
	ready(t, c)
	ctx := t.Context()
	session := handoff.Session{Name: "honest", Queues: []string{"default"}, Slots: 1}
	honest, err := remote.Dial("http://"+addr, token)
	if err != nil {
		t.Fatal(err)
	}
	id, err := honest.Open(ctx, session)
	if err != nil {
		t.Fatal(err)
	}
	x, err := c.Submit(ctx, api.Submission{Action: "noop", Input: json.RawMessage(`{"n":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := honest.Renew(ctx, id); err != nil { // a busy machine may have used half of the lease by now
		t.Fatal(err)
	}
	work, err := honest.Take(ctx, id, 1)
	if err != nil || len(work) != 1 {
		t.Fatalf("%v, %v", work, err)
	}
	before := rowsOf(t, dsn)

	stranger, err := remote.Dial("http://"+addr, "a-token-that-nobody-gave")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Open(ctx, session); !errors.Is(err, handoff.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "token") {
		t.Errorf("bad token: %v", err)
	}

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+remote.Prefix+"open", strings.NewReader(`{"name":"old","queues":["default"],"slots":1}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Pawl-Worker-Protocol", "0")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("old protocol: %s", res.Status)
	}

	thief, err := remote.Dial("http://"+addr, token)
	if err != nil {
		t.Fatal(err)
	}
	lie := []flow.Report{{Execution: work[0].Execution, Attempt: 1, Events: []flow.Event{
		{Seq: work[0].NextSeq, Attempt: 1, Type: flow.EvRunning, At: time.Now()},
		{Seq: work[0].NextSeq + 1, Attempt: 1, Type: flow.EvCompleted, At: time.Now(), Outcome: &flow.Outcome{Output: json.RawMessage(`"stolen"`)}},
	}}}
	if _, err := thief.Report(ctx, id, lie); !errors.Is(err, handoff.ErrSessionLost) {
		t.Errorf("stolen session: %v", err)
	}
	if after := rowsOf(t, dsn); after != before {
		t.Errorf("the rows were\n%s and are\n%s", before, after)
	}
	own, err := thief.Open(ctx, session)
	if err != nil {
		t.Fatal(err)
	}
	receipts, err := thief.Report(ctx, own, lie)
	if err != nil || len(receipts) != 1 || receipts[0].Verdict != flow.Fenced {
		t.Errorf("stolen execution: %+v, %v", receipts, err)
	}
	if in, err := thief.Input(ctx, own, handoff.InputQuery{Execution: work[0].Execution, Attempt: 1}); !errors.Is(err, handoff.ErrNotHeld) {
		t.Errorf("input of a stolen execution: %+v, %v", in, err)
	}
	if err := thief.Log(ctx, own, []flow.LogChunk{{Execution: work[0].Execution, Attempt: 1, Seq: 1, Stream: "stdout", At: time.Now(), Data: []byte("lies"), Size: 4}}); err != nil {
		t.Errorf("log of a stolen execution: %v", err) // the log is dropped without an error: sending the last log late is not a fault
	}
	if after := rowsOf(t, dsn); after != before {
		t.Errorf("the rows were\n%s and are\n%s", before, after)
	}

	truth := []flow.Report{{Execution: work[0].Execution, Attempt: 1, Events: []flow.Event{
		{Seq: work[0].NextSeq, Attempt: 1, Type: flow.EvRunning, At: time.Now()},
		{Seq: work[0].NextSeq + 1, Attempt: 1, Type: flow.EvCompleted, At: time.Now(), Outcome: &flow.Outcome{Output: json.RawMessage(`"mine"`)}},
	}}}
	if receipts, err = honest.Report(ctx, id, truth); err != nil || receipts[0].Verdict != flow.Applied {
		t.Errorf("the owner: %+v, %v", receipts, err)
	}
	if x, err = c.Get(ctx, x.ID); err != nil || string(x.Output) != `"mine"` {
		t.Errorf("it ended with %s, %v", x.Output, err)
	}
	log, err := os.ReadFile(p.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]string{"bad token": "request turned away", "old protocol": "status=426", "stolen session": "status=410", "stolen execution": "reports turned away",
		"input of a stolen execution": "refused the input or the blobs of an attempt", "log of a stolen execution": "dropped log chunks"} {
		if !bytes.Contains(log, []byte(want)) {
			t.Errorf("%s: the log does not say %q:\n%s", what, want, log)
		}
	}
}

// rowsOf returns all rows of executions, as text.
func rowsOf(t *testing.T, dsn string) string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	var all string
	err = c.QueryRow(t.Context(), `SELECT concat_ws(E'\n', (SELECT string_agg(l::text, E'\n' ORDER BY id) FROM pawl.live l),
		(SELECT string_agg(d::text, E'\n' ORDER BY id) FROM pawl.ended d), (SELECT string_agg(i::text, E'\n' ORDER BY id) FROM pawl.inbox i),
		(SELECT string_agg(c::text, E'\n' ORDER BY id, seq) FROM pawl.chunks c))`).Scan(&all)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// While the database is away, a server reports it, submitters are asked to try again, and running work goes on. When the database is back,
// nothing is lost and nothing runs twice.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	_, addr, dsn, toStore := one(t)
	c := connect(t, addr)
	ready(t, c)
	ledger := filepath.Join(t.TempDir(), "ledger")
	l := &load{t: t, ledger: ledger, any: c}
	l.define()
	during := l.submit(c, "during", "leaf", l.input("leaf", "1"), api.Completed)
	until(t, "the work has begun", func() bool { b, _ := os.ReadFile(ledger); return len(b) > 0 })

	toStore.setCut(true)
	until(t, "the server is not ready", func() bool {
		err := c.Ready(t.Context())
		var p *api.Problem
		return errors.As(err, &p) && p.Status == http.StatusServiceUnavailable && strings.Contains(p.Detail, "store does not answer")
	})
	res, err := http.Post("http://"+addr+"/api/v1/executions", "application/json", strings.NewReader(`{"action":"noop"}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("a submission meanwhile: %s, Retry-After %q", res.Status, res.Header.Get("Retry-After"))
	}
	until(t, "the work is done", func() bool { b, _ := os.ReadFile(ledger); return bytes.Contains(b, []byte("end ")) })
	toStore.setCut(false)

	ready(t, c)
	after := l.submit(c, "after", "leaf", l.input("leaf", "0"), api.Completed)
	for _, a := range []*accepted{during, after} {
		x, err := c.Wait(t.Context(), a.id)
		if err != nil || x.Status != api.Completed {
			t.Fatalf("%s: %+v, %v", a.key, x, err)
		}
		if x.Attempt != 1 {
			t.Errorf("%s was done %d times", a.key, x.Attempt)
		}
	}
	check(t, dsn, l, nil, nil)
}

// Each fault of a database has its own message at the start. The exit code is 2 where only a change helps, and 1 where another start may
// succeed.
func TestRefusedStarts(t *testing.T) {
	t.Parallel()
	db := shared(t)
	if !strings.Contains(db.dsn, "@") {
		t.Skipf("NOT TESTED: %s is %q, which names no server", dsnVar, db.dsn)
	}
	path, err := programtest.Pawl("failpoints")
	if err != nil {
		t.Fatal(err)
	}
	role := fmt.Sprintf("chaos_%08x", rand.Uint32())
	user := func(dsn string) string {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.User(role)
		return u.String()
	}
	db.execute(t, "CREATE ROLE "+role+" LOGIN")
	t.Cleanup(func() { db.execute(t, "DROP ROLE "+role) })
	plain := db.named(t)
	foreign, newer, standby := db.named(t), db.named(t), db.named(t)
	(&database{dsn: foreign}).execute(t, "CREATE SCHEMA pawl", "CREATE TABLE pawl.invoices (id int)")
	if err := postgres.Migrate(t.Context(), newer, postgres.Options{}); err != nil {
		t.Fatal(err)
	}
	(&database{dsn: newer}).execute(t, "INSERT INTO pawl.pawl_migrations VALUES (999, 'to come', '', now())")
	db.execute(t, "ALTER DATABASE "+strings.TrimPrefix(mustParse(t, standby).Path, "/")+" SET default_transaction_read_only = on")
	crowded := db.named(t)
	db.execute(t, "GRANT CREATE ON DATABASE "+strings.TrimPrefix(mustParse(t, crowded).Path, "/")+" TO "+role)
	for _, c := range []struct {
		name, dsn, say string
		code           int
	}{
		{"no DSN", "postgres://%zz", "the DSN cannot be read", 2},
		{"nobody there", "postgres://pawl@127.0.0.1:1/pawl", "cannot reach the server", 1},
		{"no such database", withPath(db.dsn, "chaos_nowhere"), "no such database", 2},
		{"missing rights", user(plain), "lacks a right", 2},
		{"another program's schema", foreign, "belongs to another program", 2},
		{"a newer schema", newer, "use a newer pawl", 2},
		{"read-only", standby, "read-only", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, code := refusedStart(t, path, c.dsn)
			if code != c.code || !strings.Contains(out, c.say) {
				t.Errorf("exit code %d: %s\nwant %d and %q", code, out, c.code, c.say)
			}
		})
	}
	t.Run("too few connections", func(t *testing.T) {
		db.execute(t, "ALTER ROLE "+role+" CONNECTION LIMIT 1")
		out, code := refusedStart(t, path, user(crowded))
		if code != 1 || !strings.Contains(out, "too few connections") {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
}

func mustParse(t *testing.T, dsn string) *url.URL {
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func refusedStart(t *testing.T, path, dsn string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "server", "--listen", "127.0.0.1:0", "--state-dir", t.TempDir(), "--store", dsn, "--no-worker")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("it started")
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// pawl migrate status does not change the schema, pawl migrate brings it up to date once, and every row of it can be checked.
func TestMigrate(t *testing.T) {
	t.Parallel()
	db := shared(t)
	if !strings.Contains(db.dsn, "@") {
		t.Skipf("NOT TESTED: %s is %q, which names no server", dsnVar, db.dsn)
	}
	path, err := programtest.Pawl("failpoints")
	if err != nil {
		t.Fatal(err)
	}
	dsn := db.named(t)
	pawl := func(want int, say string, args ...string) {
		t.Helper()
		cmd := exec.Command(path, append(args, "--store", dsn, "--state-dir", t.TempDir())...)
		out, _ := cmd.CombinedOutput() // the exit code reports it
		if cmd.ProcessState.ExitCode() != want || !bytes.Contains(out, []byte(say)) {
			t.Errorf("pawl %s: exit code %d, want %d and %q:\n%s", strings.Join(args, " "), cmd.ProcessState.ExitCode(), want, say, out)
		}
	}
	pawl(0, "not yet", "migrate", "status")
	pawl(0, "not applied yet", "doctor", "--runtime", "process")
	pawl(2, "run pawl migrate up", "doctor", "--verify")
	pawl(0, "not yet", "migrate", "status") // the status command has changed nothing
	pawl(0, "0001_base", "migrate", "up")
	pawl(0, "0001_base", "migrate", "up") // again
	pawl(0, "every promise holds", "doctor", "--runtime", "process")
	pawl(0, "every row was read", "doctor", "--verify")
	(&database{dsn: dsn}).execute(t, "UPDATE pawl.pawl_migrations SET sum = 'x'")
	for _, args := range [][]string{{"migrate", "up"}, {"migrate", "status"}, {"doctor", "--verify"}} {
		pawl(2, "a pawl from before the first release made it", args...)
	}
	dsn = "sqlite"
	pawl(2, "only PostgreSQL", "migrate", "up")
}
