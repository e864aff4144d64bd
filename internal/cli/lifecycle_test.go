package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/runtime/runtimetest"
)

// running is a pawl in the background.
type running struct {
	*exec.Cmd
	out, err watched
}

// watched is a process's output, which can be read meanwhile.
type watched struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(b)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

func start(t *testing.T, env []string, args ...string) *running {
	t.Helper()
	return startReading(t, env, nil, args...)
}

// startReading starts a pawl with a standard input; nil is an empty one.
func startReading(t *testing.T, env []string, stdin io.Reader, args ...string) *running {
	t.Helper()
	need(t, "python3")
	r := &running{Cmd: exec.CommandContext(t.Context(), filepath.Join(bin, "pawl"), args...)}
	r.Env, r.Stdin, r.Stdout, r.Stderr = env, stdin, &r.out, &r.err
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r.ProcessState == nil {
			_ = r.Process.Kill()
			_ = r.Wait()
		}
	})
	return r
}

// patience is how long a test waits for a started program's output or action, which takes seconds on an idle machine. The programs that
// tests wait for sleep for 50 seconds.
const patience = 45 * time.Second

// within waits until ok holds.
func within(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(d)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", d, what)
		}
	}
}

// code waits for the end and returns the exit code.
func (r *running) code() int {
	_ = r.Wait() // the exit code has the result
	return r.ProcessState.ExitCode()
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// aliveWith counts the processes with a text in their command line.
func aliveWith(t *testing.T, text string) int {
	t.Helper()
	return len(runtimetest.Processes(text))
}

const sleeper = `name: sleeper
tasks:
  work:
    action: code
    with:
      language: python
      args: [MARK]
      limits: {wall: 60s}
      source: |
        import time
        print("working", flush=True)
        time.sleep(SECONDS)
outputs: {said: "${{ tasks.work.output.stdout }}"}
`

func sleeperFile(t *testing.T, mark, seconds string) string {
	return writeFile(t, "sleeper.yaml", strings.NewReplacer("MARK", mark, "SECONDS", seconds).Replace(sleeper))
}

func executions(t *testing.T, env []string, args ...string) []api.Execution {
	t.Helper()
	out, errs, code := pawl(t, env, append([]string{"get", "executions", "-o", "json"}, args...)...)
	var all []api.Execution
	if err := json.Unmarshal([]byte(out), &all); code != exit.OK || err != nil {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	return all
}

// The first Ctrl-C cancels, and pawl exits when nothing runs any more.
func TestInterruptCancels(t *testing.T) {
	t.Parallel()
	env := environment(t)
	const mark = "mark-of-the-interrupted"
	r := start(t, env, "run", sleeperFile(t, mark, "300"))
	within(t, patience, "the program runs", func() bool { return aliveWith(t, mark) > 0 })
	begin := time.Now()
	if err := r.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := r.code(); code != exit.Interrupted {
		t.Errorf("exit code %d, want %d\n%s", code, exit.Interrupted, r.err.String())
	}
	if took := time.Since(begin); took > patience {
		t.Errorf("it took %s to cancel", took)
	}
	if n := aliveWith(t, mark); n > 0 {
		t.Errorf("%d processes are left", n)
	}
	if all := executions(t, env); len(all) != 1 || all[0].Status != api.Cancelled {
		t.Errorf("executions: %+v", all)
	}
}

// A killed process loses nothing: the next one reports that it resumes, and the work ends as it would have.
func TestKilledRunIsResumed(t *testing.T) {
	t.Parallel()
	env := environment(t)
	const mark = "mark-of-the-killed"
	r := start(t, env, "run", sleeperFile(t, mark, "2"))
	within(t, patience, "the program runs", func() bool { return aliveWith(t, mark) > 0 })
	if err := r.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = r.Wait()
	within(t, patience, "the sandbox dies with its worker", func() bool { return aliveWith(t, mark) == 0 })

	// Commands that only read run nothing, and say so.
	_, errs, code := pawl(t, env, "logs", "-f", executions(t, env, "--workflow", executions(t, env)[0].ID)[0].ID)
	if code != exit.OK || !strings.Contains(errs, "no pawl run or pawl server is working") {
		t.Errorf("logs -f: exit code %d: %s", code, errs)
	}

	server := start(t, env, "server", "--listen", "127.0.0.1:0")
	within(t, patience, "it says that it resumes", func() bool {
		return strings.Contains(server.err.String(), "resuming 1 unfinished execution")
	})
	within(t, patience, "the execution completes", func() bool { return executions(t, env)[0].Status == api.Completed })
	child := executions(t, env, "--workflow", executions(t, env)[0].ID)[0]
	if child.Attempt != 2 {
		t.Errorf("the task completed in attempt %d, want 2", child.Attempt)
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := server.code(); code != exit.OK {
		t.Errorf("server: exit code %d\n%s", code, server.err.String())
	}
}

// A second pawl on the same state directory uses the engine of the first, and takes over when that is killed.
func TestSecondRunJoinsAndTakesOver(t *testing.T) {
	t.Parallel()
	env := environment(t)
	const first, second = "mark-of-the-first", "mark-of-the-second"
	a := start(t, env, "run", sleeperFile(t, first, "50"))
	within(t, patience, "the first runs", func() bool { return aliveWith(t, first) > 0 })
	b := start(t, env, "run", sleeperFile(t, second, "3"), "-o", "json")
	within(t, patience, "the second runs", func() bool { return aliveWith(t, second) > 0 })
	if n := len(executions(t, env, "--status", "running")); n != 2 {
		t.Errorf("%d executions are running, want 2", n)
	}
	if err := a.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = a.Wait()
	if code := b.code(); code != exit.OK {
		t.Fatalf("exit code %d\n%s%s", code, b.out.String(), b.err.String())
	}
	var x api.Execution
	if err := json.Unmarshal([]byte(b.out.String()), &x); err != nil || x.Status != api.Completed {
		t.Errorf("%v: %s", err, b.out.String())
	}
}

// The second Ctrl-C does not wait for anything.
func TestSecondInterruptKills(t *testing.T) {
	t.Parallel()
	env := environment(t)
	server := start(t, env, "server", "--listen", "127.0.0.1:0")
	within(t, patience, "it serves", func() bool { return strings.Contains(server.err.String(), "serving on") })
	pawl(t, env, "apply", writeFile(t, "q.yaml", "name: q\ntasks: {a: {action: sleep, with: {for: 100}}}"))
	r := start(t, env, "run", "q")
	within(t, patience, "it runs", func() bool { return strings.Contains(r.err.String(), "q@1  running") })
	// The engine is stopped, as if it hung, and confirms nothing.
	if err := server.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := r.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	within(t, patience, "it cancels", func() bool { return strings.Contains(r.err.String(), "cancelling") })
	if err := r.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := r.code(); code != exit.Interrupted {
		t.Errorf("exit code %d, want %d\n%s", code, exit.Interrupted, r.err.String())
	}
	if err := server.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// A command that only reads the state directory does not prevent a server from starting.
func TestServerWaitsForLookers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	lock, err := instance.LockState(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := (instance.Owner{PID: os.Getpid(), Command: "pawl get workers"}).Write(lock); err != nil {
		t.Fatal(err)
	}
	r := start(t, os.Environ(), "server", "--listen", "127.0.0.1:0", "--state-dir", dir, "--log-level", "debug")
	within(t, patience, "the server to have started", func() bool { return r.Process.Signal(syscall.Signal(0)) == nil })
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	within(t, patience, "the server to serve", func() bool { return strings.Contains(r.err.String(), "serving on") })
}
