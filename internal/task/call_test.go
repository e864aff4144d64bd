package task_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
)

// functions is a program with functions that return and do many things.
const functions = `
import sys
print("loaded", sys.stdin.read() == "")

def add(a, b=1): print("adding"); return a + b
def same(x): return x
def pair(): return (1, [2, (3,)])
def letters(s): return set(s)
def sets(): return {1, "a"}
def families(): return {(0, frozenset({n, n + 10})) for n in (5, 3, 8, 1, 6)}
def keys(): return {1: 2}
def closes(): sys.stdout.close(); return 1
def silences(): sys.stdout = None; return 1
def replaces(): sys.stdout = object(); return 1
def redirects(): import os; print("before"); os.dup2(os.open("/dev/null", os.O_WRONLY), 1); return 1
def endless(): return float("inf")
def half(): return "\ud800"
def gen(): yield 1
def nested():
    a = []
    a.append(a)
    return a
def big(): return 10 ** 5000
async def later(x): return x
def fails(): raise ValueError("no luck")
def leaves(): sys.exit(0)
def vanishes(): import os; os._exit(0)
def forges(): print("\nmark", {"value": 1}); return 2
class Solution:
    def twoSum(self, nums, target):
        seen = {}
        for i, n in enumerate(nums):
            if target - n in seen: return [seen[target - n], i]
            seen[n] = i
if __name__ == "__main__": raise SystemExit("run as a program")
`

func called(function, expect string, args ...string) api.Case {
	c := api.Case{Call: &api.Call{Function: function}}
	for _, a := range args {
		c.Call.Args = append(c.Call.Args, json.RawMessage(a))
	}
	if expect != "" {
		c.Call.Expect = json.RawMessage(expect)
	}
	return c
}

func TestCalls(t *testing.T) {
	t.Parallel()
	need(t, "python")
	named := called("add", `3`)
	named.Name, named.Call.Kwargs = "by name", map[string]json.RawMessage{"a": json.RawMessage(`1`), "b": json.RawMessage(`2`)}
	cases := []struct {
		c                api.Case
		verdict, message string // the end of it
	}{
		{called("add", `3`, `1`, `2`), "ok", ""},
		{named, "ok", ""},
		{called("add", `2.0`, `1`), "ok", ""},
		{called("add", `4`, `1`, `2`), "wrong_answer", "add: got 3, expected 4"},
		{called("add", ``, `1`), "ok", ""},
		{called("add", `"ab"`, `"a"`, `"b"`), "ok", ""},
		{called("same", `null`, `null`), "ok", ""},
		{called("same", `{"a":[1,{"b":"é"}]}`, `{"a":[1,{"b":"\u00e9"}]}`), "ok", ""},
		{called("same", `1`, `true`), "wrong_answer", "same: got true, expected 1"},
		{called("same", `123456789012345678901234567890`, `123456789012345678901234567890`), "ok", ""},
		{called("same", `0.1`, `0.1`), "ok", ""},
		{called("pair", `[1,[2,[4]]]`), "wrong_answer", "pair: [1][1][0]: got 3, expected 4"},
		{called("letters", `["a","b"]`, `"abab"`), "ok", ""},
		{called("sets", `[]`), "wrong_answer", "no order, so it is no JSON array"},
		{called("families", `[[0,[1,11]],[0,[3,13]],[0,[5,15]],[0,[6,16]],[0,[8,18]]]`), "ok", ""},
		{called("closes", `1`), "ok", ""},
		{called("silences", `1`), "ok", ""},
		{called("replaces", `1`), "ok", ""},
		{called("redirects", `1`), "ok", ""},
		{called("keys", `{"1":2}`), "wrong_answer", "keys: it returned a dict with the key 1, and the names in a JSON object are strings"},
		{called("endless", `1`), "wrong_answer", "it returned inf, and JSON has no such number"},
		{called("gen", ``), "ok", ""},
		{called("half", `"\ufffd"`), "wrong_answer", "half a surrogate pair, which is no text"},
		{called("gen", `[1]`), "wrong_answer", "it returned a value of type generator, which is no JSON value"},
		{called("nested", `[]`), "wrong_answer", "nested too deeply, or that contains itself"},
		{called("big", `1`+strings.Repeat("0", 5000)), "ok", ""},
		{called("later", `7`, `7`), "ok", ""},
		{called("fails", `1`), "nonzero_exit", "ValueError: no luck"},
		{called("leaves", `1`), "wrong_answer", "leaves: the program ended the process before the function returned"},
		{called("vanishes", `1`), "wrong_answer", "vanishes: the program ended the process before the function returned"},
		{called("forges", `1`), "wrong_answer", "forges: got 2, expected 1"},
		{called("Solution.twoSum", `[0,1]`, `[2,7,11,15]`, `9`), "ok", ""},
		{called("missing", `1`), "nonzero_exit", "NameError: the program defines no 'missing', which the case calls"},
		{called("Solution.none", `1`), "nonzero_exit", "NameError: the class 'Solution' of the program has no method 'none', which the case calls"},
		{called("add", `1`), "nonzero_exit", "TypeError: add() missing 1 required positional argument: 'a'"},
	}
	c := api.Code{Language: "python", Source: functions}
	for _, one := range cases {
		c.Cases = append(c.Cases, one.c)
	}
	for _, rt := range runtimes(t) {
		t.Run(rt.Name(), func(t *testing.T) {
			t.Parallel()
			r := evaluate(t, t.Context(), rt, nil, code(t, c))
			if len(r.result.Cases) != len(cases) {
				t.Fatalf("%d cases: %+v", len(r.result.Cases), r.err)
			}
			for i, want := range cases {
				got := r.result.Cases[i]
				if got.Verdict != want.verdict || !strings.HasSuffix(got.Message, want.message) || want.message == "" && got.Message != "" {
					t.Errorf("%s: %s %q, want %s %q; stderr %s", got.Name, got.Verdict, got.Message, want.verdict, want.message, got.Stderr)
				}
				if strings.Contains(got.Stderr, "pawl-call") || strings.Contains(got.Stderr, "importlib") {
					t.Errorf("%s: the traceback has frames that are not the program's: %s", got.Name, got.Stderr)
				}
			}
			first, wrong := r.result.Cases[0], r.result.Cases[3]
			if first.Stdout != "loaded True\nadding\n" || first.StdoutBytes != int64(len(first.Stdout)) || string(first.Returned) != "3" {
				t.Errorf("%+v", first)
			}
			if wrong.Mismatch == nil || *wrong.Mismatch != (api.CaseMismatch{Got: "3", Want: "4"}) {
				t.Errorf("%+v", wrong.Mismatch)
			}
		})
	}
}

// With tolerances, numbers in the returned value may be near the expected ones.
func TestCallsWithTolerance(t *testing.T) {
	t.Parallel()
	need(t, "python")
	c := api.Code{Language: "python", Source: "def f(): return {'x': [0.1 + 0.2, 7]}", Compare: &api.Comparison{Mode: "numeric"},
		Cases: []api.Case{called("f", `{"x":[0.3,7]}`)}}
	if r := evaluate(t, t.Context(), runtimes(t)[0], nil, code(t, c)); r.err != nil {
		t.Errorf("%+v", r.err)
	}
	c.Compare = nil
	if r := evaluate(t, t.Context(), runtimes(t)[0], nil, code(t, c)); verdicts(r.result) != "1=wrong_answer" {
		t.Errorf("%s", verdicts(r.result))
	}
}
