package task_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/task"
)

// Each name has a complete profile without faults.
func TestProfilesAreComplete(t *testing.T) {
	t.Parallel()
	languages := task.BuiltInLanguages()
	for _, name := range api.Languages() {
		p, ok := languages.Profile(name)
		if !ok {
			t.Errorf("%s has no profile", name)
			continue
		}
		for _, f := range p.Check() {
			if !strings.Contains(f.Message, "{std}") && !strings.Contains(f.Message, "{types}") { // only Go's and TypeScript's own may use them
				t.Errorf("%s: %s", name, f.String())
			}
		}
		if p.Install == "" || len(p.Tools) == 0 || p.Limits.Memory == 0 || p.Limits.Pids == 0 || len(p.Run) == 0 || len(p.Extensions) == 0 {
			t.Errorf("%s lacks something: %+v", name, p)
		}
		if _, ok := hello[name]; !ok {
			t.Errorf("%s is not tested", name)
		}
	}
	if n := len(languages.Profiles()); n != len(api.Languages()) {
		t.Errorf("%d profiles for %d languages", n, len(api.Languages()))
	}
}

func TestJava(t *testing.T) {
	t.Parallel()
	need(t, "java")
	for _, c := range []struct {
		name string
		code api.Code
		want string
	}{
		{"another public class", api.Code{Source: "import java.util.*;\n\npublic final class Solution {\n\tstatic class Node { int value = 7; }\n\tpublic static void main(String[] args) {\n\t\tSystem.out.println(new Node().value);\n\t}\n}\n"}, "7\n"},
		{"no public class", api.Code{Source: "class Helper { static int two() { return 2; } }\nclass Program {\n  static class Inner {}\n  public static void main(String[] args) { System.out.println(Helper.two()); }\n}\n"}, "2\n"},
		{"a record and a package", api.Code{Source: "package a.b;\nrecord Pair(int x, int y) {}\npublic class Main {\n  public static void main(String[] args) { System.out.println(new Pair(1, 2) + \" \" + args.length); }\n}\n", Args: []string{"@x", "b"}}, "Pair[x=1, y=2] 2\n"},
		{"an annotated and indented class behind an import", api.Code{Source: "import java.util.*; @SuppressWarnings(\"all\")\n  final public\n\tclass Solution { void main(int x) {} public static void main(String[] args) { System.out.println(List.of(1)); } }"}, "[1]\n"},
		{"a helper that is public, and old code in a comment", api.Code{Source: "/*\npublic class Old {}\n*/\npublic class Helper { static int main() { return 2; } }\n  class Program { public static void main(String[] args) { System.out.println(Helper.main()); } }"}, "2\n"},
		{"two files", api.Code{Source: "public class Main {\n  public static void main(String[] args) { System.out.println(Other.NAME); }\n}\n", Files: map[string]api.Content{"Other.java": api.Text("class Other { static final String NAME = \"other\"; }")}}, "other\n"},
		{"as many processors as the limits allow", api.Code{Limits: api.CodeLimits{Pids: 63}, Source: "public class Main {\n  public static void main(String[] args) { System.out.println(Runtime.getRuntime().availableProcessors()); }\n}\n"}, fmt.Sprintf("%d\n", min(goruntime.NumCPU(), 15))},
		{"threads in 128 MB", api.Code{Limits: api.CodeLimits{Memory: 128e6}, Source: "import java.util.stream.*;\npublic class Main {\n  public static void main(String[] args) { System.out.println(IntStream.range(0, 1000).parallel().sum()); }\n}\n"}, "499500\n"},
		{"much memory within 256 MB", api.Code{Limits: api.CodeLimits{Memory: 256e6}, Source: "public class Main {\n  public static void main(String[] args) { byte[][] all = new byte[100][]; for (int i = 0; i < 100; i++) { all[i] = new byte[1 << 20]; all[i][7] = 1; } System.out.println(all.length); }\n}\n"}, "100\n"},
	} {
		for _, rt := range runtimes(t) {
			c.code.Language = "java"
			if r := evaluate(t, t.Context(), rt, nil, code(t, c.code)); r.err != nil || r.result.Stdout != c.want {
				t.Errorf("%s/%s: %v\n%s%s", c.name, rt.Name(), r.err, r.result.Stdout, r.result.Stderr)
			}
		}
	}
	for source, want := range map[string]string{
		"class A { int main(String[] a) { return 1; } }": "compile: no class has a method `public static void main(String[] args)`, with which a program starts: main of A has other parameters",
		"// nothing": "compile: no class has a method",
	} {
		r := evaluate(t, t.Context(), runtimes(t)[0], nil, code(t, api.Code{Language: "java", Source: source}))
		if r.err == nil || r.err.Code != api.CompileError || !strings.HasPrefix(r.err.Message, want) {
			t.Errorf("%s: %v, %+v", source, r.err, r.result)
		}
	}
	r := evaluate(t, t.Context(), runtimes(t)[0], nil, code(t, api.Code{Language: "java", Source: "public class Main { void main( }"}))
	if r.err == nil || r.result.Compile == nil || !strings.Contains(r.result.Compile.Stderr, "Main.java:1") {
		t.Errorf("%v, %+v", r.err, r.result.Compile)
	}
}

// The standard of C and C++ is a recent one with extensions, unless the request sets another, and flags reach the compiler.
func TestStandards(t *testing.T) {
	t.Parallel()
	need(t, "c")
	need(t, "c++")
	rt := runtimes(t)[0]
	const ask = "#include <stdio.h>\nint main() { typeof(1L) v = VERSION; printf(\"%ld\\n\", v); }"
	for _, c := range []struct {
		language, std, version, want string
		flags                        []string
	}{
		{"c", "", "__STDC_VERSION__", "201710\n", nil},
		{"c", "gnu99", "__STDC_VERSION__", "199901\n", nil},
		{"c", "c11", "__STDC_VERSION__", "compile_error", nil}, // typeof is a GNU extension
		{"c", "", "N", "7\n", []string{"-O0", "-DN=7", "-Wall", "-fsanitize=undefined"}},
		{"c++", "", "__cplusplus > 201703L", "1\n", nil},
		{"c++", "gnu++14", "__cplusplus", "201402\n", nil},
		{"c++", "", "sizeof(N)", "4\n", []string{"-DN=\"x y\""}},
	} {
		r := evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: c.language, Source: strings.Replace(ask, "VERSION", c.version, 1), Std: c.std, Flags: c.flags}))
		if got := r.result.Stdout; got != c.want && r.result.Verdict != c.want {
			t.Errorf("%s %s %v: %q, want %q: %v", c.language, c.std, c.flags, got, c.want, r.err)
		}
	}
}

// All sources of the program are compiled, including those in subdirectories; Go files for other systems, and tests, are not.
func TestSourcesBeside(t *testing.T) {
	t.Parallel()
	rt := runtimes(t)[0]
	for _, c := range []api.Code{
		{Language: "c", Source: "#include \"lib/u.h\"\n#include <stdio.h>\nint main() { printf(\"%d\\n\", f(3)); }",
			Files: map[string]api.Content{"lib/u.h": api.Text("int f(int);"), "lib/u.c": api.Text("#include \"u.h\"\nint f(int x) { return x + 1; }")}},
		{Language: "go", Source: "package main\nfunc main() { println(f()); print(\"\") }\nfunc init() { _ = f }",
			Files: map[string]api.Content{"f.go": api.Text("package main\nfunc f() int { return 4 }"), "f_windows.go": api.Text("package main\nfunc f() int { return 5 }"),
				"g.go": api.Text("//go:build darwin || !linux\n\npackage main\nfunc f() int { return 6 }"), "f_test.go": api.Text("package main_test"), "lib/lib.go": api.Text("package lib")}},
		{Language: "java", Source: "class Main { public static void main(String[] a) throws Exception { System.out.println(Class.forName(\"lib.Four\").getDeclaredConstructor().newInstance()); } }",
			Files: map[string]api.Content{"lib/Four.java": api.Text("package lib;\npublic class Four { public String toString() { return \"4\"; } }")}},
	} {
		t.Run(c.Language, func(t *testing.T) {
			t.Parallel()
			need(t, c.Language)
			if r := evaluate(t, t.Context(), rt, nil, code(t, c)); r.err != nil || r.result.Stdout+r.result.Stderr != "4\n" {
				t.Errorf("%v, %q %q", r.err, r.result.Stdout, r.result.Stderr)
			}
		})
	}
}

// A node that is new enough gets the option to remove types; the fake node only removes the option, and the real one gets a program
// without types.
func TestTypeScript(t *testing.T) {
	need(t, "javascript")
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	for version, works := range map[string]bool{"v22.6.0": true, "v24.1.0": true, "v22.5.1": false, "v20.0.0": false, "next": false} {
		dir, err := os.MkdirTemp("/var/tmp", "pawl-node-") // the sandbox has its own /tmp
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		fake := filepath.Join(dir, "node")
		script := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = -p ]; then echo %s; echo %s; echo true; exit; fi\n[ \"$1\" = --experimental-transform-types ] || exit 9\nshift 3\nexec %s -e \"$(cat $1)\"\n", fake, version, node)
		if err := os.WriteFile(fake, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+":/usr/bin:/bin")
		r := evaluate(t, t.Context(), runtimes(t)[0], nil, code(t, api.Code{Language: "ts", Source: "console.log('typed')"}))
		switch {
		case works && (r.err != nil || r.result.Stdout != "typed\n"):
			t.Errorf("%s: %v, %+v", version, r.err, r.result)
		case !works && (r.err == nil || r.err.Code != "infra_error"):
			t.Errorf("%s: %v", version, r.err)
		case version == "v22.5.1" && !strings.Contains(r.err.Message, "node v22.5.1 does not read TypeScript, as it does from 22.6 on: install Node.js 22.6"):
			t.Errorf("%v", r.err)
		}
	}
}

// Some syntax needs more than the removal of types: a node that can transform it does so, and another one refuses it with its line.
func TestTypeScriptThatIsTransformed(t *testing.T) {
	t.Parallel()
	need(t, "typescript")
	rt := runtimes(t)[0]
	found := task.Look(t.Context(), must(task.BuiltInLanguages().Profile("typescript")))[0]
	for source, want := range map[string]string{
		"enum A { X = 3 }\nconsole.log(A.X)":                                                                               "3\n",
		"\nnamespace N { export const y = 4 }\nconsole.log(N.y)":                                                           "4\n",
		"\nclass P { constructor(private x: number) {} get() { return this.x } }\nconsole.log(new P(5).get())":             "5\n",
		"interface I<T> { a?: T }\nlet v = <T,>(x: I<T>): T | undefined => x.a!\nconsole.log(v({a: 6}) satisfies unknown)": "6\n",
	} {
		r := evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: "ts", Source: source}))
		refused := r.err != nil && r.err.Code == api.SyntaxError && strings.HasPrefix(r.err.Message, "main.ts:") && strings.Contains(r.err.Message, "is not supported in strip-only mode")
		if r.result.Stdout != want && !(refused && strings.HasPrefix(found.Version, "v26")) {
			t.Errorf("%s: %q, %v", source, r.result.Stdout, r.err)
		}
	}
	for source, want := range map[string]string{
		"\nconst x: number = ;":                            "syntax_error main.ts:2: SyntaxError [ERR_INVALID_TYPESCRIPT_SYNTAX]: Expression expected",
		"let a: number = 1;\nlet a = 2;":                   "syntax_error main.ts:2: SyntaxError: Identifier 'a' has already been declared",
		"throw new SyntaxError('of my own') as any":        "nonzero_exit exit code 1: SyntaxError: of my own",
		"import fs from 'fs';\nJSON.parse('{' as string);": "nonzero_exit exit code 1: SyntaxError: ",
	} {
		if r := evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: "ts", Source: source})); r.err == nil || !strings.HasPrefix(r.err.Code+" "+r.err.Message, want) {
			t.Errorf("%s: %v", source, r.err)
		}
	}
}

func must[T any](v T, ok bool) T {
	if !ok {
		panic("it is not there")
	}
	return v
}

// TestLanguagesUnprivileged runs the test of the languages again as the user nobody. It leaves out Go, which without its own cache would
// first compile its library, for more than a minute.
func TestLanguagesUnprivileged(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("this already is an unprivileged user")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("/var/tmp", "pawl-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "task.test")
	writeProgram(t, binary, self)
	cmd := exec.CommandContext(t.Context(), binary, "-test.run=^(TestLanguages|TestUnreadableMount)$/^([a-fh-z].*)$", "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if err != nil || !strings.Contains(out.String(), "--- PASS: TestLanguages/bash/") {
		t.Errorf("%v\n%s", err, out.String())
	}
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "--- ") || strings.Contains(line, "without the sandbox") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// Only a language that is not built in restricts the workers, whatever else a payload contains.
func TestLanguageThatOnlySomeHave(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"language":"python","source":"x"}`:                             "",
		`{"language" : "Py","source":"\"language\":\"kotlin\""}`:         "",
		`{"language":"kotlin","source":"x"}`:                             "code:kotlin",
		`{"source":"x","env":{"language":"python"},"language":"F#"}`:     "code:f#",
		`{"language":"python","source":"x","env":{"language":"kotlin"}}`: "",
		`{"language":"kotlin","runtime":"docker"}`:                       "docker code:kotlin",
		`{"language":"python","runtime":"docker"}`:                       "docker",
		`{"language":7}`:  "",
		`{"language":""}`: "",
		`{`:               "",
		`{"language":"c","cases":[{}],"compare":{"checker":{"language":"kt","source":"y"}}}`: "",
	} {
		if got := strings.Join(payload.Needs(flow.KindCode, []byte(in)), " "); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
