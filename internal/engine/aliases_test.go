package engine

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

const deploy = "kind: action\nname: deploy\naction: noop\nlabels: {v: %q}\n"

func (r *rig) move(alias string, o api.AliasOrder) api.Alias {
	r.Helper()
	a, _, err := r.e.MoveAlias(r.ctx, "deploy", alias, o)
	if err != nil {
		r.Fatalf("move %s: %v", alias, err)
	}
	return a
}

func (r *rig) versions(n int) {
	r.Helper()
	for v := 1; v <= n; v++ {
		r.define(fmt.Sprintf(deploy, fmt.Sprint(v)))
	}
}

// ran returns the version and alias that a submission of an action gets.
func (r *rig) ran(action string) (version int, alias string) {
	r.Helper()
	x := r.get(r.submit(Submission{Action: action}))
	if x.Action != "deploy" {
		r.Errorf("%s: the action is %q", action, x.Action)
	}
	return x.Version, x.Alias
}

func to(versions ...int) (all []api.AliasTarget) {
	for _, v := range versions {
		all = append(all, api.AliasTarget{Version: v})
	}
	return all
}

// A submission by an alias gets the alias's version at that moment, and records both. A running execution keeps its version.
func TestAlias(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.versions(3)
		if a := r.move("stable", api.AliasOrder{To: to(1), By: "ann", Reason: "first"}); a.Number != 1 || a.By != "ann" || a.At.IsZero() {
			r.Errorf("%+v", a)
		}
		id := r.submit(Submission{Action: "deploy@stable"})
		r.move("stable", api.AliasOrder{To: to(2), By: "bob"})
		if v, alias := r.ran("deploy@stable"); v != 2 || alias != "stable" {
			r.Errorf("version %d by alias %q", v, alias)
		}
		if x := r.get(id); x.Version != 1 || x.Alias != "stable" {
			r.Errorf("what has begun: version %d by alias %q", x.Version, x.Alias)
		}
		for action, want := range map[string]int{"deploy": 3, "deploy@3": 3, "deploy@1": 1, "deploy@latest": 3} {
			if v, _ := r.ran(action); v != want {
				r.Errorf("%s: version %d, want %d", action, v, want)
			}
		}
		if again, moved, err := r.e.MoveAlias(r.ctx, "deploy", "stable", api.AliasOrder{To: to(2)}); err != nil || moved || again.Number != 2 || again.By != "bob" {
			r.Errorf("the same move again: %+v, %v, %v", again, moved, err)
		}
		if a := r.move("stable", api.AliasOrder{Back: true, By: "ann"}); a.Number != 3 || len(a.To) != 1 || a.To[0].Version != 1 {
			r.Errorf("back: %+v", a)
		}
		if v, _ := r.ran("deploy@stable"); v != 1 {
			r.Errorf("after the way back: version %d", v)
		}
		moves, err := r.e.catalog.AliasMoves(r.ctx, "deploy", "stable", 0, 10)
		if err != nil || len(moves) != 3 || moves[0].Number != 3 || moves[2].Reason != "first" {
			r.Errorf("%+v, %v", moves, err)
		}
		if moves, err := r.e.catalog.AliasMoves(r.ctx, "deploy", "stable", 3, 1); err != nil || len(moves) != 1 || moves[0].Number != 2 {
			r.Errorf("below 3: %+v, %v", moves, err)
		}
		r.move("stable", api.AliasOrder{Remove: true})
		if all, err := r.e.catalog.Aliases(r.ctx, "deploy"); err != nil || len(all) != 0 {
			r.Errorf("after its removal: %+v, %v", all, err)
		}
		if out, err := r.e.Submit(r.ctx, []Submission{{Action: "deploy@stable"}}); err != nil || !strings.Contains(fmt.Sprint(out[0].Err), `no action or workflow "deploy@stable"`) {
			r.Errorf("a removed alias: %+v, %v", out, err)
		}
	})
}

// A version that is applied for an alias does not become the version of the plain name, until a version is applied without an alias.
func TestAppliedForAnAlias(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		apply := func(v string, o DefineOrder) {
			defs, err := definition.Parse("test.yaml", []byte(fmt.Sprintf(deploy, v)))
			if err == nil {
				_, err = r.e.DefineFor(r.ctx, defs, o)
			}
			if err != nil {
				r.Fatal(err)
			}
		}
		stand := func(plain, next int) {
			r.Helper()
			if v, _ := r.ran("deploy"); v != plain {
				r.Errorf("deploy is version %d, want %d", v, plain)
			}
			if v, _ := r.ran("deploy@next"); v != next {
				r.Errorf("deploy@next is version %d, want %d", v, next)
			}
		}
		apply("a", DefineOrder{})
		apply("b", DefineOrder{Alias: "next", By: "ann"})
		stand(1, 2)
		apply("c", DefineOrder{Alias: "next"})
		stand(1, 3)
		apply("c", DefineOrder{Alias: "next"}) // again, which changes nothing
		stand(1, 3)
		apply("c", DefineOrder{}) // applying a known version changes nothing: a user has moved the latest back, and it stays there
		stand(1, 3)
		apply("d", DefineOrder{})
		stand(4, 3)
		r.move(definition.LatestAlias, api.AliasOrder{To: to(2)}) // the way back for submissions without a version
		stand(2, 3)
		r.move(definition.LatestAlias, api.AliasOrder{Remove: true})
		stand(4, 3)
		var bad *fault.Invalid
		if _, err := r.e.DefineFor(r.ctx, nil, DefineOrder{Alias: "Next!"}); !errors.As(err, &bad) {
			r.Errorf("a bad alias: %v", err)
		}
	})
}

// Each version of an alias gets its share of the submissions, and the same idempotency key gets the same version each time.
func TestAliasOfSeveralVersions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.versions(3)
	r.move("canary", api.AliasOrder{To: []api.AliasTarget{{Version: 3, Percent: 10}, {Version: 2, Percent: 0.5}, {Version: 1}}})
	const n = 4000
	subs := make([]Submission, n)
	for i := range subs {
		subs[i] = Submission{Action: "deploy@canary", IdempotencyKey: fmt.Sprint("key ", i)}
	}
	out, err := r.e.Submit(r.ctx, subs)
	if err != nil {
		t.Fatal(err)
	}
	got := map[int]int{}
	a := api.Alias{Name: "deploy", Alias: "canary", To: []api.AliasTarget{{Version: 3, Percent: 10}, {Version: 2, Percent: 0.5}, {Version: 1, Percent: 0}}}
	for i := range out {
		x := r.get(out[i].Execution)
		got[x.Version]++
		if want := catalog.Choose(&a, subs[i].IdempotencyKey); x.Version != want {
			t.Fatalf("%s got version %d, want %d each time", subs[i].IdempotencyKey, x.Version, want)
		}
	}
	for version, part := range map[int]float64{3: 0.1, 2: 0.005, 1: 0.895} {
		// Five standard deviations of as many draws.
		if off := math.Abs(float64(got[version]) - n*part); off > 5*math.Sqrt(n*part*(1-part)) {
			t.Errorf("%d of %d got version %d", got[version], n, version)
		}
	}
	seen := map[int]bool{}
	for range 200 { // without a key the execution's id chooses
		v, _ := r.ran("deploy@canary")
		seen[v] = true
	}
	if !seen[3] || !seen[1] {
		t.Errorf("of 200 all got the same version: %v", seen)
	}
}

// All tasks of a workflow that use one alias get one version, and record it, even if the alias moves while the workflow runs.
func TestTasksByAnAlias(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.versions(2)
		r.move("canary", api.AliasOrder{To: []api.AliasTarget{{Version: 2, Percent: 50}, {Version: 1}}})
		r.define("kind: workflow\nname: roll\ntasks:\n  each:\n    foreach: [1, 2, 3, 4, 5, 6, 7, 8]\n    action: deploy@canary\n")
		versions := map[int]bool{}
		for range 12 {
			id := r.submit(Submission{Action: "roll"})
			var kids []*flow.Execution
			r.until(func() bool {
				page, err := r.store.Children(r.ctx, store.WorkflowAttempt{ID: id, Attempt: 1}, "", 0, 100)
				if err != nil {
					r.Fatal(err)
				}
				kids = nil
				for i := range page {
					kids = append(kids, r.get(page[i].Execution))
				}
				return len(kids) == 8
			})
			for _, k := range kids {
				if k.Version != kids[0].Version || k.Alias != "canary" || k.Action != "deploy" {
					r.Errorf("a task is %s@%d by %q, its neighbour has version %d", k.Action, k.Version, k.Alias, kids[0].Version)
				}
			}
			versions[kids[0].Version] = true
		}
		if len(versions) != 2 {
			r.Errorf("12 workflows all got the versions %v", versions)
		}
		defs, err := definition.Parse("test.yaml", []byte("kind: workflow\nname: lost\ntasks:\n  a: {action: deploy@canaru}\n"))
		if err != nil {
			r.Fatal(err)
		}
		if err := r.e.Check(r.ctx, defs); err == nil || !strings.Contains(err.Error(), "canary") {
			r.Errorf("an alias that is not there: %v", err)
		}
	})
}

// Each wrong order is refused with its place, and changes nothing.
func TestWrongAliasOrders(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.versions(2)
	for _, tt := range []struct {
		name, alias string
		o           api.AliasOrder
		say         string
	}{
		{"deploy", "Stable", api.AliasOrder{To: to(1)}, "take a name such as stable"},
		{"deploy", "3", api.AliasOrder{To: to(1)}, "beginning with a letter"},
		{"deploy", "stable", api.AliasOrder{To: to(3)}, "give one from 1 to 2"},
		{"deploy", "stable", api.AliasOrder{To: to(1, 2)}, "2 versions have no percentage"},
		{"deploy", "stable", api.AliasOrder{To: []api.AliasTarget{{Version: 1, Percent: 50}}}, "0 versions have no percentage"},
		{"deploy", "stable", api.AliasOrder{To: []api.AliasTarget{{Version: 1, Percent: 101}, {Version: 2, Percent: 0}}}, "from 0 to 100"},
		{"deploy", "stable", api.AliasOrder{To: []api.AliasTarget{{Version: 1, Percent: 0.001}, {Version: 2, Percent: 0}}}, "steps of 0.01"},
		{"deploy", "stable", api.AliasOrder{To: []api.AliasTarget{{Version: 1, Percent: 10}, {Version: 1, Percent: 0}}}, "given twice"},
		{"deploy", "stable", api.AliasOrder{Back: true}, "has not been moved yet"},
		{"deploy", "stable", api.AliasOrder{Back: true, To: to(1)}, "say one thing"},
		{"deploy", "stable", api.AliasOrder{}, "say one thing"},
		{"deploy", "stable", api.AliasOrder{To: []api.AliasTarget{{Version: 1, Percent: math.NaN()}, {Version: 2, Percent: 0}}}, "from 0 to 100"},
		{"deploy", "stable", api.AliasOrder{To: []api.AliasTarget{{Version: 1, Percent: 1e-9}, {Version: 2, Percent: 0}}}, "steps of 0.01"},
		{"deploy", "stable", api.AliasOrder{To: make([]api.AliasTarget, 21)}, "20 versions at the most"},
		{"deploy\x00", "stable", api.AliasOrder{To: to(1)}, "no action or workflow"},
		{"deploi", "stable", api.AliasOrder{To: to(1)}, "deploy"},
		{"schedule:x", "stable", api.AliasOrder{To: to(1)}, "no action or workflow"},
	} {
		if _, _, err := r.e.MoveAlias(r.ctx, tt.name, tt.alias, tt.o); err == nil || !strings.Contains(err.Error(), tt.say) {
			t.Errorf("%s@%s %+v: %v, want %q", tt.name, tt.alias, tt.o, err, tt.say)
		}
	}
	if all, err := r.e.catalog.Aliases(r.ctx, "deploy"); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if n := r.e.Stats().FailedCommits; n > 0 {
		t.Errorf("%d commits failed: what is refused is not an error of the server", n)
	}
}

// Lists show all aliases, even if there are more than a page of rows has and many of them are removed.
func TestManyAliases(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.versions(1)
	for i := range 105 {
		alias := fmt.Sprintf("a%03d", i)
		r.move(alias, api.AliasOrder{To: to(1)})
		r.move(alias, api.AliasOrder{Remove: true})
	}
	r.move("stable", api.AliasOrder{To: to(1)})
	if all, err := r.e.catalog.Aliases(r.ctx, "deploy"); err != nil || len(all) != 1 || all[0].Alias != "stable" {
		t.Errorf("%+v, %v", all, err)
	}
}

// A rerun does what its plan says: if an alias has several versions, the rerun's tasks get the versions of the original's tasks.
func TestRerunOfTasksByAnAlias(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, span := range []string{"1ms", "2ms"} { // the two versions have different work
		r.define("kind: action\nname: deploy\naction: sleep\nwith: {for: " + span + "}\n")
	}
	r.move("split", api.AliasOrder{To: []api.AliasTarget{{Version: 2, Percent: 50}, {Version: 1}}})
	r.define("kind: workflow\nname: roll\ntasks:\n  k: {action: deploy@split}\n  l: {action: noop, needs: [k]}\n")
	h := r.worker()
	id := r.submit(Submission{Action: "roll"})
	h.fail(h.take(1)[0], "broken")
	r.ended(id)
	for range 6 { // each reruns the one before
		again, _, err := r.e.Rerun(r.ctx, id, RerunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		h.fail(h.take(1)[0], "broken")
		r.ended(again.Execution)
		kids, err := r.store.Children(r.ctx, store.WorkflowAttempt{ID: again.Execution, Attempt: 1}, "", 0, 10)
		if err != nil || len(kids) != 2 || r.get(kids[0].Execution).ReusedOf.IsZero() {
			t.Fatalf("the rerun runs k again, which it can reuse: %+v, %v", kids, err)
		}
		id = again.Execution
	}
}

// Many moves of one alias at once, on several servers, make one row each, and all servers end with the last one.
func TestAliasMovedByMany(t *testing.T) {
	t.Parallel()
	a := newPostgresRig(t)
	other := a.replica(func(o *Options) { o.Uptime = nil })
	a.versions(4)
	var all sync.WaitGroup
	for i := range 8 {
		e := []*Engine{a.e, other}[i%2]
		all.Go(func() {
			for v := range 4 {
				if _, _, err := e.MoveAlias(a.ctx, "deploy", "stable", api.AliasOrder{To: to(1 + (v+i)%4)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	moves, err := a.e.catalog.AliasMoves(a.ctx, "deploy", "stable", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range moves {
		if m.Number != len(moves)-i {
			t.Errorf("move %d has number %d", i, m.Number)
		}
		if i > 0 && m.To[0].Version == moves[i-1].To[0].Version {
			t.Errorf("move %d changes nothing", moves[i-1].Number)
		}
	}
	for _, e := range []*Engine{a.e, other} {
		e.Settle(a.ctx)
		out, err := e.Submit(a.ctx, []Submission{{Action: "deploy@stable"}})
		if err != nil || out[0].Err != nil {
			t.Fatal(out, err)
		}
		if x := a.get(out[0].Execution); x.Version != moves[0].To[0].Version {
			t.Errorf("a server runs version %d, the alias stands for %d", x.Version, moves[0].To[0].Version)
		}
	}
}
