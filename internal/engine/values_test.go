package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// hostileValues are values that an expression can return and that some store, header or environment of a program does not accept.
var hostileValues = []string{
	`"a\u0000b"`, `"\u0000"`, `"\ud800"`, `"\ufffe\u202e"`, `""`, `"` + strings.Repeat("k", 513) + `"`, `"` + strings.Repeat("x", 300<<10) + `"`,
	`null`, `true`, `-1`, `1e308`, `9223372036854775807`, `0.5`, `[]`, `[[[]]]`, `{}`, `{"a\u0000": "b\u0000"}`, `["a\u0000b", 1, null]`,
}

// valueFields are the places of a workflow for values of expressions, each as the settings of a task.
var valueFields = map[string]string{
	"with":                 `action: noop, with: {v: "${{ tasks.source.output.v }}"}`,
	"whole with":           `action: noop, with: "${{ tasks.source.output }}"`,
	"embedded text":        `action: noop, with: {v: "it is ${{ tasks.source.output.v }}."}`,
	"concurrency key":      `action: noop, concurrency: {key: "${{ tasks.source.output.v }}", limit: 1}`,
	"parsed key":           `action: noop, concurrency: {key: "${{ parse_json(tasks.source.output.text) }}", limit: 1}`,
	"foreach":              `action: noop, foreach: "${{ tasks.source.output.v }}", with: {v: "${{ item }}"}`,
	"foreach key":          `action: noop, foreach: "${{ [tasks.source.output.v, tasks.source.output.v] }}", concurrency: {key: "${{ item }}", limit: 1}`,
	"items in flight":      `action: noop, foreach: "${{ [1, 2, 3] }}", concurrency: "${{ tasks.source.output.v }}"`,
	"environment":          `action: code, env: {NAME: "${{ tasks.source.output.v }}"}, with: {language: bash, source: "true"}`,
	"source":               `action: code, with: {language: bash, source: "${{ tasks.source.output.v }}"}`,
	"files":                `action: code, with: {language: bash, source: "true", files: "${{ tasks.source.output.v }}"}`,
	"language":             `action: code, with: {language: "${{ tasks.source.output.v }}", source: "true"}`,
	"sleep":                `action: sleep, with: {for: "${{ tasks.source.output.v }}"}`,
	"condition":            `action: noop, if: "${{ tasks.source.output.v == 'x' }}"`,
	"sub-workflow's input": `action: workflow, with: {name: leaf, input: {v: "${{ tasks.source.output.v }}"}}`,
	"sub-workflow's name":  `action: workflow, with: {name: "${{ tasks.source.output.v }}"}`,
	"action's input":       `action: keyed, with: {v: "${{ tasks.source.output.v }}"}`,
}

// Whatever an expression returns, in any field: the workflow ends with the reason, and another one completes.
func TestHostileValuesInEveryField(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(`
name: leaf
input: {type: object}
tasks:
  a: {action: noop, with: {v: "${{ input.v }}"}}
outputs: {v: "${{ tasks.a.output.v }}"}
---
name: keyed
action: noop
concurrency: {key: "${{ input.v }}", limit: 1}
---
name: good
tasks:
  a: {action: noop}
  nap: {needs: [a], action: sleep, with: {for: 5ms}}
  b: {needs: [nap], action: noop}
`)
		h := r.worker()
		h.serve(func(a handoff.Assignment) (string, *flow.Error) {
			if a.Kind != flow.KindNoop || len(a.Payload) == 0 {
				return "1", nil
			}
			return string(a.Payload), nil
		})
		type run struct{ field, value string }
		runs := map[flow.ID]run{}
		for field, settings := range valueFields {
			name := "w-" + strings.NewReplacer(" ", "-", "'", "").Replace(field)
			r.define(fmt.Sprintf("name: %s\ninput: {type: object}\ntasks:\n  source: {action: noop, with: \"${{ input }}\"}\n  target: {needs: [source], %s}\n", name, settings))
			for _, v := range hostileValues {
				text, err := json.Marshal(v)
				if err != nil {
					r.Fatal(err)
				}
				id := r.submit(Submission{Action: name, Input: fmt.Appendf(nil, `{"v": %s, "text": %s}`, v, text)})
				runs[id] = run{field, v}
			}
			if x := r.ended(r.submit(Submission{Action: "good"})); x.Stage != flow.Completed {
				r.Errorf("beside %q: %s %+v", field, x.Stage, x.Outcome.Error)
			}
		}
		for id, which := range runs {
			x := r.ended(id)
			if x.Stage == flow.Failed && x.Outcome.Error.Code == flow.CodeInternal {
				r.Errorf("%s as %s is found by the store alone: %s", which.value[:min(40, len(which.value))], which.field, x.Outcome.Error.Message)
			}
		}
		if n := r.e.Stats(); n.PutAside+n.Skipped > 0 {
			r.Errorf("%+v", n)
		}
	})
}
