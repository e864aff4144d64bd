package task_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/task"
)

// environment creates a virtual environment of a Python with a module "inside" in it, and returns its interpreter.
func environment(t *testing.T, python string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "pawl-venv-") // the sandbox has its own /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if out, err := exec.Command(python, "-m", "venv", "--without-pip", dir).CombinedOutput(); err != nil {
		lacks(t, "Python's module venv: %v %s", err, out)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "lib", "python*", "site-packages"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v %v", found, err)
	}
	writePackage(t, found[0], "inside.py", "name = 'inside'\n")
	writePackage(t, found[0], "hook.pth", "import sys; sys.hooked = 'by the environment'\n")
	return filepath.Join(dir, "bin", "python3")
}

func writePackage(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A profile whose tool is the python of a virtual environment runs in that environment, whether it is like the built-in language,
// replaces it or sets all fields itself. Its .pth files are used: a user who names an environment wants them.
func TestVirtualEnvironment(t *testing.T) {
	t.Parallel()
	need(t, "python")
	python := environment(t, "python3")
	languages := profiles(t,
		task.Profile{Name: "python-sci", Like: "python", Tools: []string{python}},
		task.Profile{Name: "python", Override: true, Like: "python", Tools: []string{python}, Env: map[string]string{"WHO": "me"}},
		task.Profile{Name: "bare", Tools: []string{python}})
	if name, ok := languages.Set().Resolve("py"); !ok || name != "python" {
		t.Errorf("py is %q", name)
	}
	if name, _ := languages.Set().OfExtension("py"); name != "python" {
		t.Errorf(".py is %q", name)
	}
	prefix := filepath.Dir(filepath.Dir(python))
	for _, rt := range runtimes(t) {
		for _, language := range []string{"python-sci", "py", "bare"} {
			r := with(t, rt, languages, api.Code{Language: language, Source: "import sys, os, inside\nprint(inside.name, sys.prefix, sys.executable, sys.hooked, os.environ.get('PYTHONIOENCODING'), os.environ.get('WHO'))"})
			want := "inside " + prefix + " " + python + " by the environment utf-8 None\n"
			switch language {
			case "bare":
				want = strings.ReplaceAll(want, "utf-8", "None")
			case "py":
				want = strings.ReplaceAll(want, "utf-8 None", "utf-8 me")
			}
			if r.err != nil || r.result.Stdout != want {
				t.Errorf("%s, %s: %v, %s%s, want %s", rt.Name(), language, r.err, r.result.Stdout, r.result.Stderr, want)
			}
		}
		// The host's own Python does not see the environment.
		if r := with(t, rt, task.BuiltInLanguages(), api.Code{Language: "python", Source: "import inside"}); r.err == nil || !strings.Contains(r.result.Stderr, "No module named 'inside'") {
			t.Errorf("%s: %v %+v", rt.Name(), r.err, r.result)
		}
	}
	for _, f := range task.Look(t.Context(), languages.Profiles()...) {
		if f.Profile.Name == "python-sci" && (f.Err != nil || f.Tool != python || !strings.HasPrefix(f.Version, "3.")) {
			t.Errorf("%+v", f)
		}
	}
}

// A language can be like a built-in one, but not like another.
func TestLikeALanguage(t *testing.T) {
	t.Parallel()
	_, faults := task.BuiltInLanguages().With([]task.Profile{{Name: "one", Like: "pyhton"}, {Name: "two", Like: "one"}, {Name: "three", Like: "c++", Tools: []string{"g++-9"}}})
	if len(faults) != 2 || faults[0].Path != "one.like" || faults[1].Path != "two.like" || !strings.Contains(faults[0].Fix, "python, javascript") {
		t.Errorf("%v", faults)
	}
	languages := profiles(t, task.Profile{Name: "c++20", Like: "cpp", Tools: []string{"g++-9"}, CompileLimits: api.CodeLimits{Memory: 2e9}})
	base, _ := task.BuiltInLanguages().Profile("c++")
	p, ok := languages.Profile("c++20")
	if !ok || len(p.Aliases) != 0 || p.File != base.File || strings.Join(p.Compile, " ") != strings.Join(base.Compile, " ") || p.Tools[0] != "g++-9" || p.CompileLimits.Memory != 2e9 || p.CompileLimits.Wall != base.CompileLimits.Wall {
		t.Errorf("%+v", p)
	}
}

// installation makes a separate Python out of the host's, so that a test can install packages into it.
func installation(t *testing.T) (python, packages string) {
	t.Helper()
	real, err := filepath.EvalSymlinks("/usr/bin/python3") // its library is where every run sees it
	if err != nil {
		t.Skipf("no Python of the system: %v: apt install python3", err)
	}
	ask := func(python, what string) string {
		out, err := exec.Command(python, "-c", "import sys, os, site\nprint("+what+")").CombinedOutput()
		if err != nil {
			t.Fatalf("%v %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	library := ask(real, "os.path.dirname(os.__file__)")
	dir, err := os.MkdirTemp("/var/tmp", "pawl-python-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	own := filepath.Join(dir, "lib", filepath.Base(library))
	for _, d := range []string{filepath.Join(dir, "bin"), own} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(library)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "site-packages" || e.Name() == "dist-packages" {
			continue
		}
		if err := os.Symlink(filepath.Join(library, e.Name()), filepath.Join(own, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(real)
	if err != nil {
		t.Fatal(err)
	}
	python = filepath.Join(dir, "bin", "python3")
	writeProgram(t, python, content)
	if got := ask(python, "sys.prefix"); got != dir {
		t.Skipf("a copy of %s does not stand for itself: its prefix is %s", real, got)
	}
	return python, ask(python, "site.getsitepackages()[0]")
}

// Packages of the host are available; the code in their .pth files does not run.
func TestHooksOfTheHostDoNotRun(t *testing.T) {
	t.Parallel()
	python, packages := installation(t)
	languages := profiles(t, task.Profile{Name: "own", Like: "python", Tools: []string{python}})
	const program = `import sys, subprocess
import plain
print(plain.name, getattr(sys, 'hooked', False), sys.base_prefix, sys.prefix == sys.base_prefix)
print(subprocess.run([sys.executable, '-c', 'import plain; print(plain.name)'], capture_output=True, text=True).stdout.strip())
print(subprocess.run(['python3', '-c', 'import plain; print(plain.name)'], capture_output=True, text=True).stdout.strip())
exit()`
	writePackage(t, packages, "plain.py", "name = 'plain'\n")
	prefix := filepath.Dir(filepath.Dir(python))
	check := func(program, want string) {
		t.Helper()
		for _, rt := range runtimes(t) {
			r := with(t, rt, languages, api.Code{Language: "own", Source: program})
			if r.err != nil || r.result.Stdout != want || r.result.Tool != python || !strings.HasPrefix(r.result.ToolVersion, "3.") {
				t.Errorf("%s: %v, %s%s, want %s; tool %s %s", rt.Name(), r.err, r.result.Stdout, r.result.Stderr, want, r.result.Tool, r.result.ToolVersion)
			}
		}
	}
	check(program, "plain False "+prefix+" True\nplain\nplain\n") // there is no hook: the interpreter runs unchanged
	writePackage(t, packages, "hook.pth", "# a comment\nimport sys; sys.hooked = True\n")
	writePackage(t, packages, "linked.pth", "elsewhere\nnot-there\n")
	writePackage(t, filepath.Join(packages, "elsewhere"), "linked.py", "name = 'linked'\n")
	check(program, "plain False "+prefix+" False\nplain\nplain\n")
	check("import linked\nprint(linked.name)", "linked\n")
	// A user who wants the hooks uses an environment.
	wanted := filepath.Join(prefix, "wanted")
	if out, err := exec.Command(python, "-m", "venv", "--without-pip", "--system-site-packages", wanted).CombinedOutput(); err != nil {
		lacks(t, "Python's module venv: %v %s", err, out)
	}
	for _, rt := range runtimes(t) {
		r := with(t, rt, profiles(t, task.Profile{Name: "own", Like: "python", Tools: []string{wanted + "/bin/python3"}}), api.Code{Language: "own", Source: "import sys, plain; print(sys.hooked)"})
		if r.err != nil || r.result.Stdout != "True\n" {
			t.Errorf("%s: %v %+v", rt.Name(), r.err, r.result)
		}
	}
}
