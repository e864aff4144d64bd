package orchestration

import (
	"encoding/json"
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

// A world is the store's rows of one workflow: children and marks, and nothing else. States are derived from the rows
// each time.
type world struct {
	t        *rapid.T
	w        *definition.Workflow
	input    json.RawMessage
	children map[[2]int]*row
	order    [][2]int
	marks    map[int]Marking
	ending   flow.Stage
	cleaning bool // ending comes after a clean-up
	cut      bool // which was ended
	recalled bool
	items    Items
	stage    flow.Stage
	outcome  flow.Outcome
	// tracker continues from step to step beside the rows; nil if the last plan was lost together with the tracker's
	// state.
	tracker *Tracker
	// follower knows the workflow only by its changes; ends are those that are in no change yet.
	follower *Tracker
	ends     Change
	// asked has the answer of Next for each evaluated task.
	asked map[int]Start
}

type row struct {
	stage flow.Stage // Running while open
	input json.RawMessage
	held  bool // a worker has it: a recall does not end it
}

func (x *world) state() *State {
	st := &State{Tasks: make([]Progress, len(x.w.Tasks)), Ending: x.ending, Cleaning: x.cleaning, CleanedUp: x.cut, Recalled: x.recalled}
	for task, m := range x.marks {
		st.Tasks[task].Mark, st.Tasks[task].Total = m.Mark, m.Total
		if m.Mark == Broken || m.Mark == NotReached {
			st.Tasks[task].Error = m.Error
		}
	}
	for _, key := range x.order {
		p := &st.Tasks[key[0]]
		p.Created++
		switch x.children[key].stage {
		case flow.Running:
			p.Open++
		case flow.Completed:
			p.Completed++
		case flow.Failed:
			p.Failed++
			p.Error = &flow.Error{Code: "boom", Message: "it broke"}
		case flow.Cancelled:
			p.Cancelled++
		case flow.TimedOut:
			p.TimedOut++
			p.Error = &flow.Error{Code: "timeout", Message: "too slow"}
		}
	}
	return st
}

// output is the output of a completed child: its own index.
func (x *world) output(task int) Output {
	t := x.w.Tasks[task]
	one := func(i int) json.RawMessage {
		if r := x.children[[2]int{task, i}]; r != nil && r.stage == flow.Completed {
			return json.RawMessage(fmt.Sprintf(`{"task":%q,"index":%d}`, t.Name, i))
		}
		return nil
	}
	if t.Repeat != nil {
		n := -1
		for x.children[[2]int{task, n + 1}] != nil {
			n++
		}
		out := Output{Single: one(n)}
		if r := x.children[[2]int{task, n}]; r != nil {
			if out.Stage = r.stage; r.stage != flow.Completed {
				out.Error = &flow.Error{Code: "boom", Message: "it broke"}
			}
		}
		return out
	}
	if t.Foreach == nil {
		return Output{Single: one(0)}
	}
	out := Output{Items: make([]json.RawMessage, x.marks[task].Total)}
	for i := range out.Items {
		out.Items[i] = one(i)
	}
	return out
}

// advance runs the engine's loop once and commits the plan.
func (x *world) advance() {
	if x.tracker == nil {
		x.tracker = Track(x.w, x.state())
	}
	st := x.tracker.State()
	var plan Plan
	for range 10 * len(x.w.Tasks) * 10 {
		step := x.tracker.Next()
		if anew := Track(x.w, st).Next(); !reflect.DeepEqual(step, anew) {
			x.t.Fatalf("a tracker that looked at what has changed gives %+v, and one that looked at everything %+v", step, anew)
		}
		if step.Empty() {
			break
		}
		for _, s := range step.Start {
			if _, twice := x.asked[s.Task]; twice {
				x.t.Fatalf("task %s is to be evaluated twice", x.w.Tasks[s.Task].Name)
			}
			x.asked[s.Task] = s
		}
		known := step.Outputs(x.w, x.items)
		f := &Facts{ID: "ex_1", Input: x.input, Items: x.items, Most: rapid.IntRange(0, 3).Draw(x.t, "most"),
			Output: func(task int) Output {
				if !slices.Contains(known, task) {
					return Output{}
				}
				return x.output(task)
			}}
		before := len(plan.Children)
		again := Take(x.w, st, step, f, &plan)
		if f.Most > 0 && len(plan.Children)-before > f.Most {
			x.t.Fatalf("%d children at once, at most %d were asked for", len(plan.Children)-before, f.Most)
		}
		x.forgetUnstarted(step, &plan)
		if !again {
			break
		}
	}
	if (x.ending == 0 || x.cleaning) && rapid.IntRange(0, 9).Draw(x.t, "lost") == 0 {
		for task := range x.asked { // the commit failed: the rows are unchanged
			if _, marked := x.marks[task]; !marked && x.children[[2]int{task, 0}] == nil {
				delete(x.asked, task)
			}
		}
		x.tracker = nil
		return
	}
	x.commit(&plan)
	x.check(st)
	if derived := x.state(); x.stage == 0 && !sameProgress(st, derived) {
		x.t.Fatalf("the tracker is at %+v, the rows at %+v", st.Tasks, derived.Tasks)
	}
	x.follow(st, &plan)
}

// forgetUnstarted allows tasks that Take had no room for to be evaluated again.
func (x *world) forgetUnstarted(step Step, plan *Plan) {
	for _, s := range step.Start {
		done := slices.ContainsFunc(plan.Marks, func(m Marking) bool { return m.Task == s.Task }) ||
			slices.ContainsFunc(plan.Children, func(c Child) bool { return c.Task.Index == s.Task })
		if !done {
			delete(x.asked, s.Task)
		}
	}
}

// follow applies a committed plan to the follower.
func (x *world) follow(st *State, plan *Plan) {
	if x.stage != 0 {
		return
	}
	c := ChangeOf(st, plan)
	c.Ended, x.ends.Ended = x.ends.Ended, nil
	text, err := c.Text()
	if err == nil {
		_, err = x.follower.Apply(text)
	}
	if err != nil {
		x.t.Fatal(err)
	}
	x.follower.State().Ending, x.follower.State().Cleaning = x.ending, x.cleaning
	if got := x.follower.State(); !sameProgress(got, st) || got.Recalled != st.Recalled || got.Stopped != st.Stopped {
		x.t.Fatalf("after %s the follower is at %+v, the tracker at %+v", text, got, st)
	}
	if got, want := x.follower.Next(), Track(x.w, x.follower.State()).Next(); !reflect.DeepEqual(got, want) {
		x.t.Fatalf("after %s the follower says %+v instead of %+v", text, got, want)
	}
}

// end ends a child.
func (x *world) end(key [2]int, as flow.Stage) {
	x.children[key].stage = as
	x.ends.End(key[0], as)
	if x.tracker == nil {
		return
	}
	x.tracker.Ended(key[0], as)
	p := &x.tracker.State().Tasks[key[0]]
	p.Error = x.state().Tasks[key[0]].Error
}

// sameProgress compares states except for the messages of failed children.
func sameProgress(a, b *State) bool {
	plain := func(all []Progress) []Progress {
		all = slices.Clone(all)
		for i := range all {
			all[i].Error, all[i].ErrorIndex = nil, 0
			if all[i].Mark == Broken {
				all[i].Total = 0
			}
		}
		return all
	}
	return reflect.DeepEqual(plain(a.Tasks), plain(b.Tasks))
}

func (x *world) commit(plan *Plan) {
	before := x.state()
	failing := before.Failing(x.w)
	for _, c := range plan.Children {
		if failing && !c.Task.If.Survives() {
			x.t.Fatalf("%s[%d] starts although the workflow is failing", c.Task.Name, c.Index)
		}
		if p := &before.Tasks[c.Task.Index]; p.unsuccessful() && !c.Task.ContinueOnError {
			x.t.Fatalf("%s[%d] starts although an item before it failed", c.Task.Name, c.Index)
		}
	}
	once := map[int]bool{}
	for _, m := range plan.Marks {
		if once[m.Task] {
			x.t.Fatalf("task %s is marked twice in one plan", x.w.Tasks[m.Task].Name)
		}
		once[m.Task] = true
		if old, twice := x.marks[m.Task]; twice && !(old.Mark == Expanded && m.Mark == Broken) {
			x.t.Fatalf("task %s is marked %s and then %s", x.w.Tasks[m.Task].Name, old.Mark, m.Mark)
		}
		x.marks[m.Task] = m
	}
	for _, c := range plan.Children {
		key := [2]int{c.Task.Index, c.Index}
		x.checkRound(&c)
		if x.children[key] != nil {
			x.t.Fatalf("child %s[%d] is created twice", c.Task.Name, c.Index)
		}
		if c.Index > 0 && x.children[[2]int{c.Task.Index, c.Index - 1}] == nil {
			x.t.Fatalf("child %s[%d] comes before the one before it", c.Task.Name, c.Index)
		}
		x.children[key] = &row{stage: flow.Running, input: c.Input, held: rapid.Bool().Draw(x.t, "held")}
		x.order = append(x.order, key)
	}
	for _, task := range plan.Recall {
		x.recalled = true
		for _, key := range x.order {
			if r := x.children[key]; key[0] == task && r.stage == flow.Running && !r.held {
				x.end(key, flow.Cancelled)
			}
		}
	}
	x.stage, x.outcome = plan.Stage, plan.Outcome
	if plan.Stage != 0 {
		for key, r := range x.children {
			if r.stage == flow.Running {
				x.t.Fatalf("the workflow is %s while child %v is open", plan.Stage, key)
			}
		}
	}
}

// until are conditions of repeats, with the first round after which they hold; after a failed round only those with round hold.
var until = map[string]int{"round >= 2": 2, "output.index == 2": 3, "round > 3 || status == 'skipped'": 4, "output.index >= 0 && error == null": 1}

// checkRound checks the rounds of a repeat against its max, their order, and its until.
func (x *world) checkRound(c *Child) {
	r := c.Task.Repeat
	if r == nil {
		return
	}
	if c.Index >= r.Max {
		x.t.Fatalf("round %d of %s starts, at most %d are allowed", c.Index+1, c.Task.Name, r.Max)
	}
	if (c.Delay == r.Delay) != (c.Index > 0) {
		x.t.Fatalf("round %d of %s is delayed by %s", c.Index+1, c.Task.Name, c.Delay)
	}
	if c.Index == 0 {
		return
	}
	last := x.children[[2]int{c.Task.Index, c.Index - 1}]
	if last == nil || last.stage == flow.Running || last.stage == flow.Cancelled {
		x.t.Fatalf("round %d of %s starts after %+v", c.Index+1, c.Task.Name, last)
	}
	if x.held(c.Task, c.Index-1) {
		x.t.Fatalf("round %d of %s starts although %q held", c.Index+1, c.Task.Name, r.Until.Text())
	}
}

// held reports whether the until of a task holds after an ended round.
func (x *world) held(t *definition.Task, index int) bool {
	text := t.Repeat.Until.Text()
	byOutput := strings.Contains(text, "output")
	if text == "output.index == 2" {
		return index == 2 && x.children[[2]int{t.Index, index}].stage == flow.Completed
	}
	return index+1 >= until[text] && (!byOutput || x.children[[2]int{t.Index, index}].stage == flow.Completed)
}

// check compares the state that Take made with the rows, and checks the concurrency of a foreach.
func (x *world) check(st *State) {
	derived := x.state()
	for i, t := range x.w.Tasks {
		a, b := st.Tasks[i], derived.Tasks[i]
		if a.Mark != b.Mark || a.Created != b.Created || a.Total != b.Total && a.Mark != Broken {
			x.t.Fatalf("task %s: Take left %+v, the rows say %+v", t.Name, a, b)
		}
		limit, err := t.Limit(&definition.Vars{Input: x.input})
		if err != nil {
			x.t.Fatal(err)
		}
		if limit > 0 && b.Open > limit {
			x.t.Fatalf("task %s has %d items in flight, at most %d are allowed", t.Name, b.Open, limit)
		}
		if b.Mark == Expanded && b.Created > b.Total {
			x.t.Fatalf("task %s has %d children of %d", t.Name, b.Created, b.Total)
		}
		if b.Created > 0 || b.Mark == Skipped || b.Mark == Cancelled && x.ending == 0 {
			for _, n := range t.Needs {
				if derived.Status(x.w, n) == "" {
					x.t.Fatalf("task %s was decided before %s ended", t.Name, x.w.Tasks[n].Name)
				}
			}
		}
	}
}

var conditions = []string{"", "always()", "failed()", "success()", "cancelled()", "!success()", "success() && input.yes", "input.no", "failed() || input.yes", "tasks.size() >= 0"}

// document draws a workflow.
func document(t *rapid.T) string {
	n := rapid.IntRange(1, 8).Draw(t, "tasks")
	var b strings.Builder
	b.WriteString("name: w\ntasks:\n")
	for i := range n {
		fmt.Fprintf(&b, "  t%d:\n    action: noop\n", i)
		var needs []string
		for j := range i {
			if rapid.IntRange(0, 2).Draw(t, "need") == 0 {
				needs = append(needs, fmt.Sprintf("t%d", j))
			}
		}
		if len(needs) > 0 {
			fmt.Fprintf(&b, "    needs: [%s]\n", strings.Join(needs, ", "))
		}
		if c := rapid.SampledFrom(conditions).Draw(t, "if"); c != "" {
			fmt.Fprintf(&b, "    if: %q\n", c)
		}
		with := "{n: 1}"
		switch rapid.IntRange(0, 4).Draw(t, "foreach") {
		case 4:
			fmt.Fprintf(&b, "    repeat: {until: %q, max: %d, delay: 5s}\n", rapid.SampledFrom(slices.Sorted(maps.Keys(until))).Draw(t, "until"), rapid.IntRange(1, 5).Draw(t, "max"))
			with = "{round: \"${{ round }}\", last: \"${{ previous }}\"}"
		case 0:
			fmt.Fprintf(&b, "    foreach: ${{ input.lists[%d] }}\n", rapid.IntRange(0, 5).Draw(t, "items"))
			if c := rapid.IntRange(0, 3).Draw(t, "in flight"); c > 0 {
				if rapid.Bool().Draw(t, "by expression") {
					fmt.Fprintf(&b, "    concurrency: ${{ input.flight[%d] }}\n", c)
				} else {
					fmt.Fprintf(&b, "    concurrency: %d\n", c)
				}
			}
			if s := rapid.IntRange(0, 2).Draw(t, "batch"); s > 0 {
				fmt.Fprintf(&b, "    batch: %d\n", s)
			}
			with = "{item: \"${{ item }}\", index: \"${{ index }}\"}"
			if rapid.IntRange(0, 9).Draw(t, "broken item") == 0 {
				with = "{item: \"${{ item[1 - index] }}\"}"
			}
		case 1:
			if len(needs) > 0 {
				with = "{from: \"${{ tasks." + needs[0] + ".output }}\", was: \"${{ tasks." + needs[0] + ".status }}\"}"
			}
		case 2:
			if rapid.IntRange(0, 9).Draw(t, "broken") == 0 {
				with = "{from: \"${{ input.absent }}\"}"
			}
		}
		fmt.Fprintf(&b, "    with: %s\n", with)
		if rapid.IntRange(0, 3).Draw(t, "continue") == 0 {
			b.WriteString("    continue_on_error: true\n")
		}
	}
	b.WriteString("outputs: {all: \"${{ tasks }}\"}\n")
	return b.String()
}

// TestRandomWorkflows runs random workflows in random orders of completion, with failing commits and early ends at any
// moment. It checks the invariants and compares with an oracle that knows only the definition and the rows.
func TestRandomWorkflows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := document(t)
		defs, err := definition.Parse("w.yaml", []byte(src))
		if err != nil {
			t.Fatalf("parse:\n%s\n%v", src, err)
		}
		w := defs[0].Workflow
		if rapid.Bool().Draw(t, "decoded") {
			d, err := definition.Decode(defs[0].Canonical())
			if err != nil {
				t.Fatalf("decode: %v", err)
			}
			w = d.Workflow
		}
		x := &world{t: t, w: w, follower: Track(w, &State{Tasks: make([]Progress, len(w.Tasks))}), children: map[[2]int]*row{}, marks: map[int]Marking{}, items: Items{}, asked: map[int]Start{},
			input: json.RawMessage(`{"yes":true,"no":false,"flight":[0,1,2,3],"lists":[[],[10],[10,11],[10,11,12],[1,2,3,4],[1,2,3,4,5]]}`)}
		if rapid.Bool().Draw(t, "forget items") {
			x.items = nil
		}
		mayEnd := rapid.IntRange(0, 4).Draw(t, "may end") == 0
		good := rapid.SampledFrom([]int{0, 5, 20, 1000}).Draw(t, "good")
		for turn := 0; x.stage == 0; turn++ {
			if turn > 1000 {
				t.Fatalf("the workflow does not end:\n%s\n%+v", src, x.state())
			}
			x.advance()
			if x.stage != 0 {
				break
			}
			var open [][2]int
			for _, key := range x.order {
				if x.children[key].stage == flow.Running {
					open = append(open, key)
				}
			}
			if x.ending == 0 && mayEnd && rapid.IntRange(0, 5).Draw(t, "end") == 0 {
				x.ending = rapid.SampledFrom([]flow.Stage{flow.Cancelled, flow.TimedOut}).Draw(t, "ending")
				x.cleaning = x.state().Cleans(w) && rapid.Bool().Draw(t, "clean up")
				if x.tracker != nil {
					x.tracker.State().Ending, x.tracker.State().Cleaning = x.ending, x.cleaning
				}
				continue
			}
			if x.cleaning && rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
				if x.cleaning, x.cut = false, true; x.tracker != nil {
					st := x.tracker.State()
					st.Cleaning, st.Stopped, st.CleanedUp = false, false, true
				}
				continue
			}
			for range rapid.IntRange(0, len(open)).Draw(t, "ends") {
				key := rapid.SampledFrom(open).Draw(t, "child")
				as := flow.Completed
				if rapid.IntRange(0, good).Draw(t, "bad") == 0 {
					as = rapid.SampledFrom([]flow.Stage{flow.Failed, flow.TimedOut, flow.Cancelled, flow.Completed}).Draw(t, "as")
				}
				if x.children[key].stage == flow.Running {
					x.end(key, as)
				}
			}
		}
		x.judge(src)
	})
}
