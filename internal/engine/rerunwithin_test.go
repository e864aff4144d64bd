package engine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/orchestration"
)

// rollout is a workflow whose task deploy runs another one, whose task check runs a third one.
const rollout = `
name: check
input: {type: object, properties: {n: {type: integer}}}
tasks:
  ping: {action: noop, with: {n: "${{ input.n }}", in: ping}}
  pong: {needs: [ping], action: noop, with: {was: "${{ tasks.ping.output }}"}}
outputs: {all: "${{ tasks.pong.output }}"}
---
name: deploy
input: {type: object, properties: {n: {type: integer}}}
tasks:
  copy: {action: noop, with: {in: copy, n: "${{ input.n }}"}}
  verify: {needs: [copy], foreach: [0, 1, 2], action: noop, with: {item: "${{ item }}", was: "${{ tasks.copy.output }}"}}
  beside: {action: noop, with: {in: beside}}
  check: {needs: [verify], foreach: [10, 20], action: check, with: {n: "${{ item }}"}}
  tidy: {needs: [check], action: noop, with: {in: tidy}}
outputs: {verified: "${{ tasks.verify.output }}"}
---
name: rollout
tasks:
  build: {action: noop, with: {in: build}}
  deploy: {needs: [build], action: deploy, with: {n: 7}}
  lint: {action: noop, with: {in: lint}}
  note: {needs: [deploy], action: noop, with: {was: "${{ tasks.deploy.output }}"}}
outputs: {note: "${{ tasks.note.output }}"}
`

// runLedger records what a worker ran, by the path from the submitted execution.
type runLedger struct {
	*rig
	mu  sync.Mutex
	ran map[flow.ID][]string // by that execution
}

func (l *runLedger) respond(a handoff.Assignment) (string, *flow.Error) {
	var path string
	var root flow.ID
	for x := l.get(a.Execution); ; x = l.get(x.Parent) {
		if root = x.ID; x.Parent.IsZero() {
			break
		}
		path = "/" + fmt.Sprintf("%s[%d]", x.Task, x.Index) + path
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ran[root] = append(l.ran[root], strings.TrimPrefix(path, "/"))
	return string(a.Payload), nil
}

func (l *runLedger) of(id flow.ID) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.ran[id])
	slices.Sort(all)
	return all
}

// ranOn makes a worker run everything, and runs the rollout once.
func (r *rig) ranOn(o Submission) (*runLedger, flow.ID) {
	r.Helper()
	r.define(rollout)
	l := &runLedger{rig: r, ran: map[flow.ID][]string{}}
	r.worker().serve(l.respond)
	id := r.submit(o)
	if x := r.ended(id); x.Stage != flow.Completed {
		r.Fatalf("%+v", x.Outcome)
	}
	return l, id
}

// paths makes options from names.
func paths(t testing.TB, field string, output string, all ...string) (o RerunOptions) {
	t.Helper()
	for _, p := range all {
		if err := o.Name(field, p, json.RawMessage(output)); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// A path leads into a workflow among the tasks: the named task there runs, with everything after it at each level, and
// nothing else does. The plan says so beforehand.
func TestRerunWithin(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		l, id := r.ranOn(Submission{Action: "rollout"})
		for _, c := range []struct {
			o    RerunOptions
			ran  []string
			part string // of a part of the plan, with its decisions
		}{
			{paths(t, "from", "", "deploy/verify[1]"),
				[]string{"deploy[0]/check[0]/ping[0]", "deploy[0]/check[0]/pong[0]", "deploy[0]/check[1]/ping[0]", "deploy[0]/check[1]/pong[0]", "deploy[0]/tidy[0]", "deploy[0]/verify[1]", "note[0]"},
				"deploy: copy reuse, verify partly, beside reuse, check run, tidy run"},
			{paths(t, "from", "", "deploy/check[1]/pong"), []string{"deploy[0]/check[1]/pong[0]", "deploy[0]/tidy[0]", "note[0]"},
				"deploy: copy reuse, verify reuse, beside reuse, check partly, tidy run; deploy/check[1]: ping reuse, pong run"},
			{paths(t, "from", "", "deploy/tidy", "lint"), []string{"deploy[0]/tidy[0]", "lint[0]", "note[0]"},
				"deploy: copy reuse, verify reuse, beside reuse, check reuse, tidy run"},
			{paths(t, "only", "", "deploy/verify[2]"), []string{"deploy[0]/verify[2]"},
				"deploy: copy reuse, verify partly, beside reuse, check leave, tidy leave"},
			{paths(t, "only", "", "deploy/check[0]/pong"), []string{"deploy[0]/check[0]/pong[0]"}, "deploy/check[0]: ping reuse, pong run"},
			{paths(t, "outputs", `{"n": 1}`, "deploy/tidy"), []string{"note[0]"}, "deploy: copy reuse, verify reuse, beside reuse, check reuse, tidy give"},
		} {
			plan, err := r.e.PlanRerun(r.ctx, id, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if text := partsText(plan); !strings.Contains(text, c.part) {
				t.Errorf("%+v is planned as %s, not %s", c.o, text, c.part)
			}
			out, _, err := r.e.Rerun(r.ctx, id, c.o)
			if err != nil {
				t.Fatal(err)
			}
			x := r.ended(out.Execution)
			if ran := l.of(x.ID); x.Stage != flow.Completed || !slices.Equal(ran, c.ran) {
				t.Errorf("%+v: %s, ran %q, not %q", c.o, x.Stage, ran, c.ran)
			}
			var deploy flow.ID
			for _, k := range r.children(x.ID, 1) {
				if k.Task == "deploy" {
					deploy = k.Execution
				}
			}
			if d := r.get(deploy); d.RerunOf.IsZero() || d.AsRerun().KeptWith != x.ID || d.AsRerun().KeptAs != "deploy[0]" {
				t.Errorf("the task deploy: %+v", d.Request)
			}
		}
	})
}

// partsText are the decisions about the tasks of the workflows into which paths lead.
func partsText(p *RerunPlan) string {
	var parts []string
	for i := range p.Parts {
		var tasks []string
		for _, t := range p.Parts[i].Plan.Tasks {
			tasks = append(tasks, t.Task+" "+string(t.Decision))
		}
		parts = append(parts, p.Parts[i].Path+": "+strings.Join(tasks, ", "))
	}
	return strings.Join(parts, "; ")
}

// A rerun of the rerun does not take a partly run workflow for a whole one, and the outputs of a part are those of the named tasks.
func TestRerunOfAPart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l, id := r.ranOn(Submission{Action: "rollout"})
	part, _, err := r.e.Rerun(r.ctx, id, paths(t, "only", "", "deploy/verify[2]"))
	if err != nil {
		t.Fatal(err)
	}
	x := r.ended(part.Execution)
	if out := string(x.Outcome.Output); !strings.Contains(out, `{"deploy":{"verify":[`) {
		t.Errorf("put out: %s", out)
	}
	again, plan, err := r.e.Rerun(r.ctx, part.Execution, RerunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d := plan.Workflow.Tasks[1]; d.Decision != orchestration.Run || !strings.Contains(d.Reason, "only a part") {
		t.Errorf("%+v", d)
	}
	y := r.ended(again.Execution)
	if whole := r.get(id); y.Stage != flow.Completed || string(y.Outcome.Output) != string(whole.Outcome.Output) {
		t.Errorf("put out %s, and the first %s", y.Outcome.Output, whole.Outcome.Output)
	}
	if ran := l.of(y.ID); !slices.Contains(ran, "deploy[0]/tidy[0]") || slices.Contains(ran, "build[0]") {
		t.Errorf("ran %q", ran)
	}
	// A path into a workflow whose outcome was reused leads to the execution that ran.
	same, _, err := r.e.Rerun(r.ctx, id, paths(t, "from", "", "lint"))
	if err != nil {
		t.Fatal(err)
	}
	r.ended(same.Execution)
	deep, _, err := r.e.Rerun(r.ctx, same.Execution, paths(t, "from", "", "deploy/tidy"))
	if err != nil {
		t.Fatal(err)
	}
	r.ended(deep.Execution)
	if ran := l.of(deep.Execution); !slices.Equal(ran, []string{"deploy[0]/tidy[0]", "note[0]"}) {
		t.Errorf("ran %q", ran)
	}
}

// A wrong path is refused, with its wrong part and the existing names.
func TestRerunWithinRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, id := r.ranOn(Submission{Action: "rollout"})
	for _, c := range []struct {
		o    RerunOptions
		says []string
	}{
		{paths(t, "from", "", "deplo/verify"), []string{`the workflow has no task "deplo"`, `did you mean "deploy"?`}},
		{paths(t, "from", "", "deploy/verfy[1]"), []string{`deploy has no task "verfy"`, `did you mean "verify"?`}},
		{paths(t, "from", "", "deploy/zzz"), []string{`deploy has no task "zzz"`, "its tasks are copy, verify, beside, check, tidy"}},
		{paths(t, "from", "", "deploy/check[1]/zzz"), []string{`deploy/check[1] has no task "zzz"`, "its tasks are ping, pong"}},
		{paths(t, "from", "", "deploy/verify[7]"), []string{"deploy/verify[7]", "no such item"}},
		{paths(t, "from", "", "deploy/check/pong"), []string{"deploy/check", "deploy/check: the task has a foreach", "deploy/check[0]/…"}},
		{paths(t, "from", "", "deploy[0]/copy"), []string{"the task has no foreach", "name the task: deploy"}},
		{paths(t, "from", "", "build/copy"), []string{"build runs noop", "only workflows have tasks"}},
		{paths(t, "from", "", "deploy", "deploy/copy"), []string{"it was named itself"}},
		{paths(t, "from", "", "build", "deploy/copy"), []string{"of which nothing is reused", "build, which it needs, runs again"}},
		{paths(t, "only", "", "deploy/check[0]"), nil},
		{paths(t, "only", "", "deploy/copy", "deploy/tidy"), []string{"deploy/tidy", "comes after another task"}},
	} {
		_, err := r.e.PlanRerun(r.ctx, id, c.o)
		if len(c.says) == 0 && err != nil {
			t.Errorf("%+v: %v", c.o, err)
		}
		for _, say := range c.says {
			if err == nil || !strings.Contains(err.Error(), say) {
				t.Errorf("%+v: %v does not say %q", c.o, err, say)
			}
		}
	}
	mixed := paths(t, "from", "", "deploy/copy")
	mixed.Only = []orchestration.Item{{Task: "lint", Index: orchestration.AllItems}}
	if _, err := r.e.PlanRerun(r.ctx, id, mixed); err == nil || !strings.Contains(err.Error(), "leave out one of them") {
		t.Errorf("from and only: %v", err)
	}
	twice := paths(t, "outputs", "1", "deploy/copy", "deploy/copy")
	if _, err := r.e.PlanRerun(r.ctx, id, twice); err == nil || !strings.Contains(err.Error(), "deploy/copy") {
		t.Errorf("two outputs: %v", err)
	}
	for _, bad := range []string{"deploy/", "/copy", "a//b", "deploy/verify[x]"} {
		if err := new(RerunOptions).Name("from", bad, nil); err == nil {
			t.Errorf("%q is taken for a path", bad)
		}
	}
}

// Too many paths are refused when the first one beyond the bound is read, and not after all are read.
func TestPathsAreBounded(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("a/", 999_999) + "a"
	var items, workflows, long []string
	for n := range 100_000 {
		items, workflows, long = append(items, fmt.Sprintf("a[%d]", n)), append(workflows, fmt.Sprintf("a[%d]/b", n)), append(long, fmt.Sprintf("%0200d", n))
	}
	for _, c := range []struct {
		paths []string
		read  int // without a fault
		say   string
	}{
		{items, pathsMost, "more than 1000 paths are named"},
		{workflows, beneathMost, "paths lead into more than 100 workflows"},
		{long, pathsBytes / 200, "the paths have more than 64 KB together"},
		{[]string{deep[len(deep)-2*requests.DepthLimit+1:], deep}, 1, "64 KB"},
		{[]string{"b", "a/" + deep[len(deep)-2*requests.DepthLimit+1:]}, 1, "the path has 21 parts, and workflows nest 20 deep at most"},
	} {
		var o RerunOptions
		var err error
		read := 0
		for _, path := range c.paths {
			if err = o.Name("from", path, nil); err != nil {
				break
			}
			read++
		}
		if read != c.read || err == nil || !strings.Contains(err.Error(), c.say) || !strings.HasPrefix(err.Error(), "from:") || len(err.Error()) > 300 {
			t.Errorf("%d were read, %d should be; %v should say %q", read, c.read, err, c.say)
		}
	}
}

// A rerun with paths runs exactly what its plan says: with random paths, also in reruns of reruns.
func TestRerunWithinRunsItsPlan(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l, id := r.ranOn(Submission{Action: "rollout"})
	rng := rand.New(rand.NewPCG(1, 2))
	all := []string{"build", "lint", "note", "deploy", "deploy/copy", "deploy/verify", "deploy/verify[0]", "deploy/verify[2]", "deploy/beside", "deploy/check", "deploy/check[0]", "deploy/check[0]/ping",
		"deploy/check[1]/ping", "deploy/check[1]/pong", "deploy/tidy"}
	for n, done := 0, 0; done < 40; n++ {
		if n == 1000 {
			t.Fatalf("only %d of %d could be planned", done, n)
		}
		o := paths(t, "from", "", all[rng.IntN(len(all))], all[rng.IntN(len(all))])
		plan, err := r.e.PlanRerun(r.ctx, id, o)
		if err != nil {
			continue // it has a task and a path into it
		}
		done++
		out, _, err := r.e.Rerun(r.ctx, id, o)
		if err != nil {
			t.Fatal(err)
		}
		x := r.ended(out.Execution)
		want := map[string]bool{}
		runsOf(want, "", plan.Workflow)
		for i := range plan.Parts {
			runsOf(want, plan.Parts[i].Path+"/", plan.Parts[i].Plan)
		}
		for i := range plan.Parts { // the plan says more about these
			delete(want, plan.Parts[i].Path)
		}
		ran := map[string]bool{}
		for _, path := range l.of(x.ID) {
			ran[path] = true
		}
		for path := range ran {
			if !planned(want, path) {
				t.Errorf("%+v: %s ran, which the plan did not say: %v, %s", o, path, want, partsText(plan))
			}
		}
		reused := 0
		r.reusedBeneath(x.ID, &reused)
		if reused != plan.Reused() {
			t.Errorf("%+v: %d outcomes were reused, planned were %d", o, reused, plan.Reused())
		}
		if rng.IntN(3) == 0 {
			id = x.ID
		}
	}
}

// runsOf adds what a plan runs, by path; a task with an unknown number of items stands for all of them.
func runsOf(all map[string]bool, above string, p *orchestration.RerunPlan) {
	for _, t := range p.Tasks {
		switch {
		case t.Decision == orchestration.Run || t.Decision == orchestration.Partly && len(t.Items) == 0:
			all[above+t.Task] = true
		case t.Decision == orchestration.Partly:
			for _, i := range t.Items {
				all[fmt.Sprintf("%s%s[%d]", above, t.Task, i)] = true
			}
		}
	}
}

// planned reports whether a path, or a prefix of it, is among those that run.
func planned(all map[string]bool, path string) bool {
	var at []string
	for part := range strings.SplitSeq(path, "/") {
		name, _, _ := strings.Cut(part, "[")
		above := strings.Join(append(slices.Clone(at), ""), "/")
		if all[above+name] || all[above+part] {
			return true
		}
		if name == "deploy" {
			part = name // it has no foreach: the plan uses the task's name
		}
		at = append(at, part)
	}
	return false
}

// reusedBeneath counts the executions beneath one that reused an outcome.
func (r *rig) reusedBeneath(id flow.ID, n *int) {
	r.Helper()
	for _, k := range r.children(id, 1) {
		x := r.get(k.Execution)
		if !x.ReusedOf.IsZero() {
			*n++
		}
		if x.Kind == flow.KindWorkflow {
			r.reusedBeneath(x.ID, n)
		}
	}
}

// A rerun on the same version with another input still records the alias of that version.
func TestRerunKeepsItsAlias(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: dial\nkind: action\naction: noop\n")
	if _, _, err := r.e.MoveAlias(r.ctx, "dial", "stable", api.AliasOrder{To: []api.AliasTarget{{Version: 1}}}); err != nil {
		t.Fatal(err)
	}
	h := r.worker()
	id := r.submit(Submission{Action: "dial@stable", Input: json.RawMessage(`{"n": 1}`)})
	h.complete(h.take(1)[0], `1`)
	r.ended(id)
	for _, o := range []RerunOptions{{}, {Input: json.RawMessage(`{"n": 2}`)}, {Input: json.RawMessage(`{"n": 2}`), Definition: DefinitionSame}} {
		out, _, err := r.e.Rerun(r.ctx, id, o)
		if err != nil {
			t.Fatal(err)
		}
		if x := r.get(out.Execution); x.Alias != "stable" || x.Version != 1 {
			t.Errorf("%+v: %s@%d by %q", o, x.Action, x.Version, x.Alias)
		}
		h.complete(h.take(1)[0], `1`)
	}
}
