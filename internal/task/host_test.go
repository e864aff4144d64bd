package task_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/nobody"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/task"
)

// with evaluates with profiles in addition to the built-in ones.
func with(t *testing.T, rt runtime.Runtime, languages *task.Languages, c api.Code) run {
	t.Helper()
	h, err := task.NewCode(task.CodeOptions{Runtimes: []runtime.Runtime{rt}, Dir: std, Languages: languages})
	if err != nil {
		t.Fatal(err)
	}
	return handled(t, h, c)
}

func handled(t *testing.T, h *task.Code, c api.Code) run {
	t.Helper()
	r := run{desk: newDesk()}
	out, err := h.Run(t.Context(), &task.Task{Execution: flow.ID{1}, Attempt: 1, Kind: flow.KindCode, Payload: json.RawMessage(code(t, c)), Host: r.desk})
	if err != nil {
		if !errors.As(err, &r.err) {
			t.Fatalf("an error of type %T: %v", err, err)
		}
		out = r.err.Output
	}
	if len(out) > 0 {
		if err := json.Unmarshal(out, &r.result); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func profiles(t *testing.T, all ...task.Profile) *task.Languages {
	t.Helper()
	for i := range all {
		if faults := all[i].Check(); len(faults) > 0 {
			t.Fatal(faults)
		}
	}
	languages, faults := task.BuiltInLanguages().With(all)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return languages
}

// writeProgram writes a file that is about to be executed. A process that is forked meanwhile would hold it open for writing, and such a
// file cannot be executed.
func writeProgram(t *testing.T, path string, content []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
}

// tool is a program that runs its input file as a shell script.
func tool(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "pawl-tool-") // the sandbox has its own /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "mysh")
	writeProgram(t, path, []byte("#!/bin/sh\n[ \"$1\" = --version ] && echo mysh 7.5 && exit\nexec /bin/sh \"$@\"\n"))
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProfileOfOnesOwn(t *testing.T) {
	t.Parallel()
	path := tool(t)
	library := filepath.Join(filepath.Dir(path), "library")
	if err := os.Mkdir(library, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(library, "words"), []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	languages := profiles(t, task.Profile{Name: "mysh", Extensions: []string{"mysh"}, Tools: []string{"nonesuch", path}, Version: []string{"{tool}", "--version"},
		Files: map[string]string{"lib.sh": "greet() { cat " + library + "/words; echo \" $1 $WHO\"; }"}, Mounts: []string{library}, Env: map[string]string{"WHO": "you"}},
		task.Profile{Name: "built", Extensions: []string{"b"}, Tools: []string{path}, Built: []string{"out", "*.txt"},
			Compile: []string{"{tool}", "-c", "mkdir out && cat \"$@\" > out/all && echo $0 > limit.txt", "{memory}", "{sources}"},
			Run:     []string{"/bin/sh", "-c", "cat out/all limit.txt"}, CompileLimits: api.CodeLimits{Memory: 50e6}})
	found := task.Look(t.Context(), languages.Profiles()...)
	if i := slices.IndexFunc(found, func(f task.Found) bool { return f.Profile.Name == "mysh" }); i < 0 || found[i].Err != nil || found[i].Version != "mysh 7.5" || found[i].Tool != path {
		t.Errorf("%+v", found)
	}
	for _, rt := range runtimes(t) {
		if r := with(t, rt, languages, api.Code{Language: "mysh", Source: ". ./lib.sh; greet $1", Args: []string{"to"}}); r.err != nil || r.result.Stdout != "hello to you\n" {
			t.Errorf("%s: %v, %+v", rt.Name(), r.err, r.result)
		}
		r := with(t, rt, languages, api.Code{Language: "built", Source: "one\n", Files: map[string]api.Content{"two.b": api.Text("two\n"), "x.c": api.Text("no")}})
		if r.err != nil || r.result.Stdout != "one\ntwo\n50000000\n" {
			t.Errorf("%s: %v, %+v %+v", rt.Name(), r.err, r.result, r.result.Compile)
		}
		r = with(t, rt, languages, api.Code{Language: "built", Source: "x", Files: map[string]api.Content{"out": api.Text("")}})
		if r.err == nil || r.err.Code != flow.CodeInvalidInput || !strings.Contains(r.err.Message, "Pawl places the file") {
			t.Errorf("%s: %v", rt.Name(), r.err)
		}
	}
	if got := languages.Added(); !slices.Equal(got, []string{"mysh", "built"}) {
		t.Errorf("added %v", got)
	}
}

// If a host lacks or loses something, the host is at fault and not the program: the error has the fix, and the slot stays usable.
func TestHostWithoutWhatItNeeds(t *testing.T) {
	t.Parallel()
	path := tool(t)
	lost := tool(t)
	languages := profiles(t,
		task.Profile{Name: "gone", Tools: []string{lost}},
		task.Profile{Name: "absent", Tools: []string{"/nonexistent/tool"}, Install: "ask for it"},
		task.Profile{Name: "unmounted", Tools: []string{path}, Mounts: []string{"/nonexistent/library"}},
		task.Profile{Name: "covering", Tools: []string{path}, Mounts: []string{"/proc"}},
		task.Profile{Name: "builds", Tools: []string{path}, Compile: []string{"{tool}", "-c", "true"}})
	for _, rt := range runtimes(t) {
		h, err := task.NewCode(task.CodeOptions{Runtimes: []runtime.Runtime{rt}, Dir: std, Languages: languages})
		if err != nil {
			t.Fatal(err)
		}
		if r := handled(t, h, api.Code{Language: "gone", Source: "echo here"}); r.err != nil {
			t.Fatalf("%s: %v", rt.Name(), r.err)
		}
		if err := os.Rename(lost, lost+".away"); err != nil {
			t.Fatal(err)
		}
		for language, say := range map[string]string{
			"gone":      "not on this worker's host",
			"absent":    "/nonexistent/tool, needed for absent, is not in PATH: ask for it",
			"unmounted": "the profile of unmounted mounts /nonexistent/library: open /nonexistent/library: no such file or directory: make it readable",
			"builds":    "ended well and built no main.bin",
			"kotlin":    `this worker has no profile of "kotlin" (it has python, `,
		} {
			r := handled(t, h, api.Code{Language: language, Source: "x"})
			if r.err == nil || r.err.Code != "infra_error" || r.result.Verdict != "infra_error" || !strings.Contains(r.err.Message, say) {
				t.Errorf("%s, %s: %v", rt.Name(), language, r.err)
			}
		}
		if r := handled(t, h, api.Code{Language: "covering", Source: "true"}); rt.Isolation() == runtime.Contained && (r.err == nil || !strings.Contains(r.err.Message, `mount "/proc"`)) {
			t.Errorf("%s: %v", rt.Name(), r.err)
		}
		if err := os.Rename(lost+".away", lost); err != nil {
			t.Fatal(err)
		}
		if r := handled(t, h, api.Code{Language: "gone", Source: "echo back"}); r.err != nil || r.result.Stdout != "back\n" {
			t.Errorf("%s: once it is there again: %v", rt.Name(), r.err)
		}
	}
}

// A user who may not read a mount gets an error that says so.
func TestUnreadableMount(t *testing.T) {
	t.Parallel()
	if nobody.Runs(t) {
		return
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	r := with(t, runtimes(t)[0], profiles(t, task.Profile{Name: "own", Tools: []string{tool(t)}, Mounts: []string{dir}}), api.Code{Language: "own", Source: "x"})
	if r.err == nil || r.err.Code != "infra_error" || !strings.Contains(r.err.Message, "permission denied: make it readable") {
		t.Errorf("%v", r.err)
	}
}

func TestLimitsBeyondTheHosts(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	most := api.CodeLimits{Wall: api.MaxWall, CPU: api.MaxWall, Memory: api.MaxMemory, Pids: api.MaxPids, Output: api.MaxOutput, Disk: api.MaxDisk}
	for _, rt := range runtimes(t) {
		if r := evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: "bash", Source: "echo here > file; cat file", Limits: most})); r.err != nil || r.result.Stdout != "here\n" {
			t.Errorf("%s: %v, %+v", rt.Name(), r.err, r.result)
		}
	}
}

// A source that does not fit onto the run's disk gives an error that says so.
func TestSourceTooLarge(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	huge := "#" + strings.Repeat(strings.Repeat("x", 99)+"\n#", 200_000)
	for _, rt := range runtimes(t) {
		c := api.Code{Language: "bash", Source: huge + "\necho done", Limits: api.CodeLimits{Disk: 4e6, Wall: api.Duration(20 * time.Second)}}
		r := evaluate(t, t.Context(), rt, nil, code(t, c))
		if rt.Isolation() == runtime.Contained && (r.err == nil || !strings.Contains(r.err.Message, "disk") && !strings.Contains(r.err.Message, "space")) {
			t.Errorf("%s: %.300v, %.300v", rt.Name(), r.err, r.result.Stdout)
		}
		c.Limits.Disk = 0
		if r = evaluate(t, t.Context(), rt, nil, code(t, c)); r.err != nil || r.result.Stdout != "done\n" {
			t.Errorf("%s: %.300v", rt.Name(), r.err)
		}
	}
}

// Links are never followed when files are collected, wherever they lead.
func TestOutputFullOfLinks(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	for _, rt := range runtimes(t) {
		r := evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: "bash", Collect: []string{"out", "work"}, Source: `
mkdir -p out/deep; echo fine > out/deep/file
for i in {1..300}; do ln -s /etc/passwd out/s$i; done
ln -s out/deep/file out/inside; ln -s . out/loop; ln -s nowhere out/dangling; ln -s /etc work; mkfifo out/pipe
ln out/deep/file out/hard`}))
		if r.err != nil {
			t.Fatalf("%s: %v", rt.Name(), r.err)
		}
		for _, f := range r.result.Files {
			if f.Content == nil || *f.Content != "fine\n" {
				t.Errorf("%s: %s was collected: %v", rt.Name(), f.Path, f)
			}
		}
		if len(r.result.Refused) < 10 || len(r.result.Files) > 2 {
			t.Errorf("%s: collected %d, refused %q", rt.Name(), len(r.result.Files), r.result.Refused)
		}
	}
}
