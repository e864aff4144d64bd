package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

const automation = `kind: trigger
name: alert.fired
data: {type: object, required: [id, host], properties: {id: {type: string}, host: {type: string}, severity: {enum: [warn, page], default: warn}}}
key: ${{ signal.data.id }}
subject: ${{ signal.data.host }}
waits: true
---
kind: rule
name: clean-disk
on: [alert.fired, disk.*]
if: signal.data.severity == "page" && signal.data.host.startsWith("db")
run:
  action: clean-disk@3
  input: {host: "${{ signal.data.host }}"}
  labels: {team: ops}
  priority: 10
  once: ${{ signal.data.host }}
  concurrency: {key: "disk:${{ signal.subject }}", limit: 1, when_full: cancel_oldest}
  rate: {key: "r:${{ signal.subject }}", limit: 10, per: 1m, over: drop}
debounce: {key: "${{ signal.subject }}", quiet: 30s, at_most: 5m, keep: first}
reentry: allow
depth: 3
storm: {limit: 1000, per: 1m}
---
kind: rule
name: tell
on: execution.ended
if: signal.data.status in ["failed", "timed_out"] && signal.data.action == "deploy"
run: {action: noop}
`

func parseAutomation(t *testing.T) (trigger *Trigger, rule, ends *Rule) {
	t.Helper()
	defs, err := Parse("a.yaml", []byte(automation))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range defs {
		again, err := Decode(d.Canonical())
		if err != nil || again.Hash() != d.Hash() || (again.Rule == nil) != (d.Rule == nil) {
			t.Errorf("%s %s does not come back: %v", d.Kind, d.Name, err)
		}
	}
	return defs[0].Trigger, defs[1].Rule, defs[2].Rule
}

func signalOf(data string) *flow.Signal {
	return &flow.Signal{ID: flow.ID{1}, Trigger: "alert.fired", Subject: "db1", Source: flow.SourceAPI, Data: json.RawMessage(data)}
}

func varsOf(t *testing.T, data string) *Vars {
	t.Helper()
	v, err := SignalVars(signalOf(data))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTriggerDocument(t *testing.T) {
	t.Parallel()
	trigger, _, _ := parseAutomation(t)
	if !trigger.Waits {
		t.Error("it does not take waits")
	}
	data, err := trigger.ValidateData(json.RawMessage(`{"id":"1","host":"db1"}`))
	if err != nil || !strings.Contains(string(data), `"severity":"warn"`) {
		t.Errorf("%s, %v", data, err)
	}
	var ps Problems
	if _, err := trigger.ValidateData(json.RawMessage(`{"id":1}`)); !errors.As(err, &ps) || !strings.HasPrefix(ps[0].Path, "data") {
		t.Errorf("%v", err)
	}
	if key, err := trigger.Key.Text(varsOf(t, `{"id":"a1","host":"db1"}`)); err != nil || key != "a1" {
		t.Errorf("key %q, %v", key, err)
	}
}

func TestRuleDocument(t *testing.T) {
	t.Parallel()
	_, r, ends := parseAutomation(t)
	if !slices.Equal(r.On, []string{"alert.fired", "disk.*"}) || r.Run.ActionText() != "clean-disk@3" || !r.Reentry || r.Depth != 3 || r.Run.Settings.Labels["team"] != "ops" || *r.Run.Settings.Priority != 10 {
		t.Errorf("%+v", r)
	}
	v := varsOf(t, `{"severity":"page","host":"db1"}`)
	if holds, err := r.If.Eval(v); !holds || err != nil {
		t.Errorf("it does not hold: %v", err)
	}
	if in, err := r.InputFor(v); string(in) != `{"host":"db1"}` || err != nil {
		t.Errorf("input %s, %v", in, err)
	}
	if key, err := r.Run.Settings.Concurrency.Key.Text(v); key != "disk:db1" || err != nil {
		t.Errorf("key %s, %v", key, err)
	}
	if rate, err := r.Run.Settings.Rate.Key.Text(v); rate != "r:db1" || err != nil || r.Run.Settings.Rate.Bound.Limit != 10 ||
		r.CircuitBreaker == nil || r.CircuitBreaker.Limit != 1000 {
		t.Errorf("rate %s, %v, storm %+v", rate, err, r.CircuitBreaker)
	}
	if d := r.Window; d == nil || d.Quiet != 30*time.Second || d.AtMost != 5*time.Minute || d.Keep != KeepFirst {
		t.Errorf("debounce %+v", d)
	}
	if once, err := r.Once.Text(v); once != "db1" || err != nil {
		t.Errorf("once %s, %v", once, err)
	}
	if holds, err := r.If.Eval(varsOf(t, `{"severity":"warn","host":"db1"}`)); holds || err != nil {
		t.Errorf("it holds: %v", err)
	}
	if actions, _, labels := ends.Ends(); !slices.Equal(actions, []string{"deploy"}) || len(labels) > 0 || ends.Depth != defaultDepth || ends.Reentry {
		t.Errorf("%v %v", actions, labels)
	}
	if in, err := ends.InputFor(v); string(in) != "{}" || err != nil {
		t.Errorf("input %s, %v", in, err)
	}
}

// A rule on ends may match every end. A status that no end has is refused.
func TestRuleOnAnyEnd(t *testing.T) {
	t.Parallel()
	const head, run = "kind: rule\nname: r\non: execution.ended\n", "run: {action: noop}\n"
	for _, src := range []string{"", "if: signal.data.action != 'a'\n", "if: signal.data.status in ['failed', 'timed_out']\n"} {
		if got := said(t, head+src+run); got != "" {
			t.Errorf("%s: %s", src, got)
		}
	}
	defs, err := Parse("r.yaml", []byte(head+"if: signal.data.status == 'failed' && signal.data.attempt > 1\n"+run))
	if err != nil {
		t.Fatal(err)
	}
	if actions, statuses, labels := defs[0].Rule.Ends(); len(actions) > 0 || len(labels) > 0 || !slices.Equal(statuses, []string{"failed"}) {
		t.Errorf("%v %v %v", actions, statuses, labels)
	}
	if got := said(t, head+"if: signal.data.status == 'failure'\n"+run); !strings.Contains(got, `signal.data.status is never "failure" (write "failed")`) {
		t.Error(got)
	}
}

func TestRuleProblems(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"kind: rule\nname: r\non: [a]\n":                                                                              "add run:",
		"kind: rule\nname: r\nrun: {action: noop}\n":                                                                  "add on:",
		"kind: rule\non: [a]\nrun: {action: noop}\n":                                                                  "the rule has no name",
		"kind: rule\nname: r\non: [A]\nrun: {action: noop}\n":                                                         "on[0]",
		"kind: rule\nname: r\non: [a, execution.*]\nrun: {action: noop}\n":                                            "write execution.ended",
		"kind: rule\nname: r\non: a\nif: sgnal.data\nrun: {action: noop}\n":                                           "did you mean",
		"kind: rule\nname: r\non: a\nif: size(signal.data)\nrun: {action: noop}\n":                                    "compare it with something",
		"kind: rule\nname: r\non: a\nrun: {action: noop, input: '${{ input.x }}'}\n":                                  "input is not available",
		"kind: rule\nname: r\non: a\nreentry: maybe\nrun: {action: noop}\n":                                           "reentry",
		"kind: rule\nname: r\non: a\nif: [1]\nrun: {action: noop}\n":                                                  "signal.data.severity",
		"kind: rule\nname: r\non: a\nrun: {action: noop}\nstorm: {limit: 3}\n":                                        "per is missing",
		"kind: rule\nname: r\non: a\nrun: {action: noop}\ndebounce: {key: x}\n":                                       "quiet is missing",
		"kind: rule\nname: r\non: a\nrun: {action: noop}\ndebounce: {key: x, quiet: 1m, at_most: 1s}\n":               "is less than",
		"kind: rule\nname: r\non: a\nrun: {action: noop}\ndebounce: {key: x, quiet: 2d}\n":                            "at most 24h",
		"kind: rule\nname: r\non: a\nrun: {action: noop}\nbatch: {key: x}\n":                                          "add wait: 5s",
		"kind: rule\nname: r\non: a\nrun: {action: noop}\nbatch: {wait: 5s}\n":                                        "key is missing",
		"kind: rule\nname: r\non: a\nrun: {action: noop}\nbatch: {key: x, wait: 25h}\n":                               "held for too long",
		"kind: rule\nname: r\non: a\nrun: {action: noop}\nbatch: {key: x, wait: 5s, size: 1001}\n":                    "batch.size",
		"kind: rule\nname: r\non: a\nrun: {action: noop}\nbatch: {key: x, wait: 5s, bytes: 5MiB}\n":                   "from 1 to 4MiB",
		"kind: rule\nname: r\non: a\nrun: {action: noop}\nbatch: {key: x, wait: 5s, bytes: no}\n":                     "not a size",
		"kind: rule\nname: r\non: a\nrun: {action: noop}\nbatch: {key: x, wait: 5s, sise: 3}\n":                       "sise",
		"kind: rule\nname: r\non: a\nrun: {action: noop}\nbatch: {key: x, wait: 5s}\ndebounce: {key: x, quiet: 1s}\n": "and not both",
		"kind: rule\nname: r\non: a\nrun: {action: noop}\nbatch: {key: '${{ signals[0].subject }}', wait: 5s}\n":      "here are signal",
		"kind: rule\nname: r\non: a\nrun: {action: noop, input: '${{ signal.data }}'}\nbatch: {key: x, wait: 5s}\n":   "here are signals",
		"kind: rule\nname: r\non: a\nrun: {action: noop, input: '${{ signals }}'}\n":                                  "here are signal",
		"kind: trigger\nname: execution.x\n":                                                                          "Pawl emits itself",
		"kind: trigger\nname: t\nkeep: 0s\n":                                                                          "more than nothing",
		"kind: trigger\nname: t\nkeep: 367d\n":                                                                        "at most 366d",
		"kind: trigger\nname: t\ndata: {type: strng}\n":                                                               "r.yaml:3:14: data.type: not a valid JSON Schema: value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string' (did you mean \"string\"?)",
		"kind: trigger\nname: t\nkey: ${{ signal.dta.x + 1 }} ${{ tick }}\n":                                          "tick is not available",
		"kind: rule\nname: r\non: a\nrun: {action: workflow}\n":                                                       "a rule runs a workflow by its name",
	} {
		_, err := Parse("r.yaml", []byte(src))
		if err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s\n%v, want %q", src, err, want)
		}
	}
}

func TestConstantsOfConditions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string][]string{
		`signal.data.action == "a"`:                                     {"signal.data.action": {"a"}},
		`"a" == signal.data["action"] && signal.data.n > 1`:             {"signal.data.action": {"a"}},
		`signal.data.action in ["a", "b"]`:                              {"signal.data.action": {"a", "b"}},
		`signal.data.action == "a" || signal.data.action == "b"`:        {"signal.data.action": {"a", "b"}},
		`signal.data.action == "a" || signal.data.status == "b"`:        {},
		`!(signal.data.action == "a")`:                                  {},
		`signal.data.action in ["a", "b"] && signal.data.action == "b"`: {"signal.data.action": {"b"}},
		`signal.data.labels.team == "x" && signal.data.action == "a"`:   {"signal.data.labels.team": {"x"}, "signal.data.action": {"a"}},
		`signal.data.action == signal.data.other`:                       {},
		`signal.data["a b"].c == "x"`:                                   {`signal.data["a b"].c`: {"x"}},
		`signal.data.flag`:                                              {},
	} {
		d, err := Parse("r.yaml", []byte(fmt.Sprintf("kind: rule\nname: r\non: a\nif: %q\nrun: {action: noop}\n", text)))
		if err != nil {
			t.Fatal(err)
		}
		if got := d[0].Rule.If.Constants(); !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestExplainCondition(t *testing.T) {
	t.Parallel()
	d, err := Parse("r.yaml", []byte(`{"kind": "rule", "name": "r", "on": "a", "run": {"action": "noop"},
		"if": "signal.data.severity == \"page\" && (signal.data.n > 3 || signal.data.force) && signal.data.host.startsWith(\"db\") && has(signal.data.absent) && signal.data.none == 1 && [1, 2].exists(x, x == signal.data.n)"}`))
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, c := range d[0].Rule.If.Explain(varsOf(t, `{"severity":"warn","n":2,"force":true,"host":"db1"}`)) {
		say := fmt.Sprintf("%s: %t", c.Text, c.Holds)
		if c.Error != "" {
			say = c.Text + ": error"
		}
		for _, v := range c.Values {
			say += fmt.Sprintf(" %s=%s", v.Text, v.Value)
		}
		said = append(said, say)
	}
	want := []string{
		`signal.data.severity == "page": false signal.data.severity="warn"`, `signal.data.n > 3 || signal.data.force: true`, `signal.data.host.startsWith("db"): true`,
		`has(signal.data.absent): false`, `signal.data.none == 1: error`, `[1, 2].exists(x, x == signal.data.n): true`,
	}
	if !slices.Equal(said, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
	d, err = Parse("r.yaml", []byte("kind: rule\nname: r\non: a\nif: signal.data.force\nrun: {action: noop}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c := d[0].Rule.If.Explain(varsOf(t, `{"force":false}`)); len(c) != 1 || c[0].Holds || c[0].Text != "signal.data.force" {
		t.Errorf("%+v", c)
	}
}
