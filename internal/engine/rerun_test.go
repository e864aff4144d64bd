package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
)

// crew is a worker that counts what runs, and fails what it is told to.
type crew struct {
	*hand
	mu   sync.Mutex
	ran  map[string]int // by input
	fail map[string]bool
}

func (r *rig) crew(fail ...string) *crew {
	c := &crew{hand: r.worker(), ran: map[string]int{}, fail: map[string]bool{}}
	for _, f := range fail {
		c.fail[f] = true
	}
	c.serve(func(a handoff.Assignment) (string, *flow.Error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ran[string(a.Payload)]++
		if c.fail[string(a.Payload)] {
			return "", &flow.Error{Code: "boom", Message: "boom"}
		}
		return string(a.Payload), nil
	})
	return c
}

// since returns what ran since its last call, in order.
func (c *crew) since() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, input := range slices.Sorted(maps.Keys(c.ran)) {
		all = append(all, fmt.Sprintf("%s×%d", input, c.ran[input]))
	}
	clear(c.ran)
	return all
}

func (c *crew) succeed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.fail)
}

func (r *rig) rerun(id flow.ID, o RerunOptions) (flow.ID, *RerunPlan) {
	r.Helper()
	s, plan, err := r.e.Rerun(r.ctx, id, o)
	if err != nil {
		r.Fatalf("rerun %s: %v", id, err)
	}
	return s.Execution, plan
}

// kids are the children of a workflow, by task and index.
func (r *rig) kids(id flow.ID) map[string]*flow.Execution {
	r.Helper()
	all, err := r.store.Children(r.ctx, store.WorkflowAttempt{ID: id, Attempt: r.get(id).Attempt}, "", -1, 10_000)
	if err != nil {
		r.Fatal(err)
	}
	kids := map[string]*flow.Execution{}
	for _, k := range all {
		kids[fmt.Sprintf("%s[%d]", k.Task, k.Index)] = r.get(k.Execution)
	}
	return kids
}

// remove removes a workflow's execution and its children, as retention does.
func (r *rig) remove(id flow.ID) {
	r.Helper()
	var ids []flow.ID
	for _, k := range r.kids(id) {
		ids = append(ids, k.ID)
	}
	err := r.store.Update(r.ctx, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Remove(ctx, append(ids, id))
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
}

// same compares a list of texts.
func (r *rig) same(what string, got []string, want ...string) {
	r.Helper()
	if !slices.Equal(got, want) {
		r.Errorf("%s: %q, want %q", what, got, want)
	}
}

// An original that retention has begun to remove is not planned from its remaining rows.
func TestRerunOfWhatIsBeingRemoved(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Retention = time.Hour })
	r.define("name: w\ntasks:\n  a: {action: noop, with: {n: 1}}\n  b: {needs: [a], action: noop, with: {n: 2}}\n")
	r.define("name: outer\ntasks:\n  in: {action: w}\n  long: {needs: [in], action: noop, with: {n: 1}}\n")
	c := r.crew()
	id := r.submit(Submission{Action: "w"})
	r.ended(id)
	var half []flow.ID
	for _, k := range r.kids(id) {
		half = append(half, k.ID)
	}
	outer := r.submit(Submission{Action: "outer"})
	r.ended(outer)
	c.since()
	r.pass(time.Hour + time.Second)
	young := r.submit(Submission{Action: "w"})
	r.ended(young)
	err := r.store.Update(r.ctx, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Remove(ctx, half)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for what, id := range map[string]flow.ID{"a workflow": id, "a workflow in a workflow": r.kids(outer)["in[0]"].ID} {
		if s, _, err := r.e.Rerun(r.ctx, id, RerunOptions{}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s was run again as %s (%v) though its retention is over", what, s.Execution, err)
		}
	}
	again, _ := r.rerun(young, RerunOptions{})
	r.ended(again)
	if reused := r.get(r.kids(again)["b[0]"].ID).ReusedOf; reused.IsZero() {
		t.Error("what is kept was not reused")
	}
}

const chainOfItems = `
name: w
input: {type: object, properties: {items: {type: array}, tag: {type: string}}}
tasks:
  fetch: {action: noop, with: {tag: "${{ input.tag }}"}}
  each: {needs: [fetch], foreach: "${{ input.items }}", concurrency: 2, action: noop, with: {item: "${{ item }}"}}
  join: {needs: [each], action: noop, with: {all: "${{ tasks.each.output }}"}}
  side: {action: noop, with: {n: 1}}
outputs: {all: "${{ tasks.join.output.all }}", tag: "${{ tasks.fetch.output.tag }}"}
`

// A rerun runs the failed items and those after them; the others keep their outcomes, and the original does not change.
func TestRerunOfWhatFailed(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(chainOfItems)
		c := r.crew(`{"item":3}`)
		input := json.RawMessage(`{"items":[0,1,2,3,4],"tag":"a"}`)
		id := r.submit(Submission{Action: "w", Input: input, Labels: map[string]string{"team": "docs"}, Priority: new(int)})
		if x := r.ended(id); x.Stage != flow.Failed {
			t.Fatalf("the original is %s", x.Stage)
		}
		before, was := r.get(id), r.kids(id)
		c.since()
		c.succeed()
		plan, err := r.e.PlanRerun(r.ctx, id, RerunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		again, carried := r.rerun(id, RerunOptions{})
		if fmt.Sprintf("%+v", plan.Workflow.Tasks) != fmt.Sprintf("%+v", carried.Workflow.Tasks) {
			t.Errorf("planned %+v and carried out %+v", plan.Workflow.Tasks, carried.Workflow.Tasks)
		}
		x := r.ended(again)
		if x.Stage != flow.Completed || string(x.Outcome.Output) != `{"all":[{"item":0},{"item":1},{"item":2},{"item":3},{"item":4}],"tag":"a"}` {
			t.Errorf("the rerun is %s: %s %+v", x.Stage, x.Outcome.Output, x.Outcome.Error)
		}
		want := []string{`{"all":[{"item":0},{"item":1},{"item":2},{"item":3},{"item":4}]}×1`, `{"item":3}×1`}
		if was["each[4]"] == nil || was["each[4]"].Stage != flow.Completed {
			want = append(want, `{"item":4}×1`)
		}
		r.same("ran again", c.since(), want...)
		if x.RerunOf != id || x.Labels["team"] != "docs" || x.Version != before.Version {
			t.Errorf("the rerun asks for %+v", x.Request)
		}
		kids := r.kids(again)
		for _, name := range []string{"fetch[0]", "each[0]", "each[1]", "each[2]", "side[0]"} {
			k := kids[name]
			if k.ReusedOf != was[name].ID || k.Stage != flow.Completed || string(k.Outcome.Output) != string(was[name].Outcome.Output) || !k.ClaimedAt.IsZero() {
				t.Errorf("%s is %+v", name, k)
			}
			if h := r.history(k.ID); !slices.Equal(h, []flow.EventType{flow.EvRequested, flow.EvReused}) {
				t.Errorf("%s has the history %v", name, h)
			}
		}
		for _, name := range []string{"each[3]", "join[0]"} {
			if !kids[name].ReusedOf.IsZero() {
				t.Errorf("%s reuses an outcome", name)
			}
		}
		if after := r.get(id); fmt.Sprintf("%+v", after.State) != fmt.Sprintf("%+v", before.State) || len(r.kids(id)) != len(was) {
			t.Errorf("the original was %+v and is %+v", before, after)
		}
		listed, err := store.List(r.ctx, r.store, store.Filter{RerunOf: id, Limit: 10})
		if err != nil || len(listed) != 1 || listed[0].ID != again {
			t.Errorf("its reruns are %v, %v", listed, err)
		}
		for id, say := range map[flow.ID]string{kids["side[0]"].ID: "it did not run: its outcome is that of " + was["side[0]"].ID.String(), again: "it runs " + id.String() + " again"} {
			if w, err := r.e.Why(r.ctx, id); err != nil || !strings.Contains(strings.Join(w.Facts, "; "), say) {
				t.Errorf("why says %+v, %v; want %q", w, err, say)
			}
		}

		// Now everything can be reused: nothing runs, and the outcomes are those of the executions that ran.
		third, _ := r.rerun(again, RerunOptions{})
		if y := r.ended(third); y.Stage != flow.Completed || string(y.Outcome.Output) != string(x.Outcome.Output) {
			t.Errorf("the rerun of the rerun is %s: %s", y.Stage, y.Outcome.Output)
		}
		r.same("ran for the rerun of the rerun", c.since())
		for name, of := range map[string]flow.ID{"each[0]": was["each[0]"].ID, "each[3]": kids["each[3]"].ID} {
			if k := r.kids(third)[name]; k.ReusedOf != of {
				t.Errorf("%s has the outcome of %s, want %s", name, k.ReusedOf, of)
			}
		}
		// A retry is not a rerun.
		retried, err := r.e.Retry(r.ctx, again, "")
		if err != nil {
			t.Fatal(err)
		}
		if x := r.ended(retried.Execution); !x.RerunOf.IsZero() || len(c.since()) != 8 {
			t.Errorf("a retry of a rerun is %+v", x.Request)
		}
	})
}

func TestRerunFrom(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(chainOfItems)
		c := r.crew()
		id := r.submit(Submission{Action: "w", Input: json.RawMessage(`{"items":[0,1,2],"tag":"a"}`)})
		r.ended(id)
		c.since()
		const join = `{"all":[{"item":0},{"item":1},{"item":2}]}×1`
		for _, row := range []struct {
			o    RerunOptions
			want []string
		}{
			{RerunOptions{From: []orchestration.Item{{Task: "join", Index: orchestration.AllItems}}}, []string{join}},
			{RerunOptions{From: []orchestration.Item{{Task: "each", Index: 1}}}, []string{join, `{"item":1}×1`}},
			{RerunOptions{Input: json.RawMessage(`{"items":[0,7],"tag":"a"}`)}, []string{`{"all":[{"item":0},{"item":7}]}×1`, `{"item":7}×1`}},
			{RerunOptions{Input: json.RawMessage(`{"tag":"b","items":[]}`)}, []string{`{"all":[]}×1`, `{"tag":"b"}×1`}},
			{RerunOptions{Input: json.RawMessage(`{"tag": "a", "items": [0, 1, 2]}`)}, nil},
		} {
			again, _ := r.rerun(id, row.o)
			if x := r.ended(again); x.Stage != flow.Completed {
				t.Errorf("%+v: it is %s", row.o, x.Stage)
			}
			r.same(fmt.Sprintf("%+v", row.o), c.since(), row.want...)
		}
		for _, row := range []struct {
			o         RerunOptions
			path, fix string
		}{
			{RerunOptions{From: []orchestration.Item{{Task: "jion", Index: orchestration.AllItems}}}, "from", "join"},
			{RerunOptions{From: []orchestration.Item{{Task: "join", Index: 0}}}, "from", "name the task: join"},
			{RerunOptions{From: []orchestration.Item{{Task: "each", Index: 3}}}, "from", "pawl describe"},
			{RerunOptions{Definition: "v"}, "action", "w"},
			{RerunOptions{Definition: "w@9"}, "action", "w@1"},
			{RerunOptions{Input: json.RawMessage(`{"tag":1}`)}, "input.tag", ""},
		} {
			_, _, err := r.e.Rerun(r.ctx, id, row.o)
			var bad *fault.Invalid
			if !errors.As(err, &bad) || bad.Problems[0].Path != row.path || !strings.Contains(bad.Problems[0].Fix, row.fix) {
				t.Errorf("%+v: %v", row.o, err)
			}
		}
	})
}

// With another definition, the changed tasks run again, with the definition's variables.
func TestRerunOnTheLatestDefinition(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		const doc = `
name: act
kind: action
action: noop
with: {v: "${{ input.v }}", say: %s}
---
name: w
labels: {tier: %s}
timeout: %s
env: {REGION: %s}
tasks:
  one: {action: act, with: {v: "${{ env.REGION }}"}}
  two: {needs: [one], action: noop, with: {v: "${{ tasks.one.output.v }}"}}
  three: {action: noop, with: {v: 3}}
`
		r.define(fmt.Sprintf(doc, "old", "low", "1h", "north"))
		c := r.crew()
		id := r.submit(Submission{Action: "w", Labels: map[string]string{"who": "ada"}, Queue: flow.DefaultQueue, Settings: flow.Settings{TotalTimeout: 2 * time.Hour}})
		r.ended(id)
		c.since()
		r.define(fmt.Sprintf(doc, "old", "high", "2h", "north"))
		again, _ := r.rerun(id, RerunOptions{Definition: DefinitionLatest})
		x := r.ended(again)
		r.same("ran though no task has changed", c.since())
		if x.Version != 2 || x.Labels["tier"] != "high" || x.Labels["who"] != "ada" || x.Timeout != 2*time.Hour || x.TotalTimeout != 2*time.Hour {
			t.Errorf("the rerun asks for %+v", x.Request)
		}
		r.define(fmt.Sprintf(doc, "old", "high", "2h", "south"))
		again, _ = r.rerun(id, RerunOptions{Definition: DefinitionLatest})
		r.ended(again)
		r.same("ran with another region", c.since(), `{"say":"old","v":"south"}×1`, `{"v":"south"}×1`)
		again, _ = r.rerun(id, RerunOptions{})
		r.ended(again)
		r.same("ran on the same definition", c.since())
		r.define(fmt.Sprintf(doc, "new", "high", "2h", "north"))
		again, plan := r.rerun(id, RerunOptions{Definition: "w@4"})
		r.ended(again)
		r.same("ran with another action", c.since(), `{"say":"new","v":"north"}×1`, `{"v":"north"}×1`)
		if why := plan.Workflow.Tasks[0].Reason; why != "what it runs has changed" {
			t.Errorf("the plan says %q", why)
		}
	})
}

// Another server continues a rerun whose original has been removed: the reused outcomes are in the rerun's own rows.
func TestRerunDependsOnNothing(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(strings.Replace(chainOfItems, "concurrency: 2", "concurrency: 1", 1))
		c := r.crew(`{"item":1}`)
		id := r.submit(Submission{Action: "w", Input: json.RawMessage(`{"items":[0],"tag":"a"}`)})
		r.ended(id)
		c.succeed()
		// All items completed; the first is run again, and the others wait for it.
		id, _ = r.rerun(id, RerunOptions{Input: json.RawMessage(`{"items":[0,1,2,3],"tag":"a"}`)})
		r.ended(id)
		c.since()
		c.mu.Lock() // the worker stands still
		again, _ := r.rerun(id, RerunOptions{From: []orchestration.Item{{Task: "each", Index: 0}}})
		r.remove(id)
		other := r.beside()
		c.mu.Unlock()
		if x := other.ended(again); x.Stage != flow.Completed || string(x.Outcome.Output) != `{"all":[{"item":0},{"item":1},{"item":2},{"item":3}],"tag":"a"}` {
			t.Errorf("the rerun is %s: %+v", x.Stage, x.Outcome)
		}
		r.same("ran again", c.since(), `{"all":[{"item":0},{"item":1},{"item":2},{"item":3}]}×1`, `{"item":0}×1`)
		if _, _, err := r.e.Rerun(r.ctx, id, RerunOptions{}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("rerun of what has been removed: %v", err)
		}
	}, func(o *Options) { o.Exclusive = false })
}

// If an action has another version when its item begins, the item runs, and so does everything after it.
func TestRerunOfAnActionThatChanges(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		// The members are in alphabetical order, like those of a definition that is read from the store again, for example in a slow test.
		const act = "name: act\nkind: action\naction: noop\nwith: {say: %s, v: \"${{ input.v }}\"}\n"
		r.define(fmt.Sprintf(act, "old"))
		r.define(`
name: w
tasks:
  each: {foreach: "${{ [0, 1, 2] }}", concurrency: 1, action: act, with: {v: "${{ item }}"}}
  late: {needs: [each], action: noop, with: {n: 1}}
  last: {needs: [late], action: noop, with: {n: 2}}
`)
		c := r.crew()
		id := r.submit(Submission{Action: "w"})
		r.ended(id)
		c.since()
		again := r.rerunAs(id, func(p *orchestration.RerunPlan) {
			if len(p.Reuses) != 5 {
				r.Fatalf("planned to reuse %+v of %+v: %+v", p.Reuses, p.Tasks, r.get(id).Outcome)
			}
			r.define(fmt.Sprintf(act, "new"))
		})
		r.ended(again)
		r.same("ran", c.since(), `{"n":1}×1`, `{"n":2}×1`, `{"say":"new","v":0}×1`, `{"say":"new","v":1}×1`, `{"say":"new","v":2}×1`)
	})
}

// rerunAs submits a rerun, and calls between after its plan and before its submission.
func (r *rig) rerunAs(id flow.ID, between func(*orchestration.RerunPlan)) flow.ID {
	r.Helper()
	again := r.e.opts.NewID()
	request, plan, err := r.e.planRerun(r.ctx, again, id, &RerunOptions{})
	if err != nil {
		r.Fatal(err)
	}
	between(plan.Workflow)
	o := r.e.rerunOp(again, id, request, plan, &RerunOptions{})
	if err := r.e.submit(r.ctx, o); err != nil || o.verdict.Err != nil {
		r.Fatal(err, o.verdict.Err)
	}
	return again
}

// Work is compared by value, and only by what can change an outcome.
func TestWorkOf(t *testing.T) {
	t.Parallel()
	one := flow.Request{Action: "act", Version: 1, Kind: flow.KindNoop, With: json.RawMessage(`{"a": 1, "b": [2]}`), Input: json.RawMessage(`{"x":1.0,"y":null}`), Labels: map[string]string{"a": "b"}}
	for name, row := range map[string]struct {
		change        func(*flow.Request)
		action, input bool // whether it is another
	}{
		"written otherwise": {func(r *flow.Request) {
			r.With, r.Input = json.RawMessage(`{"b":[2],"a":1}`), json.RawMessage(`{"y": null, "x": 1}`)
		}, false, false},
		"another version, queue, limit and label": {func(r *flow.Request) {
			r.Version, r.Queue, r.Timeout, r.Retry.MaxAttempts, r.Priority, r.Key, r.Labels = 2, "gpu", time.Hour, 3, 9, "k", nil
		}, false, false},
		"another payload":               {func(r *flow.Request) { r.With = json.RawMessage(`{"a":1,"b":[3]}`) }, true, false},
		"another kind":                  {func(r *flow.Request) { r.Kind = flow.KindSleep }, true, false},
		"another input":                 {func(r *flow.Request) { r.Input = json.RawMessage(`{"x":2,"y":null}`) }, false, true},
		"no input":                      {func(r *flow.Request) { r.Input = nil }, false, true},
		"a workflow":                    {func(r *flow.Request) { r.Kind = flow.KindWorkflow }, true, false},
		"members that are not the same": {func(r *flow.Request) { r.Input = json.RawMessage(`{"x":1}`) }, false, true},
	} {
		other := one
		row.change(&other)
		if a, b := workOf(&one), workOf(&other); (a.Action != b.Action) != row.action || (a.Input != b.Input) != row.input {
			t.Errorf("%s: another action %t, another input %t", name, a.Action != b.Action, a.Input != b.Input)
		}
	}
	one.Kind = flow.KindWorkflow
	for name, change := range map[string]func(*flow.Request){
		"version": func(r *flow.Request) { r.Version = 2 }, "name": func(r *flow.Request) { r.Action = "b" }, "labels": func(r *flow.Request) { r.Labels = nil },
	} {
		other := one
		if change(&other); workOf(&one).Action == workOf(&other).Action {
			t.Errorf("a workflow with another %s has the same to do", name)
		}
	}
}

// An execution that is not a workflow runs again with the same or another input.
func TestRerunOfASingleExecution(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		c := r.crew()
		id := r.submit(Submission{Action: "noop", Input: json.RawMessage(`{"a":1,"b":2}`), Settings: flow.Settings{Timeout: time.Minute}, Labels: map[string]string{"x": "y"}})
		r.ended(id)
		c.since()
		again, plan := r.rerun(id, RerunOptions{IdempotencyKey: "once"})
		if x := r.ended(again); x.RerunOf != id || x.Timeout != time.Minute || x.Labels["x"] != "y" || plan.Workflow != nil {
			t.Errorf("the rerun asks for %+v", x.Request)
		}
		r.same("ran", c.since(), `{"a":1,"b":2}×1`)
		if s, _, err := r.e.Rerun(r.ctx, id, RerunOptions{IdempotencyKey: "once"}); err != nil || s.Execution != again || !s.Existing {
			t.Errorf("asked again: %+v, %v", s, err)
		}
		if s, _, err := r.e.Rerun(r.ctx, id, RerunOptions{IdempotencyKey: "once", Definition: DefinitionSame}); err != nil || s.Execution != again || !s.Existing {
			t.Errorf("asked again with the definition that is the default: %+v, %v", s, err)
		}
		other := json.RawMessage(`{"a":1,"b":3}`)
		if _, _, err := r.e.Rerun(r.ctx, id, RerunOptions{IdempotencyKey: "once", Input: other}); !errors.Is(err, ErrIdempotencyMismatch) {
			t.Errorf("something else under the key: %v", err)
		}
		again, _ = r.rerun(id, RerunOptions{Input: other})
		if x := r.ended(again); x.Timeout != time.Minute || x.Labels["x"] != "y" {
			t.Errorf("the rerun with another input asks for %+v", x.Request)
		}
		r.same("ran with another input", c.since(), `{"a":1,"b":3}×1`)
		for _, o := range []RerunOptions{{From: []orchestration.Item{{Task: "t"}}}, {Definition: DefinitionLatest}} {
			var bad *fault.Invalid
			if _, _, err := r.e.Rerun(r.ctx, id, o); !errors.As(err, &bad) {
				t.Errorf("%+v: %v", o, err)
			}
		}
	})
}

// A rerun that ends as it is created, because its key is full, leaves no reuses behind.
func TestRerunThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define("name: w\nconcurrency: {key: k, limit: 1, when_full: cancel_new}\ntasks: {a: {action: noop, with: {a: 1}}, b: {needs: [a], action: noop, with: {b: 1}}}\n")
		c := r.crew(`{"b":1}`)
		id := r.submit(Submission{Action: "w"})
		r.ended(id)
		r.submit(Submission{Action: "sleep", Input: json.RawMessage(`{"for":3600}`), Key: "k", KeyLimit: 1})
		c.since()
		again, plan := r.rerun(id, RerunOptions{})
		if x := r.ended(again); x.Stage != flow.Cancelled || len(plan.Workflow.Reuses) != 1 {
			r.Errorf("the rerun is %s, and was to reuse %+v", x.Stage, plan.Workflow.Reuses)
		}
		if broken, err := r.store.Check(r.ctx); err != nil || len(broken) > 0 {
			r.Errorf("the rows contradict one another: %+v, %v", broken, err)
		}
	})
}
