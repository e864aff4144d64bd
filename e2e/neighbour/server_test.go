package neighbour

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/programtest"
)

const dsnVar = "PAWL_TEST_POSTGRES"

func TestMain(m *testing.M) {
	code := m.Run()
	programtest.Remove()
	os.Exit(code)
}

// server is `pawl server`, which runs the hostile work, and a `pawl worker` for the plain work.
type server struct {
	address string
	over    chan error // the server's end
}

func startOnSQLite(t *testing.T) *server {
	return start(t, "sqlite")
}

// startOnPostgres starts the server on a database of the test's own, which is dropped when the test ends.
func startOnPostgres(t *testing.T) *server {
	dsn := os.Getenv(dsnVar)
	if dsn == "" {
		t.Skipf("NOT TESTED: %s names no PostgreSQL. Run `eval \"$(scripts/services up)\"` first.", dsnVar)
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("neighbour_%016x", rand.Uint64())
	execute(t, dsn, "CREATE DATABASE "+name)
	t.Cleanup(func() { execute(t, dsn, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	u.Path = "/" + name
	return start(t, u.String())
}

func execute(t *testing.T, dsn, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, statement); err != nil {
		t.Errorf("%s: %v", statement, err)
	}
}

var serving = regexp.MustCompile(`serving on http://(\S+)`)

// start starts both programs and waits until the queue of the plain work is known. Retention is short, because an hour of this test would
// fill a disk.
func start(t *testing.T, store string) *server {
	t.Helper()
	dir := t.TempDir()
	s := &server{}
	lines, over := run(t, "server", "--listen", "127.0.0.1:0", "--state-dir", filepath.Join(dir, "server"), "--store", store,
		"--runtime", "process", "--slots", "4", "--retention", "10s", "--grace", "1s", "--log-level", "error")
	s.over = over
	for address := time.After(time.Minute); s.address == ""; {
		select {
		case line := <-lines:
			if m := serving.FindStringSubmatch(line); m != nil {
				s.address = m[1]
			}
		case <-address:
			t.Fatal("the server does not answer")
		}
	}
	run(t, "worker", "--server", "http://"+s.address, "--state-dir", filepath.Join(dir, "worker"), "--queues", plainQueue,
		"--runtime", "process", "--slots", "4", "--grace", "1s", "--name", "plain")
	c := connect(t, s.address)
	for known := time.Now().Add(time.Minute); ; {
		all, err := c.Workers(t.Context())
		if err == nil && len(all) == 2 {
			return s
		}
		if time.Now().After(known) {
			t.Fatalf("the workers are %+v, %v", all, err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// run starts pawl and ends it with the test. It sends the lines of its stderr while the channel has room.
func run(t *testing.T, args ...string) (lines chan string, over chan error) {
	t.Helper()
	return runIn(t, "", args...)
}

// runIn is run in the cgroup with a directory, or in this process's cgroup for "".
func runIn(t *testing.T, group string, args ...string) (lines chan string, over chan error) {
	t.Helper()
	path, err := programtest.Pawl()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append(args, "--allow-degraded")...)
	if group != "" { // the shell joins the group before it becomes pawl, so that all memory of pawl counts
		cmd = exec.Command("/bin/sh", append([]string{"-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, group}, cmd.Args...)...)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := programtest.Start(cmd); err != nil {
		t.Fatal(err)
	}
	lines, over = make(chan string, 10), make(chan error, 1)
	var last []string
	read := make(chan struct{})
	go func() {
		defer close(read)
		all := bufio.NewScanner(stderr)
		all.Buffer(nil, 1<<20)
		for all.Scan() {
			if last = append(last, all.Text()); len(last) > 40 {
				last = last[1:]
			}
			select {
			case lines <- all.Text():
			default:
			}
		}
		over <- cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-read:
		case <-time.After(30 * time.Second):
			t.Errorf("pawl %s does not end", args[0])
			_ = cmd.Process.Kill()
			<-read
		}
		if t.Failed() {
			for _, line := range last {
				t.Logf("%s: %.500s", args[0], line)
			}
		}
	})
	return lines, over
}

// connect returns a client that does not retry, so that it reports every refusal.
func connect(t *testing.T, address string) *client.Client {
	t.Helper()
	c, err := client.New("http://"+address, client.WithPatience(0), client.WithHTTPClient(&http.Client{Transport: &http.Transport{}}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// verify checks the rows against the promises of docs/invariants.md, and that the server is alive.
func (s *server) verify(t *testing.T) {
	t.Helper()
	select {
	case err := <-s.over:
		t.Fatalf("the server has ended: %v", err)
	default:
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	v, err := connect(t, s.address).Verify(ctx)
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	for _, b := range v.Broken {
		t.Errorf("%+v", b)
	}
}

// mostComputed is what one transaction may compute. 200,000 operations are its budget, which is checked between tasks and items. The next
// task or item may take 5 million with all of its templates. The expression that exceeds these may take its own bound of a million, and
// that again to find out why it fails.
const mostComputed = 200_000 + 5_000_000 + 2*1_000_000

// transactions asserts that no transaction computed more than it may, and that no decision took longer than the bound.
func (s *server) transactions(t *testing.T, most time.Duration) {
	t.Helper()
	res, err := http.Get("http://" + s.address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	figure := func(name string) float64 {
		m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("there is no metric %s", name)
		}
		f, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	computed := figure("pawl_commit_operations_most")
	took := time.Duration(figure("pawl_commit_longest_decision_seconds") * float64(time.Second))
	t.Logf("a transaction computed up to %.0f operations and decided for up to %s", computed, took)
	if computed > mostComputed {
		t.Errorf("a transaction computed %.0f operations, more than %d", computed, mostComputed)
	}
	if took > most {
		t.Errorf("a transaction decided for %s, more than %s", took, most)
	}
}
