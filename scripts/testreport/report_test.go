package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// events is a step in which TestShaky failed at first, TestWindows was skipped, and TestPlain passed.
const events = `{"Action":"start","Package":"github.com/pawl-run/pawl/a"}
{"Action":"run","Package":"github.com/pawl-run/pawl/a","Test":"TestShaky"}
{"Action":"output","Package":"github.com/pawl-run/pawl/a","Test":"TestShaky","Output":"    a_test.go:7: the answer was late\n"}
{"Action":"fail","Package":"github.com/pawl-run/pawl/a","Test":"TestShaky","Elapsed":1.5}
{"Action":"output","Package":"github.com/pawl-run/pawl/a","Test":"TestWindows","Output":"=== RUN   TestWindows\n"}
{"Action":"output","Package":"github.com/pawl-run/pawl/a","Test":"TestWindows","Output":"    a_test.go:9: NOT TESTED: no Windows here\n"}
{"Action":"output","Package":"github.com/pawl-run/pawl/a","Test":"TestWindows","Output":"--- SKIP: TestWindows (0.00s)\n"}
{"Action":"skip","Package":"github.com/pawl-run/pawl/a","Test":"TestWindows"}
{"Action":"pass","Package":"github.com/pawl-run/pawl/a","Test":"TestPlain"}
{"Action":"pass","Package":"github.com/pawl-run/pawl/a","Test":"TestPlain/part"}
{"Action":"fail","Package":"github.com/pawl-run/pawl/a","Elapsed":2}
`

const again = `{"Action":"pass","Package":"github.com/pawl-run/pawl/a","Test":"TestShaky","Elapsed":0.1}
{"Action":"pass","Package":"github.com/pawl-run/pawl/a","Elapsed":0.2}
`

const broken = `{"Action":"output","Package":"github.com/pawl-run/pawl/b","Output":"b.go:3: undefined: x\n"}
{"Action":"fail","Package":"github.com/pawl-run/pawl/b","Elapsed":0}
`

// panicked is a step in which a test panicked, so that the test beside it has no end.
const panicked = `{"Action":"run","Package":"github.com/pawl-run/pawl/c","Test":"TestBeside"}
{"Action":"output","Package":"github.com/pawl-run/pawl/c","Test":"TestRare","Output":"panic: index out of range\n"}
{"Action":"output","Package":"github.com/pawl-run/pawl/c","Output":"FAIL c\n"}
{"Action":"fail","Package":"github.com/pawl-run/pawl/c","Elapsed":2}
`

const panickedAgain = `{"Action":"pass","Package":"github.com/pawl-run/pawl/c","Test":"TestBeside"}
{"Action":"pass","Package":"github.com/pawl-run/pawl/c","Test":"TestRare"}
{"Action":"pass","Package":"github.com/pawl-run/pawl/c","Elapsed":2}
`

func TestReport(t *testing.T) {
	for _, c := range []struct {
		name, events, skips string
		strict, ok          bool
		want                []string
	}{
		{name: "a failure", events: events, want: []string{"FAILED a TestShaky\n", "test: 2 passed, 1 failed, 1 skipped\n"}},
		{name: "passed when run again", events: events + again, ok: true, want: []string{
			"FLAKY a TestShaky: it passed when it was run again alone; the output of its failure:\n        a_test.go:7: the answer was late\n",
			"SKIPPED a TestWindows: NOT TESTED: no Windows here\n",
			"test ran 3 tests with 1 subtests; 1 flaky\ntest: 3 passed, 0 failed, 1 skipped\n"}},
		{name: "a skip that no list names", events: events + again, strict: true, want: []string{"this skip is not in the list"}},
		{name: "a skip that the list names", events: events + again, skips: "a TestWin.* no Windows", strict: true, ok: true},
		{name: "a package that does not compile", events: events + again + broken, want: []string{
			"FAILED b: the package, outside of its tests\n    b.go:3: undefined: x\n", "3 passed, 1 failed"}},
		{name: "a panic", events: panicked, want: []string{"FAILED c TestBeside\n", "FAILED c TestRare\n"}},
		{name: "a panic, run again", events: panicked + panickedAgain, ok: true, want: []string{
			"FLAKY c: its tests passed when the package was run again; the output of its failure:\n    FAIL c\n", "1 flaky"}},
		{name: "no test at all", events: broken[:0], want: []string{"0 passed, 0 failed, 0 skipped"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file, skips := filepath.Join(dir, "1.json"), filepath.Join(dir, "skips.txt")
			for path, text := range map[string]string{file: c.events, skips: "# comment\n\n" + c.skips} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out strings.Builder
			ok, err := run(&out, "test", skips, c.strict, []string{file})
			if err != nil || ok != c.ok {
				t.Errorf("passed: %t, %v, want %t", ok, err, c.ok)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the report lacks %q:\n%s", want, out.String())
				}
			}
		})
	}
}

func TestPanics(t *testing.T) {
	for _, c := range []struct{ name, events, want string }{
		{"a failure", events, ""},
		{"a panic", panicked, "github.com/pawl-run/pawl/c"},
		{"a panic beside a failure", events + panicked, "github.com/pawl-run/pawl/a github.com/pawl-run/pawl/c"},
		{"a panic beside two failures", events + broken + panicked, ""},
		{"a panic, run again", panicked + panickedAgain, ""},
	} {
		file := filepath.Join(t.TempDir(), "1.json")
		if err := os.WriteFile(file, []byte(c.events), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := printPanics(&out, []string{file}); err != nil || out.String() != c.want+"\n" {
			t.Errorf("%s: %q, %v", c.name, out.String(), err)
		}
	}
}

func TestSkipsNeedReasons(t *testing.T) {
	path := filepath.Join(t.TempDir(), "skips.txt")
	if err := os.WriteFile(path, []byte("a TestX\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readSkips(path); err == nil || !strings.Contains(err.Error(), "skips.txt:1:") || !strings.Contains(err.Error(), "REASON") {
		t.Errorf("the error is %v", err)
	}
}
