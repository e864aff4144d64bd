//go:build unix

package runtimetest

import (
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

//go:embed programs
var sources embed.FS

// hostile is the compiled programs and the runtime that they attack.
type hostile struct {
	suite     *suite
	runtime   runtime.Runtime
	program   []byte
	namespace string // the host's pid namespace
	row       string // the current row's number
	token     string // of the current row; also the mark by which its processes are found
	canaries  *canaries
}

// row is one row of the table of threats that the sandbox was designed against; its name starts with its number. Row 47,
// the race, and row 48, the death of the worker, are separate tests, and row 46, on the compiler, is with the code that
// compiles. Rows from 50 on were added later.
type row struct {
	name string
	run  func(testing.TB, *hostile)
}

// attack runs the hostile programs.
func attack(t *testing.T, s *suite, r runtime.Runtime) {
	h := &hostile{suite: s, runtime: r, program: Program(t), namespace: pidNamespace(t), canaries: plantCanaries(t)}
	finish(t, r, shell("exit 0")) // afterwards the runtime has built what it keeps ready
	h.canaries.cgroups = idle(r, func() int { return len(Cgroups(os.Getpid())) })
	for _, row := range slices.Concat(limitRows, streamRows, secretRows, escapeRows, outputRows, furtherRows) {
		t.Run(row.name, func(t *testing.T) {
			h.token = rand.Text()
			h.row, _, _ = strings.Cut(row.name, " ")
			s.check(t, h.row, func(t testing.TB) { row.run(t, h) })
			s.finish(t, h.row+"/")
			h.after(t)
		})
	}
}

// after checks that the host is unchanged and that another program runs.
func (h *hostile) after(t testing.TB) {
	t.Helper()
	h.canaries.check(t, h.token)
	if left := leftCgroups(t, h.runtime); len(left) > 0 {
		t.Errorf("cgroups are left: %v", left)
	}
	if left := h.suite.left(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	result, stdout, _ := finish(t, h.runtime, shell("echo next"))
	if result.Verdict != runtime.OK || stdout != "next\n" {
		t.Errorf("the next run: %+v, stdout %q", result, stdout)
	}
}

// Program is the hostile program, linked statically so that it needs nothing from its environment: not even a shell or
// a C library in a container's image. It refuses to run outside of a sandbox.
func Program(t testing.TB) []byte {
	t.Helper()
	program, err := compiled()
	if err != nil {
		t.Skipf("the hostile programs need a C compiler and a static C library (gcc, libc6-dev): %v", err)
	}
	return program
}

var compiled = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "pawl-hostile-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, sources); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "programs", "*.c"))
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(dir, "hostile")
	cmd := exec.Command("cc", append([]string{"-Os", "-s", "-w", "-static", "-pthread", "-o", binary}, files...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return os.ReadFile(binary)
})

// spec is a run of one hostile command with limits that a host can stand to have exhausted.
func (h *hostile) spec(command string, args ...string) runtime.Spec {
	return runtime.Spec{
		Name:  "hostile",
		Argv:  append([]string{"./hostile", h.token, h.namespace, command}, args...),
		Env:   []string{"PATH=/usr/bin:/bin", "PAWL_HOSTILE_TOKEN=" + h.token},
		Files: []runtime.File{{Path: "hostile", Mode: 0o755, Content: h.program}},
		Limits: runtime.Limits{
			Wall: 20 * time.Second, CPU: 20 * time.Second, Memory: 64 << 20, Pids: 32, Output: 1 << 20, Disk: 16 << 20,
		},
	}
}

func (h *hostile) finish(t testing.TB, spec runtime.Spec) (runtime.Result, string, string) {
	t.Helper()
	result, stdout, stderr := finish(t, h.runtime, spec)
	if strings.Contains(stderr, "refusing to run") {
		t.Fatalf("the program's guard refused: %s", stderr)
	}
	return result, stdout, stderr
}

// start starts a run and waits until it has written text. The end of the test kills the run.
func (h *hostile) start(t testing.TB, spec runtime.Spec, text string) (runtime.Run, *output) {
	t.Helper()
	out := newOutput()
	spec.Stdout = out
	run, err := h.runtime.Start(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Kill("the test is over"); run.Wait() })
	out.await(t, text)
	return run, out
}

// probe runs a program that prints the forbidden actions that succeeded; it must print nothing.
func (h *hostile) probe(t testing.TB, command string, args ...string) {
	t.Helper()
	h.probeSpec(t, h.spec(command, args...))
}

func (h *hostile) probeSpec(t testing.TB, spec runtime.Spec) {
	t.Helper()
	result, stdout, stderr := h.finish(t, spec)
	wantVerdict(t, result, runtime.OK)
	if stderr != "" {
		t.Errorf("stderr: %s", stderr)
	}
	h.nothing(t, stdout)
}

// nothing checks a probe's output: each line is an action that succeeded.
func (h *hostile) nothing(t testing.TB, stdout string) {
	t.Helper()
	for line := range strings.Lines(stdout) {
		line = strings.TrimSpace(line)
		if why, ok := h.suite.allows(h.row + "/" + line); ok {
			t.Logf("able to %s, as listed: %s", line, why)
			continue
		}
		t.Errorf("was able to: %s", line)
	}
}
