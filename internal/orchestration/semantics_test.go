package orchestration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// workflow parses the tasks of a workflow, in the form of the text under `tasks:`.
func workflow(t testing.TB, tasks string) *definition.Workflow {
	t.Helper()
	defs, err := definition.Parse("w.yaml", []byte("name: w\ntasks:\n"+tasks))
	if err != nil {
		t.Fatal(err)
	}
	return defs[0].Workflow
}

// settle takes steps until there is nothing to do, and returns the whole plan.
func settle(w *definition.Workflow, st *State, f *Facts) Plan {
	var plan Plan
	for {
		s := Track(w, st).Next()
		if s.Empty() || !Take(w, st, s, f, &plan) {
			return plan
		}
	}
}

func started(p Plan) string {
	var names []string
	for _, c := range p.Children {
		names = append(names, fmt.Sprintf("%s[%d]", c.Task.Name, c.Index))
	}
	return strings.Join(names, " ")
}

func marked(w *definition.Workflow, p Plan) string {
	var names []string
	for _, m := range p.Marks {
		names = append(names, w.Tasks[m.Task].Name+" "+m.Mark.String())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func done(n int) Progress { return Progress{Created: n, Completed: n} }

func failedOnce() Progress {
	return Progress{Created: 1, Failed: 1, Error: &flow.Error{Code: "nonzero_exit", Message: "exit code 3"}}
}

// TestSemantics has one row for each promise of docs/workflows.md.
func TestSemantics(t *testing.T) {
	t.Parallel()
	const chain = "  a: {action: noop}\n  b: {action: noop, needs: [a]}\n  c: {action: noop, needs: [b]}\n"
	expanded := Progress{Mark: Expanded, Total: 3}
	for _, tc := range []struct {
		name, tasks string
		progress    []Progress
		ending      flow.Stage
		cleaning    bool
		started     string
		marks       string
		recall      []int
		cancel      []int
		stage       flow.Stage
	}{
		{name: "only entries start", tasks: chain, progress: make([]Progress, 3), started: "a[0]"},
		{name: "a successor follows", tasks: chain, progress: []Progress{done(1), {}, {}}, started: "b[0]"},
		{name: "nothing follows what is open", tasks: chain, progress: []Progress{{Created: 1, Open: 1}, {}, {}}},
		{name: "all completed", tasks: chain, progress: []Progress{done(1), done(1), done(1)}, stage: flow.Completed},
		{name: "what comes after a failure is skipped", tasks: chain, progress: []Progress{failedOnce(), {}, {}},
			marks: "b skipped, c skipped", stage: flow.Failed},
		{name: "what a failure elsewhere stops is cancelled, and queued work recalled",
			tasks:    "  a: {action: noop}\n  x: {action: noop}\n  y: {action: noop, needs: [x]}\n  z: {action: noop}\n",
			progress: []Progress{failedOnce(), done(1), {}, {Created: 1, Open: 1}},
			marks:    "y cancelled", recall: []int{3}},
		{name: "continue_on_error", tasks: "  a: {action: noop, continue_on_error: true}\n  b: {action: noop, needs: [a]}\n",
			progress: []Progress{failedOnce(), {}}, started: "b[0]"},
		{name: "and completes", tasks: "  a: {action: noop, continue_on_error: true}\n",
			progress: []Progress{failedOnce()}, stage: flow.Completed},
		{name: "failed() runs after a failure further up", tasks: chain + "  h: {action: noop, needs: [c], if: failed()}\n",
			progress: []Progress{failedOnce(), {}, {}, {}}, marks: "b skipped, c skipped", started: "h[0]"},
		{name: "failed() is skipped after success", tasks: "  a: {action: noop}\n  h: {action: noop, needs: [a], if: failed()}\n",
			progress: []Progress{done(1), {}}, marks: "h skipped", stage: flow.Completed},
		{name: "failed() waits for all it needs", tasks: "  a: {action: noop}\n  b: {action: noop}\n  h: {action: noop, needs: [a, b], if: failed()}\n",
			progress: []Progress{failedOnce(), {Created: 1, Open: 1}, {}}, recall: []int{1}},
		{name: "always() runs after a skipped task", tasks: "  a: {action: noop, if: input.no}\n  b: {action: noop, needs: [a]}\n  h: {action: noop, needs: [b], if: always()}\n",
			progress: make([]Progress, 3), marks: "a skipped, b skipped", started: "h[0]"},
		{name: "cancelled() answers to a cancelled child", tasks: "  a: {action: noop}\n  h: {action: noop, needs: [a], if: cancelled()}\n",
			progress: []Progress{{Created: 1, Cancelled: 1}, {}}, started: "h[0]"},
		{name: "a cancelled child cancels the workflow", tasks: chain, progress: []Progress{{Created: 1, Cancelled: 1}, {}, {}},
			marks: "b skipped, c skipped", stage: flow.Cancelled},
		{name: "continue_on_error is not about cancelling", tasks: "  a: {action: noop, continue_on_error: true}\n",
			progress: []Progress{{Created: 1, Cancelled: 1}}, stage: flow.Cancelled},
		{name: "skipped tasks complete a workflow", tasks: "  a: {action: noop, if: input.no}\n", progress: make([]Progress, 1),
			marks: "a skipped", stage: flow.Completed},
		{name: "foreach", tasks: "  a: {action: noop, foreach: [1, 2, 3]}\n", progress: make([]Progress, 1),
			marks: "a expanded", started: "a[0] a[1] a[2]"},
		{name: "foreach in flight", tasks: "  a: {action: noop, foreach: [1, 2, 3], concurrency: 2}\n", progress: make([]Progress, 1),
			marks: "a expanded", started: "a[0] a[1]"},
		{name: "foreach in flight, as an expression says", tasks: "  a: {action: noop, foreach: [1, 2, 3], concurrency: \"${{ 1 + 1 }}\"}\n",
			progress: []Progress{{Mark: Expanded, Total: 3, Created: 1, Open: 1}}, started: "a[1]"},
		{name: "an expression that gives no number fails its task", tasks: "  a: {action: noop, foreach: [1, 2, 3], concurrency: \"${{ input.no }}\"}\n",
			progress: make([]Progress, 1), marks: "a broken", stage: flow.Failed},
		{name: "foreach goes on", tasks: "  a: {action: noop, foreach: [1, 2, 3], concurrency: 2}\n",
			progress: []Progress{{Mark: Expanded, Total: 3, Created: 2, Open: 1, Completed: 1}}, started: "a[2]"},
		{name: "foreach over nothing", tasks: "  a: {action: noop, foreach: []}\n  b: {action: noop, needs: [a]}\n",
			progress: make([]Progress, 2), marks: "a expanded", started: "b[0]"},
		{name: "foreach stops at a failure", tasks: "  a: {action: noop, foreach: [1, 2, 3], concurrency: 1, if: always()}\n",
			progress: []Progress{{Mark: Expanded, Total: 3, Created: 1, Failed: 1}}, stage: flow.Failed},
		{name: "foreach goes on after an error", tasks: "  a: {action: noop, foreach: [1, 2, 3], concurrency: 1, continue_on_error: true}\n",
			progress: []Progress{{Mark: Expanded, Total: 3, Created: 1, Failed: 1}}, started: "a[1]"},
		{name: "foreach stops when another task fails", tasks: "  a: {action: noop, foreach: [1, 2, 3], concurrency: 1}\n  b: {action: noop}\n",
			progress: []Progress{{Mark: Expanded, Total: 3, Created: 1, Completed: 1}, failedOnce()}, stage: flow.Failed},
		{name: "batch", tasks: "  a: {action: noop, foreach: [1, 2, 3], batch: 2}\n", progress: make([]Progress, 1),
			marks: "a expanded", started: "a[0] a[1]"},
		{name: "an expression that fails, fails its task", tasks: "  a: {action: noop, with: {x: \"${{ input.absent }}\"}}\n  b: {action: noop, needs: [a]}\n",
			progress: make([]Progress, 2), marks: "a broken, b skipped", stage: flow.Failed},
		{name: "and stops others of the same step", tasks: "  a: {action: noop, with: {x: \"${{ input.absent }}\"}}\n  b: {action: noop}\n",
			progress: make([]Progress, 2), marks: "a broken, b cancelled", stage: flow.Failed},
		{name: "ending cancels what is open and starts nothing", tasks: chain + "  h: {action: noop, if: always()}\n", ending: flow.Cancelled,
			progress: []Progress{done(1), {Created: 1, Open: 1}, {}, {}}, cancel: []int{1}},
		{name: "ending is over when nothing is open", tasks: chain + "  h: {action: noop, if: always()}\n", ending: flow.TimedOut,
			progress: []Progress{done(1), {Created: 1, Cancelled: 1}, {}, {}}, marks: "c cancelled, h cancelled", stage: flow.TimedOut},
		{name: "clean-up cancels what is open and waits for it", tasks: chain + "  h: {action: noop, needs: [c], if: always()}\n", ending: flow.Cancelled, cleaning: true,
			progress: []Progress{done(1), {Created: 1, Open: 1}, {}, {}}, cancel: []int{1}},
		{name: "clean-up runs always()", tasks: chain + "  h: {action: noop, needs: [c], if: always()}\n", ending: flow.TimedOut, cleaning: true,
			progress: []Progress{done(1), {Created: 1, Cancelled: 1}, {}, {}}, marks: "c cancelled", started: "h[0]"},
		{name: "clean-up runs cancelled() after what completed", tasks: "  a: {action: noop}\n  h: {action: noop, needs: [a], if: cancelled()}\n", ending: flow.TimedOut,
			cleaning: true, progress: []Progress{done(1), {}}, started: "h[0]"},
		{name: "clean-up runs !success() after what completed", tasks: "  a: {action: noop}\n  h: {action: noop, needs: [a], if: \"!success()\"}\n", ending: flow.Cancelled,
			cleaning: true, progress: []Progress{done(1), {}}, started: "h[0]"},
		{name: "clean-up does not run failed() where nothing failed", tasks: "  a: {action: noop}\n  h: {action: noop, needs: [a], if: failed()}\n", ending: flow.Cancelled,
			cleaning: true, progress: []Progress{{Created: 1, Cancelled: 1}, {}}, marks: "h skipped", stage: flow.Cancelled},
		{name: "clean-up runs failed() after a failure", tasks: "  a: {action: noop}\n  b: {action: noop}\n  h: {action: noop, needs: [a, b], if: failed()}\n", ending: flow.Cancelled,
			cleaning: true, progress: []Progress{failedOnce(), {Created: 1, Cancelled: 1}, {}}, started: "h[0]"},
		{name: "clean-up leaves what survives running", tasks: "  a: {action: noop, if: always()}\n  b: {action: noop}\n", ending: flow.Cancelled,
			cleaning: true, progress: []Progress{{Created: 1, Open: 1}, {Created: 1, Open: 1}}, cancel: []int{1}},
		{name: "clean-up judges no rounds of others", tasks: "  a: {action: noop, repeat: {until: \"false\", max: 3}}\n  h: {action: noop, needs: [a], if: always()}\n", ending: flow.Cancelled,
			cleaning: true, progress: []Progress{done(1), {}}, marks: "a cancelled", started: "h[0]"},
		{name: "a workflow that has cleaned up ends as ordered", tasks: "  a: {action: noop}\n  h: {action: noop, needs: [a], if: always()}\n", ending: flow.TimedOut,
			cleaning: true, progress: []Progress{{Created: 1, Cancelled: 1}, failedOnce()}, stage: flow.TimedOut},
		{name: "the last item of a foreach", tasks: "  a: {action: noop, foreach: [1, 2, 3]}\n  b: {action: noop, needs: [a]}\n",
			progress: []Progress{{Mark: expanded.Mark, Total: 3, Created: 3, Completed: 3}, {}}, started: "b[0]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := workflow(t, tc.tasks)
			st := &State{Tasks: tc.progress, Ending: tc.ending, Cleaning: tc.cleaning}
			plan := settle(w, st, &Facts{Input: json.RawMessage(`{"no":false}`), Output: func(int) Output { return Output{} }})
			if got := started(plan); got != tc.started {
				t.Errorf("started %q, want %q", got, tc.started)
			}
			if got := marked(w, plan); got != tc.marks {
				t.Errorf("marked %q, want %q", got, tc.marks)
			}
			if !slices.Equal(plan.Recall, tc.recall) || !slices.Equal(plan.Cancel, tc.cancel) {
				t.Errorf("recalled %v, cancelled %v; want %v, %v", plan.Recall, plan.Cancel, tc.recall, tc.cancel)
			}
			if plan.Stage != tc.stage {
				t.Errorf("ended %v, want %v", plan.Stage, tc.stage)
			}
		})
	}
}

func TestChildSaysWhatToRun(t *testing.T) {
	t.Parallel()
	defs, err := definition.Parse("w.yaml", []byte(`
name: w
env: {A: "${{ input.a }}", B: both}
tasks:
  one:
    action: grade@3
    with: {n: "${{ input.a }}", text: "n=${{ input.a }}"}
    env: {B: mine, C: "${{ env.A }}"}
    concurrency: {key: "c-${{ input.a }}", limit: 2, when_full: cancel_new}
  two: {action: workflow, with: {name: child, version: 2, input: {x: "${{ input.a }}"}}}
outputs: {n: "${{ tasks.one.output.n + 1 }}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	w := defs[0].Workflow
	st := &State{Tasks: make([]Progress, 2)}
	f := &Facts{ID: "ex_1", Input: json.RawMessage(`{"a":7}`), Output: func(int) Output { return Output{Single: json.RawMessage(`{"n":41}`)} }}
	plan := settle(w, st, f)
	if len(plan.Children) != 2 {
		t.Fatalf("%d children, want 2", len(plan.Children))
	}
	one, two := plan.Children[0], plan.Children[1]
	if one.Action != "grade" || one.Version != 3 || string(one.Input) != `{"n":7,"text":"n=7"}` ||
		one.Key != "c-7" || one.KeyLimit != 2 || one.WhenFull != flow.WhenFullCancelNew {
		t.Errorf("first child is %+v with input %s", one, one.Input)
	}
	if fmt.Sprint(one.Env) != "map[A:7 B:mine C:7]" || fmt.Sprint(two.Env) != "map[A:7 B:both]" {
		t.Errorf("environments are %v and %v", one.Env, two.Env)
	}
	if two.Action != "child" || two.Version != 2 || !two.Workflow || string(two.Input) != `{"x":7}` {
		t.Errorf("second child is %+v with input %s", two, two.Input)
	}
	st.Tasks[0], st.Tasks[1] = done(1), done(1)
	if s := Track(w, st).Next(); fmt.Sprint(s.Outputs(w, nil)) != "[0]" {
		t.Errorf("the outputs of tasks %v are wanted, not of [0]", s.Outputs(w, nil))
	}
	plan = settle(w, st, f)
	if plan.Stage != flow.Completed || string(plan.Outcome.Output) != `{"n":42}` {
		t.Errorf("ended %v with %s (%v)", plan.Stage, plan.Outcome.Output, plan.Outcome.Error)
	}
}

func TestOutcomeNamesTheFailure(t *testing.T) {
	t.Parallel()
	w := workflow(t, "  a: {action: noop, foreach: [1, 2]}\n")
	st := &State{Tasks: []Progress{{Mark: Expanded, Total: 2, Created: 2, Completed: 1, Failed: 1, ErrorIndex: 1, Error: &flow.Error{Code: "oom", Message: "used 65 MB of 64 MB"}}}}
	plan := settle(w, st, &Facts{})
	e := plan.Outcome.Error
	if e == nil || e.Code != flow.CodeTaskFailed || e.Message != `task "a" (item 1) failed: oom: used 65 MB of 64 MB` || string(e.Details) != `{"task":"a","index":1,"code":"oom"}` {
		t.Errorf("the error is %+v", e)
	}
	// An error in the list's expression names no item.
	w = workflow(t, "  a: {action: noop, foreach: \"${{ input.x.y }}\"}\n")
	st = &State{Tasks: make([]Progress, 1)}
	plan = settle(w, st, &Facts{Input: json.RawMessage(`{"x": 5}`)})
	if e := plan.Outcome.Error; e == nil || !strings.HasPrefix(e.Message, `task "a" failed: expression_error: tasks.a.foreach: `) || string(e.Details) != `{"task":"a","code":"expression_error"}` {
		t.Errorf("the error of the list is %+v", plan.Outcome.Error)
	}
	// An error in an item's expression names the item.
	w = workflow(t, "  a: {action: noop, foreach: [1, 0], with: {q: \"${{ 1 / item }}\"}}\n")
	st = &State{Tasks: make([]Progress, 1)}
	for range 3 {
		if plan = settle(w, st, &Facts{}); plan.Stage.Terminal() {
			break
		}
		st.Tasks[0].Open, st.Tasks[0].Completed = 0, st.Tasks[0].Created
	}
	if e := plan.Outcome.Error; e == nil || !strings.HasPrefix(e.Message, `task "a" failed: expression_error: item 1: tasks.a.with.q: `) {
		t.Errorf("the error of an item is %+v", plan.Outcome.Error)
	}
}

func TestOutputsThatDoNotEvaluateFailTheWorkflow(t *testing.T) {
	t.Parallel()
	w := workflow(t, "  a: {action: noop}\noutputs: {x: \"${{ tasks.a.output.absent }}\"}\n")
	st := &State{Tasks: []Progress{done(1)}}
	plan := settle(w, st, &Facts{Output: func(int) Output { return Output{Single: json.RawMessage(`{}`)} }})
	if plan.Stage != flow.Failed || plan.Outcome.Error.Code != flow.CodeExpressionError || !strings.Contains(plan.Outcome.Error.Message, "outputs.x") {
		t.Errorf("ended %v with %v", plan.Stage, plan.Outcome.Error)
	}
}

// TestWideFanIn folds ten thousand outputs into one input.
func TestWideFanIn(t *testing.T) {
	t.Parallel()
	const n = 10_000
	w := workflow(t, `
  each: {action: noop, foreach: "${{ input.list }}", with: {x: "${{ item }}"}}
  all: {action: noop, needs: [each], with: {outs: "${{ tasks.each.output }}", total: "${{ sum(tasks.each.output.map(o, o.x)) }}"}}
`)
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	input, err := json.Marshal(map[string]any{"list": list})
	if err != nil {
		t.Fatal(err)
	}
	f := &Facts{Input: input, Items: Items{}, Most: 512}
	st := &State{Tasks: make([]Progress, 2)}
	plan := settle(w, st, f)
	if len(plan.Children) != n || string(plan.Children[n-1].Input) != fmt.Sprintf(`{"x":%d}`, n-1) {
		t.Fatalf("%d children", len(plan.Children))
	}
	outs := make([]json.RawMessage, n)
	for i, c := range plan.Children {
		outs[i] = c.Input
	}
	st.Tasks[0].Open, st.Tasks[0].Completed = 0, n
	f.Output = func(int) Output { return Output{Items: outs} }
	plan = settle(w, st, f)
	if len(plan.Children) != 1 {
		t.Fatalf("the fan-in was not started: %+v", plan)
	}
	var got struct {
		Outs  []struct{ X int }
		Total int
	}
	if err := json.Unmarshal(plan.Children[0].Input, &got); err != nil || len(got.Outs) != n || got.Outs[n-1].X != n-1 || got.Total != n*(n-1)/2 {
		t.Fatalf("the fan-in has %d outputs, total %d (%v)", len(got.Outs), got.Total, err)
	}
}

func BenchmarkNext(b *testing.B) {
	chain := workflow(b, "  a: {action: noop, with: {x: \"${{ input.x }}\"}}\n  b: {action: noop, needs: [a], with: {x: \"${{ tasks.a.output.x }}\"}}\n  c: {action: noop, needs: [b], with: {x: \"${{ tasks.b.output.x }}\"}}\n")
	f := &Facts{Input: json.RawMessage(`{"x":1}`), Output: func(int) Output { return Output{Single: json.RawMessage(`{"x":1}`)} }}
	b.Run("chain step", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			st := &State{Tasks: []Progress{done(1), {}, {}}}
			var plan Plan
			s := Track(chain, st).Next()
			Take(chain, st, s, f, &plan)
			if len(plan.Children) != 1 {
				b.Fatal("nothing started")
			}
		}
	})
	var doc strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&doc, "  t%d: {action: noop", i)
		if i > 0 {
			fmt.Fprintf(&doc, ", needs: [t%d]", (i-1)/2)
		}
		doc.WriteString("}\n")
	}
	tree := workflow(b, doc.String())
	st := &State{Tasks: make([]Progress, 10_000)}
	for i := range 5000 {
		st.Tasks[i] = done(1)
	}
	b.Run("10000 tasks", func(b *testing.B) {
		for b.Loop() {
			if s := Track(tree, st).Next(); len(s.Start) == 0 {
				b.Fatal("nothing to start")
			}
		}
	})
	wide := workflow(b, "  a: {action: noop, foreach: \"${{ input.list }}\", with: {x: \"${{ item.x }}\"}}\n")
	items := make([]string, 1000)
	for i := range items {
		items[i] = fmt.Sprintf(`{"x":%d,"source":"print(%d)"}`, i, i)
	}
	wf := &Facts{Input: json.RawMessage(`{"list":[` + strings.Join(items, ",") + `]}`)}
	b.Run("expand 1000 items", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			st := &State{Tasks: make([]Progress, 1)}
			if plan := settle(wide, st, wf); len(plan.Children) != 1000 {
				b.Fatal("not expanded")
			}
		}
	})
}
