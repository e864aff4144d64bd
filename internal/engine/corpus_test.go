package engine

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/histories"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/replay"
	"github.com/pawl-run/pawl/internal/store"
)

var update = flag.Bool("update", false, "record the runs of testdata/histories anew")

// recordedRun is a file of the corpus: the histories of a run, including the tasks of workflows, as an engine has recorded them.
type recordedRun struct {
	Definitions []recordedDefinition
	Executions  []recordedExecution
}

type recordedDefinition struct {
	Name     string
	Version  int
	Document json.RawMessage
}

type recordedExecution struct {
	Execution *flow.Execution
	Events    []flow.Event
}

// corpus are the recorded runs. Each starts executions and waits for their end.
var corpus = []struct {
	name  string
	start func(*rig)
}{
	{"chain", func(r *rig) {
		r.flows("tasks:\n  a: {action: noop, with: {n: 1}}\n  b: {action: noop, needs: [a], with: {n: \"${{ tasks.a.output.n + 1 }}\"}}\n  c: {action: noop, needs: [b], with: {n: \"${{ tasks.b.output.n }}\"}}\noutputs: {n: \"${{ tasks.c.output.n }}\"}\n")
	}},
	{"fan-out", func(r *rig) {
		r.flows("tasks:\n  a: {action: noop, foreach: \"${{ [1, 2, 3, 4, 5, 6] }}\", concurrency: 2, with: {n: \"${{ item }}\"}}\n  b: {action: noop, needs: [a], with: {all: \"${{ tasks.a.output }}\"}}\n")
	}},
	{"foreach-with-failures", func(r *rig) {
		r.flows("tasks:\n  a: {action: noop, foreach: \"${{ [1, 2, 3, 4] }}\", continue_on_error: true, with: {fail: \"${{ item == 3 }}\"}}\n  b: {action: noop, needs: [a], with: {was: \"${{ tasks.a.status }}\"}}\n")
	}},
	{"failure", func(r *rig) {
		r.flows("tasks:\n  a: {action: noop, with: {fail: true}}\n  b: {action: noop, needs: [a]}\n  tidy: {action: noop, needs: [b], if: always()}\n")
	}},
	{"retries", func(r *rig) {
		r.flows("tasks:\n  a: {action: noop, retry: {max_attempts: 3, delay: 10ms, jitter: 0.5}, with: {fail: true}}\n")
	}},
	{"conditions", func(r *rig) {
		r.flows("tasks:\n  a: {action: noop, with: {n: 1}}\n  no: {action: noop, needs: [a], if: tasks.a.output.n > 1}\n  after: {action: noop, needs: [no]}\n  yes: {action: noop, needs: [a], if: tasks.a.output.n == 1}\n  broken: {action: noop, needs: [a], continue_on_error: true, with: {n: \"${{ tasks.a.output.none }}\"}}\n")
	}},
	{"sub-workflow", func(r *rig) {
		r.define("name: inner\ntasks: {x: {action: noop, with: {n: \"${{ input.n }}\"}}}\noutputs: {n: \"${{ tasks.x.output.n }}\"}\n")
		r.flows("tasks:\n  a: {action: inner, foreach: \"${{ [1, 2] }}\", with: {n: \"${{ item }}\"}}\n  b: {action: noop, needs: [a], with: {all: \"${{ tasks.a.output }}\"}}\n")
	}},
	{"timeout", func(r *rig) {
		r.flows("timeout: 50ms\ntasks:\n  a: {action: sleep, with: {for: 1h}}\n  b: {action: noop, needs: [a]}\n")
	}},
	{"cancel", func(r *rig) {
		r.define("name: w\ntasks:\n  a: {action: sleep, with: {for: 1h}}\n  b: {action: noop, needs: [a]}\n")
		id := r.submit(Submission{Action: "w"})
		if _, err := r.e.Cancel(r.ctx, id, "enough"); err != nil {
			r.Fatal(err)
		}
		r.ended(id)
	}},
	{"clean-up", func(r *rig) {
		r.worker().serve(echo)
		r.define("name: w\ntasks:\n  a: {action: sleep, with: {for: 1h}}\n  unlock: {action: noop, needs: [a], if: cancelled(), foreach: [1, 2], with: {n: \"${{ item }}\"}}\n  ring: {action: noop, needs: [unlock], if: always()}\n  never: {action: noop, needs: [a]}\n")
		id := r.submit(Submission{Action: "w"})
		if _, err := r.e.Cancel(r.ctx, id, "enough"); err != nil {
			r.Fatal(err)
		}
		r.ended(id)
	}},
	{"clean-up-cut-short", func(r *rig) {
		r.define("name: w\ntasks:\n  a: {action: sleep, with: {for: 1h}}\n  drain: {action: sleep, needs: [a], if: always(), with: {for: 1h}}\n")
		id := r.submit(Submission{Action: "w"})
		for range 2 {
			if _, err := r.e.Cancel(r.ctx, id, "enough"); err != nil {
				r.Fatal(err)
			}
		}
		r.ended(id)
	}},
	{"rerun", func(r *rig) {
		id := r.flows("tasks:\n  a: {action: noop, with: {n: 1}}\n  b: {action: noop, needs: [a], with: {fail: true}}\n")
		again, _ := r.rerun(id, RerunOptions{})
		r.ended(again)
	}},
	{"rerun-of-one-task-only", func(r *rig) {
		id := r.flows("tasks:\n  a: {action: noop, with: {n: 1}}\n  b: {action: noop, needs: [a], foreach: \"${{ [1, 2] }}\", with: {n: \"${{ item }}\"}}\n  c: {action: noop, needs: [b], if: always(), with: {fail: true}}\n  d: {action: noop, with: {n: 3}}\n")
		again, _ := r.rerun(id, RerunOptions{Only: []orchestration.Item{{Task: "b", Index: 1}}})
		r.ended(again)
	}},
	{"rerun-with-a-given-output", func(r *rig) {
		id := r.flows("tasks:\n  a: {action: noop, with: {n: 1}}\n  b: {action: noop, needs: [a], with: {fail: true}}\n  c: {action: noop, needs: [b], with: {of: \"${{ tasks.b.output.v }}\"}}\n")
		again, _ := r.rerun(id, RerunOptions{Outputs: []flow.OutputOverride{{Task: "b", Index: orchestration.AllItems, Output: json.RawMessage(`{"v":7}`)}}, By: "ada"})
		r.ended(again)
	}},
	{"rounds", func(r *rig) {
		r.flows("tasks:\n  a: {action: noop, repeat: {until: output.n == 3, max: 5, delay: 10ms}, with: {n: \"${{ round }}\", last: \"${{ previous }}\"}}\n  b: {action: noop, needs: [a], with: {n: \"${{ tasks.a.output.n }}\"}}\n")
	}},
	{"rounds-not-reached", func(r *rig) {
		r.flows("tasks:\n  a: {action: noop, repeat: {until: output.n == 3, max: 2}, continue_on_error: true, with: {fail: \"${{ round == 1 }}\"}}\n  b: {action: noop, needs: [a], with: {why: \"${{ tasks.a.error.code }}\"}}\n  c: {action: noop, needs: [b], repeat: {until: output.n == 3, max: 2}, with: {n: 1}}\n")
	}},
	{"cached", func(r *rig) {
		const text = "tasks:\n  a: {action: noop, foreach: [1, 2, 1], concurrency: 1, cache: {ttl: 1h}, with: {n: \"${{ item }}\"}}\n  b: {action: noop, needs: [a], cache: {key: x, ttl: 1h}, with: {all: \"${{ tasks.a.output }}\"}}\n"
		r.flows(text)
		r.ended(r.submit(Submission{Action: "w"}))
	}},
	{"lost-worker", func(r *rig) {
		h := r.worker("aside")
		id := r.submit(Submission{Action: "noop", Queue: "aside", Input: json.RawMessage(`{}`)})
		for len(h.take(1)) == 0 {
		}
		if err := r.e.Close(r.ctx, h.session); err != nil {
			r.Fatal(err)
		}
		if _, err := r.e.Cancel(r.ctx, id, "enough"); err != nil {
			r.Fatal(err)
		}
		r.ended(id)
	}},
}

// flows runs a workflow to its end. Its tasks fail if their input says so.
func (r *rig) flows(text string) flow.ID {
	r.Helper()
	r.define("name: w\n" + text)
	r.worker().serve(func(a handoff.Assignment) (string, *flow.Error) {
		if strings.Contains(string(a.Payload), `"fail":true`) {
			return "", &flow.Error{Code: "boom", Message: "it broke"}
		}
		return echo(a)
	})
	id := r.submit(Submission{Action: "w"})
	r.ended(id)
	return id
}

// recorded reads all histories of the store.
func (r *rig) recorded() *recordedRun {
	r.Helper()
	run, ctx, seen := &recordedRun{}, context.Background(), map[string]bool{}
	all, err := store.List(ctx, r.store, store.Filter{Limit: 1000})
	if err != nil {
		r.Fatal(err)
	}
	for _, x := range all {
		rec, err := r.e.Histories().Record(ctx, x.ID)
		if err != nil {
			r.Fatal(err)
		}
		run.Executions = append(run.Executions, recordedExecution{rec.Execution, rec.Events})
		if key := catalog.VersionKey(x.Action, x.Version); x.Version > 0 && !seen[key] {
			seen[key] = true
			d, err := r.store.Definition(ctx, x.Action, x.Version)
			if err != nil {
				r.Fatal(err)
			}
			run.Definitions = append(run.Definitions, recordedDefinition{d.Name, d.Version, d.Document})
		}
	}
	return run
}

// replay replays every history of a run.
func (run *recordedRun) replay(t *testing.T) (events int) {
	t.Helper()
	run.each(t, func(x *flow.Execution, res *replay.Result) {
		events += res.Events
		for _, f := range res.Findings {
			t.Errorf("%s (%s): event %d: %s[%d]: by the rules %s, recorded %s: %s", x.ID, x.Kind, f.Seq, f.Task, f.Index, f.Rules, f.Recorded, f.Why)
		}
		for _, u := range res.Unknown {
			t.Errorf("%s (%s): event %d: not known: %s", x.ID, x.Kind, u.Seq, u.What)
		}
	})
	return events
}

// each replays every history of a run, using only its file.
func (run *recordedRun) each(t *testing.T, found func(*flow.Execution, *replay.Result)) {
	t.Helper()
	defs := map[string]*definition.Definition{}
	for _, d := range run.Definitions {
		def, err := definition.Decode(d.Document)
		if err != nil {
			t.Fatal(err)
		}
		defs[catalog.VersionKey(d.Name, d.Version)] = def
	}
	load := func(_ context.Context, name string, version int, _ string) (*definition.Definition, int, error) {
		if d := defs[catalog.VersionKey(name, version)]; d != nil {
			return d, version, nil
		}
		return nil, 0, fmt.Errorf("%w: %s", store.ErrNotFound, catalog.VersionKey(name, version))
	}
	for _, x := range run.Executions { // JSON does not distinguish no payload from null
		for _, payload := range []*json.RawMessage{&x.Execution.Input, &x.Execution.With} {
			if string(*payload) == "null" {
				*payload = nil
			}
		}
	}
	for i := range run.Executions {
		x := run.Executions[i].Execution
		rec := &replay.Record{Execution: x, Events: run.Executions[i].Events}
		if d := defs[catalog.VersionKey(x.Action, x.Version)]; d != nil && d.Workflow != nil {
			rec.Workflow = &replay.Workflow{Definition: d.Workflow.For(&x.Request), Request: func(c *orchestration.Child, was *flow.Execution) (flow.Request, error) {
				return histories.Request(t.Context(), load, x, c, was)
			}}
			for _, k := range run.Executions {
				if k.Execution.Parent == x.ID {
					rec.Workflow.Children = append(rec.Workflow.Children, k.Execution)
				}
			}
		}
		found(x, replay.Replay(rec, 0))
	}
}

// An output given to a task is part of the record: with another output, or none, the history does not follow from the rules.
func TestReplayOfGivenOutputs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "histories", "rerun-with-a-given-output.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(x *flow.Execution){
		"another output": func(x *flow.Execution) {
			if x.RunsPart() {
				x.Rerun.Outputs[0].Output = json.RawMessage(`{"v":8}`)
			}
		},
		"given to another task": func(x *flow.Execution) {
			if x.RunsPart() {
				x.Rerun.Outputs[0].Task = "c"
			}
		},
		"given by another": func(x *flow.Execution) {
			if x.WasOverridden() {
				x.Rerun.OverriddenBy = "bob"
			}
		},
		"given by nobody": func(x *flow.Execution) {
			if x.WasOverridden() {
				x.Rerun = nil
			}
		},
	} {
		var run recordedRun
		if err := json.Unmarshal(text, &run); err != nil {
			t.Fatal(err)
		}
		for i := range run.Executions {
			change(run.Executions[i].Execution)
		}
		findings := 0
		run.each(t, func(_ *flow.Execution, res *replay.Result) { findings += len(res.Findings) })
		if findings == 0 {
			t.Errorf("%s: nothing is found", name)
		}
	}
}

// Old recorded histories follow from the present rules: a change of the rules that would decide a run differently fails here.
func TestRecordedHistories(t *testing.T) {
	t.Parallel()
	for _, c := range corpus {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("testdata", "histories", c.name+".json")
			if *update {
				r := newRig(t)
				c.start(r)
				text, err := json.MarshalIndent(r.recorded(), "", " ")
				if err == nil {
					err = os.WriteFile(file, append(text, '\n'), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v: record it with -update", err)
			}
			var run recordedRun
			if err := json.Unmarshal(text, &run); err != nil {
				t.Fatal(err)
			}
			if events := run.replay(t); events < 4 {
				t.Errorf("%d events were replayed", events)
			}
		})
	}
}

// A file of the corpus is complete.
func TestRecordedHistoriesAreComplete(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.flows("tasks:\n  a: {action: noop, retry: {max_attempts: 2, delay: 1ms}, labels: {a: b}, timeout: 1m, with: {fail: true}}\n")
	was := r.recorded()
	text, err := json.Marshal(was)
	if err != nil {
		t.Fatal(err)
	}
	var again recordedRun
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	for i := range was.Executions {
		a, b := was.Executions[i], again.Executions[i]
		if a.Execution.Request.CreatedAt != b.Execution.CreatedAt || !reflect.DeepEqual(a.Execution.State, b.Execution.State) || !reflect.DeepEqual(a.Execution.Retry, b.Execution.Retry) || len(a.Events) != len(b.Events) {
			t.Errorf("%+v became %+v", a.Execution, b.Execution)
		}
	}
	if !slices.ContainsFunc(again.Executions, func(x recordedExecution) bool { return x.Execution.Timeout == time.Minute }) {
		t.Error("the timeout of a task was lost")
	}
}
