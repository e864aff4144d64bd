package simulation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/pawl-run/pawl/internal/definition"
)

// document is a workflow that clients submit.
type document struct {
	text string
	defs []*definition.Definition
}

func (d *document) name() string { return d.defs[0].Name }

// documents are random workflows, the same in every run: parsing new ones for each seed would take longer than running them.
var documents = sync.OnceValue(func() []*document {
	r := rand.New(rand.NewPCG(11, 47))
	var all []*document
	for i := range 48 {
		all = append(all, parsed(random(r, fmt.Sprintf("flow%d", i))))
	}
	return all
})

// leaf is the workflow that other workflows run as a task.
var leaf = sync.OnceValue(func() *document {
	return parsed(`name: leaf
input: {type: object, properties: {n: {type: integer}}}
tasks:
  a: {action: noop, with: {do: ok, v: 1}}
  b: {action: input, with: {do: ok, v: 2}}
  d: {action: thumb, with: {do: ok, v: 4}}
  c: {needs: [a, b], action: noop, with: {do: flaky, v: 3}, retry: {max_attempts: 3, delay: 300ms}}
outputs: {v: "${{ tasks.a.output.v + tasks.b.output.v }}"}
`)
})

// lister iterates over a list that depends on the attempt of the task that returned it.
var lister = sync.OnceValue(func() *document {
	return parsed(`name: lister
tasks:
  list: {action: noop, with: {do: list, v: 5}, retry: {max_attempts: 5, delay: 200ms}}
  each: {needs: [list], foreach: "${{ tasks.list.output.list }}", action: noop, with: {do: ok, v: "${{ item }}"}}
outputs: {each: "${{ tasks.each.output }}"}
`)
})

// listed is the length of the list.
const listed = 3

// thumb is an action of the custom kind.
var thumb = sync.OnceValue(func() *document { return parsed("name: thumb\nhandler: " + custom + "\n") })

func parsed(text string) *document {
	defs, err := definition.Parse("simulation.yaml", []byte(text))
	if err != nil {
		panic(fmt.Sprintf("%v\n%s", err, text))
	}
	return &document{text, defs}
}

// random writes a workflow of up to seven tasks.
func random(r *rand.Rand, name string) string {
	var b, outputs strings.Builder
	is := func(percent int) bool { return r.IntN(100) < percent }
	fmt.Fprintf(&b, "name: %s\ntasks:\n", name)
	n := 1 + r.IntN(7)
	for i := range n {
		var needs []string
		for j := range i {
			if is(100 / (1 + i)) {
				needs = append(needs, fmt.Sprintf("t%d", j))
			}
		}
		fmt.Fprintf(&b, "  t%d:\n    needs: [%s]\n", i, strings.Join(needs, ", "))
		do := pick(r.IntN(100), "ok", "ok", "ok", "chat", "ok", "flaky", "ok", "fail")
		if do == "fail" && is(50) {
			do = "ok"
		}
		foreach := false
		switch kind := r.IntN(10); {
		case kind < 3:
			items := 1 + r.IntN(5)
			list := make([]string, items)
			for k := range list {
				list[k] = fmt.Sprint(10*i + k)
			}
			foreach = true
			fmt.Fprintf(&b, "    foreach: [%s]\n    action: noop\n    with: {do: %s, v: \"${{ item }}\"}\n", strings.Join(list, ", "), do)
			if is(60) {
				fmt.Fprintf(&b, "    concurrency: %d\n", 1+r.IntN(2))
			}
		case kind == 3:
			fmt.Fprintf(&b, "    action: sleep\n    with: {for: %d}\n", 1+r.IntN(4))
		case kind == 4:
			// The item "no" is refused: such a child has ended as soon as it is created.
			fmt.Fprintf(&b, "    foreach: [%s]\n    action: workflow\n    with: {name: leaf, input: {n: \"${{ item }}\"}}\n",
				pick(r.IntN(90), "1", "1, 2", "1, no, 3", "no, 2, no", "no"))
		case kind == 5:
			fmt.Fprintf(&b, "    action: input\n    with: {do: %s, v: %d}\n", pick(r.IntN(9), "ok", "ok", "fail"), i)
		default:
			fmt.Fprintf(&b, "    action: noop\n    with: {do: %s, v: %d}\n", do, i)
			if is(20) {
				fmt.Fprintf(&b, "    concurrency: {key: task%d, limit: %d}\n", i%2, i%2+1)
			}
		}
		if is(50) {
			fmt.Fprintf(&b, "    retry: {max_attempts: %d, delay: 200ms}\n", 2+r.IntN(3))
		}
		if is(15) {
			fmt.Fprintf(&b, "    timeout: %ds\n", 2+r.IntN(10))
		}
		if is(15) {
			fmt.Fprintf(&b, "    continue_on_error: true\n")
		}
		if is(12) && len(needs) > 0 {
			fmt.Fprintf(&b, "    if: always()\n")
		}
		if foreach {
			fmt.Fprintf(&outputs, "  t%d: \"${{ tasks.t%d.output }}\"\n", i, i)
		}
	}
	if outputs.Len() > 0 {
		fmt.Fprintf(&b, "outputs:\n%s", outputs.String())
	}
	return b.String()
}
