package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/task"
)

func expect(s string) *api.Content {
	c := api.Text(s)
	return &c
}

// verdicts lists each case with its verdict.
func verdicts(r api.CodeResult) string {
	var all []string
	for _, c := range r.Cases {
		all = append(all, c.Name+"="+c.Verdict)
	}
	return strings.Join(all, " ")
}

// misbehaving reads one word and does what it says.
const misbehaving = `read what
case $what in
  double) read n; echo $((2 * n));;
  crash) echo 'oh no' >&2; exit 3;;
  hang) sleep 60;;
  flood) yes;;
  segfault) kill -SEGV $$;;
esac`

func TestCases(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	for _, rt := range runtimes(t) {
		t.Run(rt.Name(), func(t *testing.T) {
			c := api.Code{Language: "bash", Source: misbehaving, Limits: api.CodeLimits{Wall: api.Duration(20 * time.Second)}, Cases: []api.Case{
				{Name: "right", Stdin: api.Text("double\n21\n"), Expect: expect("42")},
				{Name: "wrong", Stdin: api.Text("double\n2\n"), Expect: expect("5\n")},
				{Name: "unchecked", Stdin: api.Text("double\n1\n")},
				{Name: "crash", Stdin: api.Text("crash\n"), Expect: expect("")},
				{Name: "hang", Stdin: api.Text("hang\n"), Limits: api.CodeLimits{Wall: api.Duration(300 * time.Millisecond)}},
				{Name: "flood", Stdin: api.Text("flood\n"), Limits: api.CodeLimits{Output: 100_000}},
				{Name: "segfault", Stdin: api.Text("segfault\n")},
				{Name: "silent", Stdin: api.Text("x\n"), Expect: expect("")},
			}}
			r := evaluate(t, t.Context(), rt, nil, code(t, c))
			if want := "right=ok wrong=wrong_answer unchecked=ok crash=nonzero_exit hang=timeout flood=output_limit segfault=signal silent=ok"; verdicts(r.result) != want {
				t.Fatalf("got  %s\nwant %s\n%+v", verdicts(r.result), want, r.err)
			}
			if s := *r.result.Summary; s != (api.CaseSummary{Total: 8, Passed: 3, Failed: 5, Uncompared: 1}) {
				t.Errorf("%+v", s)
			}
			if r.err == nil || r.err.Code != api.WrongAnswer || r.err.As != flow.Failed || !strings.Contains(r.err.Message, `3 of 8 cases passed; the first that did not is wrong (wrong answer): line 1: got "4", expected "5"`) {
				t.Errorf("%+v", r.err)
			}
			if right, unchecked := r.result.Cases[0], r.result.Cases[2]; right.Uncompared || !unchecked.Uncompared {
				t.Errorf("uncompared: right %t, unchecked %t", right.Uncompared, unchecked.Uncompared)
			}
			wrong, crash, flood := r.result.Cases[1], r.result.Cases[3], r.result.Cases[5]
			if wrong.Stdout != "4\n" || wrong.Mismatch == nil || wrong.Mismatch.Got != `"4"` || wrong.Mismatch.Want != `"5"` || wrong.WallMS <= 0 {
				t.Errorf("%+v", wrong)
			}
			if crash.Message != "exit code 3: oh no" || *crash.ExitCode != 3 || crash.Stderr != "oh no\n" {
				t.Errorf("%+v", crash)
			}
			if !flood.StdoutTruncated || len(flood.Stdout) != 4096 || flood.StdoutBytes < 4096 {
				t.Errorf("kept %d of %d bytes", len(flood.Stdout), flood.StdoutBytes)
			}
			if log := r.desk.text("log"); strings.Count(log, "\n") != 8 || !strings.Contains(log, "case right: ok (") {
				t.Errorf("log %q", log)
			}
			c.StopOnFailure = true
			r = evaluate(t, t.Context(), rt, nil, code(t, c))
			if want := "right=ok wrong=wrong_answer unchecked=skipped crash=skipped"; !strings.HasPrefix(verdicts(r.result), want) || r.result.Summary.Skipped != 6 || r.err == nil {
				t.Errorf("%s, %v", verdicts(r.result), r.err)
			}
			c.Cases = c.Cases[:1]
			if r = evaluate(t, t.Context(), rt, nil, code(t, c)); r.err != nil || r.result.Verdict != "ok" || r.result.Summary.Passed != 1 {
				t.Errorf("%v %+v", r.err, r.result)
			}
		})
	}
}

// A program is compiled once; files that it leaves in one case do not exist in the next.
func TestCasesAreApart(t *testing.T) {
	t.Parallel()
	need(t, "c")
	source := `#include <stdio.h>
int main(int n, char **a) { FILE *f = fopen("mark", "r"); puts(f ? "seen" : a[n-1]); f = fopen("mark", "w"); fputs("x", f); fclose(f); }`
	for _, rt := range runtimes(t) {
		r := evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: "c", Source: source, Args: []string{"first"}, Cases: []api.Case{
			{Expect: expect("first")}, {Args: []string{"second"}, Expect: expect("second")},
		}}))
		if r.err != nil || verdicts(r.result) != "1=ok 2=ok" || r.result.Compile == nil {
			t.Errorf("%s: %s, %v", rt.Name(), verdicts(r.result), r.err)
		}
		r = evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: "c", Source: "int main( {", Cases: []api.Case{{}}}))
		if r.err == nil || r.result.Compile == nil || len(r.result.Cases) != 0 || !strings.HasPrefix(r.err.Message, "compile: ") {
			t.Errorf("%s: %+v, %v", rt.Name(), r.result, r.err)
		} else if r.err.Code != api.CompileError {
			t.Errorf("%s: code %q", rt.Name(), r.err.Code)
		}
	}
}

func TestComparisons(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	rt := runtimes(t)[0]
	for _, c := range []struct {
		compare string
		want    string
	}{
		{`"exact"`, "lines=wrong_answer words=wrong_answer near=wrong_answer far=wrong_answer"},
		{`"trimmed"`, "lines=ok words=wrong_answer near=wrong_answer far=wrong_answer"},
		{`{"mode":"tokens"}`, "lines=ok words=ok near=wrong_answer far=wrong_answer"},
		{`{"absolute":0.01}`, "lines=ok words=ok near=ok far=wrong_answer"},
		{`{"mode":"numeric","relative":0.5}`, "lines=ok words=ok near=ok far=ok"},
		{`{"mode":"numeric","relative":0,"absolute":0}`, "lines=ok words=ok near=wrong_answer far=wrong_answer"},
	} {
		in := fmt.Sprintf(`{"language":"bash","source":"cat","compare":%s,"cases":[
			{"name":"lines","stdin":"a \nb\n\n","expect":"a\nb"},{"name":"words","stdin":"a  b\n","expect":"a\nb"},
			{"name":"near","stdin":"3.14","expect":"3.141"},{"name":"far","stdin":"3.0","expect":"4"}]}`, c.compare)
		if r := evaluate(t, t.Context(), rt, nil, in); verdicts(r.result) != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s (%v)", c.compare, verdicts(r.result), c.want, r.err)
		}
	}
}

func TestChecker(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	need(t, "c")
	checker := `#include <stdio.h>
int main(int n, char **a) {
	int in, out, want; FILE *f;
	fscanf(f = fopen(a[1], "r"), "%d", &in);
	if (fscanf(fopen(a[2], "r"), "%d", &out) != 1) { puts("no number"); return 1; }
	if (out < 0) return 7;
	if (out == 0) for (;;) ;
	fscanf(fopen(a[3], "r"), "%d", &want);
	if (out * out != in) { printf("%d squared is not %d (one root is %d)\n", out, in, want); return 1; }
	printf("fine: %d\n", out);
	return 0;
}`
	for _, rt := range runtimes(t) {
		c := api.Code{Language: "bash", Source: "read n a; echo $a", Compare: &api.Comparison{Mode: "checker", Checker: &api.Checker{
			Language: "c", Source: checker, Limits: api.CodeLimits{Wall: api.Duration(500 * time.Millisecond)}}},
			Cases: []api.Case{
				{Name: "root", Stdin: api.Text("9 3"), Expect: expect("3")},
				{Name: "none", Stdin: api.Text("9 4"), Expect: expect("3")},
				{Name: "empty", Stdin: api.Text("9")},
				{Name: "odd", Stdin: api.Text("9 -3")},
				{Name: "slow", Stdin: api.Text("9 0")},
			}}
		r := evaluate(t, t.Context(), rt, nil, code(t, c))
		if want := "root=ok none=wrong_answer empty=wrong_answer odd=checker_error slow=checker_error"; verdicts(r.result) != want {
			t.Errorf("%s: %s\n%v", rt.Name(), verdicts(r.result), r.err)
			continue
		}
		for i, say := range []string{"fine: 3", "4 squared is not 9 (one root is 3)", "no number", "exit code 7, which means neither accepted (0) nor rejected (1)", "timeout"} {
			if !strings.Contains(r.result.Cases[i].Message, say) {
				t.Errorf("%s: %q", rt.Name(), r.result.Cases[i].Message)
			}
		}
		c.Compare.Checker.Source = "int main( {"
		if r = evaluate(t, t.Context(), rt, nil, code(t, c)); r.err == nil || r.err.Code != api.CheckerError || !strings.Contains(r.err.Message, "the checker: compile: main.c:1:") {
			t.Errorf("%+v", r.err)
		}
	}
}

// A checker that ends with 1 because of an uncaught error has not judged the program.
func TestCheckerThatThrows(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	for language, source := range map[string]string{
		"python": "1/0", "javascript": "null.x", "ruby": "raise 'no'",
		"java": "public class Main { public static void main(String[] a) { Object o = null; o.hashCode(); } }",
	} {
		for _, rt := range runtimes(t) {
			t.Run(language+"/"+rt.Name(), func(t *testing.T) {
				t.Parallel()
				need(t, language)
				c := api.Code{Language: "bash", Source: "echo 1", Cases: []api.Case{{Expect: expect("1")}},
					Compare: &api.Comparison{Mode: "checker", Checker: &api.Checker{Language: language, Source: source}}}
				r := evaluate(t, t.Context(), rt, nil, code(t, c))
				if verdicts(r.result) != "1=checker_error" || !strings.Contains(r.result.Cases[0].Message, "an error that it does not catch: ") {
					t.Errorf("%s: %+v, %v", verdicts(r.result), r.result.Cases, r.err)
				}
			})
		}
	}
	rt := runtimes(t)[0]
	for source, want := range map[string]string{
		"print('too small'); raise SystemExit(1)": "1=wrong_answer",
		"import sys; sys.exit('too small')":       "1=wrong_answer",
		"x = (":                                   "1=checker_error",
		"raise SystemExit(2)":                     "1=checker_error",
		"import json; json.loads(open('output.txt').read() + '}')": "1=checker_error",
	} {
		c := api.Code{Language: "bash", Source: "echo 1", Cases: []api.Case{{Expect: expect("1")}},
			Compare: &api.Comparison{Mode: "checker", Checker: &api.Checker{Language: "python", Source: source}}}
		if r := evaluate(t, t.Context(), rt, nil, code(t, c)); verdicts(r.result) != want {
			t.Errorf("%s: %+v, want %s", source, r.result.Cases, want)
		}
	}
}

// A checker that dies of a program's output, and accepts the expected output, has found a wrong answer; a broken checker has not.
func TestCheckerThatStumbles(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	for _, c := range []struct{ name, language, source, want, say string }{
		{"python", "python", "import json, sys\nsys.exit(json.load(open('output.txt')) != json.load(open('expected.txt')))",
			"right=ok wrong=wrong_answer garbage=wrong_answer nothing=wrong_answer unknown=checker_error", "could not read the output, and accepts the expected one: it was ended by an error that it does not catch: json.decoder.JSONDecodeError: "},
		{"signal", "bash", "read x < output.txt; [[ $x == [0-9]* ]] || { echo 'cannot read this' >&2; kill -ABRT $$; }; cmp -s output.txt expected.txt",
			"right=ok wrong=wrong_answer garbage=wrong_answer nothing=wrong_answer unknown=checker_error", "ended with signal: "},
		{"limit", "bash", "read x < output.txt; [[ $x == [0-9]* ]] || while :; do :; done; cmp -s output.txt expected.txt",
			"right=ok wrong=wrong_answer garbage=wrong_answer nothing=wrong_answer unknown=checker_error", "ended with timeout: "},
		{"broken", "python", "1/0", "right=checker_error wrong=checker_error garbage=checker_error nothing=checker_error unknown=checker_error", "ZeroDivisionError: division by zero"},
		{"a code of its own", "bash", "grep -q '[0-9]' output.txt || { echo 'the jury is wrong' >&2; exit 3; }; cmp -s output.txt expected.txt",
			"right=ok wrong=wrong_answer garbage=checker_error nothing=checker_error unknown=checker_error", "exit code 3, which means neither accepted (0) nor rejected (1): the jury is wrong"},
	} {
		for _, rt := range runtimes(t) {
			t.Run(c.name+"/"+rt.Name(), func(t *testing.T) {
				t.Parallel()
				need(t, c.language)
				program := api.Code{Language: "bash", Source: "cat", Compare: &api.Comparison{Checker: &api.Checker{Language: c.language, Source: c.source, Limits: api.CodeLimits{Wall: api.Duration(2 * time.Second)}}},
					Cases: []api.Case{
						{Name: "right", Stdin: api.Text("7\n"), Expect: expect("7\n")}, {Name: "wrong", Stdin: api.Text("8\n"), Expect: expect("7\n")},
						{Name: "garbage", Stdin: api.Text("x{\n"), Expect: expect("7\n")}, {Name: "nothing", Expect: expect("7\n")}, {Name: "unknown", Stdin: api.Text("x\n")},
					}}
				r := evaluate(t, t.Context(), rt, nil, code(t, program))
				if verdicts(r.result) != c.want || !strings.Contains(r.result.Cases[2].Message, c.say) {
					t.Errorf("%s, %q\nwant %s: %v", verdicts(r.result), r.result.Cases[2].Message, c.want, r.err)
				}
			})
		}
	}
}

// A validator of Kattis gets the output on stdin, and a directory for its messages.
func TestCheckerOfKattis(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	need(t, "python")
	validator := `import sys
team, judge, feedback = sys.stdin.read(), open(sys.argv[2]).read(), sys.argv[3]
assert feedback.endswith('/') and open(sys.argv[1]).read() in ('7', '8', 'x') and len(sys.argv) == 4
open(feedback + 'teammessage.txt', 'w').write('for the team')
with open(feedback + 'judgemessage.txt', 'a') as f: print('read', int(team), file=f)
sys.exit(42 if team == judge else 43)`
	for _, rt := range runtimes(t) {
		program := api.Code{Language: "bash", Source: "cat", Compare: &api.Comparison{Checker: &api.Checker{Language: "python", Source: validator, Style: "kattis"}},
			Cases: []api.Case{{Name: "right", Stdin: api.Text("7"), Expect: expect("7")}, {Name: "wrong", Stdin: api.Text("8"), Expect: expect("7")}, {Name: "garbage", Stdin: api.Text("x"), Expect: expect("7")}}}
		r := evaluate(t, t.Context(), rt, nil, code(t, program))
		if verdicts(r.result) != "right=ok wrong=wrong_answer garbage=wrong_answer" || r.result.Cases[0].Message != "read 7" || r.result.Cases[1].Message != "read 8" || !strings.Contains(r.result.Cases[2].Message, "ValueError: ") {
			t.Errorf("%s: %s: %+v, %v", rt.Name(), verdicts(r.result), r.result.Cases, r.err)
		}
	}
}

// The exit codes of a checker may be set, for example to those of testlib (1 and 2 reject) or of Kattis (42 and 43).
func TestCheckerCodes(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	rt := runtimes(t)[0]
	for _, c := range []struct {
		accept, reject []int
		want           string
	}{
		{nil, nil, "0=ok 1=wrong_answer 2=checker_error 42=checker_error 43=checker_error"},
		{nil, []int{1, 2}, "0=ok 1=wrong_answer 2=wrong_answer 42=checker_error 43=checker_error"},
		{[]int{42}, []int{43}, "0=checker_error 1=checker_error 2=checker_error 42=ok 43=wrong_answer"},
	} {
		all := api.Code{Language: "bash", Source: "cat", Compare: &api.Comparison{Mode: "checker", Checker: &api.Checker{
			Language: "bash", Source: "exit $(cat output.txt)", Accept: c.accept, Reject: c.reject}}}
		for _, n := range []string{"0", "1", "2", "42", "43"} {
			all.Cases = append(all.Cases, api.Case{Name: n, Stdin: api.Text(n)})
		}
		if r := evaluate(t, t.Context(), rt, nil, code(t, all)); verdicts(r.result) != c.want {
			t.Errorf("accept %v, reject %v:\ngot  %s\nwant %s", c.accept, c.reject, verdicts(r.result), c.want)
		}
	}
}

func TestCasesFromBlobs(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	blobs := &shelf{blobs: map[string][]byte{"in": []byte("x\n"), "out": []byte("x")}}
	in := `{"language":"bash","source":"cat","cases":[{"stdin":{"blob":"in"},"expect":{"blob":"out"}},{"stdin":"y","expect":{"blob":"out"}}]}`
	if r := evaluate(t, t.Context(), runtimes(t)[0], blobs, in); verdicts(r.result) != "1=ok 2=wrong_answer" {
		t.Errorf("%s, %v", verdicts(r.result), r.err)
	}
	if r := evaluate(t, t.Context(), runtimes(t)[0], blobs, strings.ReplaceAll(in, `"in"`, `"nope"`)); r.err == nil || r.err.Code != flow.CodeInvalidInput || !strings.Contains(r.err.Message, `blob "nope"`) {
		t.Errorf("%v", r.err)
	}
}

// A list of cases in a blob is fetched once, and replaces its name.
func TestCasesFromASet(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	set := "sha256:" + strings.Repeat("0", 64)
	in := `{"language":"bash","source":"cat","cases":{"set":"` + set + `"}}`
	blobs := &shelf{blobs: map[string][]byte{set: []byte(`[{"stdin":"x","expect":"x"},{"name":"b","stdin":"y","expect":"x"}]`)}}
	if r := evaluate(t, t.Context(), runtimes(t)[0], blobs, in); verdicts(r.result) != "1=ok b=wrong_answer" {
		t.Errorf("%s, %v", verdicts(r.result), r.err)
	}
	for list, want := range map[string]string{`[{"stdin":7}]`: "cases[0].stdin", `no list`: "the set sha256:"} {
		blobs = &shelf{blobs: map[string][]byte{set: []byte(list)}}
		r := evaluate(t, t.Context(), runtimes(t)[0], blobs, in)
		if r.err == nil || r.err.Code != flow.CodeInvalidInput || !strings.Contains(r.err.Message, want) {
			t.Errorf("%s: %+v", list, r.err)
		}
	}
	if r := evaluate(t, t.Context(), runtimes(t)[0], &shelf{blobs: map[string][]byte{}}, in); r.err == nil || r.err.Code != flow.CodeInvalidInput {
		t.Errorf("a set that is gone: %+v", r.err)
	}
}

// The outputs of many cases fit into one result.
func TestCasesShareTheRoom(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	c := api.Code{Language: "bash", Source: "printf %05000d 7; printf %02000d 7 >&2", Cases: make([]api.Case, 100)}
	for i := range c.Cases {
		c.Cases[i] = api.Case{Name: fmt.Sprint(i)}
	}
	r := evaluate(t, t.Context(), runtimes(t)[0], nil, code(t, c))
	kept := 0
	for _, c := range r.result.Cases {
		kept += len(c.Stdout) + len(c.Stderr)
		if !c.StdoutTruncated || c.StdoutBytes != 5000 || !c.StderrTruncated || c.StderrBytes != 2000 {
			t.Fatalf("%s: %d of %d bytes, truncated %t", c.Name, len(c.Stdout), c.StdoutBytes, c.StdoutTruncated)
		}
	}
	if r.err != nil || kept != 256<<10 {
		t.Errorf("kept %d bytes; %v", kept, r.err)
	}
}

func TestStopBetweenCases(t *testing.T) {
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
				<-d.wrote // the first case has ended
				cancel(&c.stop)
			}()
			_, err = h.Run(ctx, &task.Task{Execution: flow.ID{1}, Attempt: 1, Host: d, Payload: json.RawMessage(`{"language":"bash","source":"read n; sleep $n","cases":[{"stdin":"0"},{"stdin":"60"},{"stdin":"0"}]}`)})
			te, ok := errors.AsType[*task.Error](err)
			if !ok || te.Code != c.verdict || te.As != c.stop.As || !strings.Contains(te.Message, c.stop.Reason+"; 1 of 3 cases passed before") {
				t.Errorf("%s: %+v", rt.Name(), err)
				continue
			}
			var r api.CodeResult
			if err := json.Unmarshal(te.Output, &r); err != nil || len(r.Cases) != 3 || r.Cases[0].Verdict != "ok" || r.Cases[2].Verdict != "skipped" {
				t.Errorf("%s: %s, %v", rt.Name(), verdicts(r), err)
			}
		}
	}
}
