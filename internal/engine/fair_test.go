package engine

import (
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
)

// Tasks of workflows, and wait lists without fair_by, keep their order.
func TestFairTasks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: w\ninput: {type: object}\ntasks:\n  a: {action: noop, concurrency: {key: k, limit: 1, fair_by: '${{ input.by }}', weight: 3}}\n  b: {action: noop, concurrency: {key: plain, limit: 1}}\n")
	w := r.submit(Submission{Action: "w", Input: []byte(`{"by":"ada"}`)})
	if x := r.get(r.child(w, "a", 0)); x.Fair != (flow.Fair{By: "ada", Weight: 3}) {
		t.Errorf("%+v", x.Fair)
	}
	if x := r.get(r.child(w, "b", 0)); x.Fair != (flow.Fair{}) {
		t.Errorf("%+v", x.Fair)
	}
}
