package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/runtimetest"
)

// python3 is an interpreter of the host that sandboxes show.
const python3 = "/usr/bin/python3"

// script is a Python program for a test.
type script struct {
	source, stdin string
	args          []string
	files         map[string]string
	imports       []string
}

// start runs the program as evaluations do.
func (p script) start(t *testing.T, start func(runtime.Spec) (runtime.Run, error), warm bool) (runtime.Result, string) {
	t.Helper()
	argv := []string{python3, "main.py"}
	env := []string{"HOME=/tmp", "LANG=C.UTF-8", "OPENBLAS_NUM_THREADS=1", "PATH=/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1"}
	var out, errs bytes.Buffer
	spec := runtime.Spec{
		Argv: append(argv[:2:2], p.args...), Env: append(env[:len(env):len(env)], "PAWL_TEXT=a=b", "ZZ=1"), Stdin: strings.NewReader(p.stdin),
		Stdout: &out, Stderr: &errs, Files: []runtime.File{{Path: "main.py", Content: []byte(p.source)}}, Collect: []string{"left"},
		CollectInto: t.TempDir(),
	}
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		spec.Files = append(spec.Files, runtime.File{Path: name, Content: []byte(p.files[name])})
	}
	if warm {
		spec.Template = &runtime.Template{Argv: argv, Env: env, Imports: p.imports}
	}
	run, err := start(spec)
	if err != nil {
		t.Fatal(err)
	}
	res := run.Wait()
	said := fmt.Sprintf("%s %d %s\nstdout: %s\nstderr: %s", res.Verdict, res.ExitCode, res.Signal, out.String(), errs.String())
	for _, f := range res.Files {
		text, err := os.ReadFile(f.Host)
		if err != nil {
			t.Fatal(err)
		}
		said += fmt.Sprintf("\n%s %v: %s", f.Path, f.Mode, text)
	}
	return res, said
}

// warmed is a runtime with a ready template.
func warmed(t *testing.T, o Options, imports ...string) *Runtime {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root has templates")
	}
	if _, err := os.Stat(python3); err != nil {
		t.Skipf("no Python: %v: apt install python3", err)
	}
	if out, err := exec.Command(python3, "-c", "import ctypes").CombinedOutput(); err != nil {
		t.Skipf("Python without ctypes: %s: apt install python3", out)
	}
	r := factory(o)(t).(*Runtime)
	t.Cleanup(func() { r.Close() })
	awaitTemplate(t, r, imports...)
	return r
}

func awaitTemplate(t *testing.T, r *Runtime, imports ...string) {
	t.Helper()
	p := script{imports: imports}
	for {
		res, said := p.start(t, onIts(t, r), true)
		if res.Warm {
			return
		}
		r.templates.mu.Lock()
		for _, one := range r.templates.byKey {
			if one.err != nil {
				t.Fatal(one.err)
			}
		}
		r.templates.mu.Unlock()
		if res.Verdict != runtime.OK {
			t.Fatal(said)
		}
	}
}

func onIts(t *testing.T, r *Runtime) func(runtime.Spec) (runtime.Run, error) {
	return func(s runtime.Spec) (runtime.Run, error) { return r.Start(t.Context(), s) }
}

// address matches an object's address.
var address = regexp.MustCompile(`0x[0-9a-f]+`)

// TestWarmIsCold runs programs that are forked from a template and programs that are executed, and compares all that they can observe.
func TestWarmIsCold(t *testing.T) {
	warmIsCold(t)
	t.Run("with imports", func(t *testing.T) { warmIsCold(t, "asyncio", "decimal", "json", "logging", "random", "threading") })
}

func warmIsCold(t *testing.T, imports ...string) {
	t.Helper()
	r := warmed(t, Options{}, imports...)
	sources, err := filepath.Glob("testdata/warm/*.py")
	if err != nil || len(sources) == 0 {
		t.Fatal(sources, err)
	}
	series := r.Series()
	defer series.Close()
	inSeries := func(s runtime.Spec) (runtime.Run, error) { return series.Start(t.Context(), s) }
	for _, file := range sources {
		name := strings.TrimSuffix(filepath.Base(file), ".py")
		if name == "start" && len(imports) > 0 { // it lists all modules
			continue
		}
		t.Run(name, func(t *testing.T) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := script{
				source: string(source), stdin: "one\nzwei ü\n3", args: []string{"a", "--b=ü"}, imports: imports,
				files: map[string]string{"second.py": "import sys\nvalue = sys.modules['__main__'].__file__\n", "pack/__init__.py": "x = 1\n"},
			}
			_, cold := p.start(t, onIts(t, r), false)
			for way, start := range map[string]func(runtime.Spec) (runtime.Run, error){"alone": onIts(t, r), "in a series": inSeries} {
				res, said := p.start(t, start, true)
				if !res.Warm {
					t.Errorf("%s: it was executed", way)
				}
				compareLines(t, way, said, cold)
			}
		})
	}
}

func compareLines(t *testing.T, way, warm, cold string) {
	t.Helper()
	got, want := strings.Split(address.ReplaceAllString(warm, "0x"), "\n"), strings.Split(address.ReplaceAllString(cold, "0x"), "\n")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("%s: from line %d: %q\n\nexecuted: %q", way, i, got[min(i, len(got)):min(i+3, len(got))], want[min(i, len(want)):min(i+3, len(want))])
		}
	}
}

// forking is a runtime whose programs are executed by Python programs that are forked from a template.
type forking struct {
	*Runtime
	forked, all *atomic.Int64
}

const executes = `import os, signal, sys
for s in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(s, signal.SIG_DFL)
os.unlink(sys.argv[0])
os.execvp(sys.argv[1], sys.argv[1:])
`

func (r forking) Start(ctx context.Context, spec runtime.Spec) (runtime.Run, error) {
	if spec.Check() == nil && found(&spec) {
		argv := []string{python3, ".exec.py"}
		spec.Template = &runtime.Template{Argv: argv}
		spec.Argv = append(argv, spec.Argv...)
		spec.Files = append(slices.Clip(spec.Files), runtime.File{Path: argv[1], Content: []byte(executes)})
		if spec.Limits.Stack == 0 {
			spec.Limits.Stack = 64 << 20
		}
	}
	started, err := r.Runtime.Start(ctx, spec)
	if n, ok := started.(*run); ok && err == nil && r.all != nil {
		if r.all.Add(1); n.warm {
			r.forked.Add(1)
		}
	}
	return started, err
}

// found reports whether a program exists, on the host or among the run's own files.
func found(spec *runtime.Spec) bool {
	_, err := exec.LookPath(spec.Argv[0])
	return err == nil || slices.ContainsFunc(spec.Files, func(f runtime.File) bool { return "./"+f.Path == spec.Argv[0] && f.Mode&1 != 0 })
}

// TestConformanceForked starts the programs of the suite, including the hostile ones, in forks of a template.
func TestConformanceForked(t *testing.T) {
	warmed(t, Options{})
	o, forked, all := Options{}, new(atomic.Int64), new(atomic.Int64)
	open := func(t testing.TB) runtime.Runtime {
		r := forking{factory(o)(t).(*Runtime), forked, all}
		for _, stdin := range []string{"", "input"} {
			for isForked := false; !isForked; {
				spec := runtime.Spec{Argv: []string{"true"}, Env: []string{"PATH=/usr/bin:/bin"}}
				if stdin != "" {
					spec.Stdin = strings.NewReader(stdin)
				}
				started, err := forking{Runtime: r.Runtime}.Start(t.Context(), spec)
				if err != nil {
					t.Fatal(err)
				}
				isForked = started.Wait().Warm
			}
		}
		return r
	}
	runtimetest.Exercise(t, open, differing(t, o), runtimetest.Brief(), runtimetest.HostileOnly())
	if forked.Load()*10 < all.Load()*9 {
		t.Errorf("%d of %d runs were forked", forked.Load(), all.Load())
	}
}

// Random values differ between forks of one template, and a program leaves nothing for the next.
func TestForksAreApart(t *testing.T) {
	r := warmed(t, Options{}, "random", "uuid", "tempfile")
	p := script{imports: []string{"random", "uuid", "tempfile"}, source: `
import os, random, sys, tempfile, uuid
print("random" in sys.modules, hasattr(random, "left"), os.path.exists("/tmp/left"), os.getpid())
print(random.random(), random.SystemRandom().random(), uuid.uuid4(), tempfile.mktemp(), os.urandom(4).hex())
random.left = 1
open("/tmp/left", "w").close()
`}
	_, first := p.start(t, onIts(t, r), true)
	_, second := p.start(t, onIts(t, r), true)
	a, b := strings.Split(first, "\n"), strings.Split(second, "\n")
	if len(a) != len(b) || len(a) < 3 || a[1] != "stdout: True False False 2" || a[1] != b[1] {
		t.Fatalf("%s\n%s", first, second)
	}
	for i, word := range strings.Fields(a[2]) {
		if word == strings.Fields(b[2])[i] {
			t.Errorf("twice: %s", word)
		}
	}
}

// A run whose template dies, or cannot be made, is executed.
func TestWithoutATemplate(t *testing.T) {
	failed := make(chan error, 1)
	r := warmed(t, Options{TemplateFailed: func(err error) { failed <- err }})
	r.templates.mu.Lock()
	for _, one := range r.templates.byKey {
		one.box.kill()
	}
	r.templates.mu.Unlock()
	p := script{source: "print(1)"}
	if res, said := p.start(t, onIts(t, r), true); res.Warm || res.Verdict != runtime.OK || !strings.Contains(said, "stdout: 1\n") {
		t.Error(said)
	}
	p.imports = []string{"no_such_module"}
	if res, said := p.start(t, onIts(t, r), true); res.Warm || res.Verdict != runtime.OK {
		t.Error(said)
	}
	if err := <-failed; !strings.Contains(err.Error(), "import no_such_module") || !strings.Contains(err.Error(), "No module named") {
		t.Error(err)
	}
	// This template ignores PYTHONPATH, and ends because there is no main.py.
	spec := runtime.Spec{Argv: []string{python3, "-I", "main.py"}, Template: &runtime.Template{Argv: []string{python3, "-I", "main.py"}}}
	started, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if res := started.Wait(); res.Warm || res.Verdict != runtime.NonzeroExit {
		t.Errorf("%+v", res)
	}
	if err := <-failed; !strings.Contains(err.Error(), "the interpreter has ended") {
		t.Error(err)
	}
}
