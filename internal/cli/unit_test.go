package cli

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/task"
)

func TestLanguageIsTold(t *testing.T) {
	t.Parallel()
	a := &app.App{Config: config.Config{Languages: task.BuiltInLanguages()}}
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
		got, err := languageOf(a, c.given, c.file, []byte(c.program))
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
