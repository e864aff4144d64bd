package definition

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cel.dev/cel-go/common/types"

	"github.com/pawl-run/pawl/internal/flow"
)

// A decoded value is written as its form in CEL is, and counts as many values.
func TestEncodedAsCELWouldBe(t *testing.T) {
	t.Parallel()
	many := strings.Builder{}
	for i := range 40 {
		fmt.Fprintf(&many, `,"k%d":%d`, (i*7)%40, i)
	}
	for text, want := range map[string]string{
		`{"b":[1,2.5,-0.0,1e300,5.0,9007199254740993,true,false,null],"a":{"x":"<é\"\n"}}`: `{"a":{"x":"<é\"\n"},"b":[1,2.5,0,1e+300,5,9007199254740993,true,false,null]}`,
		`[{"z":{},"y":[]},[[{"n":1e21}]],"text"]`:                                          `[{"y":[],"z":{}},[[{"n":1e+21}]],"text"]`,
		`{"k":1` + many.String() + `}`:                                                     "",
		`7`:                                                                                `7`,
	} {
		v, err := decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		e := encoder{maxResult, maxEncoded}
		got, err := e.decoded(nil, v, 0)
		if err != nil || want != "" && string(got) != want {
			t.Errorf("%s is written as %s, %v; want %s", text, got, err, want)
		}
		again := encoder{maxResult, maxEncoded}
		if cels, err := again.value(nil, types.DefaultTypeAdapter.NativeToValue(v), 0); err != nil || string(cels) != string(got) {
			t.Errorf("%s is written as %s, and as %s from CEL (%v)", text, got, cels, err)
		}
		if again.left != e.left {
			t.Errorf("%s counts as %d values, and as %d from CEL", text, maxEncoded-e.left, maxEncoded-again.left)
		}
	}
	results := map[string]*Result{
		"b": {Status: StatusCompleted, Output: json.RawMessage(`{"y":[1.0,{"b":2,"a":1}],"x":"t"}`)},
		"a": {Status: StatusFailed, Error: &flow.Error{Code: "boom", Message: `it "went" off`}},
		"c": {Status: StatusCompleted, Items: []json.RawMessage{json.RawMessage(`1`), nil, json.RawMessage(`{"i":2}`)}},
		"d": {Status: StatusSkipped},
	}
	const want = `{"a":{"error":{"code":"boom","message":"it \"went\" off"},"output":null,"status":"failed"},` +
		`"b":{"error":null,"output":{"x":"t","y":[1,{"a":1,"b":2}]},"status":"completed"},` +
		`"c":{"error":null,"output":[1,null,{"i":2}],"status":"completed"},"d":{"error":null,"output":null,"status":"skipped"}}`
	vars := func() *Vars {
		return &Vars{Task: func(name string) *Result { return results[name] }, Upstream: []string{"c", "b", "d", "gone", "a"}}
	}
	for _, text := range []string{"tasks", " tasks ", "(tasks)", "true ? tasks : tasks", "[tasks][0]", `{"t": tasks}.t`} {
		e := &expression{"outputs", newCompiled(text, scopeTask)}
		if got, err := e.eval(vars()); err != nil || string(got) != want {
			t.Errorf("%s is\n%s, %v; want\n%s", text, got, err, want)
		}
	}
	results["b"].Unread = errTooLarge
	for _, text := range []string{"tasks", "[tasks][0]"} {
		e := &expression{"outputs", newCompiled(text, scopeTask)}
		if got, err := e.eval(vars()); err == nil || !strings.Contains(err.Error(), "outputs: ${{ "+text+" }}: tasks.b.output: ") {
			t.Errorf("%s with an output that was not read is %s, %v", text, got, err)
		}
	}
}
