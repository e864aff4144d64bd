package task_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/process"
	"github.com/pawl-run/pawl/internal/runtime/sandbox"
	"github.com/pawl-run/pawl/internal/task"
)

// desk is the worker's side of a task in tests: it keeps the output.
type desk struct {
	mu       sync.Mutex
	streams  map[string]*bytes.Buffer
	progress []json.RawMessage
	wrote    chan struct{} // capacity 1
	input    <-chan string // what the user types; nil: nothing
}

func newDesk() *desk {
	return &desk{streams: map[string]*bytes.Buffer{}, wrote: make(chan struct{}, 1)}
}

func (d *desk) Log(stream string) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.streams[stream] == nil {
			d.streams[stream] = &bytes.Buffer{}
		}
		select {
		case d.wrote <- struct{}{}:
		default:
		}
		return d.streams[stream].Write(p)
	})
}

func (d *desk) Progress(_ context.Context, data json.RawMessage) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.progress = append(d.progress, data)
	return nil
}

func (d *desk) text(stream string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if b := d.streams[stream]; b != nil {
		return b.String()
	}
	return ""
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// shelf is a blob store in memory.
type shelf struct {
	mu    sync.Mutex
	blobs map[string][]byte
}

func (s *shelf) Put(_ context.Context, name string, r io.Reader) (int64, error) {
	b, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs[name] = b
	return int64(len(b)), err
}

func (s *shelf) Get(_ context.Context, name string, offset int64) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.blobs[name]
	if !ok {
		return nil, blob.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(b[offset:])), nil
}

// std is the directory of the prepared toolchains that the tests of this package share.
var std string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "pawl-task-")
	if err != nil {
		panic(err)
	}
	std = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// runtimes are those available here: every test of the handler runs on each.
func runtimes(t *testing.T) []runtime.Runtime {
	t.Helper()
	p, err := process.New(process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := []runtime.Runtime{p}
	if s, err := sandbox.New(sandbox.Options{}); err != nil {
		t.Logf("without the sandbox: %v", err)
	} else if f := s.Diagnose(t.Context()); len(f) > 0 && !f[0].OK {
		t.Logf("without the sandbox: %s", f[0].Say)
		s.Close()
	} else {
		all = append(all, s)
	}
	t.Cleanup(func() {
		for _, r := range all {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return all
}

type run struct {
	desk   *desk
	result api.CodeResult
	err    *task.Error
	stop   *task.Stop // in its place
}

func evaluate(t *testing.T, ctx context.Context, rt runtime.Runtime, blobs blob.Access, code string) run {
	t.Helper()
	h, err := task.NewCode(task.CodeOptions{Runtimes: []runtime.Runtime{rt}, Dir: std})
	if err != nil {
		t.Fatal(err)
	}
	r := run{desk: newDesk()}
	out, err := h.Run(ctx, &task.Task{Execution: flow.ID{1}, Attempt: 1, Kind: flow.KindCode, Payload: json.RawMessage(code), Host: r.desk, Blobs: blobs})
	if err != nil {
		switch {
		case errors.As(err, &r.err):
			out = r.err.Output
		case !errors.As(err, &r.stop):
			t.Fatalf("an error of type %T: %v", err, err)
		}
	}
	if len(out) > 0 {
		if err := json.Unmarshal(out, &r.result); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func need(t *testing.T, language string) {
	t.Helper()
	p, ok := task.BuiltInLanguages().Profile(language)
	if !ok {
		t.Fatalf("no profile of %q", language)
	}
	if found := task.Look(t.Context(), p)[0]; found.Err != nil {
		t.Skip(found.Err)
	}
}

func code(t *testing.T, c api.Code) string {
	t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var hello = map[string]string{
	"python":     "import sys\nprint('hello', sys.argv[1], sys.stdin.read())\nsys.stderr.write('err')",
	"javascript": "console.log('hello', process.argv[2], require('fs').readFileSync(0, 'utf8')); process.stderr.write('err')",
	"typescript": "const name: string = process.argv[2];\nconsole.log('hello', name, require('fs').readFileSync(0, 'utf8')); process.stderr.write('err')",
	"bash":       "echo hello $1 $(cat); printf err >&2",
	"go":         "package main\nimport (\"fmt\"; \"io\"; \"os\")\nfunc main() { b, _ := io.ReadAll(os.Stdin); fmt.Println(\"hello\", os.Args[1], string(b)); fmt.Fprint(os.Stderr, \"err\") }",
	"c":          "#include <stdio.h>\nint main(int n, char **a) { char b[99] = {0}; fread(b, 1, 98, stdin); printf(\"hello %s %s\\n\", a[1], b); fputs(\"err\", stderr); return 0; }",
	"c++":        "#include <bits/stdc++.h>\nint main(int n, char **a) { std::vector<std::string> v{\"hello\", a[1]}; std::string s; std::cin >> s; v.push_back(s); for (auto &w : v) std::cout << w << (&w == &v.back() ? \"\\n\" : \" \"); std::cerr << \"err\"; }",
	"rust":       "use std::io::Read;\nfn main() { let mut s = String::new(); std::io::stdin().read_to_string(&mut s).unwrap(); println!(\"hello {} {}\", std::env::args().nth(1).unwrap(), s); eprint!(\"err\"); }",
	"java":       "import java.util.*;\npublic class Main {\n  static class Words { List<String> all = new ArrayList<>(); }\n  public static void main(String[] a) { Words w = new Words(); w.all.add(\"hello\"); w.all.add(a[0]); w.all.add(new Scanner(System.in).next()); System.out.println(String.join(\" \", w.all)); System.err.print(\"err\"); }\n}",
	"ruby":       "puts \"hello #{ARGV[0]} #{$stdin.read}\"\n$stderr.print 'err'",
}

func TestLanguages(t *testing.T) {
	t.Parallel()
	all := runtimes(t)
	for _, name := range api.Languages() {
		for _, rt := range all {
			t.Run(name+"/"+rt.Name(), func(t *testing.T) {
				need(t, name)
				r := evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: name, Source: hello[name], Args: []string{"a"}, Stdin: api.Text("in")}))
				if r.err != nil || r.result.Verdict != "ok" || *r.result.ExitCode != 0 || r.result.Stdout != "hello a in\n" || r.result.Stderr != "err" {
					t.Fatalf("%v\n%+v\ncompile %+v", r.err, r.result, r.result.Compile)
				}
				if r.desk.text("stdout") != "hello a in\n" || r.desk.text("stderr") != "err" {
					t.Errorf("logged %q", r.desk.streams)
				}
				if !filepath.IsAbs(r.result.Tool) || r.result.ToolVersion == "" || r.result.Compile != nil && r.result.Compile.Tool != r.result.Tool {
					t.Errorf("tool %q, version %q", r.result.Tool, r.result.ToolVersion)
				}
				if info, err := os.Stat(r.result.Tool); err != nil || info.IsDir() {
					t.Errorf("%s is not a tool: %v", r.result.Tool, err)
				}
				if r.result.Runtime != rt.Name() || r.result.WallMS <= 0 || r.result.StdoutBytes != 11 {
					t.Errorf("%+v", r.result)
				}
			})
		}
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	for _, rt := range runtimes(t) {
		for _, c := range []struct {
			name    string
			code    api.Code
			verdict string
			stage   flow.Stage
			say     string
		}{
			{"exit", api.Code{Source: "echo first; echo 'last words' >&2; exit 3"}, "nonzero_exit", flow.Failed, "exit code 3: last words"},
			{"signal", api.Code{Source: "kill -SEGV $$"}, "signal", flow.Failed, "SEGV"},
			{"timeout", api.Code{Source: "echo begun; sleep 60", Limits: api.CodeLimits{Wall: api.Duration(300 * time.Millisecond)}}, "timeout", flow.TimedOut, "300ms"},
			{"output", api.Code{Source: "echo begun; yes", Limits: api.CodeLimits{Output: 200_000}}, "output_limit", flow.Failed, ""},
		} {
			t.Run(c.name+"/"+rt.Name(), func(t *testing.T) {
				c.code.Language = "bash"
				r := evaluate(t, t.Context(), rt, nil, code(t, c.code))
				if r.err == nil {
					t.Fatalf("no error: %+v", r.result)
				}
				if r.err.Code != c.verdict || r.result.Verdict != c.verdict || r.err.As != c.stage || !strings.Contains(r.err.Message, c.say) {
					t.Errorf("%+v, %+v", r.err, r.result)
				}
				if strings.Contains(c.code.Source, "begun") && !strings.HasPrefix(r.result.Stdout, "begun\n") {
					t.Errorf("what was written before the end is gone: %.40q", r.result.Stdout)
				}
				if c.name == "exit" && string(r.err.Details) != `{"exit_code":3}` {
					t.Errorf("details %s", r.err.Details)
				}
				if c.name == "output" && (!r.result.StdoutTruncated || len(r.result.Stdout) != blob.InlineLimit) {
					t.Errorf("kept %d bytes of %d", len(r.result.Stdout), r.result.StdoutBytes)
				}
			})
		}
	}
}

// A program that does not compile has its own verdict, and the reason is the first error.
func TestCompileErrors(t *testing.T) {
	t.Parallel()
	for _, rt := range runtimes(t) {
		for _, c := range []struct{ language, source, want string }{
			{"c", "int main( { }", "main.c:1:"},
			{"c", "int f(void);\nint main(void) { return f(); }", "undefined reference to `f'"},
			{"c++", "#include <vector>\nint main() {\n  std::vector<int> v\n  return 0;\n}", "main.cpp:4:3: error: "},
			{"go", "package main\nfunc main() { undefined() }", "main.go:2:"},
			{"rust", "fn main() { x }", "error[E0425]: cannot find value `x`"},
			{"java", "public class Main {\n  public static void main(String[] a) { int x = 1 }\n}", "Main.java:2: error: "},
		} {
			t.Run(c.language+"/"+rt.Name(), func(t *testing.T) {
				t.Parallel()
				need(t, c.language)
				r := evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: c.language, Source: c.source}))
				if r.err == nil || r.err.Code != "compile_error" || r.err.As != flow.Failed || r.result.Verdict != "compile_error" || r.result.ExitCode != nil {
					t.Fatalf("%+v, %+v", r.err, r.result)
				}
				if compile := r.result.Compile; compile == nil || compile.Verdict != "nonzero_exit" || !strings.Contains(compile.Stderr+compile.Stdout, "ain.") {
					t.Errorf("%+v", compile)
				}
				if !strings.HasPrefix(r.err.Message, "compile: ") || !strings.Contains(r.err.Message, c.want) {
					t.Errorf("message %q, want %q in it", r.err.Message, c.want)
				}
			})
		}
	}
}

// An interpreter that refuses the source is distinguished from a program that fails; the program's own words are not trusted.
func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	for _, rt := range runtimes(t) {
		for _, c := range []struct{ language, source, verdict, want string }{
			{"python", "def f(:\n  pass\n", "syntax_error", "main.py:1: SyntaxError: "},
			{"python", "def f():\npass\n", "syntax_error", "main.py:2: IndentationError: "},
			{"python", "raise SyntaxError('of my own')", "nonzero_exit", "exit code 1: SyntaxError: of my own"},
			{"javascript", "if (", "syntax_error", "main.js:1: SyntaxError: "},
			{"javascript", "null.x", "nonzero_exit", "exit code 1: TypeError: "},
			{"bash", "if true; then echo", "syntax_error", "syntax error"},
			{"bash", "echo 'syntax error' >&2; exit 1", "nonzero_exit", "exit code 1: syntax error"},
			{"ruby", "def f(", "syntax_error", "main.rb:1"},
			{"ruby", "puts 1\nx = '", "syntax_error", "main.rb:2"}, // Ruby 3.1 does not call it a syntax error
			{"ruby", "def f; X = 1; end", "syntax_error", "main.rb:1"},
			{"ruby", "warn 'main.rb:1: of my own'; exit 1", "nonzero_exit", "exit code 1: main.rb:1: of my own"},
		} {
			t.Run(c.language+"/"+rt.Name(), func(t *testing.T) {
				t.Parallel()
				need(t, c.language)
				program := api.Code{Language: c.language, Source: c.source}
				r := evaluate(t, t.Context(), rt, nil, code(t, program))
				if r.err == nil || r.err.Code != c.verdict || r.result.Verdict != c.verdict || r.result.ExitCode == nil || !strings.Contains(r.err.Message, c.want) {
					t.Errorf("%+v, %+v", r.err, r.result)
				}
				program.Cases = []api.Case{{Stdin: api.Text("1")}, {Stdin: api.Text("2")}}
				r = evaluate(t, t.Context(), rt, nil, code(t, program))
				if want := "1=" + c.verdict + " 2=" + c.verdict; verdicts(r.result) != want || !strings.Contains(r.result.Cases[1].Message, c.want) {
					t.Errorf("%s, want %s: %+v", verdicts(r.result), want, r.result.Cases)
				}
			})
		}
	}
}

// A program that was refused a process reports that in its own words, or retries until its time is up, as Bash does: the result names the
// limit.
func TestLimitsHit(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	for _, rt := range runtimes(t) {
		if rt.Isolation() < runtime.Contained {
			continue
		}
		program := api.Code{Language: "bash", Source: "sleep 5 & echo started", Limits: api.CodeLimits{Pids: 1, Wall: api.Duration(300 * time.Millisecond)}}
		r := evaluate(t, t.Context(), rt, nil, code(t, program))
		if r.result.Enforcement == "rlimit+watchdog" {
			t.Skip("nothing counts the refusals here")
		}
		if r.err == nil || !slices.Equal(r.result.LimitsHit, []string{"wall", "pids"}) || !strings.HasSuffix(r.err.Message, "(it was refused a process or thread: raise limits.pids)") {
			t.Errorf("%+v, %v", r.result, r.err)
		}
		program.Cases = []api.Case{{Name: "one"}, {Name: "two", Limits: api.CodeLimits{Pids: 2, Wall: api.Duration(10 * time.Second)}}}
		r = evaluate(t, t.Context(), rt, nil, code(t, program))
		if one, two := r.result.Cases[0], r.result.Cases[1]; !slices.Equal(one.LimitsHit, []string{"wall", "pids"}) || !strings.Contains(one.Message, "raise limits.pids") ||
			two.Verdict != "ok" || len(two.LimitsHit) > 0 || !slices.Equal(r.result.LimitsHit, []string{"wall", "pids"}) {
			t.Errorf("%+v", r.result)
		}
	}
}

// A result contains the effective limits: the submission's, completed by the language's. For cases they are those of a case without
// limits of its own.
func TestLimitsInForce(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	for _, rt := range runtimes(t) {
		limits := api.CodeLimits{Wall: api.Duration(20 * time.Second), Memory: 100e6}
		want := api.CodeLimits{Wall: limits.Wall, CPU: limits.Wall, Memory: limits.Memory, Pids: 64, Output: 10e6, Disk: 64e6}
		r := evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: "bash", Source: "echo hi", Limits: limits}))
		if r.err != nil || r.result.Limits == nil || *r.result.Limits != want {
			t.Errorf("%s: %+v, %v, want %+v", rt.Name(), r.result.Limits, r.err, want)
		}
		r = evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: "bash", Source: "echo hi", Limits: limits, Cases: []api.Case{{Limits: api.CodeLimits{Pids: 9}}}}))
		if r.err != nil || r.result.Limits == nil || *r.result.Limits != want {
			t.Errorf("%s, of cases: %+v, %v, want %+v", rt.Name(), r.result.Limits, r.err, want)
		}
	}
}

func TestFilesInAndOut(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	big := strings.Repeat("x", blob.InlineLimit+1)
	for _, rt := range runtimes(t) {
		t.Run(rt.Name(), func(t *testing.T) {
			blobs := &shelf{blobs: map[string][]byte{"some/blob": []byte("from a blob")}}
			r := evaluate(t, t.Context(), rt, blobs, code(t, api.Code{
				Language: "bash", Collect: []string{"out", "*.bin"}, Stdin: api.Content{Blob: "some/blob"},
				Files: map[string]api.Content{"a/b.txt": api.Text("inline"), "c": {Blob: "some/blob"}, "run": {Bytes: []byte("#!/bin/sh\necho ran"), Mode: 0o755}},
				Source: `mkdir out; cat a/b.txt > out/small; head -c ` + "102401" + ` /dev/zero | tr '\0' x > out/big
cat c; cat; ./run; printf 'a\0b' > x.bin; echo '{"n": 1.0, "list": [1, 2]}' > $PAWL_OUTPUT`,
			}))
			if r.err != nil {
				t.Fatalf("%v %+v", r.err, r.result)
			}
			if r.result.Stdout != "from a blobfrom a blobran\n" || string(r.result.Result) != `{"n":1.0,"list":[1,2]}` {
				t.Errorf("stdout %q, result %s %s", r.result.Stdout, r.result.Result, r.result.ResultError)
			}
			got := map[string]string{}
			for _, f := range r.result.Files {
				switch {
				case f.Content != nil:
					got[f.Path] = *f.Content
				case f.Blob != "":
					got[f.Path] = string(blobs.blobs[f.Blob])
				default:
					got[f.Path] = string(f.Base64)
				}
			}
			if got["out/small"] != "inline" || got["out/big"] != big || got["x.bin"] != "a\x00b" || len(got) != 3 {
				t.Errorf("%d files, refused %v", len(got), r.result.Refused)
			}
		})
	}
}

func TestBadResults(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	rt := runtimes(t)[0]
	for source, say := range map[string]string{
		`echo '{' > $PAWL_OUTPUT`:                     "one JSON value",
		`echo '"\u0000"' > $PAWL_OUTPUT`:              "NUL",
		`echo '"\ud800"' > $PAWL_OUTPUT`:              "surrogate pair",
		`echo '{"a":1,"a":2}' > $PAWL_OUTPUT`:         `the name "a" is given twice`,
		`printf '"\xe9"' > $PAWL_OUTPUT`:              "not UTF-8",
		`: > $PAWL_OUTPUT`:                            "one JSON value",
		`echo 5 > a; ln -s a $PAWL_OUTPUT`:            "$PAWL_OUTPUT is a symbolic link and not a regular file: write the value into",
		`mkdir $PAWL_OUTPUT`:                          "$PAWL_OUTPUT is an empty directory: write the value into the file itself",
		`mkdir -p $PAWL_OUTPUT/a/b`:                   "$PAWL_OUTPUT is an empty directory: write the value into the file itself",
		`mkdir $PAWL_OUTPUT; echo 1 > $PAWL_OUTPUT/x`: "$PAWL_OUTPUT is a directory and not a regular file: write the value into the file itself",
		`mkdir $PAWL_OUTPUT; ln -s a $PAWL_OUTPUT/x`:  "$PAWL_OUTPUT is a directory and not a regular file: write the value into the file itself",
		`echo 5 > a; ln a $PAWL_OUTPUT`:               "has more than one name (a hard link)",
		`head -c 2000000 /dev/zero > $PAWL_OUTPUT`:    "at most 1MiB",
		`for i in {1..200}; do printf '['; done > $PAWL_OUTPUT; for i in {1..200}; do printf ']'; done >> $PAWL_OUTPUT`: "deeper than 100 levels",
	} {
		r := evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: "bash", Source: source}))
		if e, failed := errors.AsType[*task.Error](r.err); !failed || e.Code != flow.CodeInvalidOutput || !strings.Contains(e.Message, say) || r.result.Result != nil || r.result.ResultError != e.Message {
			t.Errorf("%s: %v, %s, %q", source, r.err, r.result.Result, r.result.ResultError)
		}
	}
}

func TestStopWhileRunning(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	for _, rt := range runtimes(t) {
		for _, c := range []struct {
			stop    task.Stop
			verdict string
		}{
			{task.Stop{As: flow.Cancelled, Code: "cancelled", Reason: "no longer wanted"}, "killed"},
			{task.Stop{As: flow.TimedOut, Code: "timeout", Reason: "too long"}, "timeout"},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			d := newDesk()
			h, err := task.NewCode(task.CodeOptions{Runtimes: []runtime.Runtime{rt}, Dir: std})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				<-d.wrote
				cancel(&c.stop)
			}()
			_, err = h.Run(ctx, &task.Task{Execution: flow.ID{1}, Attempt: 1, Payload: json.RawMessage(`{"language":"bash","source":"trap '' TERM; echo up; while :; do sleep 1; done"}`), Host: d})
			te, ok := errors.AsType[*task.Error](err)
			if !ok || te.Code != c.verdict || te.As != c.stop.As || !strings.Contains(te.Message, c.stop.Reason) {
				t.Errorf("%s: %+v", rt.Name(), err)
			}
		}
	}
}

// A program that is cancelled, or whose attempt exceeds its timeout, may clean up during the grace period while the worker owns the
// attempt. Its own time limit is exact.
func TestKillGrace(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	const hears = `trap 'echo cleaned up; exit 0' TERM; echo up; while :; do sleep 0.01; done`
	const deaf = `trap 'echo asked' TERM; echo up; while :; do sleep 0.01; done`
	for _, rt := range runtimes(t) {
		h, err := task.NewCode(task.CodeOptions{Runtimes: []runtime.Runtime{rt}, Dir: std, KillGrace: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			source, limits  string
			timeout         time.Duration // of the attempt
			stop            *task.Stop    // after its first output
			giveUp          bool          // after SIGTERM
			verdict, stdout string
		}{
			"cancelled":               {source: hears, stop: &task.Stop{As: flow.Cancelled, Code: "cancelled", Reason: "why"}, verdict: "killed", stdout: "up\ncleaned up\n"},
			"timed out":               {source: hears, stop: &task.Stop{As: flow.TimedOut, Code: "timeout", Reason: "why"}, verdict: "timeout", stdout: "up\ncleaned up\n"},
			"after its timeout":       {source: hears, timeout: 300 * time.Millisecond, verdict: "timeout", stdout: "up\ncleaned up\n"},
			"its own limit":           {source: hears, limits: `"wall":"300ms"`, verdict: "timeout", stdout: "up\n"},
			"given up":                {source: hears, stop: &task.Stop{Reason: "the session was lost"}, verdict: "killed", stdout: "up\n"},
			"killed":                  {source: hears, stop: &task.Stop{As: flow.Cancelled, Code: "cancelled", Reason: "why", AtOnce: true}, verdict: "killed", stdout: "up\n"},
			"given up when cancelled": {source: deaf, stop: &task.Stop{As: flow.Cancelled, Code: "cancelled", Reason: "why"}, giveUp: true, verdict: "killed", stdout: "up\nasked\n"},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			d, atOnce := newDesk(), make(chan struct{})
			go func() {
				<-d.wrote
				if c.stop != nil {
					cancel(c.stop)
				}
				if !c.giveUp {
					return
				}
				for !strings.Contains(d.text("stdout"), "asked") {
					<-d.wrote
				}
				close(atOnce)
			}()
			if c.timeout > 0 { // as the worker does
				time.AfterFunc(c.timeout, func() { cancel(&task.Stop{As: flow.TimedOut, Code: "timeout", Reason: "why"}) })
			}
			payload := code(t, api.Code{Language: "bash", Source: c.source})
			if c.limits != "" {
				payload = strings.Replace(payload, `{`, `{"limits":{`+c.limits+`},`, 1)
			}
			_, err = h.Run(ctx, &task.Task{Execution: flow.ID{1}, Attempt: 1, Timeout: c.timeout, Payload: json.RawMessage(payload), Host: d, AtOnce: atOnce})
			te, ok := errors.AsType[*task.Error](err)
			if !ok || te.Code != c.verdict || d.text("stdout") != c.stdout {
				t.Errorf("%s, %s: wrote %q: %+v", rt.Name(), name, d.text("stdout"), err)
			}
			cancel(nil)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	rt := runtimes(t)[0]
	for in, say := range map[string]string{
		`{"language":"python"}`: "source: it is missing",
		`{"language":"python","source":"x","files":{"main.py":""}}`:     `Pawl places the file "main.py" itself`,
		`{"language":"python","source":"x","files":{"a":{"blob":"b"}}}`: "no blob store",
		`{"language":"python","source":"x","runtime":"warp"}`:           `does not offer "warp" (it offers process)`,
	} {
		r := evaluate(t, t.Context(), rt, nil, in)
		if r.err == nil || r.err.Code != flow.CodeInvalidInput || !strings.Contains(r.err.Message, say) {
			t.Errorf("%s: %v", in, r.err)
		}
	}
}

func TestMissingInterpreter(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	r := evaluate(t, t.Context(), runtimes(t)[0], nil, `{"language":"python","source":"x"}`)
	if r.err == nil || r.err.Code != "infra_error" || !strings.Contains(r.err.Message, "python3") || !strings.Contains(r.err.Message, "install python3") {
		t.Errorf("%v", r.err)
	}
	if r.result.Verdict != "infra_error" {
		t.Errorf("%+v", r.result)
	}
}

// Nothing is left of a run on the host.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	dir := t.TempDir()
	h, err := task.NewCode(task.CodeOptions{Runtimes: runtimes(t)[:1], Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, payload := range []string{`{"language":"bash","source":"echo 1 > $PAWL_OUTPUT"}`, `{"language":"bash","source":"x","files":{"a":{"blob":"b"}}}`} {
		_, _ = h.Run(t.Context(), &task.Task{Execution: flow.ID{1}, Attempt: 1, Payload: json.RawMessage(payload), Host: newDesk()})
	}
	left, err := os.ReadDir(filepath.Join(dir, "runs"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A pattern that matched no collected file is named in the result.
func TestUnmatchedPatterns(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	for _, rt := range runtimes(t) {
		r := evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: "bash", Source: "mkdir -p out/deep empty; echo 1 > out/deep/a.txt; echo 2 > b.csv",
			Collect: []string{"out", "*.csv", "out/*/a.txt", "nofile.txt", "*.json", "empty"}}))
		want := []string{"empty: is an empty directory", "nofile.txt: no file that the run left was taken for it",
			"*.json: no file that the run left was taken for it"}
		if r.err != nil || !slices.Equal(r.result.Refused, want) {
			t.Errorf("%s: %q, %v", rt.Name(), r.result.Refused, r.err)
		}
	}
}
