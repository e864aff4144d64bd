package replay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// Under its own definition a run does not differ.
func TestOwnDefinitionChangesNothing(t *testing.T) {
	t.Parallel()
	g := newGenerator(11)
	for i := range 5000 {
		r := g.workflow()
		c := Compare(r, r.Workflow.Definition)
		for _, k := range c.Tasks {
			if k.Change != Same && r.Execution.Stage == flow.Completed {
				t.Fatalf("run %d: %+v\n%s", i, k, describe(r, &Result{}))
			}
		}
		if r.Execution.Stage == flow.Completed && !c.EndsAlike {
			t.Fatalf("run %d ends as %s %s\n%s", i, c.Stage, c.Outcome.Output, describe(r, &Result{}))
		}
	}
}

func workflowOf(t *testing.T, text string) *definition.Workflow {
	t.Helper()
	defs, err := definition.Parse("w.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return defs[0].Workflow
}

func TestAnotherDefinition(t *testing.T) {
	t.Parallel()
	const recorded = `
name: w
tasks:
  a: {action: noop, with: {n: 1}}
  b: {action: noop, needs: [a], with: {n: "${{ tasks.a.output.index }}"}}
  c: {action: noop, needs: [b], if: "tasks.b.output.index == 0", with: {n: 3}}
  d: {action: noop, foreach: "${{ [1, 2, 3] }}", with: {n: "${{ item }}"}}
`
	var r *Record
	for g := newGenerator(12); r == nil || r.Execution.Stage != flow.Completed; {
		r = g.run(workflowOf(t, recorded))
	}
	for _, c := range []struct {
		name, from, to string
		want           []string
	}{
		{"the same", "", "", []string{"a same", "b same", "c same", "d same", "ends alike"}},
		{"skipped now", "index == 0", "index == 1", []string{"a same", "b same", "c differs started skipped", "d same", "ends alike"}},
		{"mapped differently", "with: {n: 1}", "with: {n: 2}", []string{"a input started started [0]", "b not known", "c not known", "d same", "not known"}},
		{"one item is given something else", "[1, 2, 3]", "[1, 5, 3]", []string{"a same", "d input 3 items 3 items [1]", "not known"}},
		{"more items", "[1, 2, 3]", "[1, 2, 3, 4]", []string{"d differs 3 items 4 items", "not known"}},
		{"fewer items", "[1, 2, 3]", "[1, 2]", []string{"d differs 3 items 2 items", "ends alike"}},
		{"runs something else", "b: {action: noop", "b: {action: sleep", []string{"b input", "c not known"}},
		{"removed", "  d: {action: noop, foreach: \"${{ [1, 2, 3] }}\", with: {n: \"${{ item }}\"}}\n", "", []string{"d removed 3 items", "ends alike"}},
		{"added", "tasks:\n", "tasks:\n  e: {action: noop}\n", []string{"e added", "a same", "not known"}},
		{"an expression that fails", "${{ tasks.a.output.index }}", "${{ tasks.a.output.nothing }}", []string{"b differs started failed expression", "c differs started skipped", "failed"}},
	} {
		text := strings.Replace(recorded, c.from, c.to, 1)
		if c.name == "runs something else" {
			text = strings.Replace(text, `with: {n: "${{ tasks.a.output.index }}"}`, `with: {for: "${{ tasks.a.output.index }}"}`, 1)
		}
		got := Compare(r, workflowOf(t, text))
		var said strings.Builder
		for _, k := range got.Tasks {
			said.WriteString(strings.Join([]string{k.Task, string(k.Change), k.Recorded, k.Would}, " "))
			if len(k.Items) > 0 {
				fmt.Fprintf(&said, " %v", k.Items)
			}
			said.WriteString("\n")
		}
		switch {
		case got.EndsAlike:
			said.WriteString("ends alike")
		case got.Stage == 0:
			said.WriteString("the end is not known")
		default:
			said.WriteString(got.Stage.String())
		}
		for _, want := range c.want {
			if !strings.Contains(said.String(), want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, said.String())
			}
		}
	}
}
