package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
)

const caching = `
name: w
input: {type: object, properties: {items: {type: array}, tag: {type: string}}}
tasks:
  each: {foreach: "${{ input.items }}", action: noop, cache: {ttl: 1h}, with: {n: "${{ item }}"}}
  sum: {needs: [each], action: noop, cache: {key: "${{ input.tag }}", ttl: 1h}, with: {all: "${{ tasks.each.output }}"}}
outputs: {all: "${{ tasks.sum.output.all }}"}
`

// A task with a kept outcome does not run: it ends with that outcome and names its origin, even after the origin was removed.
func TestCache(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(caching)
		c := r.crew()
		run := func(input string) (flow.ID, map[string]*flow.Execution) {
			id := r.submit(Submission{Action: "w", Input: json.RawMessage(input)})
			if x := r.ended(id); x.Stage != flow.Completed {
				t.Fatalf("it is %s: %v", x.Stage, x.Outcome.Error)
			}
			return id, r.kids(id)
		}
		first, was := run(`{"items":[1,2],"tag":"a"}`)
		r.same("of the first ran", c.since(), `{"all":[{"n":1},{"n":2}]}×1`, `{"n":1}×1`, `{"n":2}×1`)
		_, kids := run(`{"items":[2,3],"tag":"a"}`)
		r.same("of the second ran", c.since(), `{"n":3}×1`)
		if k := kids["each[0]"]; k.ReusedOf != was["each[1]"].ID || !k.Cached() || string(k.Outcome.Output) != `{"n":2}` {
			t.Errorf("each[0] has the outcome of %s: %s", k.ReusedOf, k.Outcome.Output)
		}
		if k := kids["sum[0]"]; k.ReusedOf != was["sum[0]"].ID || string(k.Outcome.Output) != `{"all":[{"n":1},{"n":2}]}` {
			t.Errorf("by its key, sum has %s of %s", k.Outcome.Output, k.ReusedOf)
		}
		why, err := r.e.Why(r.ctx, kids["sum[0]"].ID)
		if err != nil || !strings.Contains(strings.Join(why.Facts, "\n"), "cached: outcome of "+was["sum[0]"].ID.String()) {
			t.Errorf("why says %q (%v)", why.Facts, err)
		}
		run(`{"items":[3],"tag":"b"}`)
		r.same("with another key ran", c.since(), `{"all":[{"n":3}]}×1`)
		// An execution that ended with a kept outcome is not an origin.
		_, kids = run(`{"items":[2],"tag":"b"}`)
		r.same("of the fourth ran", c.since())
		if k := kids["each[0]"]; k.ReusedOf != was["each[1]"].ID {
			t.Errorf("each[0] has the outcome of %s", k.ReusedOf)
		}
		r.remove(first)
		_, kids = run(`{"items":[1],"tag":"a"}`)
		if k := kids["each[0]"]; k.ReusedOf != was["each[0]"].ID || string(k.Outcome.Output) != `{"n":1}` {
			t.Errorf("of what was removed, each[0] has %s of %s", k.Outcome.Output, k.ReusedOf)
		}
		// Another version of the workflow has other keys; equal work without a key has the same outcome.
		r.define(strings.Replace(caching, "action: noop, cache: {key", "action: noop, priority: 1, cache: {key", 1))
		run(`{"items":[1],"tag":"a"}`)
		r.same("of another version ran", c.since(), `{"all":[{"n":1}]}×1`)
		// Without the cache everything runs and is kept for others, also in a retry.
		fresh := r.submit(Submission{Action: "w", Input: json.RawMessage(`{"items":[1],"tag":"a"}`), NoCache: true})
		if x := r.ended(fresh); !x.NoCache {
			t.Errorf("%+v", x)
		}
		r.same("without the cache ran", c.since(), `{"all":[{"n":1}]}×1`, `{"n":1}×1`)
		retried, err := r.e.Retry(r.ctx, fresh, "")
		if err != nil {
			t.Fatal(err)
		}
		r.ended(retried.Execution)
		r.same("of its retry ran", c.since(), `{"all":[{"n":1}]}×1`, `{"n":1}×1`)
		_, kids = run(`{"items":[1],"tag":"a"}`)
		if k := kids["each[0]"]; k.ReusedOf != r.kids(retried.Execution)["each[0]"].ID {
			t.Errorf("each[0] has the outcome of %s", k.ReusedOf)
		}
		r.same("with the cache ran", c.since())
		// A rerun has its own rules for reuse.
		again, _ := r.rerun(latest(r, t), RerunOptions{From: []orchestration.Item{{Task: "each", Index: orchestration.AllItems}}})
		r.ended(again)
		r.same("of a rerun ran", c.since(), `{"all":[{"n":1}]}×1`, `{"n":1}×1`)
	})
}

// Actions that ask, wait or sleep are not cached, even if the task that names the action has a cache: each run asks again.
func TestNoCacheOfWhatIsMomentary(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define("name: approve\nkind: action\naction: ask\nwith: {title: \"Ship?\", form: {type: object, properties: {approved: {type: boolean}}}}\n")
		r.define("name: doze\nkind: action\naction: sleep\nwith: {for: 1ms}\n")
		r.define("name: w\ntasks:\n  nap: {action: doze, cache: {ttl: 1d}}\n  ok: {needs: [nap], action: approve, cache: {key: ship, ttl: 1d}}\n")
		var inquiries []flow.ID
		for range 2 {
			id := r.submit(Submission{Action: "w"})
			i := r.asked(id, "ok")
			inquiries = append(inquiries, i.ID)
			if err := r.reply(i, "ada", `{"approved":true}`); err != nil {
				t.Fatal(err)
			}
			if x := r.ended(id); x.Stage != flow.Completed {
				t.Fatalf("it is %s: %v", x.Stage, x.Outcome.Error)
			}
			for name, k := range r.kids(id) {
				if k.Cached() || k.Cache != nil {
					t.Errorf("%s has a cache: the outcome of %s", name, k.ReusedOf)
				}
			}
		}
		if inquiries[0] == inquiries[1] {
			t.Errorf("both runs asked %s", inquiries[0])
		}
	})
}

// A rerun runs what its plan says: a workflow among its tasks that runs again does not use kept outcomes, at any depth,
// and its outcome is kept for others.
func TestCacheBeneathRerun(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(`
name: inner
tasks:
  a: {action: noop, cache: {ttl: 1h}, with: {in: a}}
---
name: middle
tasks:
  inner: {action: inner}
---
name: w
tasks:
  middle: {action: middle}
`)
		c := r.crew()
		first := r.submit(Submission{Action: "w"})
		r.ended(first)
		r.same("of the first ran", c.since(), `{"in":"a"}×1`)
		r.ended(r.submit(Submission{Action: "w"}))
		r.same("of the second ran", c.since())
		again, plan := r.rerun(first, RerunOptions{From: []orchestration.Item{{Task: "middle", Index: orchestration.AllItems}}})
		r.ended(again)
		r.same("of the rerun ran", c.since(), `{"in":"a"}×1`)
		if plan.Reused() != 0 {
			t.Errorf("the plan reuses %d", plan.Reused())
		}
		r.ended(r.submit(Submission{Action: "w"}))
		r.same("after the rerun ran", c.since())
		// Neither does a workflow that the original did not have.
		r.define("name: w\ntasks: {middle: {action: middle}, other: {action: inner}}\n")
		again, plan = r.rerun(first, RerunOptions{Definition: DefinitionLatest})
		r.ended(again)
		r.same("of the rerun on another definition ran", c.since(), `{"in":"a"}×1`)
		if plan.Reused() != 1 {
			t.Errorf("the plan on another definition reuses %d", plan.Reused())
		}
	})
}

// A submission without the cache keeps that setting in a rerun with another input.
func TestRerunWithoutCache(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(caching)
	r.crew()
	id := r.submit(Submission{Action: "w", Input: json.RawMessage(`{"items":[1],"tag":"a"}`), NoCache: true})
	r.ended(id)
	for _, o := range []RerunOptions{{}, {Definition: DefinitionLatest}, {Input: json.RawMessage(`{"items":[2],"tag":"a"}`)}} {
		again, _ := r.rerun(id, o)
		if x := r.ended(again); !x.NoCache {
			t.Errorf("the rerun with %+v has the cache", o)
		}
	}
}

// latest is the latest execution of the workflow.
func latest(r *rig, t *testing.T) flow.ID {
	all, err := store.List(r.ctx, r.store, store.Filter{Action: "w", Limit: 1})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d, %v", len(all), err)
	}
	return all[0].ID
}

// Outcomes are not older than the task allows. Only completed executions are kept, and no outputs that name files.
func TestWhatIsCached(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: w\ntasks:\n  a: {action: noop, cache: {ttl: 10m}, with: {n: 1}}\n")
	var output atomic.Pointer[string]
	puts := func(text string) { output.Store(&text) }
	var ran atomic.Int64
	r.worker().serve(func(a handoff.Assignment) (string, *flow.Error) {
		ran.Add(1)
		if out := *output.Load(); out != "" {
			return out, nil
		}
		return "", &flow.Error{Code: "boom", Message: "boom"}
	})
	run := func(what string, runs bool) *flow.Execution {
		t.Helper()
		before := ran.Load()
		x := r.ended(r.submit(Submission{Action: "w"}))
		if (ran.Load() > before) != runs {
			t.Errorf("%s: it ran %d times", what, ran.Load()-before)
		}
		return x
	}
	puts("")
	run("a failure", true)
	puts(`{"files":[{"path":"x","blob":"outputs/x"}]}`)
	if !namesFiles(json.RawMessage(*output.Load())) {
		t.Fatal("the output names no files")
	}
	run("a file", true)
	puts(fmt.Sprintf("%q", strings.Repeat("x", keptBytes)))
	run("a large output", true)
	puts(`{"n":1}`)
	run("the first", true)
	run("the second", false)
	r.pass(9 * time.Minute)
	run("nine minutes later", false)
	r.define("name: w\ntasks:\n  a: {action: noop, cache: {ttl: 5m}, with: {n: 1}}\n")
	run("five minutes are over", true)
	run("again", false)
	r.pass(6 * time.Minute)
	if _, err := r.e.dropKept(r.ctx); err != nil {
		t.Fatal(err)
	}
	remaining := 0
	err := r.store.Update(r.ctx, func(ctx context.Context, tx store.Tx) (err error) {
		remaining, err = tx.DropKept(ctx, time.Time{}, 0, 100)
		return err
	})
	if err != nil || remaining != 0 {
		t.Errorf("%d outcomes are left: %v", remaining, err)
	}
	run("it has expired", true)
}

// A submission with a cache ends with a kept outcome of a task or of another submission with the same work; a submission without a cache
// runs.
func TestCacheOfSubmissions(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		c := r.crew()
		key := "figures"
		run := func(s Submission) *flow.Execution {
			t.Helper()
			if s.Action == "" {
				s.Action = "noop"
			}
			x := r.ended(r.submit(s))
			if x.Stage != flow.Completed {
				t.Fatalf("it is %s: %v", x.Stage, x.Outcome.Error)
			}
			return x
		}
		hour, input := &Cache{TTL: time.Hour}, json.RawMessage(`{"n":1}`)
		run(Submission{Input: input})
		first := run(Submission{Input: input, Cache: hour})
		r.same("without a cache, and with nothing kept, ran", c.since(), `{"n":1}×2`)
		second := run(Submission{Input: json.RawMessage(`{ "n": 1 }`), Cache: hour, Priority: new(int), Labels: map[string]string{"a": "b"}})
		if r.same("with an outcome kept ran", c.since()); second.ReusedOf != first.ID || !second.Cached() || string(second.Outcome.Output) != string(first.Outcome.Output) {
			t.Errorf("it has the outcome of %s: %s", second.ReusedOf, second.Outcome.Output)
		}
		run(Submission{Input: input})
		run(Submission{Input: json.RawMessage(`{"n":2}`), Cache: hour})
		run(Submission{Input: input, Cache: &Cache{TTL: time.Nanosecond}})
		r.same("without a cache, with another input, and with a shorter time ran", c.since(), `{"n":1}×2`, `{"n":2}×1`)
		// With a key, a submission gets the outcome of the same action for another input.
		named := &Cache{TTL: time.Hour, Key: &key}
		third := run(Submission{Input: json.RawMessage(`{"n":3}`), Cache: named})
		if x := run(Submission{Input: json.RawMessage(`{"n":4}`), Cache: named}); x.ReusedOf != third.ID {
			t.Errorf("with the same key it has the outcome of %q", x.ReusedOf)
		}
		r.same("with a key ran", c.since(), `{"n":3}×1`)
		fresh := run(Submission{Input: json.RawMessage(`{"n":5}`), Cache: named, NoCache: true})
		if x := run(Submission{Input: json.RawMessage(`{"n":6}`), Cache: named}); x.ReusedOf != fresh.ID {
			t.Errorf("it has the outcome of %q, and not that of what ran last", x.ReusedOf)
		}
		r.same("of what is not to look ran", c.since(), `{"n":5}×1`)
		// Tasks use the outcomes of submissions, and submissions those of tasks.
		r.define("name: w\ntasks:\n  a: {action: noop, cache: {ttl: 1h}, with: {n: 2}}\n  b: {action: noop, cache: {ttl: 1h}, with: {n: 7}}\n")
		run(Submission{Action: "w"})
		run(Submission{Input: json.RawMessage(`{"n":7}`), Cache: hour})
		r.same("of tasks ran", c.since(), `{"n":7}×1`)
		// A workflow is cached as a whole; its rerun and its retry run.
		r.define("name: v\ntasks:\n  a: {action: noop, with: {n: 8}}\n")
		whole := run(Submission{Action: "v", Cache: hour})
		if x := run(Submission{Action: "v", Cache: hour}); x.ReusedOf != whole.ID || len(r.kids(x.ID)) != 0 {
			t.Errorf("it has the outcome of %q, and %d tasks", x.ReusedOf, len(r.kids(x.ID)))
		}
		r.same("of a workflow ran", c.since(), `{"n":8}×1`)
		retried, err := r.e.Retry(r.ctx, second.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		if x := r.ended(retried.Execution); x.Cached() {
			t.Errorf("the retry ended with the outcome of %s", x.ReusedOf)
		}
		again, _ := r.rerun(second.ID, RerunOptions{})
		if x := r.ended(again); x.Cached() {
			t.Errorf("the rerun ended with the outcome of %s", x.ReusedOf)
		}
		r.same("of a retry and a rerun ran", c.since(), `{ "n": 1 }×2`)
		if x := run(Submission{Input: input, Cache: hour}); x.ReusedOf != again {
			t.Errorf("it has the outcome of %q, and not that of the rerun, which ended last", x.ReusedOf)
		}
		part, _ := r.rerun(whole.ID, RerunOptions{Outputs: []flow.OutputOverride{{Task: "a", Index: orchestration.AllItems, Output: json.RawMessage(`{"n":9}`)}}})
		r.ended(part)
		if x := run(Submission{Action: "v", Cache: hour}); x.ReusedOf != whole.ID {
			t.Errorf("it has the outcome of %q, a rerun that was given an output", x.ReusedOf)
		}
		// Each submission of a batch, with a common idempotency key and without one.
		batch := []Submission{{Action: "noop", Input: input, Cache: hour}, {Action: "noop", Input: input, Cache: hour}}
		for _, key := range []string{"", "batch"} {
			all, err := r.e.SubmitBatch(r.ctx, key, batch)
			if key == "" {
				all, err = r.e.Submit(r.ctx, batch)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range all {
				if x := r.ended(s.Execution); x.ReusedOf != again {
					t.Errorf("of a batch it has the outcome of %q", x.ReusedOf)
				}
			}
		}
		r.same("of batches ran", c.since())
	})
}

func TestCacheRefused(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		long, hour := strings.Repeat("k", fault.KeyLimit+1), time.Hour
		for _, c := range []struct {
			s    Submission
			path string
		}{
			{Submission{Action: "noop", Cache: &Cache{}}, "cache.ttl"},
			{Submission{Action: "noop", Cache: &Cache{TTL: flow.MaxCacheTime + 1}}, "cache.ttl"},
			{Submission{Action: "noop", Cache: &Cache{TTL: hour, Key: &long}}, "cache.key"},
			{Submission{Action: "noop", Cache: &Cache{TTL: hour}, StartIn: hour}, "cache"},
			{Submission{Action: "noop", Cache: &Cache{TTL: hour}, NotBefore: time.Now()}, "cache"},
			{Submission{Action: "sleep", Input: json.RawMessage(`{"for":1}`), Cache: &Cache{TTL: hour}}, "cache"},
		} {
			out, err := r.e.Submit(r.ctx, []Submission{c.s})
			var refused *fault.Invalid
			if err != nil || !errors.As(out[0].Err, &refused) || len(refused.Problems) != 1 || refused.Problems[0].Path != c.path || refused.Problems[0].Fix == "" {
				t.Errorf("%s %+v: %v %v", c.s.Action, c.s.Cache, out, err)
			}
		}
	})
}
