package automation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// rulesOf reads rules from documents.
func rulesOf(t testing.TB, src string) (all []*Rule) {
	t.Helper()
	defs, err := definition.Parse("r.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range defs {
		if d.Rule != nil {
			all = append(all, &Rule{Name: d.Name, Version: 1, Rule: d.Rule})
		}
	}
	return all
}

func signalOf(trigger, data string, chain ...string) *flow.Signal {
	return &flow.Signal{ID: flow.ID{1}, Trigger: trigger, Subject: "s", Source: flow.SourceAPI, Data: json.RawMessage(data), SignalDetail: flow.SignalDetail{Rules: chain}}
}

const several = `kind: rule
name: page
on: [alert.fired, github.*]
if: signal.data.severity == "page"
run: {action: noop, input: {host: "${{ signal.data.host }}"}, concurrency: {key: "k:${{ signal.subject }}"}, once: "${{ signal.data.host }}"}
---
kind: rule
name: all
on: alert.*
run: {action: noop}
---
kind: rule
name: bad
on: alert.fired
if: signal.data.absent > 3
run: {action: noop}
---
kind: rule
name: input
on: [alert.fired, alert.fired]
run: {action: noop, input: "${{ signal.data.nobody }}"}
`

func TestMatch(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t, several)
	set := NewSet(1, rules, nil)
	say := func(s *flow.Signal) string {
		all, err := Match(set, s)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, v := range all {
			line := fmt.Sprintf("%s %s", v.Rule.Name, v.State)
			if v.State == flow.EnforcementRan {
				line += fmt.Sprintf(" %s %s %s %v", v.Input, v.Key, v.Once, v.Chain)
			} else {
				line += " " + v.Reason.Code + " " + v.Reason.Path
			}
			out = append(out, line)
		}
		return strings.Join(out, "; ")
	}
	for s, want := range map[*flow.Signal]string{
		signalOf("alert.fired", `{"severity":"page","host":"db1"}`): `all ran {}   [all]; bad failed if if; input failed input run.input; page ran {"host":"db1"} k:s db1 [page]`,
		signalOf("alert.fired", `{"severity":"warn"}`):              `all ran {}   [all]; bad failed if if; input failed input run.input`,
		signalOf("alert.over", `{}`):                                `all ran {}   [all]`,
		signalOf("github.push", `{"severity":"page","host":"x"}`):   `page ran {"host":"x"} k:s x [page]`,
		signalOf("github", `{}`):                                    ``,
		signalOf("other", `{}`):                                     ``,
	} {
		if got := say(s); got != want {
			t.Errorf("%s %s:\n%s\nwant\n%s", s.Trigger, s.Data, got, want)
		}
	}
	for _, r := range rules {
		r.Paused = true
	}
	if got := say(signalOf("alert.over", `{}`)); got != "" {
		t.Errorf("paused: %s", got)
	}
	if all, err := Match(nil, signalOf("alert.over", `{}`)); len(all) > 0 || err != nil {
		t.Errorf("without rules: %v, %v", all, err)
	}
}

func TestGuard(t *testing.T) {
	t.Parallel()
	r := rulesOf(t, "kind: rule\nname: r\non: a\ndepth: 3\nrun: {action: noop}\n")[0]
	for chain, want := range map[string]string{"": "", "a": "", "a b": "", "a r": flow.ReasonLoop, "a b c": flow.ReasonTooDeep, "r b c": flow.ReasonLoop} {
		reason := Guard(r, strings.Fields(chain))
		if got := code(reason); got != want || want != "" && !strings.HasSuffix(reason.Message, strings.Join(append(strings.Fields(chain), "r"), " → ")) {
			t.Errorf("chain %q: %+v, want %q", chain, reason, want)
		}
	}
	r = rulesOf(t, "kind: rule\nname: r\non: a\nreentry: allow\ndepth: 3\nrun: {action: noop}\n")[0]
	if code(Guard(r, []string{"r", "r"})) != "" || code(Guard(r, []string{"r", "r", "r"})) != flow.ReasonTooDeep {
		t.Error("a rule that may be entered again")
	}
	all, err := Match(NewSet(1, []*Rule{r}, nil), signalOf("a", `{}`, "x", "y", "z"))
	if err != nil || len(all) != 1 || all[0].State != flow.EnforcementRefused || all[0].Reason.Code != flow.ReasonTooDeep {
		t.Errorf("%+v, %v", all, err)
	}
}

func code(r *flow.Reason) string {
	if r == nil {
		return ""
	}
	return r.Code
}

func TestCycles(t *testing.T) {
	t.Parallel()
	onEnd := func(name, condition, action string, more ...string) string {
		return fmt.Sprintf("kind: rule\nname: %s\non: execution.ended\nif: %q\nrun: {action: %s}\n%s---\n", name, condition, action, strings.Join(more, ""))
	}
	none := func(string, int) map[string]string { return nil }
	for what, c := range map[string]struct {
		src    string
		labels func(string, int) map[string]string
		want   [][]string
	}{
		"none":       {onEnd("a", `signal.data.action == "x"`, "y") + onEnd("b", `signal.data.action == "y"`, "z"), none, nil},
		"itself":     {onEnd("a", `signal.data.action == "x"`, "x"), none, [][]string{{"a"}}},
		"by alias":   {onEnd("a", `signal.data.action == "x"`, "x@next"), none, [][]string{{"a"}}},
		"two":        {onEnd("b", `signal.data.action == "x"`, "y") + onEnd("a", `signal.data.action in ["y", "z"]`, "x"), none, [][]string{{"a", "b"}}},
		"allowed":    {onEnd("b", `signal.data.action == "x"`, "y", "reentry: allow\n") + onEnd("a", `signal.data.action == "y"`, "x"), none, nil},
		"its labels": {onEnd("a", `signal.data.labels.t == "x"`, "y"), func(string, int) map[string]string { return map[string]string{"t": "x"} }, [][]string{{"a"}}},
		"no labels":  {onEnd("a", `signal.data.labels.t == "x"`, "y"), none, nil},
	} {
		got := Cycles(rulesOf(t, strings.TrimSuffix(c.src, "---\n")), c.labels)
		if !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

func TestListensToEnd(t *testing.T) {
	t.Parallel()
	set := NewSet(1, rulesOf(t, "kind: rule\nname: a\non: execution.ended\nif: signal.data.action == \"x\"\nrun: {action: noop}\n---\n"+
		"kind: rule\nname: b\non: execution.ended\nif: signal.data.labels.team == \"t\"\nrun: {action: noop}\n"), nil)
	for want, r := range map[bool]flow.Request{true: {Action: "x"}, false: {Action: "y", Labels: map[string]string{"team": "u"}}} {
		if got := set.ListensToEnd(&r, flow.Failed); got != want {
			t.Errorf("%+v: %t", r, got)
		}
	}
	if !set.ListensToEnd(&flow.Request{Action: "y", Labels: map[string]string{"team": "t"}}, flow.Failed) {
		t.Error("not by its label")
	}
	failures := NewSet(1, rulesOf(t, "kind: rule\nname: a\non: execution.ended\nif: signal.data.status == \"failed\"\nrun: {action: noop}\n"), nil)
	if !failures.ListensToEnd(&flow.Request{Action: "x"}, flow.Failed) || failures.ListensToEnd(&flow.Request{Action: "x"}, flow.Completed) {
		t.Error("a rule on failures is about failures")
	}
	if got := Cycles(failures.Rules, func(string, int) map[string]string { return nil }); got != nil {
		t.Errorf("a rule on any failure is in the cycles %v", got)
	}
	var nothing *Set
	if nothing.ListensToEnd(&flow.Request{Action: "x"}, flow.Failed) || NewSet(1, nil, nil).ListensToEnd(&flow.Request{Action: "x"}, flow.Failed) {
		t.Error("nothing listens")
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t, several)
	x, err := Explain(rules[0], signalOf("alert.fired", `{"severity":"warn"}`))
	if err != nil || !x.Listens || x.Holds || len(x.Clauses) != 1 || x.Clauses[0].Holds || string(x.Clauses[0].Values[0].Value) != `"warn"` {
		t.Errorf("%+v, %v", x, err)
	}
	if x, err = Explain(rules[0], signalOf("disk", `{}`)); err != nil || x.Listens || x.Holds {
		t.Errorf("%+v, %v", x, err)
	}
	if x, err = Explain(rules[2], signalOf("alert.fired", `{}`)); err != nil || !x.Holds || x.Verdict.Reason.Code != flow.ReasonIf || x.Clauses[0].Error == "" {
		t.Errorf("%+v, %v", x, err)
	}
}

func BenchmarkMatch(b *testing.B) {
	set := NewSet(1, rulesOf(b, strings.Split(several, "---")[0]), nil)
	s := signalOf("alert.fired", `{"severity":"page","host":"db1"}`)
	for b.Loop() {
		if all, err := Match(set, s); err != nil || len(all) != 1 {
			b.Fatal(all, err)
		}
	}
}

// BenchmarkMatchThousand matches a thousand rules on one trigger, of which at most one holds. The rules of "own" and "cel" have no operand
// in common.
func BenchmarkMatchThousand(b *testing.B) {
	for name, c := range map[string]string{"equal": `signal.data.host == "h%d" && signal.data.n > 1`, "greater": `signal.data.n > %d`, "listed": `signal.data.n in [%d, -7]`,
		"begins": `signal.data.host.startsWith("h%d")`, "several": `signal.data.n >= -%d && signal.data.host.matches("x+")`, "any": `size(signal.data.host) + signal.data.n == %d + 100`,
		"own": `signal.data.n * %d + size(signal.data.host) == -7000`,
		"cel": `signal.data.host.split("-").exists(p, p == "h%d")`} {
		b.Run(name, func(b *testing.B) {
			var rules []*Rule
			for i := range 1000 {
				rules = append(rules, rulesOf(b, fmt.Sprintf("kind: rule\nname: r%d\non: t\nif: %q\nrun: {action: noop}\n", i, fmt.Sprintf(c, i)))...)
			}
			set, s := NewSet(1, rules, nil), signalOf("t", `{"host":"none","n":-1}`)
			for b.Loop() {
				if all, err := Match(set, s); err != nil || len(all) > 0 {
					b.Fatal(all, err)
				}
			}
		})
	}
}
