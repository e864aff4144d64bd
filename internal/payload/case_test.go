package payload

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/problem"
)

func TestCasesAreRead(t *testing.T) {
	t.Parallel()
	c, err := Code([]byte(`{"language":"py","source":"x","stop_on_failure":true,"compare":{"relative":1e-3},"cases":[
		{"name":"a","stdin":"in","args":["1"],"expect":"","limits":{"wall":1}},{"stdin":{"base64":"AA=="}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	none := api.Text("")
	want := []api.Case{{Name: "a", Stdin: api.Text("in"), Args: []string{"1"}, Expect: &none, Limits: api.CodeLimits{Wall: api.Duration(1e9)}},
		{Name: "2", Stdin: api.Content{Bytes: []byte{0}}}}
	if diff := cmp.Diff(want, c.Cases); diff != "" || !c.StopOnFailure || c.Compare.Mode != "numeric" || c.Compare.Relative == nil || *c.Compare.Relative != 1e-3 {
		t.Errorf("%s\n%+v", diff, c.Compare)
	}
	again, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Code(again); err != nil || !cmp.Equal(c, second) {
		t.Errorf("written and read again: %v\n%s", err, again)
	}
	if c, err := Code([]byte(`{"language":"c","source":"x","compare":{"checker":{"language":"py","source":"y"}},"cases":[{}]}`)); err != nil || c.Compare.Mode != "checker" || c.Compare.Checker.Language != "python" {
		t.Errorf("%+v, %v", c.Compare, err)
	}
}

const oneSum = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// An uploaded list replaces the cases, in both forms.
func TestCasesOfASet(t *testing.T) {
	t.Parallel()
	with := func(rest string) string { return `{"language":"python","source":"x",` + rest + `}` }
	for _, form := range []string{`"cases":{"set":"` + oneSum + `"}`, `"cases":[{"set":"` + oneSum + `"}]`} {
		c, err := Code([]byte(with(form + `,"stop_on_failure":true,"compare":"tokens"`)))
		if err != nil || SetOf(&c) != oneSum {
			t.Fatalf("%s: %+v, %v", form, c, err)
		}
		again, err := json.Marshal(c)
		if second, wrong := Code(again); err != nil || wrong != nil || !cmp.Equal(c, second) {
			t.Errorf("written and read again: %v, %v\n%s", err, wrong, again)
		}
		whole, err := WithSet(c, []byte(` [{"stdin":"1","expect":"2"},{"name":"b","args":["x"],"limits":{"wall":1}}]`))
		if err != nil || len(whole.Cases) != 2 || whole.Cases[0].Name != "1" || string(whole.Cases[0].Expect.Bytes) != "2" || whole.Cases[1].Name != "b" || !whole.StopOnFailure ||
			whole.Compare.Mode != "tokens" || whole.Source != "x" || SetOf(&whole) != "" {
			t.Errorf("%+v, %v", whole, err)
		}
	}
	c, err := Code([]byte(with(`"cases":{"set":"` + oneSum + `"},"compare":"exact"`)))
	if err != nil {
		t.Fatal(err)
	}
	for list, want := range map[string]string{
		`[]`: "0 cases", `{}`: "set", `[{"stdn":"1"}]`: `did you mean "stdin"`, `[{"call":{"function":"f"}}]`: "compare.mode", `[{},{"set":"` + oneSum + `"}]`: "cases[1].set",
		`{"set":"` + oneSum + `"}`: "a set names no other set", `[{"stdin":{"blob":"` + oneSum + `"}}]`: "names no other upload", `[{"expect":{"blob":"` + oneSum + `"}}]`: "names no other upload",
		`[{"name":"a"},{"name":"a"}]`: "has that name already", `[{}],"limits":{"wall":"1h"}`: "something follows the list", `[{}],"compare":"exact"`: "", `[1`: "", ``: "", `[],"source":"y","cases":[{}]`: "",
	} {
		if got, err := WithSet(c, []byte(list)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", list, got, err, want)
		}
	}
}

func TestBadCasesAreRefused(t *testing.T) {
	t.Parallel()
	with := func(rest string) string { return `{"language":"python","source":"x",` + rest + `}` }
	many := strings.TrimSuffix(strings.Repeat("{},", api.MaxCases+1), ",")
	for _, c := range []struct{ in, path, say string }{
		{with(`"cases":[]`), "cases", "0 cases (give 1 to 1000"},
		{with(`"cases":[` + many + `]`), "cases", "1001 cases"},
		{with(`"cases":{}`), "cases.set", "not the name of an upload"},
		{with(`"cases":7`), "cases", "should be a list"},
		{with(`"cases":{"set":"sha256:9f"}`), "cases.set", "not the name of an upload"},
		{with(`"cases":{"sets":"` + oneSum + `"}`), "cases.sets", `"set"`},
		{with(`"cases":[{"set":"` + oneSum + `","name":"a"}]`), "cases[0].set", "there is more beside it"},
		{with(`"cases":[{},{"set":"` + oneSum + `"}]`), "cases[1].set", "there is more beside it"},
		{with(`"cases":[7]`), "cases[0]", "should be an object"},
		{with(`"cases":[{"input":"x"}]`), "cases[0].input", `no such field: "input" (one of name, stdin, args, expect, call, limits, set)`},
		{with(`"cases":[{"name":"a"},{"name":"b"},{"name":"a"}]`), "cases[2].name", `case cases[0] has that name already: "a"`},
		{with(`"cases":[{"name":"2"},{}]`), "cases[1].name", "cases[0] has that name"},
		{with(`"cases":[{"name":"a\nb"}]`), "cases[0].name", "not a name"},
		{with(`"cases":[{"call":{"args":[1]}}]`), "cases[0].call.function", "missing"},
		{with(`"cases":[{"call":{"function":"a b"}}]`), "cases[0].call.function", "not the name of a function"},
		{with(`"cases":[{"call":{"function":"a.b.c"}}]`), "cases[0].call.function", `"Solution.add" for a method`},
		{with(`"cases":[{"call":{"fn_name":"add"}}]`), "cases[0].call.fn_name", "function"},
		{with(`"cases":[{"call":{"function":"add","args":{"a":1}}}]`), "cases[0].call.args", "should be a list"},
		{with(`"cases":[{"call":{"function":"add"},"stdin":"1"}]`), "cases[0].stdin", "reads no stdin"},
		{with(`"cases":[{"call":{"function":"add"},"args":["1"]}]`), "cases[0].args", "call.args"},
		{with(`"cases":[{"call":{"function":"add"},"expect":"1"}]`), "cases[0].expect", "call.expect"},
		{with(`"cases":[{},{"call":{"function":"add"}}],"compare":"exact"`), "compare.mode", `cases[1] calls a function`},
		{with(`"cases":[{"call":{"function":"add","args":[1,[{"a":-1e400}]]}}]`), "cases[0].call.args[1]", "it is too large a number: -1e400 (write one within 1.8e308"},
		{with(`"cases":[{"call":{"function":"add","kwargs":{"a":1E-400}}}]`), "cases[0].call.kwargs.a", "it is too small a number: 1E-400 (write 0"},
		{with(`"cases":[{"call":{"function":"add","expect":{"a":2e308}}}]`), "cases[0].call.expect", "too large"},
		{`{"language":"c","source":"x","cases":[{"call":{"function":"add"}}]}`, "cases[0].call", "functions of c programs cannot be called"},
		{with(`"cases":[{"limits":{"memory":"1B"}}]`), "cases[0].limits.memory", "not a size within the range"},
		{with(`"cases":[{"limits":{"output":"100MB"}}]`), "cases[0].limits.output", "held to be compared: 100MB (at most 64MiB)"},
		{with(`"cases":[{}],"limits":{"output":"100MB"}`), "limits.output", "held to be compared"},
		{with(`"cases":[{}],"compare":"fuzzy"`), "compare", `not a way to compare: "fuzzy" (one of exact, trimmed, tokens, numeric, checker, interactor)`},
		{with(`"cases":[{}],"compare":{"mode":"numeric","absolute":-1}`), "compare.absolute", "not a tolerance: -1 (write a number that is not negative"},
		{with(`"cases":[{}],"compare":{"checker":{"language":"c","source":"x","style":"icpc"}}`), "compare.checker.style", `not a way to call a checker: "icpc" (write "kattis"`},
		{with(`"cases":[{}],"compare":{"absolute":1e-400}`), "compare.absolute", "it is too small a number"},
		{with(`"cases":[{}],"compare":{"mode":"exact","absolute":0}`), "compare", `the mode "exact" has no tolerances`},
		{with(`"cases":[{}],"compare":{"checker":{"language":"c","source":"x","accept":[0,256]}}`), "compare.checker.accept", "it is not a list of exit codes: [0,256] (write whole numbers from 0 to 255"},
		{with(`"cases":[{}],"compare":{"checker":{"language":"c","source":"x","reject":0}}`), "compare.checker.reject", "it is a number and should be a list: 0"},
		{with(`"cases":[{}],"compare":{"checker":{"language":"c","source":"x","accept":[1]}}`), "compare.checker.accept", "the same exit code says right and wrong: 1 (give both accept and reject"},
		{with(`"cases":[{}],"compare":{"mode":"exact","relative":1}`), "compare", `the mode "exact" has no tolerances`},
		{with(`"cases":[{}],"compare":"checker"`), "compare.checker", "missing"},
		{with(`"cases":[{}],"compare":"interactor"`), "compare.interactor", "missing"},
		{with(`"cases":[{}],"compare":{"interactor":{"language":"c","source":"x"},"checker":{"language":"c","source":"x"}}`), "compare.interactor", `the mode "checker" has no interactor (leave one of the two out`},
		{with(`"cases":[{}],"compare":{"mode":"exact","interactor":{"language":"c","source":"x"}}`), "compare.interactor", `the mode "exact" has no interactor`},
		{with(`"cases":[{}],"compare":{"interactor":{"language":"c","source":"x","acept":[1]}}`), "compare.interactor.acept", "accept"},
		{with(`"cases":[{}],"compare":{"interactor":{"language":"c","source":"x","accept":[1]}}`), "compare.interactor.accept", "the same exit code says right and wrong: 1"},
		{with(`"cases":[{"call":{"function":"f"}}],"compare":{"interactor":{"language":"c","source":"x"}}`), "compare.mode", "calls a function"},
		{with(`"compare":{"interactor":{"language":"c","source":"x"}}`), "compare", "there are no cases"},
		{with(`"cases":[{}],"compare":{"mode":"tokens","checker":{"language":"c","source":"x"}}`), "compare.checker", "has no checker"},
		{with(`"cases":[{}],"compare":{"checker":{"language":"c","source":"x","files":{"input.txt":"x"}}}`), `compare.checker.files["input.txt"]`, `Pawl places the file "input.txt" itself (use another name)`},
		{with(`"cases":[{}],"compare":{"checker":{"language":"c","source":"x","files":{"expected.txt/a":"x"}}}`), `compare.checker.files["expected.txt/a"]`, `Pawl places the file "expected.txt" itself`},
		{with(`"cases":[{}],"compare":{"interactor":{"language":"c","source":"x","files":{"feedback":"x"}}}`), "compare.interactor.files.feedback", `Pawl places the file "feedback/judgemessage.txt" itself`},
		{with(`"cases":[{}],"compare":{"checker":{"source":"x"}}`), "compare.checker.language", "missing"},
		{with(`"cases":[{}],"compare":{"checker":{"language":"c","source":" "}}`), "compare.checker.source", "missing"},
		{with(`"cases":[{}],"stdin":"x"`), "stdin", "each case has its own"},
		{with(`"cases":[{}],"collect":["x"]`), "collect", "nothing is collected"},
		{with(`"cases":[{}],"interactive":true`), "interactive", "each case has its own"},
		{with(`"compare":"exact"`), "compare", "no cases"},
		{with(`"stop_on_failure":true`), "stop_on_failure", "no cases"},
	} {
		_, err := Code([]byte(c.in))
		errs, ok := errors.AsType[problem.List](err)
		if !ok || errs[0].Path != c.path || !strings.Contains(errs[0].String(), c.say) {
			t.Errorf("%.200s: %v", c.in, err)
		}
	}
}
