package orchestration

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// play is a workflow that is run to its end: every item ends at once, as the player decides.
type play struct {
	past    map[Item]Past
	outputs map[Item]json.RawMessage
	marks   map[string]Mark
	stage   flow.Stage
	outcome flow.Outcome
	st      *State
}

// upshot is a player's decision about the end of an item.
type upshot struct {
	stage  flow.Stage
	output json.RawMessage
	past   Past // whose outcome it is
}

func workOf(c *Child) (Work, error) {
	return Work{sha256.Sum256(fmt.Appendf(nil, "%s@%d", c.Action, c.Version)), sha256.Sum256(c.Input)}, nil
}

func perform(t failer, w *definition.Workflow, input json.RawMessage, item func(*Child) upshot) *play {
	p := &play{past: map[Item]Past{}, outputs: map[Item]json.RawMessage{}, marks: map[string]Mark{}, st: &State{Tasks: make([]Progress, len(w.Tasks))}}
	f := &Facts{ID: "ex_1", Input: input, Items: Items{}, Output: func(task int) Output { return p.output(w.Tasks[task], p.st.Tasks[task].Created) }}
	k := Track(w, p.st)
	var plan Plan
	for taken := 0; plan.Stage == 0; {
		next := k.Next()
		if next.Empty() {
			t.Fatalf("it waits for nothing: %+v", p.st)
		}
		Take(w, p.st, next, f, &plan)
		for ; taken < len(plan.Children); taken++ {
			c := &plan.Children[taken]
			e := item(c)
			id := Item{c.Task.Name, c.Index}
			work, _ := workOf(c)
			e.past.Stage, e.past.Work = e.stage, work
			p.past[id], p.outputs[id] = e.past, e.output
			if k.Ended(c.Task.Index, e.stage); e.stage == flow.Failed || e.stage == flow.TimedOut {
				p.st.Tasks[c.Task.Index].Error = &flow.Error{Code: "boom", Message: "it broke"}
			}
		}
	}
	for i, task := range w.Tasks {
		p.marks[task.Name] = p.st.Tasks[i].Mark
	}
	p.stage, p.outcome = plan.Stage, plan.Outcome
	return p
}

type failer interface{ Fatalf(string, ...any) }

func (p *play) output(t *definition.Task, n int) Output {
	if t.Foreach == nil {
		last := Item{t.Name, n - 1}
		out := Output{Single: p.outputs[last], Stage: p.past[last].Stage}
		if out.Stage == flow.Failed || out.Stage == flow.TimedOut {
			out.Error = &flow.Error{Code: "boom", Message: "it broke"}
		}
		return out
	}
	out := Output{Items: make([]json.RawMessage, n)}
	for i := range out.Items {
		out.Items[i] = p.outputs[Item{t.Name, i}]
	}
	return out
}

func (p *play) original() *Original {
	return &Original{
		Past: func(task string, index int) (Past, bool) { past, ok := p.past[Item{task, index}]; return past, ok },
		Mark: func(task string) Mark { return p.marks[task] }, Output: p.output, Work: workOf,
	}
}

// places ends each item with its own index as output.
func places(c *Child) upshot {
	return upshot{stage: flow.Completed, output: fmt.Appendf(nil, `{"task":%q,"index":%d}`, c.Task.Name, c.Index)}
}

const rerunInput = `{"yes":true,"no":false,"flight":[0,1,2,3],"lists":[[],[10],[10,11],[10,11,12],[1,2,3,4],[1,2,3,4,5]]}`

func drawn(t *rapid.T) (*definition.Workflow, string) {
	src := document(t)
	defs, err := definition.Parse("w.yaml", []byte(src))
	if err != nil {
		t.Fatalf("parse:\n%s\n%v", src, err)
	}
	return defs[0].Workflow, src
}

// A rerun of a workflow, without changes, in which everything can be reused runs nothing and ends like the original.
func TestRerunOfWhatCompletedRunsNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, src := drawn(t)
		was := perform(t, w, json.RawMessage(rerunInput), places)
		if was.stage != flow.Completed {
			return // one of its expressions fails
		}
		if slices.Contains(slices.Collect(maps.Values(was.marks)), NotReached) {
			return // its rounds run again
		}
		plan := PlanRerun(w, was.original(), nil, Facts{ID: "ex_1", Input: json.RawMessage(rerunInput)})
		for _, p := range plan.Tasks {
			if p.Runs > 0 || p.Decision == Run || p.Decision == Partly {
				t.Fatalf("%s runs again: %+v\n%s", p.Task, p, src)
			}
		}
		if len(plan.Reuses) != len(was.past) {
			t.Fatalf("%d of %d outcomes are reused\n%s", len(plan.Reuses), len(was.past), src)
		}
		if plan.Stage != was.stage || !reflect.DeepEqual(plan.Outcome, was.outcome) {
			t.Fatalf("it ends as %s with %s, and the original as %s with %s\n%s", plan.Stage, plan.Outcome.Output, was.stage, was.outcome.Output, src)
		}
	})
}

// A rerun of a failed run reuses exactly the completed items with nothing before them that runs again. It never runs an item that its plan
// reuses, and it ends like a run without failures.
func TestRerunOfWhatFailed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, src := drawn(t)
		input := json.RawMessage(rerunInput)
		was := perform(t, w, input, func(c *Child) upshot {
			e := places(c)
			if rapid.IntRange(0, 4).Draw(t, "bad") == 0 {
				e = upshot{stage: rapid.SampledFrom([]flow.Stage{flow.Failed, flow.TimedOut, flow.Cancelled}).Draw(t, "as")}
			}
			return e
		})
		var from []Item
		if rapid.Bool().Draw(t, "named") {
			from = append(from, Item{w.Tasks[rapid.IntRange(0, len(w.Tasks)-1).Draw(t, "from")].Name, rapid.IntRange(-1, 2).Draw(t, "item")})
		}
		plan := PlanRerun(w, was.original(), from, Facts{ID: "ex_1", Input: input})
		reused := map[Item]bool{}
		for _, r := range plan.Reuses {
			reused[r.Item] = true
		}
		named := func(i Item) bool {
			return slices.ContainsFunc(from, func(f Item) bool { return f.Task == i.Task && (f.Index == AllItems || f.Index == i.Index) })
		}
		// If an expression fails, other tasks may have started before that or not.
		breaks := false
		stays := map[string]bool{} // nothing of the task runs
		for _, p := range plan.Tasks {
			stays[p.Task] = p.Decision != Run && p.Runs == 0
			breaks = breaks || p.Decision == Break
		}
		for item := range reused {
			if was.past[item].Stage != flow.Completed || named(item) {
				t.Fatalf("%v is reused, and ended as %s\n%s", item, was.past[item].Stage, src)
			}
			for _, before := range w.Upstream(w.Task(item.Task)) {
				if !stays[before] {
					t.Fatalf("%v is reused, and %s before it runs again\n%s", item, before, src)
				}
			}
		}
		// A reusable item is not reused only if it comes after one that runs, or if an expression or a condition has changed.
		for item, past := range was.past {
			if reused[item] || past.Stage != flow.Completed || named(item) {
				continue
			}
			p := plan.Tasks[w.Task(item.Task).Index]
			if after := slices.ContainsFunc(w.Upstream(w.Task(item.Task)), func(n string) bool { return !stays[n] }); !after && stays[item.Task] && p.Decision == Reuse {
				t.Fatalf("%v completed and is not reused: %+v\n%s", item, p, src)
			}
		}
		var ran []Item
		got := perform(t, w, input, func(c *Child) upshot {
			if id := (Item{c.Task.Name, c.Index}); reused[id] {
				if work, _ := workOf(c); work != was.past[id].Work {
					t.Fatalf("%v was to be reused, and has something else to do by now", id)
				}
				return upshot{stage: flow.Completed, output: was.outputs[id]}
			} else if stays[c.Task.Name] {
				ran = append(ran, id)
			}
			return places(c)
		})
		if len(ran) > 0 && !breaks {
			t.Fatalf("%v ran, and was planned to stay\n%s", ran, src)
		}
		want := perform(t, w, input, places)
		if got.stage != want.stage || !reflect.DeepEqual(got.outcome, want.outcome) {
			t.Fatalf("the rerun ends as %s with %s, and a run as %s with %s\n%s", got.stage, got.outcome.Output, want.stage, want.outcome.Output, src)
		}
	})
}

const relay = `
  fetch: {action: noop, with: {url: "${{ input.url }}"}}
  each: {action: noop, needs: [fetch], foreach: "${{ input.items }}", concurrency: 2, with: {item: "${{ item }}"}}
  join: {action: noop, needs: [each], with: {all: "${{ tasks.each.output }}"}}
  side: {action: noop, with: {n: 1}}
  tidy: {action: noop, needs: [join], if: "failed()"}
`

// TestPlanRerun has one row for each promise of docs/rerun.md.
func TestPlanRerun(t *testing.T) {
	t.Parallel()
	const input = `{"url":"a","items":[1,2,3,4,5,6]}`
	failing := func(bad ...Item) func(*Child) upshot {
		return func(c *Child) upshot {
			if slices.Contains(bad, Item{c.Task.Name, c.Index}) {
				return upshot{stage: flow.Failed}
			}
			return places(c)
		}
	}
	for _, row := range []struct {
		name, was, tasks string // tasks: of the rerun; "" as before
		run              func(*Child) upshot
		change           func(*Original)
		from             []Item
		input            string
		want             string
	}{
		{name: "nothing has failed", want: "fetch reuse 1, each reuse 6, join reuse 1, side reuse 1, tidy skip"},
		{name: "what failed, and what comes after it", run: failing(Item{"join", 0}),
			want: "fetch reuse 1, each reuse 6, join run: it failed, side reuse 1, tidy run: join, which it needs, runs again"},
		{name: "the successful items of a foreach are kept, beyond those in flight as well", run: failing(Item{"each", 5}),
			want: "fetch reuse 1, each partly 5 but [5]: it failed, join run: each, which it needs, runs again, side reuse 1, tidy run: join, which it needs, runs again"},
		{name: "items that never started run", run: failing(Item{"each", 1}),
			want: "fetch reuse 1, each partly 1 but [1 2 3 4 5]: it failed, join run: each, which it needs, runs again, side reuse 1, tidy run: join, which it needs, runs again"},
		{name: "from a task on", from: []Item{{"each", AllItems}},
			want: "fetch reuse 1, each run [0 1 2 3 4 5]: it was named, join run: each, which it needs, runs again, side reuse 1, tidy run: join, which it needs, runs again"},
		{name: "from an item on", from: []Item{{"each", 3}},
			want: "fetch reuse 1, each partly 5 but [3]: it was named, join run: each, which it needs, runs again, side reuse 1, tidy run: join, which it needs, runs again"},
		{name: "a changed input runs what it is given to, and what comes after", input: `{"url":"b","items":[1,2,3,4,5,6]}`,
			want: "fetch run: its input has changed, each run: fetch, which it needs, runs again, join run: each, which it needs, runs again, side reuse 1, tidy run: join, which it needs, runs again"},
		{name: "an item more", input: `{"url":"a","items":[1,2,3,4,5,6,7]}`,
			want: "fetch reuse 1, each partly 6 but [6]: it did not start, join run: each, which it needs, runs again, side reuse 1, tidy run: join, which it needs, runs again"},
		{name: "no items any more", input: `{"url":"a","items":[]}`,
			want: "fetch reuse 1, each reuse 0: its list is empty, join run: its input has changed, side reuse 1, tidy run: join, which it needs, runs again"},
		{name: "a changed task", tasks: strings.Replace(relay, "{n: 1}", "{n: 2}", 1),
			want: "fetch reuse 1, each reuse 6, join reuse 1, side run: its input has changed, tidy skip"},
		{name: "another action", tasks: strings.Replace(relay, "side: {action: noop", "side: {action: aside", 1),
			want: "fetch reuse 1, each reuse 6, join reuse 1, side run: what it runs has changed, tidy skip"},
		{name: "a need that is new: what comes after what runs runs", tasks: strings.Replace(relay, "side: {", "late: {action: noop}\n  side: {needs: [late], ", 1),
			want: "fetch reuse 1, each reuse 6, join reuse 1, late run: it did not start, side run: late, which it needs, runs again, tidy skip"},
		{name: "a condition that holds no more", tasks: strings.Replace(relay, "side: {", "side: {if: \"input.url == 'b'\", ", 1),
			want: "fetch reuse 1, each reuse 6, join reuse 1, side skip, tidy skip"},
		{name: "an expression that fails", tasks: strings.Replace(relay, "{n: 1}", `{n: "${{ input.absent }}"}`, 1),
			want: "fetch reuse 1, each prevent, join skip, side break, tidy run: it was skipped"},
		{name: "files that go with the original", change: func(o *Original) {
			past := o.Past
			o.Past = func(task string, index int) (Past, bool) {
				p, ok := past(task, index)
				p.Fleeting = task == "fetch"
				return p, ok
			}
		}, want: "fetch run: its output names files, which are kept only as long as the execution that left them, each run: fetch, which it needs, runs again, " +
			"join run: each, which it needs, runs again, side reuse 1, tidy run: join, which it needs, runs again"},
		{name: "an action that is gone", change: func(o *Original) {
			o.Work = func(c *Child) (Work, error) {
				if c.Task.Name == "side" {
					return Work{}, errors.New("no such action")
				}
				return workOf(c)
			}
		}, want: "fetch reuse 1, each reuse 6, join reuse 1, side run: it cannot run any more: no such action, tidy skip"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if row.run == nil {
				row.run = places
			}
			o := perform(t, workflow(t, relay), json.RawMessage(input), row.run).original()
			if row.change != nil {
				row.change(o)
			}
			w := workflow(t, relay)
			if row.tasks != "" {
				w = workflow(t, row.tasks)
			}
			if row.input == "" {
				row.input = input
			}
			plan := PlanRerun(w, o, row.from, Facts{ID: "ex_2", Input: json.RawMessage(row.input)})
			var said []string
			for _, p := range plan.Tasks {
				text := p.Task + " " + string(p.Decision)
				switch p.Decision {
				case Reuse:
					if text += fmt.Sprint(" ", p.Reused); p.Reused == 0 {
						text += ": " + p.Reason
					}
				case Partly:
					text += fmt.Sprintf(" %d but %v: %s", p.Reused, p.Items, p.Reason)
				case Run:
					if p.Items != nil {
						text += fmt.Sprint(" ", p.Items)
					}
					if p.Reason != "" {
						text += ": " + p.Reason
					}
				}
				said = append(said, text)
			}
			if got := strings.Join(said, ", "); got != row.want {
				t.Errorf("planned\n%s, want\n%s", got, row.want)
			}
		})
	}
}

// TestPlanRerunOfRounds has one row for each promise about rounds.
func TestPlanRerunOfRounds(t *testing.T) {
	t.Parallel()
	const tasks = `
  poll: {action: noop, repeat: {until: "output.index >= input.ready", max: 5, delay: 1s}, with: {round: "${{ round }}"}}
  use: {action: noop, needs: [poll], with: {last: "${{ tasks.poll.output.index }}"}}
`
	for _, row := range []struct {
		name, tasks, was, input string
		bad                     int // index of the round that fails; none: -1
		from                    []Item
		want                    string
	}{
		{name: "all rounds are reused, and what comes after them", was: `{"ready":2}`, bad: -1, want: "poll reuse 3 0, use reuse 1 0"},
		{name: "the round that failed runs, and those before it do not", was: `{"ready":4}`, bad: 2, want: "poll partly 2 1, use run 0 0"},
		{name: "until another one is reached, rounds follow those that are reused", was: `{"ready":1}`, input: `{"ready":3}`, bad: -1, want: "poll partly 2 1, use run 0 0"},
		{name: "one that is reached earlier", was: `{"ready":3}`, input: `{"ready":1}`, bad: -1, want: "poll reuse 2 0, use run 0 1"},
		{name: "rounds that led to nothing run anew", was: `{"ready":9}`, bad: -1, want: "poll run 0 1, use run 0 0"},
		{name: "from the task on", was: `{"ready":2}`, bad: -1, from: []Item{{"poll", AllItems}}, want: "poll run 0 1, use run 0 0"},
		{name: "another input of the rounds", was: `{"ready":2}`, tasks: strings.Replace(tasks, "round: ", "nr: ", 1), bad: -1, want: "poll run 0 1, use run 0 0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			o := perform(t, workflow(t, tasks), json.RawMessage(row.was), func(c *Child) upshot {
				if c.Task.Name == "poll" && c.Index == row.bad {
					return upshot{stage: flow.Failed}
				}
				return places(c)
			}).original()
			plan := PlanRerun(workflow(t, cmp.Or(row.tasks, tasks)), o, row.from, Facts{ID: "ex_2", Input: json.RawMessage(cmp.Or(row.input, row.was))})
			var said []string
			for _, p := range plan.Tasks {
				said = append(said, fmt.Sprintf("%s %s %d %d", p.Task, p.Decision, p.Reused, p.Runs))
			}
			if got := strings.Join(said, ", "); got != row.want {
				t.Errorf("planned %s, want %s", got, row.want)
			}
		})
	}
}

func TestAfter(t *testing.T) {
	t.Parallel()
	w := workflow(t, relay)
	if got := After(w, w.Task("fetch")); !slices.Equal(got, []string{"each", "join", "tidy"}) {
		t.Errorf("after fetch come %v", got)
	}
	if got := After(w, w.Task("side")); len(got) != 0 {
		t.Errorf("after side come %v", got)
	}
}

// A failure cancels the waiting items. The plan names the failure as the task's reason, and not a cancelled item.
func TestAPlanSaysWhyATaskFailed(t *testing.T) {
	w := workflow(t, "  each: {foreach: \"${{ [1, 2, 3] }}\", action: noop, with: {n: \"${{ item }}\"}}\n")
	ends := map[int]flow.Stage{0: flow.Cancelled, 1: flow.Failed, 2: flow.Completed}
	was := perform(t, w, nil, func(c *Child) upshot { return upshot{stage: ends[c.Index], output: json.RawMessage(`1`)} })
	plan := PlanRerun(w, was.original(), nil, Facts{ID: "ex_1"})
	if d := plan.Tasks[0]; d.Reason != "it failed" || !slices.Equal(d.Items, []int{0, 1}) {
		t.Errorf("%+v", d)
	}
}
