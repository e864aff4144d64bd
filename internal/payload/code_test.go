package payload

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
)

func TestCodeDecode(t *testing.T) {
	t.Parallel()
	c, err := Code([]byte(`{
		"language": "PY", "source": "print(1)", "args": ["a"], "env": {"A": "b=c"},
		"stdin": {"base64": "AAE="},
		"files": {"in/a.txt": "text", "b": {"base64": "AAE", "mode": "0755"}, "c": {"blob": "x/y"}},
		"limits": {"timeout": 2.5, "cpu": "500ms", "memory": "64MiB", "pids": 3, "output": 1000, "disk": "1.5MB"},
		"collect": ["out/*.csv"], "runtime": null
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := api.Code{
		Language: "python", Source: "print(1)", Args: []string{"a"}, Env: map[string]string{"A": "b=c"},
		Stdin: api.Content{Bytes: []byte{0, 1}},
		Files: map[string]api.Content{"in/a.txt": api.Text("text"), "b": {Bytes: []byte{0, 1}, Mode: 0o755}, "c": {Blob: "x/y"}},
		Limits: api.CodeLimits{Wall: api.Duration(2500 * time.Millisecond), CPU: api.Duration(500 * time.Millisecond),
			Memory: 64 << 20, Pids: 3, Output: 1000, Disk: 1_500_000},
		Collect: []string{"out/*.csv"},
	}
	if d := cmp.Diff(want, c); d != "" {
		t.Fatal(d)
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Code(b)
	if err != nil {
		t.Fatalf("what was written cannot be read: %v\n%s", err, b)
	}
	if d := cmp.Diff(want, again); d != "" {
		t.Fatal(d)
	}
}

func TestCodeRefuses(t *testing.T) {
	t.Parallel()
	with := func(rest string) string { return `{"language":"python","source":"x",` + rest + `}` }
	for _, c := range []struct{ in, path, say string }{
		{`[]`, "", "should be an object"},
		{`{"source":"x"}`, "language", "one of python, javascript, typescript, bash, go, c"},
		{`{"language":"co bol","source":"x"}`, "language", `"co bol" (one of python`},
		{`{"language":"c"}`, "source", "missing"},
		{`{"language":7,"source":"x"}`, "language", "should be a string: 7"},
		{"{\"language\":\"c\",\"source\":\"\xff\"}", "", "not UTF-8"},
		{with(`"sauce":1`), "sauce", "no such field"},
		{with(`"source":"y"`), "source", "twice"},
		{with(`"args":["a\u0000b"]`), "args[0]", "NUL character at byte 1"},
		{with(`"args":"a"`), "args", "list of strings"},
		{with(`"env":{"A=B":"c"}`), `env["A=B"]`, "name of a variable"},
		{with(`"stdin":5`), "stdin", "neither a string nor an object"},
		{with(`"stdin":{"base64":"AA","blob":"b"}`), "stdin", "2 times"},
		{with(`"stdin":{"mode":"0755","text":""}`), "stdin.mode", "only files have a mode"},
		{with(`"files":{"../x":"y"}`), `files["../x"]`, "beneath the working directory"},
		{with(`"files":{"a/` + strings.Repeat("é", 128) + `/b":"y"}`), `files["a/` + strings.Repeat("é", 128) + `/b"]`, "a name in it has 256 bytes, and Linux takes 255 at most (shorten it)"},
		{with(`"files":{"a":"y","a/b":"z"}`), "files.a", "directory of"},
		{with(`"files":{"a":{"base64":"*"}}`), "files.a.base64", "not base64"},
		{with(`"files":{"a":{"text":"*","mode":"9"}}`), "files.a.mode", "octal"},
		{with(`"limits":{"wall":"1s","timeout":"2s"}`), "limits.timeout", "same as wall"},
		{with(`"limits":{"wall":-1}`), "limits.wall", "more than 0"},
		{with(`"limits":{"wall":"25h"}`), "limits.wall", "24h"},
		{with(`"limits":{"memory":"4 parsecs"}`), "limits.memory", "64MB"},
		{with(`"limits":{"memory":1}`), "limits.memory", "from 1MiB to 1TiB"},
		{with(`"limits":{"pids":0}`), "limits.pids", "1 to 100000"},
		{with(`"limits":{"pids":1.5}`), "limits.pids", "1.5"},
		{with(`"limits":{"cpus":0}`), "limits.cpus", "it is not a number of processors: 0 (a number from 0.1 to 1024, such as 1 or 0.5)"},
		{with(`"limits":{"cpus":"2"}`), "limits.cpus", `it is a string and should be a number: "2" (write it in digits`},
		{with(`"limits":{"disk":4},"files":{"a":"yy","b":{"base64":"AAE="}}`), "limits.disk", "it is 4 bytes, and the files that are sent have 5"},
		{with(`"rerun_near_limit":5`), "rerun_near_limit", "it is not a number of further runs: 5 (a whole number from 0 to 4)"},
		{with(`"rerun_near_limit":true`), "rerun_near_limit", "it is a boolean and should be a number"},
		{with(`"rerun_near_limit":1,"interactive":true`), "rerun_near_limit", "cannot be given again"},
		{with(`"collect":["/etc/passwd"]`), "collect[0]", "beneath"},
		{with(`"collect":["[a"]`), "collect[0]", "pattern"},
	} {
		_, err := Code([]byte(c.in))
		ps, ok := errors.AsType[problem.List](err)
		if !ok || len(ps) != 1 || ps[0].Path != c.path || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s\n got  %#v\n want path %q, saying %q", c.in, err, c.path, c.say)
		}
	}
}

func TestCodeReportsEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := Code([]byte(`{"language":1,"source":2,"nope":3}`))
	if ps, _ := errors.AsType[problem.List](err); len(ps) != 3 {
		t.Fatalf("want three problems, got %v", err)
	}
}

func TestEvaluationDecode(t *testing.T) {
	t.Parallel()
	var e api.Evaluation
	if err := Decode([]byte(`{"language":"go","source":"x","timeout":3,"labels":{"a":"b"}}`), "", &e); err != nil {
		t.Fatal(err)
	}
	if e.Language != "go" || e.Timeout.String() != "3s" || e.Labels["a"] != "b" {
		t.Errorf("got %+v", e)
	}
	for _, bad := range []string{
		`{"language":"go","source":"x","timeout":"soon"}`,
		`{"language":"go","source":"x","labels":{"a":"\u0000"}}`,
		`{"language":"go","source":"x","retry":{"nope":1}}`,
		`{"language":"go","source":"x","nope":1}`,
	} {
		err := Decode([]byte(bad), "", &e)
		if errs, _ := errors.AsType[problem.List](err); len(errs) != 1 || errs[0].Path == "" {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}

// A text that is truncated anywhere is refused with a problem, without a panic.
func TestCutOffAnywhere(t *testing.T) {
	t.Parallel()
	for _, whole := range []string{
		`{"language":"py","source":"x","files" : {"a" : "b", "c" : {"base64" : "AA", "mode":"0755"}}, "limits" : {"wall" : "1s", "memory" : 5e6},"stdin" : {"text":"a"}, "cases" : [ {"name":"a","expect" : 1} ] , "compare" : {"mode" : "exact"}, "timeout" : "5s" , "priority" : 1, "not" : [{}], "retry" : {"on" : ["a"]}}`,
		`{"language":"py","language" : "c","files" : {"a" : "\u0000", "a" : {"blob" : "b"}},"limits" : {"cpu" : 1},"not" : {"x" : [1, {"y" : "\u0000"}]}, "compare" : 3, "timeout" : true}`,
	} {
		for n := range len(whole) {
			for _, after := range []string{"", " ", "}", "]", ",", ":", "\"", "\x00"} {
				text := []byte(whole[:n] + after)
				if Decode(text, "body", new(api.Evaluation)) == nil && !json.Valid(text) {
					t.Errorf("took %s", text)
				}
			}
		}
	}
}

func FuzzCode(f *testing.F) {
	f.Add([]byte(`{"language":"go","source":"x","limits":{"memory":"1GB"}}`))
	f.Add([]byte(`{"language":"f#","source":"x","cases":[{"name":"a","stdin":"1","expect":{"base64":"AA=="},"limits":{"output":1}},{}],"compare":{"absolute":1e-3},"stop_on_failure":true}`))
	f.Add([]byte(`{"language":"c","source":"x","cases":[{}],"compare":{"checker":{"language":"py","source":"y","files":{"a":"b"}}}}`))
	f.Add([]byte(`{"files":{"a":{"blob":""}},"stdin":"\u0000"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Code(b)
		if err != nil {
			return
		}
		out, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Code(out); err != nil {
			t.Fatalf("%s became %s: %v", b, out, err)
		}
	})
}

// The standards and flags that a request may pass to a C or C++ compiler.
func TestCompilerFlags(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`"language":"c","std":"gnu17"`:             "",
		`"language":"cpp","std":"c++20"`:           "",
		`"language":"zig","std":"c++20"`:           "",
		`"language":"c","std":"c++17"`:             `std: it is not a standard of c: "c++17" (write one such as "c11" or "gnu17")`,
		`"language":"c++","std":"17"`:              `std: it is not a standard of c++: "17" (write one such as "c++17" or "gnu++20")`,
		`"language":"rust","flags":["-O3"]`:        "flags: rust takes neither a standard nor flags",
		`"language":"python","std":"3"`:            "std: python takes neither",
		`"language":"c","flags":["-std=c11"]`:      `flags[0]: the standard has a field of its own: "-std=c11" (write "std": "c11")`,
		`"language":"c","flags":["-O3","-o","x"]`:  `flags[1]: it is not a flag that a request may give to a compiler: "-o"`,
		`"language":"c","flags":["-fplugin=x.so"]`: "flags[0]: ",
		`"language":"c","flags":["-Wl,-rpath=/"]`:  "flags[0]: ",
		`"language":"c","flags":["-fsyntax-only"]`: "flags[0]: ",
		`"language":"c","flags":["@args"]`:         "flags[0]: ",
		`"language":"c","flags":["-I/etc"]`:        "flags[0]: ",
		`"language":"c","flags":["-O2 -Wall"]`:     "flags[0]: ",
		`"language":"c","flags":["-O2","-Wno-unused-result","-DN=1 2","-march=native","-fsanitize=address,undefined","-lm","-Iinclude","-fno-strict-aliasing","-fconstexpr-ops-limit=9","-pthread","-g"]`: "",
	} {
		_, err := Code([]byte(`{"source":"x",` + in + `}`))
		if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

// Values that the kernel would refuse are refused before anything is stored, and names of other systems lead to Pawl's.
func TestRefusedWithTheWayOut(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	for in, want := range map[string]string{
		`"source":"x","env":{"RESULTS":"` + long(131_063) + `"}`:    "",
		`"source":"x","env":{"RESULTS":"` + long(131_064) + `"}`:    "env.RESULTS: it has 131072 bytes with its name, and Linux takes 131071 in one variable at most (give it as stdin, or as a file of files)",
		`"source":"x","args":["` + long(131_071) + `"]`:             "",
		`"source":"x","args":["a","` + long(131_072) + `"]`:         "args[1]: it has 131072 bytes, and Linux takes 131071 in one argument at most",
		`"source":"x","cases":[{"args":["` + long(131_072) + `"]}]`: "cases[0].args[0]: it has 131072 bytes",
		`"code":"x"`:        `did you mean "source"?`,
		`"source_code":"x"`: `did you mean "source"?`,
	} {
		_, err := Code([]byte(`{"language":"python",` + in + `}`))
		if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60s: %.300v, want %q", in, err, want)
		}
	}
}

// A runtime of images with an interactor is refused before anything is stored.
func TestInteractorInContainers(t *testing.T) {
	o := Operator{Images: func(name string) bool { return name == "docker" }}
	talks := `"cases":[{}],"compare":{"interactor":{"language":"c","source":"x"}}}`
	for body, want := range map[string]string{
		`{"language":"c","source":"x","runtime":"docker",` + talks:                    "runtime: it runs programs in containers, and cannot join a program and an interactor",
		`{"language":"c","source":"x","runtime":"sandbox",` + talks:                   "",
		`{"language":"c","source":"x",` + talks:                                       "",
		`{"language":"c","source":"x","runtime":"docker","cases":[{}]}`:               "",
		`{"language":"c","source":"x",` + strings.Replace(talks, `"c"`, `"cobol"`, 1): "compare.interactor.language",
	} {
		if err := o.Validate(flow.KindCode, []byte(body)); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}
