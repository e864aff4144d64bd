package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// complete uses every field.
const complete = `
kind: workflow
name: grade.all-1
description: grades submissions
input:
  type: object
  required: [items]
  properties:
    items: {type: array}
    customer: {type: string, default: acme}
concurrency: {key: "grade-${{ input.customer }}", limit: 5, when_full: cancel_oldest}
timeout: 10m
queue_timeout: 1h
total_timeout: 2d
retry: {max_attempts: 3, backoff: constant, delay: 1s, max_delay: 1m30s, jitter: 0.2, on: [timeout, oom, "exit:75"]}
priority: -3
labels: {team: x, n: 1}
env: {A: b, N: 5}
tasks:
  zload: {action: input, with: {items: "${{ input.items }}"}}
  evaluate:
    description: one each
    needs: [zload]
    if: success() && size(tasks.zload.output.items) > 0
    foreach: ${{ tasks.zload.output.items }}
    concurrency: 4
    batch: 10
    action: code
    with: {language: python, source: "${{ item }}", limits: {memory: 64MB, pids: 0x10}}
    env: {X: "${{ index }}"}
    queue: gpu
    priority: 5
    retry: 2
    timeout: 10s
    labels: {a: b}
    worker_labels: {gpu: a100, example.com/cards: 2, ssd: true, none: ""}
    continue_on_error: true
  child: {needs: evaluate, action: workflow, with: {name: sub, version: 2, input: {}}}
  named: {needs: [child], action: other@7, concurrency: {key: k}}
outputs: {ranking: "${{ tasks.evaluate.output }}"}
---
name: other
action: code
with: {language: python, source: "print(${{ input.x }})"}
queue: gpu
worker_labels: {zone: eu}
input: {type: object}
---
name: custom
handler: mine
`

func TestParseComplete(t *testing.T) {
	t.Parallel()
	defs, err := Parse("c.yaml", []byte(complete))
	if err != nil {
		t.Fatal(err)
	}
	if len(defs) != 3 {
		t.Fatalf("%d definitions, want 3", len(defs))
	}
	d := defs[0]
	s := d.Settings
	if d.Kind != KindWorkflow || d.Name != "grade.all-1" || s.Timeout != 10*time.Minute || s.QueueTimeout != time.Hour ||
		s.TotalTimeout != 48*time.Hour || *s.Priority != -3 || fmt.Sprint(s.Labels) != "map[n:1 team:x]" {
		t.Errorf("the definition is %+v with %+v", d, s)
	}
	if want := (flow.Retry{MaxAttempts: 3, Backoff: flow.Constant, Delay: time.Second, MaxDelay: 90 * time.Second, Jitter: 0.2, On: []string{"timeout", "oom", "exit:75"}}); fmt.Sprint(*s.Retry) != fmt.Sprint(want) {
		t.Errorf("retry is %+v", s.Retry)
	}
	w := d.Workflow
	var names []string
	for _, task := range w.Tasks {
		names = append(names, task.Name)
	}
	if fmt.Sprint(names) != "[zload evaluate child named]" || fmt.Sprint(w.Order) != "[0 1 2 3]" {
		t.Errorf("tasks %v in order %v", names, w.Order)
	}
	e := w.Task("evaluate")
	if e.InFlight != 4 || e.Batch != 10 || e.Settings.Queue != "gpu" || fmt.Sprint(e.Settings.WorkerLabels) != "map[example.com/cards:2 gpu:a100 none: ssd:true]" || e.Settings.Retry.MaxAttempts != 2 || !e.ContinueOnError ||
		fmt.Sprint(e.Needs, e.Successors) != "[0] [2]" || e.Position.Line != 21 {
		t.Errorf("the task is %+v", e)
	}
	if n := w.Task("named"); n.Action != "other" || n.Version != 7 || n.Settings.Concurrency.Limit != 1 || w.Task("nope") != nil {
		t.Errorf("the task is %+v", n)
	}
	var refs []string
	for _, r := range d.References() {
		refs = append(refs, fmt.Sprintf("%s %s@%d line %d", r.Kind, r.Name, r.Version, r.Position.Line))
	}
	if got := strings.Join(refs, ", "); got != "workflow sub@2 line 38, action other@7 line 39" {
		t.Errorf("references are %s", got)
	}
	if defs[2].Action.Handler != "mine" || defs[1].Action.Kind != "code" || defs[1].Settings.Queue != "gpu" || fmt.Sprint(defs[1].Settings.WorkerLabels) != "map[zone:eu]" {
		t.Errorf("actions are %+v, %+v", defs[1].Action, defs[2].Action)
	}
}

// TestCanonical checks that Decode and Parse read the canonical form back to the same definition, and that it does not depend on how a
// document is written.
func TestCanonical(t *testing.T) {
	t.Parallel()
	defs, err := Parse("c.yaml", []byte(complete))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range defs {
		again, err := Decode(d.Canonical())
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := Parse("c.json", d.Canonical())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []*Definition{again, parsed[0]} {
			if o.Hash() != d.Hash() || !bytes.Equal(o.Canonical(), d.Canonical()) || o.Name != d.Name || len(d.Hash()) != 64 {
				t.Errorf("%s comes back as\n%s, not\n%s", d.Name, o.Canonical(), d.Canonical())
			}
		}
	}
	w, err := Decode(defs[0].Canonical())
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := w.Workflow.Task("evaluate").If.Eval(&Vars{Success: true, Task: func(string) *Result {
		return &Result{Status: StatusCompleted, Output: json.RawMessage(`{"items":[1]}`)}
	}}); !ok || err != nil {
		t.Errorf("a decoded condition is %v (%v)", ok, err)
	}
	reordered := "tasks: {zload: {with: {items: '${{ input.items }}'}, action: input}}\nname: x\n"
	a, err := Parse("a.yaml", []byte("# comment\nname: x\ntasks:\n  zload:\n    action: input\n    with:\n      items: ${{ input.items }}\n"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Parse("b.yaml", []byte(reordered))
	if err != nil {
		t.Fatal(err)
	}
	if a[0].Hash() != b[0].Hash() {
		t.Errorf("the same meaning has two forms:\n%s\n%s", a[0].Canonical(), b[0].Canonical())
	}
}

func TestValidateInput(t *testing.T) {
	t.Parallel()
	defs, err := Parse("i.yaml", []byte(`
name: w
tasks: {a: {action: noop}}
input:
  type: object
  required: [n]
  additionalProperties: false
  properties:
    n: {type: integer, minimum: 1}
    s: {type: string, default: "x", maxLength: 5}
    nested: {$ref: "#/$defs/nested"}
    list: {type: array, items: {$ref: "#/$defs/nested"}}
    at: {type: string, format: date-time}
    mode: {enum: [fast, 1, null]}
    kind: {const: {a: 1}}
  $defs:
    nested: {type: object, properties: {k: {type: integer, default: 7}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ in, want, problem string }{
		{`{"n": 1}`, `{"n":1,"s":"x"}`, ""},
		{`{"n": 1.0, "s": "y"}`, `{"n": 1.0, "s": "y"}`, ""},
		{`{"n": 5, "nested": {}, "list": [{"k": 1}, {}]}`, `{"n":5,"nested":{"k":7},"list":[{"k": 1},{"k":7}],"s":"x"}`, ""},
		{``, "", `input: missing property 'n'`},
		{`null`, "", `missing property`},
		{`{"n": 0}`, "", `input.n: 0 is less than 1`},
		{`{"n": "1"}`, "", `input.n: got string, want integer`},
		{`{"n": 1, "x": 2}`, "", `additional properties 'x' not allowed`},
		{`{"n": 1, "s": "longer"}`, "", `input.s: maxLength`},
		{`{"n": 1, "list": [{"k": "z"}]}`, "", `input.list[0].k`},
		{`{"n": 1, "at": "yesterday"}`, "", `input.at: it does not have the format date-time: yesterday (write it as in 2026-12-31T23:59:00Z)`},
		{`{"n": 1, "mode": "fats"}`, "", `input.mode: it is none of "fast", 1, null (did you mean "fast"?)`},
		{`{"n": 1, "kind": {}}`, "", `input.kind: it is not {"a":1}`},
		{`[1]`, "", `want object`},
		{`{"n": 1`, "", `JSON ends`},
		{`{"n": 1} x`, "", `something follows the JSON value`},
		{strings.Repeat("[", 10_000), "", "nested too deep"},
	} {
		got, err := validateInput(defs[0], json.RawMessage(tc.in), nil)
		if tc.problem == "" && (err != nil || string(got) != tc.want) {
			t.Errorf("%s gives %s (%v), want %s", tc.in, got, err, tc.want)
		}
		var ps Problems
		if tc.problem != "" && (!errors.As(err, &ps) || !strings.Contains(err.Error(), tc.problem)) {
			t.Errorf("%.100s gives %v, want %q", tc.in, err, tc.problem)
		}
	}
	free, err := Parse("i.yaml", []byte("name: w\ntasks: {a: {action: noop}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := validateInput(free[0], json.RawMessage(`[1, 2]`), nil); err != nil || string(got) != `[1, 2]` {
		t.Errorf("without a schema: %s (%v)", got, err)
	}
	if _, err := validateInput(free[0], json.RawMessage(`{`), nil); err == nil {
		t.Error("half an object is accepted")
	}
}

func TestMergeEnv(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ with, want string }{
		{`{"source": "x"}`, `{"source":"x","env":{"A":"1","B":"2"}}`},
		{`{"env": {"A": "own", "C": 3}, "source": "x"}`, `{"source":"x","env":{"A":"own","B":"2","C":"3"}}`},
		{`{"env": null}`, `{"env":{"A":"1","B":"2"}}`},
	} {
		got, err := MergeEnv(json.RawMessage(tc.with), map[string]string{"A": "1", "B": "2"})
		if err != nil || string(got) != tc.want {
			t.Errorf("%s gives %s (%v), want %s", tc.with, got, err, tc.want)
		}
	}
	// Values that are not text become text, with or without another environment.
	for _, tc := range []struct{ with, want string }{
		{`{"env": {"N": 5, "F": 5.0, "B": true, "Z": null, "L": [1, 2], "S": "5"}, "source": "x"}`, `{"source":"x","env":{"B":"true","F":"5.0","L":"[1, 2]","N":"5","S":"5","Z":""}}`},
		{`{"env": {"S": "5"}, "source": "x"}`, `{"env": {"S": "5"}, "source": "x"}`},
		{`{"env": 5}`, `{"env": 5}`}, // the handler reports the error
		{`[]`, `[]`},
	} {
		got, err := MergeEnv(json.RawMessage(tc.with), nil)
		if err != nil || string(got) != tc.want {
			t.Errorf("%s alone gives %s (%v), want %s", tc.with, got, err, tc.want)
		}
	}
	if _, err := MergeEnv(json.RawMessage(`[]`), map[string]string{"A": "1"}); err == nil {
		t.Error("a list takes an environment")
	}
}

func TestYAMLReading(t *testing.T) {
	t.Parallel()
	defs, err := Parse("y.yaml", []byte(`
base: &base {action: noop}
`))
	if err == nil {
		t.Fatalf("%v has an unknown field", defs)
	}
	defs, err = Parse("y.yaml", []byte(`
name: w
tasks:
  a: &a {action: noop, labels: &l {x: y}, with: {i: 0x1F, o: 0o17, s: 2026-01-02, yes: yes, t: true, n: ~, f: .5, big: 123456789012345678901234567890, u: "\u263a", e: 1e3}}
  b: {<<: *a, needs: [a], labels: {<<: *l, z: w}}
`))
	if err != nil {
		t.Fatal(err)
	}
	a, b := defs[0].Workflow.Tasks[0], defs[0].Workflow.Tasks[1]
	got, _ := a.With.Constant()
	if want := `{"big":123456789012345678901234567890,"e":1e3,"f":0.5,"i":31,"n":null,"o":15,"s":"2026-01-02","t":true,"u":"☺","yes":"yes"}`; string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if b.Action != "noop" || fmt.Sprint(b.Settings.Labels) != "map[x:y z:w]" {
		t.Errorf("merged task is %+v", b)
	}
	json, err := Parse("y.json", []byte("{\n\t\"name\": \"w\",\n\t\"tasks\": {\"a\": {\"action\": \"noop\", \"with\": {\"x\": \"\\ud83d\\ude00\"}}}\n}"))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := json[0].Workflow.Tasks[0].With.Constant(); string(got) != `{"x":"😀"}` {
		t.Errorf("got %s", got)
	}
}

// TestEnvOfWithIsText evaluates an action whose with sets variables to values that are not text, as env may.
func TestEnvOfWithIsText(t *testing.T) {
	t.Parallel()
	defs, err := Parse("e.yaml", []byte("name: a\naction: code\nwith: {language: bash, source: x, env: {N: 5, I: '${{ input.n }}'}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := defs[0].Prepare(json.RawMessage(`{"n": 7}`), nil, nil, nil)
	if want := `{"language":"bash","source":"x","env":{"I":"7","N":"5"}}`; err != nil || string(r.With) != want {
		t.Errorf("%s %v, want %s", r.With, err, want)
	}
}

// A definition that was just parsed and one that was read from the store write the same bytes for a payload, because its digest and
// comparisons of outputs depend on them.
func TestParsedAndStoredWriteTheSamePayload(t *testing.T) {
	t.Parallel()
	defs, err := Parse("w.yaml", []byte("name: w\ntasks:\n  t: {action: noop, with: {z: '${{ input.v }}', a: [{y: 1, b: '${{ input.v }}'}], constant: {n: 1, m: {d: 2, c: 3}}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := Decode(defs[0].Canonical())
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]*Definition{"parsed": defs[0], "stored": stored} {
		got, err := d.Workflow.Tasks[0].With.Eval(&Vars{Input: json.RawMessage(`{"v":7}`)})
		if want := `{"a":[{"b":7,"y":1}],"constant":{"m":{"c":3,"d":2},"n":1},"z":7}`; err != nil || string(got) != want {
			t.Errorf("the %s definition writes %s (%v), not %s", name, got, err, want)
		}
	}
}
