package orchestration

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
)

const branches = `
  fetch: {action: noop, with: {url: "${{ input.url }}"}}
  each: {action: noop, needs: [fetch], foreach: "${{ input.items }}", with: {item: "${{ item }}"}}
  join: {action: noop, needs: [each], with: {all: "${{ tasks.each.output }}"}}
  side: {action: noop, with: {n: 1}}
  late: {action: noop, needs: [side], with: {n: 2}}
  both: {action: noop, needs: [join, late], with: {n: 3}}
  tidy: {action: noop, needs: [both], if: "failed()"}
`

// TestPlanOnly has one row for each promise of docs/rerun.md about --only.
func TestPlanOnly(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		only []Item
		bad  []Item // failed in the original
		set  string
		want string // of a plan: the decisions; of a refusal: the message
		fix  string
	}{
		{name: "a task in the middle", only: []Item{{"each", AllItems}},
			want: "fetch reuse, each run, join leave, side reuse, late reuse, both leave, tidy leave"},
		{name: "an item", only: []Item{{"each", 1}}, want: "fetch reuse, each partly [1], join leave, side reuse, late reuse, both leave, tidy leave"},
		{name: "the last one", only: []Item{{"both", AllItems}}, want: "fetch reuse, each reuse, join reuse, side reuse, late reuse, both run, tidy leave"},
		{name: "two beside one another", only: []Item{{"late", AllItems}, {"join", AllItems}},
			want: "fetch reuse, each reuse, join run, side reuse, late run, both leave, tidy leave"},
		{name: "what failed beside it is left out, with what comes after it", only: []Item{{"each", AllItems}}, bad: []Item{{"late", 0}},
			want: "fetch reuse, each run, join leave, side reuse, late leave, both leave, tidy leave"},
		{name: "what failed itself", only: []Item{{"each", 2}}, bad: []Item{{"each", 2}},
			want: "fetch reuse, each partly [2], join leave, side reuse, late reuse, both leave, tidy leave"},
		{name: "something before it failed", only: []Item{{"both", AllItems}}, bad: []Item{{"each", 2}},
			want: "each, which comes before it, cannot be reused: it failed", fix: "without --only"},
		{name: "something before it has changed", only: []Item{{"join", AllItems}}, set: `{"url":"b","items":[1,2,3]}`,
			want: "fetch, which comes before it, cannot be reused: its input has changed", fix: "without --only"},
		{name: "another item failed", only: []Item{{"each", 0}}, bad: []Item{{"each", 2}},
			want: "each[2], beside it, did not complete either, and would run as well", fix: "--only 'each[2]'"},
		{name: "one after the other", only: []Item{{"fetch", AllItems}, {"join", AllItems}}, want: "join comes after another task that was named", fix: "--from"},
		{name: "its condition does not hold", only: []Item{{"tidy", AllItems}}, want: "tidy would not run: its condition does not hold", fix: "leave --only out"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := workflow(t, branches)
			input := json.RawMessage(`{"url":"a","items":[1,2,3]}`)
			o := perform(t, w, input, func(c *Child) upshot {
				if slices.Contains(row.bad, Item{c.Task.Name, c.Index}) {
					return upshot{stage: flow.Failed}
				}
				return places(c)
			}).original()
			if row.set != "" {
				input = json.RawMessage(row.set)
			}
			plan, err := PlanOnly(w, o, row.only, Facts{ID: "ex_2", Input: input})
			var refused *Refusal
			if errors.As(err, &refused) {
				if !strings.Contains(refused.Say, row.want) || !strings.Contains(refused.Fix, row.fix) || row.fix == "" {
					t.Errorf("refused: %s (%s), want %s (%s)", refused.Say, refused.Fix, row.want, row.fix)
				}
				return
			}
			if err != nil || row.fix != "" {
				t.Fatalf("planned %+v, %v; want %s", plan, err, row.want)
			}
			var said []string
			for _, p := range plan.Tasks {
				text := p.Task + " " + string(p.Decision)
				if p.Decision == Partly {
					text += fmt.Sprint(" ", p.Items)
				}
				if p.Decision == Leave != slices.Contains(plan.LeftOut, p.Task) {
					t.Errorf("%s is decided as %s, and left out are %v", p.Task, p.Decision, plan.LeftOut)
				}
				said = append(said, text)
			}
			if got := strings.Join(said, ", "); got != row.want {
				t.Errorf("planned\n%s, want\n%s", got, row.want)
			}
			// It ends like the named tasks, with their outputs.
			var names []string
			for _, i := range row.only {
				names = append(names, i.Task)
			}
			got := perform(t, w.Only(names, plan.LeftOut), input, places)
			var out map[string]json.RawMessage
			if err := json.Unmarshal(got.outcome.Output, &out); err != nil || got.stage != flow.Completed || len(out) != len(names) || string(out[names[0]]) == "null" {
				t.Errorf("it ends as %s with %s: %v", got.stage, got.outcome.Output, err)
			}
			for item := range got.past {
				if slices.Contains(plan.LeftOut, item.Task) {
					t.Errorf("%v ran, and is left out", item)
				}
			}
		})
	}
}
