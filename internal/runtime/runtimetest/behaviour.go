//go:build unix

package runtimetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

// env is the environment of the suite's harmless programs.
var env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}

// shell is a run of a shell script.
func shell(script string, args ...string) runtime.Spec {
	return runtime.Spec{
		Name: "conformance", Argv: append([]string{"sh", "-c", script, "sh"}, args...), Env: env,
		Limits: runtime.Limits{Wall: 20 * time.Second, CPU: 20 * time.Second},
	}
}

// output collects a program's output and lets a test wait for a part of it.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newOutput() *output { return &output{changed: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.changed <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await blocks until the output contains text.
func (o *output) await(t testing.TB, text string) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	for !strings.Contains(o.String(), text) {
		select {
		case <-o.changed:
		case <-deadline.C:
			t.Fatalf("output %q never contained %q", o.String(), text)
		}
	}
}

// finish runs a spec to its end and returns the result and the output.
func finish(t testing.TB, r runtime.Runtime, spec runtime.Spec) (result runtime.Result, stdout, stderr string) {
	t.Helper()
	out, errs := newOutput(), newOutput()
	spec.Stdout, spec.Stderr = out, errs
	run, err := r.Start(context.Background(), spec)
	if err != nil {
		t.Fatalf("start %q: %v; stderr %q", spec.Argv, err, errs.String())
	}
	result = run.Wait()
	return result, out.String(), errs.String()
}

func wantVerdict(t testing.TB, got runtime.Result, want ...runtime.Verdict) {
	t.Helper()
	if !slices.Contains(want, got.Verdict) {
		t.Errorf("verdict %s, want one of %v; the result is %+v", got.Verdict, want, got)
	}
}

// behave checks what every backend must do for harmless programs.
func behave(t *testing.T, s *suite) {
	r := open(t, s.open)
	run := func(name string, f func(testing.TB)) { s.run(t, "Behaviour/"+name, name, f) }
	run("exit codes", func(t testing.TB) {
		result, _, _ := finish(t, r, shell("exit 0"))
		wantVerdict(t, result, runtime.OK)
		if result.Wall <= 0 || result.Enforcement == "" {
			t.Errorf("wall time or enforcement is missing: %+v", result)
		}
		result, _, _ = finish(t, r, shell("exit 42"))
		wantVerdict(t, result, runtime.NonzeroExit)
		if result.ExitCode != 42 {
			t.Errorf("exit code %d, want 42", result.ExitCode)
		}
		result, _, _ = finish(t, r, shell("kill -USR1 $$"))
		wantVerdict(t, result, runtime.Signal)
		if result.Signal != "SIGUSR1" {
			t.Errorf("signal %q, want SIGUSR1", result.Signal)
		}
	})
	run("streams", func(t testing.TB) {
		spec := shell(`cat; echo bad >&2; echo "$1:$GREETING:$(pwd -P | wc -l)"; env | wc -l`, "argument")
		spec.Stdin = strings.NewReader("in\x00put\n")
		spec.Env = append(slices.Clone(env), "GREETING=hello")
		result, stdout, stderr := finish(t, r, spec)
		wantVerdict(t, result, runtime.OK)
		if want := "in\x00put\nargument:hello:1\n"; !strings.HasPrefix(stdout, want) {
			t.Errorf("stdout %q, want it to begin with %q", stdout, want)
		}
		if stderr != "bad\n" {
			t.Errorf("stderr %q, want %q", stderr, "bad\n")
		}
		if result.StdoutBytes != int64(len(stdout)) || result.StderrBytes != int64(len(stderr)) {
			t.Errorf("counted %d and %d bytes, got %d and %d", result.StdoutBytes, result.StderrBytes, len(stdout), len(stderr))
		}
	})
	run("a writer that fails does not stop the program", func(t testing.TB) {
		spec := shell("seq 1 100000; exit 7")
		spec.Stdout = failingWriter{}
		run, err := r.Start(context.Background(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if result := run.Wait(); result.ExitCode != 7 {
			t.Errorf("exit code %d, want 7: %+v", result.ExitCode, result)
		}
	})
	run("files", func(t testing.TB) { files(t, r) })
	run("mounts", func(t testing.TB) { mounts(t, r) })
	run("stdin", func(t testing.TB) { stdin(t, r) })
	run("streams opened by name", func(t testing.TB) { reopened(t, r) })
	run("kill", func(t testing.TB) { kill(t, r) })
	run("terminate", func(t testing.TB) { terminate(t, r) })
	run("limits", func(t testing.TB) { limits(t, r) })
	t.Run("refusals", func(t *testing.T) { refusals(t, s, r) })
	run("close", func(t testing.TB) { closing(t, s.open) })
	run("close while starting", func(t testing.TB) { closingWhileStarting(t, s.open) })
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func files(t testing.TB, r runtime.Runtime) {
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, bytes.Repeat([]byte("data"), 100_000), 0o644); err != nil {
		t.Fatal(err)
	}
	into := t.TempDir()
	spec := shell(`set -e
		./bin/tool > out.txt; wc -c < big >> out.txt; mkdir -p made/deep; echo x > made/deep/file; echo y > other
		ln -s /etc/passwd made/link; mkfifo made/pipe; ln out.txt made/second; touch unwanted; echo z > a.csv`)
	spec.Files = []runtime.File{
		{Path: "bin/tool", Mode: 0o755, Content: []byte("#!/bin/sh\necho tool\n")},
		{Path: "big", Source: source},
		{Path: "empty", Content: []byte{}},
	}
	spec.Collect = []string{"made", "*.csv", "other", "absent"}
	spec.CollectInto = into
	result, _, stderr := finish(t, r, spec)
	wantVerdict(t, result, runtime.OK)
	if stderr != "" {
		t.Errorf("stderr: %s", stderr)
	}
	got := make(map[string]string)
	for _, f := range result.Files {
		content, err := os.ReadFile(f.Host)
		if err != nil {
			t.Error(err)
		}
		if f.Size != int64(len(content)) {
			t.Errorf("%s: size %d, got %d bytes", f.Path, f.Size, len(content))
		}
		got[f.Path] = string(content)
	}
	if want := map[string]string{"made/deep/file": "x\n", "other": "y\n", "a.csv": "z\n"}; !equal(got, want) {
		t.Errorf("collected %q, want %q", got, want)
	}
	refused := strings.Join(result.Refused, "; ")
	for _, name := range []string{"made/link", "made/pipe", "made/second"} {
		if !strings.Contains(refused, name) {
			t.Errorf("%s was not refused: %s", name, refused)
		}
	}
	if len(result.Refused) != 3 {
		t.Errorf("refused %d entries, want 3: %s", len(result.Refused), refused)
	}
}

func equal(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// mounts runs a toolchain in a directory that only its owner can enter.
func mounts(t testing.TB, r runtime.Runtime) {
	private := t.TempDir()
	tools := filepath.Join(private, "tools")
	if err := os.Mkdir(tools, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tools, "tool"), []byte("#!/bin/sh\necho from the tool\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(private, 0o700); err != nil {
		t.Fatal(err)
	}
	spec := shell(`tool; if [ -n "$CONTAINED" ]; then echo x > "$1/tool" || echo read-only; ls "$1/.."; fi`, tools)
	spec.Env = []string{"PATH=" + tools + ":/usr/bin:/bin"}
	spec.Mounts = []runtime.Mount{{Path: tools}, {Path: "/usr/bin"}}
	want := "from the tool\n"
	if r.Isolation() >= runtime.Contained {
		spec.Env = append(spec.Env, "CONTAINED=yes")
		want += "read-only\ntools\n"
	}
	result, stdout, stderr := finish(t, r, spec)
	wantVerdict(t, result, runtime.OK)
	if stdout != want {
		t.Errorf("stdout %q, want %q; stderr %q", stdout, want, stderr)
	}
	if r.Isolation() >= runtime.Contained {
		for _, path := range []string{"/no/such/toolchain", "/proc", "/work"} {
			spec := shell("exit 0")
			spec.Mounts = []runtime.Mount{{Path: path}}
			if run, err := r.Start(context.Background(), spec); !errors.Is(err, runtime.ErrSpec) {
				t.Errorf("mount %s: %v", path, err)
				if err == nil {
					run.Wait()
				}
			}
		}
	}
}

// stdin gives input to programs that do not read it.
func stdin(t testing.TB, r runtime.Runtime) {
	spec := shell("exit 0")
	spec.Stdin = strings.NewReader(strings.Repeat("x", 1<<20))
	result, _, _ := finish(t, r, spec)
	wantVerdict(t, result, runtime.OK)

	blocked, release := io.Pipe() // a reader that never ends must not hold up the run
	defer release.Close()
	spec = shell("exit 0")
	spec.Stdin = blocked
	result, _, _ = finish(t, r, spec)
	wantVerdict(t, result, runtime.OK)

	spec = shell("wc -c")
	spec.Stdin = strings.NewReader(strings.Repeat("x", 1<<20))
	_, stdout, _ := finish(t, r, spec)
	if strings.TrimSpace(stdout) != "1048576" {
		t.Errorf("the program read %q bytes of 1048576", stdout)
	}

	// Input that is given while the program runs must reach it, and its output must be visible before its end.
	listens, says := io.Pipe()
	defer says.Close()
	heard := newOutput()
	spec = shell("printf 'name? '; read name; echo hello $name; while read line; do echo got $line; done; echo over")
	spec.Stdin, spec.Stdout = listens, heard
	run, err := r.Start(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	heard.await(t, "name? ")
	for _, line := range []string{"Ann", "one", "two"} {
		if _, err := io.WriteString(says, line+"\n"); err != nil {
			t.Fatal(err)
		}
		heard.await(t, line+"\n")
	}
	if err := says.Close(); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, run.Wait(), runtime.OK)
	if got, want := heard.String(), "name? hello Ann\ngot one\ngot two\nover\n"; got != want {
		t.Errorf("the conversation was %q, want %q", got, want)
	}
}

func limits(t testing.TB, r runtime.Runtime) {
	spec := shell("printf partial; sleep 60")
	spec.Limits.Wall = 200 * time.Millisecond
	result, stdout, _ := finish(t, r, spec)
	wantVerdict(t, result, runtime.Timeout)
	if stdout != "partial" {
		t.Errorf("stdout %q, want what was written before the timeout", stdout)
	}
	if result.Wall < spec.Limits.Wall {
		t.Errorf("timed out after %v, before the limit of %v", result.Wall, spec.Limits.Wall)
	}
	spec = shell("while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done")
	spec.Limits.Output = 1000
	result, stdout, _ = finish(t, r, spec)
	wantVerdict(t, result, runtime.OutputLimit)
	if len(stdout) != 1000 || result.StdoutBytes != 1000 {
		t.Errorf("kept %d bytes and counted %d, want 1000", len(stdout), result.StdoutBytes)
	}
	// A daemon that keeps the pipes open must not hold up the run.
	begin := time.Now()
	result, stdout, _ = finish(t, r, shell("sleep 60 & echo done"))
	wantVerdict(t, result, runtime.OK)
	if took := time.Since(begin); stdout != "done\n" || took > 5*time.Second {
		t.Errorf("took %v, stdout %q", took, stdout)
	}
}

func refusals(t *testing.T, s *suite, r runtime.Runtime) {
	for name, spec := range map[string]runtime.Spec{
		"no argv":           {},
		"absent program":    {Argv: []string{"no-such-program-anywhere"}, Env: env},
		"not executable":    {Argv: []string{"./data"}, Env: env, Files: []runtime.File{{Path: "data", Content: []byte("x")}}},
		"NUL in argument":   {Argv: []string{"sh", "a\x00b"}, Env: env},
		"bad environment":   {Argv: []string{"true"}, Env: []string{"novalue"}},
		"escaping file":     {Argv: []string{"true"}, Env: env, Files: []runtime.File{{Path: "../x", Content: []byte("x")}}},
		"absolute file":     {Argv: []string{"true"}, Env: env, Files: []runtime.File{{Path: "/x", Content: []byte("x")}}},
		"file twice":        {Argv: []string{"true"}, Env: env, Files: []runtime.File{{Path: "x"}, {Path: "x"}}},
		"file under a file": {Argv: []string{"true"}, Env: env, Files: []runtime.File{{Path: "x"}, {Path: "x/y"}}},
		"absent source":     {Argv: []string{"true"}, Env: env, Files: []runtime.File{{Path: "x", Source: "/no/such/file"}}},
		"escaping collect":  {Argv: []string{"true"}, Env: env, Collect: []string{"../*"}, CollectInto: "/tmp"},
		"bad pattern":       {Argv: []string{"true"}, Env: env, Collect: []string{"["}, CollectInto: "/tmp"},
		"nowhere to":        {Argv: []string{"true"}, Env: env, Collect: []string{"x"}},
		"relative mount":    {Argv: []string{"true"}, Env: env, Mounts: []runtime.Mount{{Path: "usr"}}},
		"negative limit":    {Argv: []string{"true"}, Env: env, Limits: runtime.Limits{Pids: -1}},
		"files beyond disk": {
			Argv: []string{"true"}, Env: env, Limits: runtime.Limits{Disk: 1 << 20},
			Files: []runtime.File{{Path: "x", Content: make([]byte, 2<<20)}},
		},
	} {
		s.run(t, "Behaviour/refusals/"+name, name, func(t testing.TB) {
			run, err := r.Start(context.Background(), spec)
			if err == nil {
				t.Fatalf("started; the result is %+v", run.Wait())
			}
			if !errors.Is(err, runtime.ErrSpec) {
				t.Errorf("error %q does not wrap ErrSpec", err)
			}
		})
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if run, err := r.Start(cancelled, shell("exit 0")); err == nil {
		t.Errorf("started although the context was cancelled: %+v", run.Wait())
	}
}
