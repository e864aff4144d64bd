package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
)

// The error for an unknown name suggests names that may have been meant.
func TestNameOfNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fix := func(action string) string {
		t.Helper()
		var invalid *fault.Invalid
		if out := r.verdict(Submission{Action: action}); !errors.As(out.Err, &invalid) || invalid.Problems[0].Path != "action" {
			t.Fatalf("%s: %v", action, out.Err)
		}
		return invalid.Problems[0].Fix
	}
	if got := fix("elaborate"); !strings.Contains(got, "nothing is registered yet") || !strings.Contains(got, "noop") || strings.Contains(got, "workflow,") {
		t.Errorf("without definitions: %q", got)
	}
	r.define("kind: workflow\nname: greeting\ntasks: {a: {action: noop}}")
	r.define("kind: workflow\nname: greeting\ntasks: {b: {action: noop}}")
	r.define("kind: action\nname: sweep\naction: noop")
	r.define("kind: queue\nname: greetings")
	for action, want := range map[string]string{
		"greetin":    `did you mean "greeting"?`,
		"nop":        `did you mean "noop"?`,
		"swep@1":     `did you mean "sweep"?`,
		"greeting@7": "its latest version is 2: greeting@2, or greeting for the latest",
		"elaborate":  "there are greeting, sweep",
	} {
		if got := fix(action); !strings.Contains(got, want) {
			t.Errorf("%s: %q does not say %q", action, got, want)
		}
	}
	defs, err := definition.Parse("t.yaml", []byte("kind: workflow\nname: outer\ntasks: {a: {action: inne}}\n---\nkind: workflow\nname: inner\ntasks: {a: {action: noop}}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.e.Check(t.Context(), defs); err == nil || !strings.Contains(err.Error(), `did you mean "inner"?`) {
		t.Errorf("a task's action that is near one of the same file: %v", err)
	}
}
