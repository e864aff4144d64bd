package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/jsonvalue"
)

// templateOf compiles a JSON or YAML value, in the scope of a foreach task's with.
func templateOf(t testing.TB, value string) (*Template, error) {
	t.Helper()
	src := "name: w\ntasks:\n  a: {action: noop}\n  load-data: {action: noop}\n  many: {action: noop}\n  t:\n    action: noop\n" +
		"    needs: [a, load-data, many]\n    foreach: [{name: it, k: 1}]\n    with:\n      v: " + value + "\n"
	defs, err := Parse("t.yaml", []byte(src))
	if err != nil {
		return nil, err
	}
	return defs[0].Workflow.Task("t").With, nil
}

func testVars() *Vars {
	v := &Vars{
		Input: json.RawMessage(`{"n": 5, "f": 5.0, "half": 2.5, "s": "text", "list": [3,1,2], "deep": {"a": [{"b": "c"}]}, "nil": null,
			"big": 9223372036854775807, "huge": 12345678901234567890, "yes": true, "uni": "h\u00e9\ud83d\ude00", "empty": "", "a-b": 1}`),
		ID: "ex_1", Name: "w",
		Labels: map[string]string{"team": "x"},
		Env:    map[string]string{"HOME": "/tmp"},
		Task: func(name string) *Result {
			switch name {
			case "a":
				return &Result{Status: StatusCompleted, Output: json.RawMessage(`{"x": 1, "text": "[1, 2]"}`)}
			case "load-data":
				return &Result{Status: StatusFailed, Error: &flow.Error{Code: "oom", Message: "too much"}}
			case "many":
				return &Result{Status: StatusCompleted, Items: []json.RawMessage{[]byte(`{"score": 2, "n": "b"}`), nil, []byte(`{"score": 1.5, "n": "a"}`)}}
			}
			return nil
		},
	}
	return v.At(json.RawMessage(`{"name": "it", "k": 1}`), 4)
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ value, want string }{
		// Types are kept.
		{`${{ input.n }}`, `5`},
		{`${{ input.s }}`, `"text"`},
		{`${{ input.yes }}`, `true`},
		{`${{ input.nil }}`, `null`},
		{`${{ input.list }}`, `[3,1,2]`},
		{`${{ input.deep.a[0].b }}`, `"c"`},
		{`"${{ input.deep['a'][0][\"b\"] }}"`, `"c"`},
		{`${{ input["a-b"] }}`, `1`},
		{`${{ input.uni }}`, `"h\u00e9\ud83d\ude00"`},
		{`${{ input.huge }}`, `12345678901234567890`},
		{`${{ item.name }}`, `"it"`},
		{`${{ index }}`, `4`},
		{`${{ workflow.id }}`, `"ex_1"`},
		{`${{ labels.team + env.HOME }}`, `"x/tmp"`},
		{`plain`, `"plain"`},
		{`{a: [1, "${{ input.n }}", {b: "${{ item.k }}"}]}`, `{"a":[1,5,{"b":1}]}`},
		// Mixed text becomes a string.
		{`"n=${{ input.n }} s=${{ input.s }} l=${{ input.list }} z=${{ input.nil }}."`, `"n=5 s=text l=[3,1,2] z=."`},
		{`"a $${{ input.n }} b"`, `"a ${{ input.n }} b"`},
		{`"${{ '}}' }}${{ {'a': {'b': 1}} }}"`, `"}}{\"a\":{\"b\":1}}"`},
		// A float with an integer value is an integer, however it is written.
		{`${{ input.f + 1 }}`, `6`},
		{`${{ input.n / 2 }}`, `2`},
		{`${{ input.half * 2.0 }}`, `5`},
		{`${{ double(input.n) / 2.0 }}`, `2.5`},
		{`${{ input.n > input.half }}`, `true`},
		{`${{ input.big - 1 }}`, `9223372036854775806`},
		{`"${{ input.n == 5.0 ? 'yes' : 'no' }}"`, `"yes"`},
		// Tasks.
		{`${{ tasks.a.output.x + 1 }}`, `2`},
		{`${{ tasks.a.status }}`, `"completed"`},
		{`${{ tasks["load-data"].error.code }}`, `"oom"`},
		{`${{ tasks["load-data"].output }}`, `null`},
		{`${{ tasks["load-data"] }}`, `{"error":{"code":"oom","message":"too much"},"output":null,"status":"failed"}`},
		{`${{ tasks.many.output }}`, `[{"score": 2, "n": "b"},null,{"score": 1.5, "n": "a"}]`},
		{`${{ tasks.many.output[2].n }}`, `"a"`},
		{`${{ tasks.many.output.map(o, default(o.score, 0)) }}`, `[2,0,1.5]`},
		{`${{ tasks.many.output.filter(o, o != null).sortBy(o, o.n).map(o, o.n) }}`, `["a","b"]`},
		// Functions.
		{`${{ default(input.absent, 7) }}`, `7`},
		{`${{ default(input.nil, input.n) }}`, `5`},
		{`${{ default(input.n, 7) }}`, `5`},
		{`${{ input.?absent.orValue('none') }}`, `"none"`},
		{`${{ has(input.absent) }}`, `false`},
		{`${{ json(input.deep) }}`, `"{\"a\":[{\"b\":\"c\"}]}"`},
		{`${{ parse_json(tasks.a.output.text)[1] + 1 }}`, `3`},
		{`${{ sum(input.list) }}`, `6`},
		{`${{ sum([1, 2.5]) }}`, `3.5`},
		{`${{ input.list.sort() }}`, `[1,2,3]`},
		{`${{ input.list.map(x, string(x)).join(",") }}`, `"3,1,2"`},
		{`${{ size(input.list) }}`, `3`},
		{`${{ math.greatest(input.list) }}`, `3`},
		{`${{ input.s.upperAscii() }}`, `"TEXT"`},
		{`${{ base64.encode(bytes(input.s)) }}`, `"dGV4dA=="`},
		{`${{ sets.contains([1, 2], [1]) }}`, `true`},
		{`"${{ {'b': 1, 'a': [true, null]} }}"`, `{"a":[true,null],"b":1}`},
		{`"${{ timestamp('2026-01-02T03:04:05Z') + duration('60s') }}"`, `"2026-01-02T03:05:05Z"`},
	} {
		t.Run(tc.value, func(t *testing.T) {
			t.Parallel()
			tpl, err := templateOf(t, tc.value)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tpl.Eval(testVars())
			if err != nil {
				t.Fatal(err)
			}
			if want := `{"v":` + tc.want + `}`; string(got) != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if !json.Valid(got) {
				t.Errorf("%s is not JSON", got)
			}
		})
	}
}

// TestPathsAgreeWithCEL evaluates each path with and without CEL.
func TestPathsAgreeWithCEL(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"input", "input.n", "input.deep.a[0].b", "input.list[2]", "input.nil", "input['a-b']", "item", "item.k", "index", "workflow.name",
		"labels", "labels.team", "env.HOME", "tasks.a.output", "tasks.a.output.x", "tasks.a.status", "tasks.many.output", "tasks.many.output[0].score",
		"tasks.many.output[1]", "tasks.a.error", `tasks["load-data"].error.message`,
		"input.absent", "input.n.x", "input.list[3]", "input.list.x", "input.deep[0]", "labels.absent", "tasks.many.output[9]", "tasks.many.output[1].n",
		"tasks.a.output.x.y", `tasks["load-data"].output.x`, `tasks["load-data"].status.x`,
	} {
		fast := &expression{field: "f", compiled: newCompiled(text, scopeItem)}
		if fast.path == nil {
			t.Errorf("%s is not taken for a path", text)
			continue
		}
		slow := &expression{field: "f", compiled: newCompiled("("+text+")", scopeItem)}
		a, errA := fast.eval(testVars())
		b, errB := slow.eval(testVars())
		if (errA == nil) != (errB == nil) {
			t.Errorf("%s: path %s (%v), CEL %s (%v)", text, a, errA, b, errB)
			continue
		}
		if errA == nil {
			x, err := jsonvalue.Decode(a)
			if err != nil {
				t.Fatal(err)
			}
			y, err := jsonvalue.Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(x) != fmt.Sprint(y) {
				t.Errorf("%s: path %s, CEL %s", text, a, b)
			}
		}
	}
}

func TestEvaluationErrorsSayWhat(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		value string
		want  []string
	}{
		{`${{ input.absent }}`, []string{"tasks.t.with.v", "${{ input.absent }}", `has no "absent"`, `"deep"`}},
		{`${{ input.n.x }}`, []string{"input.n is a number"}},
		{`${{ input.list[3] }}`, []string{"element 3", "3 elements"}},
		{`${{ input.absent + 1 }}`, []string{"no such key", "default(", `input has no "absent": it has "big", "deep"`}},
		{`${{ input.deep.absent == 1 || false }}`, []string{`input.deep has no "absent": it has "`}},
		{`${{ [1].map(x, x + input["absent"]) }}`, []string{`input has no "absent": it has "big", "deep"`}},
		{`${{ input.s + 1 }}`, []string{"+ does not take a string and an integer", "string(x)", "int(x)"}},
		{`${{ input.n * 1.5 }}`, []string{"* does not take an integer and a number with a fraction", "double(x)"}},
		{`${{ [1, 2].map(x, input.s < x) }}`, []string{"< does not take a string and an integer", "int(x)"}},
		{`${{ input.s in input.n }}`, []string{"in does not take a string and an integer"}},
		{`${{ -input.s }}`, []string{"- does not take a string", "int()"}},
		{`${{ input.n + input["nil"] }}`, []string{"+ does not take an integer and null", "default("}},
		{`${{ size(input.n) }}`, []string{"size() does not take an integer"}},
		{`${{ input.n.startsWith("a") }}`, []string{"startsWith() does not take an integer and a string", "string(x)"}},
		{`${{ input.list + input.s }}`, []string{"+ does not take a list and a string"}},
		{`${{ (input.s - 1 == 1 || true) && input.deep - 1 == 0 }}`, []string{"- does not take an object and an integer"}},
		{`${{ [1].exists(x, input.s - x == 1) }}`, []string{"- does not take a string and an integer"}},
		{`${{ math.greatest(input.s, 1) }}`, []string{"math.greatest() does not take a string and an integer"}},
		{`"${{ input.s ? 1 : 2 }}"`, []string{"no such overload"}},
		{`${{ input.n / (input.n - input.n) }}`, []string{"division by zero"}},
		{`${{ parse_json(input.s) }}`, []string{"parse_json"}},
		{`${{ parse_json(input.s.replace(input.s, "")) }}`, []string{"empty"}},
		{`${{ 1.0 / 0.0 }}`, []string{"no JSON form"}},
		{`${{ tasks["load-data"].output.x }}`, []string{"null", "failed"}},
		{`"x ${{ input.absent }} y"`, []string{"tasks.t.with.v", "absent"}},
	} {
		tpl, err := templateOf(t, tc.value)
		if err != nil {
			t.Errorf("%s: %v", tc.value, err)
			continue
		}
		_, err = tpl.Eval(testVars())
		var ee *EvalError
		if !errors.As(err, &ee) {
			t.Errorf("%s: the error is %v", tc.value, err)
			continue
		}
		for _, w := range tc.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", tc.value, err, w)
			}
		}
	}
}

// TestHostileExpressionsStop checks that an evaluation takes at most a tenth of a second, here ten times as much for machines that are busy
// with other tests. TestNoFunctionIsCheap calls every function on large values as often as the cost allows.
func TestNoFunctionIsCheap(t *testing.T) {
	for i, call := range []string{
		"size(bigs) > 0", "bigs.size() > 0", "bigs == bigs", "bigs != bigs + 'x'", "bigs < bigs", "bigs + 'x' != ''", "string(bigs) != ''", "bytes(bigs) != b''",
		"bigs.contains('b')", "bigs.startsWith(bigs)", "bigs.endsWith(bigs)", "bigs.charAt(99999) != ''", "bigs.substring(99998, 99999) != ''",
		"bigs.substring(99998) != ''", "bigs.indexOf('b') < 0", "bigs.lastIndexOf('b') < 0", "bigs.lowerAscii() != ''", "bigs.upperAscii() != ''", "bigs.trim() != ''",
		"bigs.replace('b', 'c') != ''", "bigs.split('b') != []", "bigs.reverse() != ''", "'%s'.format([bigs]) != ''", "bigs.matches('^b')", "bigs.matches('a$')",
		"base64.encode(bytes(bigs)) != ''", "json(bigs) != ''", "json(list) != ''", "default(bigs, 1) != 1", "type(bigs) == string", "bigs in [bigs]", "bigs in {bigs: 1}",
		"list == list", "list != []", "size(list) > 0", "1 in list", "-1 in list", "list + list != []", "[list] == [list]", "list.first().hasValue()", "list.last().hasValue()",
		"list.slice(0, 1) != []", "list.reverse() != []", "list.flatten() != []", "list.distinct() != []", "list.sort() != []", "list.sortBy(x, x) != []", "sum(list) > 0",
		"sets.contains(list, [1])", "sets.intersects(list, [-1])", "sets.equivalent(list, [1])", "math.greatest(list) > 0", "math.least(list) >= 0", "list.map(x, x) != []",
		"list.filter(x, false) == []", "list.exists(x, x < 0)", "list.exists_one(x, x == 0)", "map == map", "size(map) > 0", "'k1' in map", "'x' in map", "map.exists(k, k == 'x')",
		"map.transformList(k, v, v) != []", "map.transformMap(k, v, v) != {}", "has(map.k1)", "map.?x.hasValue()", "optional.of(list) == optional.of(list)",
		"optional.ofNonZeroValue(list).hasValue()", "{'a': list} == {'a': list}", "[list, bigs, map] != []", "cel.bind(x, bigs + bigs, size(x)) > 0", "parse_json(nums) != []",
		"dyn(bigs) == dyn(list)", "timestamp('2026-01-01T00:00:00Z') < timestamp('2027-01-01T00:00:00Z')", "int('123') > 0", "double('1.5') > 0.0", "bool('true')",
	} {
		if slack > 1 && i%10 != 0 {
			continue // a few are enough for the race detector; the plain run does all
		}
		text := "lists.range(100000).all(i, " + call + " || true) && lists.range(100000).all(j, lists.range(100000).all(i, " + call + " || true))"
		for name, path := range map[string]string{"bigs": "input.big", "list": "input.list", "map": "input.map", "nums": "input.nums"} {
			text = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(text, path)
		}
		e := &expression{field: "f", compiled: newCompiled(text, scopeItem)}
		if e.compile(); len(e.issues) > 0 {
			t.Errorf("%s: %v", call, e.issues)
			continue
		}
		v := (&Vars{Input: bigInput()}).At(nil, 0)
		_, took, err := timed(t, e, v)
		if took > slack*time.Second || err == nil {
			t.Errorf("%s takes %s (%v)", call, took, err)
		} else if took > slack*200*time.Millisecond {
			t.Logf("%s takes %s", call, took)
		}
	}
}

// timed evaluates, and returns the elapsed time, or the processor time if that is less: on a busy machine a process may wait without using
// its processor.
func timed(t *testing.T, e *expression, v *Vars) (out json.RawMessage, took time.Duration, err error) {
	t.Helper()
	took = spent(t, func() { out, err = e.eval(v) })
	return out, took, err
}

// spent returns the time of f by the clock, or that of this process on processors where that is less, as on a busy machine.
func spent(t *testing.T, f func()) time.Duration {
	t.Helper()
	start, before := time.Now(), processorTime(t)
	f()
	return min(time.Since(start), processorTime(t)-before)
}

// processorTime returns the processor time that this process has used so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// bigInput has a text of 100 KB, a list and an object of 10,000 members.
var bigInput = sync.OnceValue(func() json.RawMessage {
	list := make([]string, 10_000)
	object := make([]string, 10_000)
	for i := range list {
		list[i] = fmt.Sprint(i)
		object[i] = fmt.Sprintf(`"k%d":%d`, i, i)
	}
	nums := strings.Join(list, ",")
	return json.RawMessage(`{"big":"` + strings.Repeat("a", 100_000) + `","list":[` + nums + `],"map":{` + strings.Join(object, ",") + `},"nums":"[` + nums + `]"}`)
})

func TestHostileExpressionsStop(t *testing.T) {
	const r = "lists.range(1000)"
	for name, text := range map[string]string{
		"nested loops":      r + ".all(a, " + r + ".all(b, " + r + ".all(c, a + b + c >= 0)))",
		"string doubling":   r + ".map(a, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx').map(a, [a,a,a,a,a,a,a,a].join(a)).map(a, [a,a,a,a,a,a,a,a].join(a)).join('')",
		"regex compiled":    r + ".all(a, 'x'.matches('((((a{5}){5}){5}){3})b*' + string(a)) == false)",
		"regex repeated":    r + ".all(a, 'x'.matches('((((((a{3}){3}){3}){3}){3}){9})') == false)",
		"regex long":        "bigs.matches('(a?){90}(a?){90}(a?){90}b')",
		"split":             "[1,1,1,1,1,1,1,1,1].map(a, bigs.split(''))",
		"binds":             "cel.bind(a, [1,1,1], cel.bind(b, [a,a,a], cel.bind(c, [b,b,b,b,b,b], cel.bind(d, [c,c,c,c,c,c,c,c,c], cel.bind(e, [d,d,d,d,d,d,d,d,d], cel.bind(f, [e,e,e,e,e,e,e,e,e], cel.bind(g, [f,f,f,f,f,f,f,f,f], cel.bind(h, [g,g,g,g,g,g,g,g,g], h == h || dyn(h) in [dyn(h)] || [h, h].distinct() == [h]))))))))",
		"overflowing size":  "[[1]]" + strings.Repeat(".map(a, a+a+a+a+a+a+a+a)", 22) + ".map(a, a.sort())",
		"overflowing loop":  "[[1]]" + strings.Repeat(".map(a, a+a+a+a+a+a+a+a)", 22) + ".map(a, a.map(x, x))",
		"long sum of lists": "(" + strings.Repeat("[1,2,3,4,5,6,7,8,9]+", 90) + "[1]).map(x, x).sort()",
		"transform map":     "lists.range(10000).transformMapEntry(i, v, {string(v): v}).size()",
		"transform list":    "lists.range(100000).transformList(i, v, [i, v]).size()",
		"index of":          "lists.range(1000).all(i, bigs.indexOf(bigs + 'b') < 0 && bigs.lastIndexOf('ba') < 0)",
		"format in loops":   r + ".map(i, '%999.999f%s'.format([1.5, " + r + "]))",
		"substrings":        "lists.range(100000).all(i, bigs.substring(i).size() > 0)",
		"free loops":        "lists.range(100000).all(a, lists.range(100000).all(b, lists.range(100000).all(c, true)))",
		"free and wide":     "lists.range(100000).all(a, lists.range(100000).all(b, " + strings.Repeat("true && ", 700) + "true))",
		"free ternaries":    "lists.range(100000).all(a, lists.range(100000).all(b, " + strings.Repeat("false ? false : ", 90) + "true))",
		"free literals":     "lists.range(100000).all(a, lists.range(100000).all(b, [" + strings.Repeat("{},", 700) + "{}] != []))",
		"free lists":        "lists.range(100000).all(a, lists.range(100000).all(b, [" + strings.Repeat("b,", 1500) + "b] != []))",
		"big ranges":        "lists.range(100000).map(a, lists.range(100000))",
		"flatten":           r + ".map(a, " + r + ").flatten().map(a, a).sort().distinct()",
		"distinct":          "lists.range(100000).distinct()",
		"sort":              "lists.range(100000).reverse().sort()",
		"sets":              "sets.contains(lists.range(100000), lists.range(100000))",
		"in":                "lists.range(100000).all(x, x in lists.range(100000))",
		"regex":             r + ".all(a, ('a' + string(a) + 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa').matches('(a|a)*(a|a)*(a|a)*b'))",
		"replace":           "bigs.replace('a', bigs)",
		"format":            "'%s%s%s%s'.format([bigs, bigs, bigs, bigs])",
		"split and join":    "bigs.split('').join(bigs)",
		"json of big":       r + ".map(a, json(" + r + "))",
		"parse_json of big": "lists.range(100).map(a, parse_json('[' + lists.range(10000).map(x, string(x)).join(',') + ']'))",
		"deep sharing":      "[[1,1,1,1,1,1,1,1]].map(a, [a,a,a,a,a,a,a,a]).map(a, [a,a,a,a,a,a,a,a]).map(a, [a,a,a,a,a,a,a,a]).map(a, [a,a,a,a,a,a,a,a]).map(a, [a,a,a,a,a,a,a,a]).map(a, [a,a,a,a,a,a,a,a]).map(a,[a,a,a,a,a,a,a,a])",
		"list doubling":     "[[1,1,1,1,1,1,1,1]].map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, size(a))",
		"equality":          "[lists.range(100000)].all(a, lists.range(1000).all(b, a == a))",
		"zones":             "lists.range(100000).all(i, timestamp('2026-01-01T00:00:00Z').getHours(['Europe/Berlin', 'Asia/Tokyo'][i % 2]) >= 0)",
		"sum":               "lists.range(10000).all(a, sum(lists.range(100000)) > 0)",
	} {
		text = strings.ReplaceAll(text, "bigs", "input.big")
		e := &expression{field: "f", compiled: newCompiled(text, scopeItem)}
		if e.compile(); len(e.issues) > 0 {
			t.Errorf("%s: %v", name, e.issues)
			continue
		}
		v := (&Vars{Input: json.RawMessage(`{"big": "` + strings.Repeat("a", 100_000) + `"}`)}).At(nil, 0)
		out, took, err := timed(t, e, v)
		t.Logf("%-18s %8s  %d bytes, %v", name, took.Round(time.Millisecond), len(out), err != nil)
		if took > slack*time.Second {
			t.Errorf("%s takes %s (%v)", name, took, err)
		}
	}
}

// A condition that is one function of `if`, possibly negated, has the same value as in CEL.
func TestConditionsOfOneFunction(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"success()", "failed()", "cancelled()", "always()", "!success()", "!failed()", "!(cancelled())", "!!failed()", "!always()"} {
		e := &expression{field: "if", compiled: newCompiled(text, scopeIf)}
		c := &Condition{expr: e}
		for n := range 8 {
			v := &Vars{Success: n&1 != 0, Failed: n&2 != 0, Cancelled: n&4 != 0}
			got, err := c.Eval(v)
			if err != nil || e.sole == nil {
				t.Fatalf("%s: %v, taken apart: %v", text, err, e.sole != nil)
			}
			if want, err := e.run(v); err != nil || want.Value() != got {
				t.Errorf("%s with %+v is %v; CEL says %v, %v", text, v, got, want, err)
			}
		}
	}
	for _, text := range []string{"success() && true", "failed() ? true : false", "true", "input.yes"} {
		e := newCompiled(text, scopeIf)
		if e.compile(); e.sole != nil {
			t.Errorf("%s is taken for one function", text)
		}
	}
}
