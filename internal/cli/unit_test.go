package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/duration"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/task"
)

func TestLanguageIsTold(t *testing.T) {
	t.Parallel()
	a := app{config: config{languages: task.BuiltInLanguages()}}
	for _, c := range []struct{ given, file, program, want string }{
		{"", "a.py", "", "python"},
		{"", "a.mjs", "", "javascript"},
		{"", "a.go", "", "go"},
		{"", "a.cc", "", "c++"},
		{"cpp", "-", "", "c++"},
		{"", "Main.java", "", "java"},
		{"", "-", "#!/usr/bin/env python3\n", "python"},
		{"", "x", "#!/bin/sh -e\n", "bash"},
		{"", "x", "#!/usr/bin/python3.11\n", "python"},
		{"node", "a.py", "", "javascript"},
		{"", "a.txt", "print(1)", ""},
		{"cobol", "a.py", "", ""},
	} {
		got, err := a.languageOf(c.given, c.file, []byte(c.program))
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("languageOf(%q, %q, %q) = %q, %v; want %q", c.given, c.file, c.program, got, err, c.want)
		}
	}
}

func TestSetField(t *testing.T) {
	t.Parallel()
	fields := map[string]any{"keep": 1}
	for _, s := range []string{"n=5", "text=five", "user.name=ada", "user.tags=[1,2]", "empty=", "eq=a=b", "quoted=\"5\""} {
		if err := setField(fields, s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	got, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"empty":"","eq":"a=b","keep":1,"n":5,"quoted":"5","text":"five","user":{"name":"ada","tags":[1,2]}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, s := range []string{"", "n", "=5", "n.x=5"} {
		if err := setField(fields, s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}

func TestOutputsAreRendered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ raw, want string }{
		{`null`, ""},
		{`"a text"`, "a text\n"},
		{`{"n":1,"s":"x: y"}`, "{\"n\": 1, \"s\": \"x: y\"}\n"},
		{`{"table":"| a |\n| b |\n","n":[1,2]}`, `{"table": "| a |\n| b |\n", "n": [1, 2]}` + "\n"}, // in a pipe the form is that of any other object
		{`"| a |\n| b |\n"`, "| a |\n| b |\n"},
		{`[]`, "[]\n"},
	} {
		var b bytes.Buffer
		if err := writeOutput(&b, json.RawMessage(c.raw)); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(c.want, b.String()); diff != "" {
			t.Errorf("%s: %s", c.raw, diff)
		}
	}
}

func TestMembersAreRenderedForPeople(t *testing.T) {
	t.Parallel()
	members, err := orderedMembers([]byte(`{"table":"| a |\n| b |\n","n":[1,2]}`))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := writeMembers(&b, members, 80); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("table:\n| a |\n| b |\n\nn: [1, 2]\n", b.String()); diff != "" {
		t.Error(diff)
	}
}

// However it is broken up, it stays the same JSON, and no line is too long unless it must.
func TestPrettyJSONKeepsEverything(t *testing.T) {
	t.Parallel()
	raw := []byte(`{"a":[{"x":"one, two: \"three\"","y":[1,2,3]},{"x":"\\","y":[]}],"b":{},"c":"` + "long long long" + `"}`)
	for width := 1; width < 120; width += 7 {
		text := prettyJSON(raw, width)
		var flat bytes.Buffer
		if err := json.Compact(&flat, []byte(text)); err != nil {
			t.Fatalf("width %d: %v\n%s", width, err, text)
		}
		if flat.String() != string(raw) {
			t.Errorf("width %d: %s", width, flat.String())
		}
	}
}

func TestYAMLKeepsStringsStrings(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := writeData(&b, asYAML, map[string]any{"a": "1", "b": "true", "c": "x: y", "d": 1, "e": "two\nlines\n", "f": "", "g": "<b>"}); err != nil {
		t.Fatal(err)
	}
	want := "a: \"1\"\nb: \"true\"\nc: \"x: y\"\nd: 1\ne: |\n  two\n  lines\nf: \"\"\ng: <b>\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestItemsAreKnownByWhatTheyWereGiven(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"language":"python","args":["kadane"]}`: " kadane",
		`{"name":"invoice","input":{}}`:           " invoice",
		`{"url":"https://example.com/a"}`:         " https://example.com/a",
		`{"for":5}`:                               "",
		`[1]`:                                     "",
		`{"args":["\u001b[31mred"]}`:              " red",
	} {
		if got := aboutInput(json.RawMessage(raw)); got != want {
			t.Errorf("aboutInput(%s) = %q, want %q", raw, got, want)
		}
	}
}

// What bench says about histories must be able to be bad news.
func TestJudgeFindsBrokenHistories(t *testing.T) {
	t.Parallel()
	history := func(types ...flow.EventType) []flow.Event {
		var all []flow.Event
		attempt := 0
		for i, typ := range types {
			if typ == flow.EvRequested {
				attempt++
			}
			all = append(all, flow.Event{Seq: int64(i + 1), Attempt: attempt, Type: typ})
		}
		return all
	}
	good := history(flow.EvRequested, flow.EvWaiting, flow.EvScheduled, flow.EvProvisioning, flow.EvRunning, flow.EvFailed,
		flow.EvRequested, flow.EvScheduled, flow.EvProvisioning, flow.EvRunning, flow.EvProgress, flow.EvCompleted)
	if ok, ends := judge(good); !ok || ends != 1 {
		t.Errorf("a good history: in order %v, ends %d", ok, ends)
	}
	gap := history(flow.EvRequested, flow.EvScheduled, flow.EvProvisioning)
	gap[2].Seq = 4
	attempt := history(flow.EvRequested, flow.EvScheduled)
	attempt[1].Attempt = 2
	for name, events := range map[string][]flow.Event{
		"gap":     gap,
		"attempt": attempt,
		"skipped": history(flow.EvRequested, flow.EvScheduled, flow.EvRunning),
		"twice":   history(flow.EvRequested, flow.EvScheduled, flow.EvProvisioning, flow.EvRunning, flow.EvCompleted, flow.EvCompleted),
		"begins":  history(flow.EvRunning),
	} {
		if ok, _ := judge(events); ok {
			t.Errorf("%s: a broken history was found to be in order", name)
		}
	}
}

func TestDurationsOfSettings(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{"30d": "720h0m0s", "90m": "1h30m0s", "0": "0s", "5": "5s"} {
		if d, err := duration.Parse(s); err != nil || d.String() != want {
			t.Errorf("%s: %s, %v; want %s", s, d, err, want)
		}
	}
	for _, s := range []string{"", "-1s", "d", "1y"} {
		if d, err := duration.Parse(s); err == nil {
			t.Errorf("%q was taken as %s", s, d)
		}
	}
}

func TestCountedOrder(t *testing.T) {
	t.Parallel()
	want := []string{"", "1", "2", "10", "a", "a1", "a2b", "a02c", "a10", "b/1", "b/1x"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, countedOrder)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
