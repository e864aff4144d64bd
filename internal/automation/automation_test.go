package automation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
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
	if err != nil || !x.Listens || x.Holds || len(x.Clauses) != 1 || x.Clauses[0].Holds || x.Clauses[0].Values[0].Value != `"warn"` {
		t.Errorf("%+v, %v", x, err)
	}
	if x, err = Explain(rules[0], signalOf("disk", `{}`)); err != nil || x.Listens || x.Holds {
		t.Errorf("%+v, %v", x, err)
	}
	if x, err = Explain(rules[2], signalOf("alert.fired", `{}`)); err != nil || !x.Holds || x.Verdict.Reason.Code != flow.ReasonIf || x.Clauses[0].Err == nil {
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

// Rules that an index finds make the same of every signal as rules that are evaluated one by one.
func TestRuleIndex(t *testing.T) {
	t.Parallel()
	conditions := []string{`signal.data.a == "x"`, `signal.data.a == "x" && signal.data.b == "y"`, `signal.data.b in ["x", "y"]`, `signal.data.n > 1`, `signal.data.a != "x"`,
		`signal.data.c.d == "x" && signal.data.n > 1`, `signal.subject == "s"`, `signal.subject == "t"`, `signal.data.a == "x" || signal.data.a == "y"`, `signal.data.a == "x" || signal.data.b == "y"`,
		`signal.data["a b"] == "x"`, `signal.data.n == 1 && signal.data.a == "z"`, `size(signal.data.a) > 1`, `size(signal.data.a) > 1 && signal.data.n < 3`, `signal.data.n in [1, 2.0]`,
		`2 <= signal.data.n && signal.data["n"] < 9007199254740993`, `signal.data.a in []`, `signal.data.a.contains("x") && signal.data.n > 0`, `signal.data.a.contains("x") && signal.data.n < 0`,
		`signal.data.a.startsWith("x")`, `signal.data.a >= "a"`, `signal.data.n * 2 + size(signal.data.b) > 5`, `signal.data.n / 2 == 1 || signal.data.n % 2 == 1`, `signal.data.n + 0.5 > 1.0`,
		`!(signal.data.n > 1 && signal.data.a == "x")`, `signal.data.a == "x" ? signal.data.n > 1 : signal.data.n < 1`, `signal.data[?"a"] != "x"`, `!(signal.data[?"n"] == 1)`, `signal.data.n > 4 / 2`, `2 - 1 == signal.data.n`, `2 - 1 == 3 - 2`, `-(1 + 1) < signal.data.n`, `signal.data.n == 1 / 0`}
	var src []string
	for i, c := range conditions {
		src = append(src, fmt.Sprintf("kind: rule\nname: r%02d\non: t\nif: %q\nrun: {action: noop}\n", i, c))
	}
	src = append(src, "kind: rule\nname: all\non: t\nrun: {action: noop}\n", "kind: rule\nname: below\non: [t, t.*]\nif: signal.data.a == \"y\"\nrun: {action: noop}\n")
	set := NewSet(1, rulesOf(t, strings.Join(src, "---\n")), nil)
	if set.indexes["t"] == nil || len(set.indexes["t"].by) < 4 {
		t.Fatalf("%+v", set.indexes)
	}
	for _, data := range []string{`{}`, `{"a":"x"}`, `{"a":"y","b":"y","n":2}`, `{"a":1,"b":"x"}`, `{"a":"z","n":1}`, `{"c":{"d":"x"},"n":5,"a":null}`, `{"c":1}`, `[]`, `"x"`, `{"a b":"x","a":"x","b":"y","n":9}`,
		`{"n":9007199254740992}`, `{"n":9007199254740993,"a":"xx"}`, `{"n":1.5,"a":["x"]}`, `{"n":"1","a":{"x":1}}`, `{"n":-1,"a":"xx"}`, `{"n":true}`, `{"n":1e300}`, `{"a":"x\udcff","n":2}`, `{"a":"\udcff"}`} {
		sameByIndex(t, set, data)
	}
}

// sameByIndex compares what the rules that an index finds make of a signal with what each rule makes of it.
func sameByIndex(t *testing.T, set *Set, data string) {
	t.Helper()
	s := signalOf("t", data)
	all, err := Match(set, s)
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, v := range all {
		got = append(got, v.Rule.Name+" "+v.State.String()+" "+v.Reason.Code)
	}
	for _, r := range set.Rules {
		v, holds, err := MatchRule(r, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if holds {
			want = append(want, v.Rule.Name+" "+v.State.String()+" "+v.Reason.Code)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", data, got, want)
	}
}

// TestRuleIndexAtRandom is TestRuleIndex with conditions and signals made at random.
func TestRuleIndexAtRandom(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	value := func() string {
		return one(`"x"`, `"xy"`, `""`, `"y"`, `"x\ud800"`, "0", "1", "2", "-1", "1.5", "9007199254740993", "true", "null")
	}
	operand := func() string {
		return one("signal.data.a", "signal.data.b", `signal.data["a"]`, "signal.data.c.d", "size(signal.data.a)", "default(signal.data.b, 1)", "signal.subject", "signal.data.a + signal.data.b",
			fmt.Sprintf("(signal.data.a %s %d)", one("+", "-", "*", "/", "%"), r.IntN(4)), fmt.Sprintf("(%d - signal.data.c.d * signal.data.a)", r.IntN(4)), "-signal.data.b", "size(signal.data.c)")
	}
	clause := func() string {
		switch r.IntN(8) {
		case 0:
			return fmt.Sprintf("%s in [%s, %s]", operand(), value(), value())
		case 1:
			return fmt.Sprintf(`%s.%s("x")`, operand(), one("startsWith", "endsWith", "contains"))
		case 2:
			return fmt.Sprintf("%s %s %s", value(), one("==", "<", "<=", ">", ">="), operand())
		case 3:
			return fmt.Sprintf("(%s == %s || %s == %s)", operand(), value(), operand(), value())
		case 4:
			return fmt.Sprintf("!(%s == %s)", operand(), value())
		case 5:
			return one("signal.data.a", "has(signal.data.b)", `signal.data.a != "x"`)
		}
		return fmt.Sprintf("%s %s %s", operand(), one("==", "!=", "<", "<=", ">", ">="), value())
	}
	for range 30 {
		var rules []*Rule
		for len(rules) < 40 {
			text := clause()
			for r.IntN(2) == 0 {
				text += " && " + clause()
			}
			defs, err := definition.Parse("r.yaml", fmt.Appendf(nil, "kind: rule\nname: r%d\non: t\nif: %q\nrun: {action: noop}\n", len(rules), text))
			if err != nil {
				continue // a comparison that can never be
			}
			rules = append(rules, &Rule{Name: defs[0].Name, Version: 1, Rule: defs[0].Rule})
		}
		set := NewSet(1, rules, nil)
		for range 30 {
			var fields []string
			for _, name := range []string{"a", "b"} {
				if r.IntN(4) > 0 {
					fields = append(fields, fmt.Sprintf("%q:%s", name, value()))
				}
			}
			if r.IntN(2) == 0 {
				fields = append(fields, fmt.Sprintf(`"c":%s`, one(`{"d":"x"}`, `{"d":1}`, "[]", "1")))
			}
			sameByIndex(t, set, "{"+strings.Join(fields, ",")+"}")
		}
	}
}

// Rules of which each computes something of its own are left out by the index without CEL, too.
func TestRuleIndexByFormulas(t *testing.T) {
	t.Parallel()
	var rules []*Rule
	for i := range 20 {
		rules = append(rules, rulesOf(t, fmt.Sprintf("kind: rule\nname: r%02d\non: t\nif: %q\nrun: {action: noop}\n", i, fmt.Sprintf("signal.data.n * %d - signal.data.m > %d", i+1, 10*i)))...)
	}
	set := NewSet(1, rules, nil)
	for data, want := range map[string][]string{`{"n":0,"m":1}`: nil, `{"n":1,"m":-1}`: {"r00"}, `{"n":9,"m":163}`: nil, `{"n":9,"m":200}`: nil, `{"n":11,"m":21}`: {"r11", "r12", "r13", "r14", "r15", "r16", "r17", "r18", "r19"}} {
		s := signalOf("t", data)
		vars, err := definition.SignalVars(s)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range set.among("t", set.On("t"), vars) {
			got = append(got, r.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: CEL is asked about %v, want %v", data, got, want)
		}
	}
}

// BenchmarkMatchThousand: of a thousand rules on the trigger one holds at the most. Those of "own" and "cel" have no operand in common.
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
