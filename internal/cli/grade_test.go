package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const graded = `{"task_id": "HumanEval/0", "prompt": "def add(a, b):\n", "entry_point": "add", "canonical_solution": "    return a + b\n", "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n"}
{"task_id": 11, "text": "Double a number", "code": "def double(x): return 2 * x", "test_setup_code": "", "test_imports": ["import math"], "test_list": ["assert double(2) == 4", "assert math.isclose(double(0.5), 1)"]}
{"task_id": "Plus/1", "prompt": "def half(x):\n", "entry_point": "half", "canonical_solution": "    return x / 2\n", "base_input": [[4]], "plus_input": [[3], [0]], "atol": 1e-6}
` + `{"task_id": "Plus/2", "prompt": "def third(x):\n", "entry_point": "third", "canonical_solution": "    return x / 3\n", "base_input": [[0], [3]], "plus_input": []}
` + `{"task_id": "Plus/3", "prompt": "def find_zero(xs):\n", "entry_point": "find_zero", "canonical_solution": "    return -1.0\n", "base_input": [[[-1, 0, 1]]], "plus_input": [], "atol": 1e-4}
` + `{"question_id": "lines", "public_test_cases": "[{\"input\": \"\", \"output\": \"1.50 2\\nYes\", \"testtype\": \"stdin\"}]", "private_test_cases": "[]"}
{"question_id": "abc301_a", "question_content": "Sum", "public_test_cases": "[{\"input\": \"1 2\\n\", \"output\": \"3\\n\", \"testtype\": \"stdin\"}]", "private_test_cases": "[{\"input\": \"5 5\\n\", \"output\": \"10\\n\", \"testtype\": \"stdin\"}]"}
{"question_id": "2777", "public_test_cases": "[{\"input\": \"[1, 2, 3]\\n\\\"é<\\\"\", \"output\": \"{\\\"b\\\": [1, 2, 3], \\\"a\\\": \\\"é<\\\"}\", \"testtype\": \"functional\"}]", "private_test_cases": "[]", "metadata": "{\"func_name\": \"pair\"}"}
{"task_id": "two-sum", "cases": [{"call": {"function": "Solution.twoSum", "args": [[2, 7, 11], 9], "expect": [0, 1]}}, {"name": "by name", "call": {"function": "Solution.twoSum", "kwargs": {"a": [3, 3], "target": 6}, "expect": [0, 1]}}]}
{"task_id": "echo", "prompt": "# echo\n", "cases": [{"stdin": "1\n", "expect": "1\n"}, {"stdin": "", "args": ["a b"], "expect": "a b"}]}
`

// For all kinds of problems, a right and a wrong program; the third of HumanEval/0 ends its process before it is tested.
const programs = `{"task_id": "HumanEval/0", "completion": "    return a + b\n"}
{"task_id": "HumanEval/0", "completion": "    return a - b\n"}
{"task_id": "HumanEval/0", "completion": "    return 3\nimport os\nos._exit(0)\n"}
{"task_id": 11, "completion": "def double(x): return x + x"}
{"task_id": 11, "code": "def double(x): return x ** 2"}
{"task_id": "Plus/1", "solution": "def half(x):\n    return x * 0.5\n"}
{"task_id": "Plus/1", "completion": "    return x // 2\n"}
{"task_id": "Plus/2", "solution": "def third(x): return x / 3 + 1e-9"}
{"task_id": "Plus/2", "solution": "def third(x): return x / 3 + 1e-5"}
{"task_id": "Plus/3", "solution": "def find_zero(xs): return 1.00000001"}
{"task_id": "Plus/3", "solution": "def find_zero(xs): return 2.0"}
` + `{"question_id": "lines", "code_list": ["from __future__ import annotations\nprint(' ', accumulate and 1.5, deque([2.0])[0])\nprint('Yes')", "print(1.51, 2)\nprint('Yes')", ""]}
{"question_id": "abc301_a", "code_list": ["print(sum(map(int, input().split())))", "print(3)"]}
` + `{"question_id": "2777", "code_list": ["class Solution:\n    def pair(self, x: List[int], y: str):\n        return {'b': x, 'a': y}", "def pair(x, y):\n    return x"]}
{"task_id": "two-sum", "code": "class Solution:\n    def twoSum(self, a, target):\n        return next((i, j) for i in range(len(a)) for j in range(i + 1, len(a)) if a[i] + a[j] == target)"}
{"task_id": "two-sum", "code": "class Solution:\n    def twoSum(self, a, target):\n        return [0, 2]"}
{"task_id": "two-sum", "code": "import os\nclass All(list):\n    __eq__ = lambda *_: True\nclass Solution:\n    def twoSum(self, a, target):\n        print('[0, 1]')\n        return All()"}
{"task_id": "two-sum", "code": "import os\nos._exit(0)"}
{"task_id": "echo", "completion": "import sys\nprint(*sys.argv[1:] or [input()])"}
{"task_id": "echo", "completion": "print(1)"}
`

func TestGrade(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	env := environment(t)
	dir := t.TempDir()
	problems, samples := kept(t, dir, "problems.jsonl", graded), kept(t, dir, "samples.jsonl", programs)
	out, said, code := pawl(t, env, "grade", samples, "--problems", problems, "-k", "1,2")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	// pass@1: 1 of 3 of two tasks, 1 of 4, and 1 of 2 of each of seven tasks.
	want := fmt.Sprintf("pass@1   %.4f\npass@2   %.4f\n", (2.0/3+1.0/4+7*0.5)/10, (4.0/3+0.5+7)/10)
	if !strings.HasPrefix(out, want) || !strings.Contains(out, "24 programs of 10 tasks, 10 passed") {
		t.Errorf("wrote %q, want %q", out, want)
	}
	results := filepath.Join(dir, "results.jsonl")
	whole, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(whole), "\n"); n != 25 {
		t.Errorf("%d lines of results, want one of the run and 24", n)
	}

	// A killed call has left three results and half a line; nothing is submitted again, and the final result is the same.
	lines := strings.SplitAfter(string(whole), "\n")
	if err := os.WriteFile(results, []byte(strings.Join(lines[:4], "")+lines[4][:20]), 0o600); err != nil {
		t.Fatal(err)
	}
	again, said, code := pawl(t, env, "grade", samples, "--problems", problems, "-k", "1,2")
	if code != 0 || again != out || !strings.Contains(said, "has 3 of 24 results") {
		t.Errorf("exit code %d, wrote %q and %q", code, again, said)
	}
	if all := executions(t, env, "--limit", "100"); len(all) != 24 {
		t.Errorf("%d executions, want 24", len(all))
	}

	// A sample without a verdict runs again.
	e := map[string]any{}
	if err := json.Unmarshal([]byte(lines[1]), &e); err != nil {
		t.Fatal(err)
	}
	e["passed"], e["verdict"] = nil, "infra_error"
	broken, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(results, []byte(lines[0]+string(broken)+"\n"+strings.Join(lines[2:], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	last, said, code := pawl(t, env, "grade", samples, "--problems", problems, "-o", "json")
	if code != 0 || !strings.Contains(last, `"samples":24`) || !strings.Contains(last, `"ok":10`) {
		t.Errorf("exit code %d, wrote %q and %q", code, last, said)
	}
	if all := executions(t, env, "--limit", "100"); len(all) != 25 {
		t.Errorf("%d executions, want one more", len(all))
	}
}

func TestGradeWithoutVerdict(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	dir := t.TempDir()
	config := kept(t, dir, "pawl.yaml", "languages:\n  python:\n    override: true\n    tools: [/nonexistent/python3]\n    run: [\"{tool}\", \"{file}\"]\n")
	problems, samples := kept(t, dir, "problems.jsonl", graded), kept(t, dir, "samples.jsonl", strings.SplitAfter(programs, "\n")[0])
	env := append(environment(t), "PAWL_CONFIG="+config)
	out, said, code := pawl(t, env, "grade", samples, "--problems", problems)
	for _, want := range []string{"9 of 10 problems have no samples", "1 program has no verdict, since the box broke"} {
		if !strings.Contains(said, want) {
			t.Errorf("said %q, want %q", said, want)
		}
	}
	if code != 1 || out != "" {
		t.Errorf("exit code %d, wrote %q and %q", code, out, said)
	}
}

func TestGradeMistakes(t *testing.T) {
	t.Parallel()
	env := environment(t)
	sample := `{"task_id": "HumanEval/0", "completion": "    return a + b\n"}` + "\n"
	for _, c := range []struct{ problems, samples, flags, want string }{
		{graded, sample + `{"task_id": "HumanEval/00", "completion": ""}`, "", `samples.jsonl:2: there is no task "HumanEval/00" among the problems; did you mean "HumanEval/0"?`},
		{graded, `{"completion": ""}`, "", "samples.jsonl:1: there is no task_id"},
		{graded, `{"task_id": "HumanEval/0", "program": ""}`, "", "samples.jsonl:1: there is no program: give completion"},
		{graded, `{"task_id": "HumanEval/0", "completion": 5}`, "", "samples.jsonl:1: completion: "},
		{graded, `{"task_id": "HumanEval/0", "completion": "\ud800"}`, "", "samples.jsonl:1: completion has half of a surrogate pair"},
		{graded, "[1]", "", "samples.jsonl:1: the line is not an object of JSON"},
		{graded, "", "", "samples.jsonl has no samples"},
		{graded + graded, sample, "", "problems.jsonl:11: the task HumanEval/0 is there twice"},
		{`{"task_id": "a", "tests": []}`, sample, "", "problems.jsonl:1: the task a has no tests: give test"},
		{`{"task_id": "a", "test_list": []}`, sample, "", "problems.jsonl:1: test_list is empty"},
		{`{"task_id": "a", "public_test_cases": "eJzt"}`, sample, "", "packed by Python's pickle"},
		{`{"task_id": "a", "cases": [{"call": {"function": "f", "arguments": [1], "expect": 1}}]}`, sample, "", `problems.jsonl:1: cases: json: unknown field "arguments"; a case has call`},
		{`{"task_id": "a", "cases": [{"call": {"function": "f", "args": [1]}}]}`, sample, "", "problems.jsonl:1: cases[0] of the task a expects nothing"},
		{`{"task_id": "a", "cases": []}`, sample, "", "problems.jsonl:1: the task a has 0 cases: 1 to 1000 can be graded"},
		{`{"task_id": "a", "public_test_cases": "[{\"input\": \"x\", \"output\": \"1\", \"testtype\": \"functional\"}]", "metadata": "{\"func_name\": \"f\"}"}`, sample, "", `problems.jsonl:1: the argument "x" of a functional case is not JSON`},
		{graded, `{"task_id": 11, "solution": "x = '\u0000'"}`, "", "samples.jsonl:1: solution holds a NUL character"},
		{graded, `{"task_id": 11, "solution": "x = '\\u0000'", "code": "1"}`, "", "samples.jsonl:1: there are both solution and code: which is the program?"},
		{graded, "{\"task_id\": 11, \"solution\": \"x = '\xe9'\"}", "", "samples.jsonl:1: the line is not UTF-8"},
		{graded, "\ufeff" + sample, "-k=2", "-k 2: the task HumanEval/0 has 1 samples"},
		{graded, sample, "-k=2", "-k 2: the task HumanEval/0 has 1 samples"},
		{graded, sample, "-k=0", "-k 0: give 1 or more"},
		{graded, sample, "--limit=wal=1s", "--limit"},
	} {
		dir := t.TempDir()
		args := []string{"grade", kept(t, dir, "samples.jsonl", c.samples), "--problems", kept(t, dir, "problems.jsonl", c.problems)}
		if c.flags != "" {
			args = append(args, c.flags)
		}
		if _, said, code := pawl(t, env, args...); code != 2 || !strings.Contains(said, c.want) {
			t.Errorf("%s: exit code %d, want 2 and %q", said, code, c.want)
		}
	}
	dir := t.TempDir()
	other, err := os.Create(filepath.Join(dir, "results.jsonl"))
	if err == nil {
		err = unix.Flock(int(other.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, said, code := pawl(t, env, "grade", kept(t, dir, "samples.jsonl", sample), "--problems", kept(t, dir, "problems.jsonl", graded))
	if code != 1 || !strings.Contains(said, "another pawl grade is writing to") {
		t.Errorf("exit code %d, %q", code, said)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	kept(t, dir, "results.jsonl", `{"run":"a","completion_id":0,"passed":null}`+"\n"+`{"task_id":"x","completion_id":0,"key":"b","passed":true}`+"\n")
	_, said, code = pawl(t, env, "grade", kept(t, dir, "samples.jsonl", sample), "--problems", kept(t, dir, "problems.jsonl", graded))
	if code != 1 || !strings.Contains(said, "results.jsonl:2 has a result of another program, task or limit (x): name another file with --results") {
		t.Errorf("exit code %d, %q", code, said)
	}
}

// kept writes a file, and returns its path.
func kept(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
