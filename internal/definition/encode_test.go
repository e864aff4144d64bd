package definition

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/definition/compute"
	"github.com/pawl-run/pawl/internal/flow"
)

// The results of tasks are written as an object by their names, regardless of where an expression gets it from.
func TestResultsAsCELWouldWriteThem(t *testing.T) {
	t.Parallel()
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
	results["b"].Unread = compute.ErrTooLarge
	for _, text := range []string{"tasks", "[tasks][0]"} {
		e := &expression{"outputs", newCompiled(text, scopeTask)}
		if got, err := e.eval(vars()); err == nil || !strings.Contains(err.Error(), "outputs: ${{ "+text+" }}: tasks.b.output: ") {
			t.Errorf("%s with an output that was not read is %s, %v", text, got, err)
		}
	}
}
