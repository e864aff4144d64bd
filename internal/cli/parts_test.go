package cli

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
)

// A server whose listener is gone ends, and reports it.
func TestServerEndsWithItsListener(t *testing.T) {
	var out, errs watched
	listeners := make(chan net.Listener, 1)
	a := &app.App{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" },
		Listen: func(network, address string) (net.Listener, error) {
			l, err := net.Listen(network, address)
			listeners <- l
			return l, err
		}}
	codes := make(chan int, 1)
	go func() {
		codes <- execute(a, []string{"server", "--no-worker", "--listen", "127.0.0.1:0", "--state-dir", t.TempDir()})
	}()
	l := <-listeners
	within(t, patience, "it serves", func() bool { return strings.Contains(errs.String(), "serving on") })
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case code := <-codes:
		if said := errs.String(); code != exit.General || strings.Count(said, "the listener on "+l.Addr().String()+" has ended: serve on") != 1 {
			t.Errorf("exit code %d: %s", code, said)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("it goes on without its listener: %s", errs.String())
	}
}

// spoil removes the table of sessions from a database: opening it finds no fault, but the engine cannot start.
func spoil(t *testing.T, env []string) {
	t.Helper()
	need(t, "python3")
	path := ""
	for _, v := range env {
		if dir, ok := strings.CutPrefix(v, "PAWL_STATE_DIR="); ok {
			path = filepath.Join(dir, "pawl.db")
		}
	}
	if _, errs, code := pawl(t, env, "get", "executions"); code != exit.OK {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	said, err := exec.Command("python3", "-c", `import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.execute("ALTER TABLE sessions RENAME TO gone")
c.commit()`, path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}

// An engine that cannot start ends its server or command, with the reason.
func TestEngineThatCannotStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.py")
	if err := os.WriteFile(file, []byte("print(1)"), 0o600); err != nil {
		t.Fatal(err)
	}
	flow := writeFile(t, "w.yaml", "name: w\ntasks: {a: {action: noop}}\n")
	for _, args := range [][]string{{"server", "--listen", "127.0.0.1:0"}, {"run", flow}, {"eval", file}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			env := environment(t)
			spoil(t, env)
			r := start(t, env, args...)
			if code := r.ends(t, time.Minute); code != exit.General || !strings.Contains(r.err.String(), "start engine") || !strings.Contains(r.err.String(), "sessions") {
				t.Errorf("exit code %d: %s", code, r.err.String())
			}
		})
	}
}

// ends waits for the end and returns the exit code.
func (r *running) ends(t *testing.T, within time.Duration) int {
	t.Helper()
	code := make(chan int, 1)
	go func() { code <- r.code() }()
	select {
	case c := <-code:
		return c
	case <-time.After(within):
		t.Fatalf("it has not ended within %s: %s", within, r.err.String())
		return 0
	}
}

// A worker that the server refuses ends, whether at the start or when its token is revoked.
func TestRefusedWorker(t *testing.T) {
	t.Parallel()
	env := environment(t)
	const good, other = "a-token-that-is-long-enough-1", "a-token-that-is-long-enough-2"
	serve := func(listen, token string) (*running, string) {
		r := start(t, append(env, "PAWL_TOKEN="+token), "server", "--no-worker", "--listen", listen, "--lease", "2s")
		within(t, patience, "it serves", func() bool { return strings.Contains(r.err.String(), "serving on") })
		_, url, _ := strings.Cut(r.err.String(), "serving on ")
		url, _, _ = strings.Cut(url, " ")
		return r, url
	}
	server, url := serve("127.0.0.1:0", good)
	work := func(token string) *running {
		return start(t, append(environment(t), "PAWL_TOKEN="+token), "worker", "--server", url, "--slots", "1")
	}
	refused := work(other)
	if code := refused.ends(t, time.Minute); code != exit.General || !strings.Contains(refused.err.String(), "the worker has ended") || !strings.Contains(refused.err.String(), "refuses the token") || strings.Contains(refused.err.String(), "working for") {
		t.Errorf("exit code %d: %s", code, refused.err.String())
	}
	worker := work(good)
	has := func() bool {
		out, _, _ := pawl(t, append(env, "PAWL_TOKEN="+good, "PAWL_SERVER="+url), "get", "workers", "-o", "json")
		return strings.Contains(out, `"session"`)
	}
	within(t, patience, "the worker is there", has)
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := server.code(); code != exit.OK {
		t.Fatalf("exit code %d: %s", code, server.err.String())
	}
	again, _ := serve(strings.TrimPrefix(url, "http://"), other)
	if code := worker.ends(t, time.Minute); code != exit.General || !strings.Contains(worker.err.String(), "refuses the token") {
		t.Errorf("exit code %d: %s", code, worker.err.String())
	}
	// The server that refused the worker still works.
	res, err := http.Get(url + "/healthz")
	if err != nil || res.StatusCode != 200 {
		t.Errorf("%v, %v", res, err)
	} else {
		_ = res.Body.Close()
	}
	if err := again.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := again.code(); code != exit.OK {
		t.Errorf("exit code %d: %s", code, again.err.String())
	}
}

// The first signal leaves running work its grace period, the second ends the server at once.
func TestSecondSignalEndsAServer(t *testing.T) {
	t.Parallel()
	env := environment(t)
	const mark = "mark-of-the-second-signal"
	r := start(t, env, "server", "--listen", "127.0.0.1:0", "--grace", "300s")
	within(t, patience, "it serves", func() bool { return strings.Contains(r.err.String(), "serving on") })
	runs := start(t, env, "run", sleeperFile(t, mark, "300"))
	within(t, patience, "the program runs", func() bool { return aliveWith(t, mark) > 0 })
	if err := runs.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = runs.Wait()
	if err := r.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	within(t, patience, "it drains", func() bool { return strings.Contains(r.err.String(), "once more to stop at once") })
	begun := time.Now()
	if err := r.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := r.code(); code != exit.Interrupted || time.Since(begun) > patience {
		t.Errorf("exit code %d after %s: %s", code, time.Since(begun), r.err.String())
	}
	within(t, patience, "nothing is left", func() bool { return aliveWith(t, mark) == 0 })
}
