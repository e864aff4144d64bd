package orchestration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// The evaluation of one task has one bound for all its values, because a transaction's budget is checked between tasks only: otherwise a
// costly env, if, foreach and with could use as many bounds of a value in one transaction as the task has values.
func TestTakeBoundsATask(t *testing.T) {
	t.Parallel()
	const costly = `${{ input.l.map(a, input.l.map(b, a + b)).size() }}` // about 800,000 operations
	four := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%q, ", costly), 4), ", ")
	for name, task := range map[string]string{
		"env, if and with": fmt.Sprintf("env: {A: %q, B: %[1]q}, if: %q, with: {v: [%s]}", costly, strings.Trim(costly, "${} ")+" > 0", four),
		"with and keys":    fmt.Sprintf("with: {v: [%s]}, concurrency: {key: %q, limit: 1, fair_by: %[2]q}, rate: {key: %[2]q, limit: 1, per: 1m}", four, costly),
	} {
		defs, err := definition.Parse("w.yaml", fmt.Appendf(nil, "{name: w, input: {type: object}, tasks: {t: {action: noop, %s}}}", task))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		w := defs[0].Workflow
		st := &State{Tasks: make([]Progress, len(w.Tasks))}
		var plan Plan
		facts := &Facts{Input: json.RawMessage(`{"l": [` + strings.Repeat("1, ", 230) + `1]}`), Most: 10, MostBytes: 1 << 20, MostWork: 200_000}
		Take(w, st, Step{Start: []Start{{Task: 0, Success: true}}}, facts, &plan)
		if plan.Work > 7_200_000 {
			t.Errorf("%s: it took %d operations", name, plan.Work)
		}
		if e := st.Tasks[0].Error; e == nil || e.Code != flow.CodeExpressionError || !strings.Contains(e.Message, "more than 5000000 operations together") {
			t.Errorf("%s: after %d operations: %+v", name, plan.Work, e)
		}
	}
}
