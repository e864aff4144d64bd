package neighbour

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

// heavy is an allowed expression that takes some hundredths of a second. Its value is 50000.
const heavy = "size(lists.range(50000).map(x, x * x))"

// documents are definitions that compute as much as they may: workflows and actions, and rules, schedules and waits, which loops evaluate
// that all users share. None of the rules and schedules starts anything.
func documents() []byte {
	list := func(n int) string {
		return "{all: [" + strings.TrimSuffix(strings.Repeat("\"${{ "+heavy+" }}\", ", n), ", ") + "]}"
	}
	input := list(300)
	all := []string{
		"kind: trigger\nname: hostile.said\nwaits: true\n",
		"name: heavy-action\nkind: action\naction: noop\nwith: " + list(10) + "\n",
		"name: heavy-steps\ntasks:\n  a: {action: noop}\n  b: {needs: a, action: noop, with: " + input + "}\noutputs: " + input + "\n",
		"name: heavy-each\ntasks:\n  each: {foreach: '${{ lists.range(200) }}', action: heavy-action, continue_on_error: true}\n",
	}
	for i := range 20 {
		all = append(all,
			fmt.Sprintf("kind: rule\nname: heavy-%d\non: hostile.said\nif: %s == 0\nrun: {action: noop}\n", i, heavy),
			fmt.Sprintf("kind: schedule\nname: heavy-%d\nevery: 1s\nrun: {action: noop, input: %s}\n", i, input))
	}
	return []byte(strings.Join(all, "---\n"))
}

// compute makes the server evaluate the documents, and sends some that it must refuse: schemas that would end the process, or never end.
func compute(h *hostile, ctx context.Context, r *rand.Rand) (ids []string) {
	for _, action := range []string{"heavy-steps", "heavy-each"} {
		ids = append(ids, h.submit(ctx, map[string]any{"action": action}))
	}
	for range 5 {
		ids = append(ids, h.submit(ctx, map[string]any{"action": "wait", "input": map[string]any{"signal": "hostile.said", "subject": "x", "if": heavy + " == 0"}}))
		h.send(ctx, http.MethodPost, "/signals", "application/json", strings.NewReader(fmt.Sprintf(`{"trigger": "hostile.said", "subject": "x", "data": {"n": %d}}`, r.IntN(100))), nil)
	}
	for _, schema := range []string{`{$ref: "#"}`, `{$defs: {a: {default: 1, allOf: [{$ref: "#/$defs/a"}, {$ref: "#/$defs/a"}]}}, $ref: "#/$defs/a"}`} {
		h.send(ctx, http.MethodPost, "/definitions", "application/yaml", strings.NewReader("name: bomb\ninput: "+schema+"\ntasks: {t: {action: noop}}\n"), nil)
	}
	return slices.DeleteFunc(ids, func(id string) bool { return id == "" })
}
