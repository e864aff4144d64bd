package cli

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
)

// programsEach is the number of programs that each of eight processes runs on one state directory, one after another: 8 in make test, and
// 60 with: go test ./internal/cli -run TestManyAtOnce -together 60
var programsEach = flag.Int("together", 8, "how many programs each of eight callers of pawl eval runs on one state directory")

// Concurrent commands on one state directory, as xargs -P or make -j start them, run each program once, and each prints the output of its
// own program. One of them has the engine, and its own program is one of the first to end.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	env := environment(t)
	dir := t.TempDir()
	const callers = 8
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range *programsEach {
				mark := fmt.Sprintf("program %d of caller %d", i, c)
				path := filepath.Join(dir, fmt.Sprintf("%d-%d.sh", c, i))
				if err := os.WriteFile(path, []byte("echo begin "+mark+"\nsleep 0.05\necho end "+mark+"\n"), 0o600); err != nil {
					t.Error(err)
					return
				}
				var out, errs bytes.Buffer
				cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "pawl"), "eval", "-l", "bash", path)
				cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &errs
				if err := cmd.Run(); err != nil {
					t.Errorf("%s: %v\n%s", mark, err, errs.String())
				}
				if want := "begin " + mark + "\nend " + mark + "\n"; out.String() != want {
					t.Errorf("%s wrote %q\n%s", mark, out.String(), errs.String())
				}
			}
		})
	}
	wg.Wait()
	all := executions(t, env, "--limit", "1000")
	if len(all) != callers**programsEach {
		t.Errorf("%d executions, want %d", len(all), callers**programsEach)
	}
	for _, x := range all {
		if x.Status != api.Completed || x.Attempt != 1 {
			t.Errorf("%s is %s in attempt %d, want completed in attempt 1", x.ID, x.Status, x.Attempt)
		}
	}
}

const announced = "stays until they have ended"

// slow is a program that runs for some seconds after its first output.
func slow(seconds string) string {
	return "import sys, time\nprint('start', flush=True)\ntime.sleep(" + seconds + ")\nprint('end')\n"
}

// gated is a program that ends when it reads a line from standard input.
const gated = "import sys\nprint('start', flush=True)\nsys.stdin.readline()\nprint('end')\n"

// startGated starts pawl eval of a gated program, and returns a function that lets the program end.
func startGated(t *testing.T, env []string, source string) (r *running, end func()) {
	t.Helper()
	stdin, line, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = stdin.Close(), line.Close() })
	return startReading(t, env, stdin, "eval", "-i", writeFile(t, "gated.py", source)), func() {
		t.Helper()
		if _, err := line.WriteString("end\n"); err != nil {
			t.Fatal(err)
		}
	}
}

// A command whose own program has ended, and whose process has the engine, stays for the commands that have joined it, says so, and exits
// with the exit code of its own program.
func TestHolderStaysForOthers(t *testing.T) {
	t.Parallel()
	env := environment(t)
	holder, end := startGated(t, env, gated+"raise SystemExit(7)\n")
	within(t, patience, "the first program runs", func() bool { return strings.Contains(holder.out.String(), "start") })
	joined, endJoined := startGated(t, env, gated)
	within(t, patience, "the second program runs", func() bool { return strings.Contains(joined.out.String(), "start") })
	end()
	within(t, patience, "the holder says why it stays", func() bool { return strings.Contains(holder.err.String(), announced) })
	endJoined()
	if code := joined.code(); code != exit.OK || joined.out.String() != "start\nend\n" || strings.Contains(joined.err.String(), "attempt") {
		t.Errorf("exit code %d, standard output %q\n%s", code, joined.out.String(), joined.err.String())
	}
	if code := holder.code(); code != exit.Failed {
		t.Errorf("holder: exit code %d, want %d\n%s", code, exit.Failed, holder.err.String())
	}
}

// A command that only follows something does not keep the engine's process running.
func TestFollowersKeepNothing(t *testing.T) {
	t.Parallel()
	env := environment(t)
	holder, end := startGated(t, env, gated)
	within(t, patience, "the program runs", func() bool { return strings.Contains(holder.out.String(), "start") })
	follower := start(t, env, "get", "executions", "-w")
	within(t, patience, "the list is shown", func() bool { return strings.Contains(follower.out.String(), "running") })
	if code := start(t, env, "eval", writeFile(t, "joined.py", "print(1)\n")).code(); code != exit.OK {
		t.Errorf("exit code %d of a second program", code)
	}
	within(t, patience, "the list is shown again", func() bool { return strings.Contains(follower.out.String(), "completed") })
	end()
	if code := holder.code(); code != exit.OK {
		t.Errorf("exit code %d\n%s", code, holder.err.String())
	}
}

// An interrupted holder exits, and another process takes over the engine: its program starts again, and its standard output is that of
// one attempt.
func TestOutputOfALostAttempt(t *testing.T) {
	t.Parallel()
	env := environment(t)
	holder, end := startGated(t, env, gated)
	within(t, patience, "the first program runs", func() bool { return strings.Contains(holder.out.String(), "start") })
	same := start(t, env, "eval", writeFile(t, "same.py", slow("8")))
	// The pid may be the same in two attempts, because each sandbox numbers processes alike, but the time differs.
	other := start(t, env, "eval", writeFile(t, "other.py", "import time\nprint(time.time_ns(), flush=True)\ntime.sleep(8)\nprint('end')\n"))
	within(t, patience, "the others run", func() bool {
		return strings.Contains(same.out.String(), "start") && strings.Contains(other.out.String(), "\n")
	})
	end()
	within(t, patience, "the holder says why it stays", func() bool { return strings.Contains(holder.err.String(), announced) })
	before := other.out.String()
	if err := holder.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := holder.code(); code != exit.OK { // its own program has succeeded
		t.Errorf("holder: exit code %d\n%s", code, holder.err.String())
	}
	if code := same.code(); code != exit.OK || same.out.String() != "start\nend\n" || !strings.Contains(same.err.String(), "attempt 2 begins") {
		t.Errorf("exit code %d, standard output %q\n%s", code, same.out.String(), same.err.String())
	}
	if code := other.code(); code != exit.General || other.out.String() != before || !strings.Contains(other.err.String(), "--attempt 2") {
		t.Errorf("exit code %d, standard output %q, before %q\n%s", code, other.out.String(), before, other.err.String())
	}
}

// If a process ends while a submission to it is unanswered, the submission is repeated with the next engine.
func TestHolderEndsDuringASubmission(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	dir := t.TempDir()
	lock, err := instance.LockState(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, remove, err := instance.ListenState(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	var ending sync.Once
	holder := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			return
		}
		ending.Do(func() {
			_ = l.Close()
			_ = lock.Close()
		})
		panic(http.ErrAbortHandler)
	})}
	defer holder.Close()
	go func() { _ = holder.Serve(l) }()
	if err := (instance.Owner{PID: os.Getpid(), Command: "pawl eval", Works: true, Address: l.Addr().String()}).Write(lock); err != nil {
		t.Fatal(err)
	}
	out, errs, code := pawl(t, append(environment(t), "PAWL_STATE_DIR="+dir), "eval", "-l", "bash", writeFile(t, "p.sh", "echo done\n"))
	if code != exit.OK || out != "done\n" {
		t.Errorf("exit code %d, standard output %q\n%s", code, out, errs)
	}
}
