package definition

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

const nightly = `kind: schedule
name: nightly
description: The report of the day.
cron: ["30 2 * * 1-5", "0 4 * * 6"]
zone: Europe/Berlin
gap: next
repeat: first
except: ["2026-12-25", "0 0 1 1 *"]
jitter: 5m
from: 2026-11-01
until: "2036-11-01T00:00"
pause_after: 5
catch_up: {policy: all, within: 1d, at_most: 100}
overlap: skip
paused: false
run:
  action: report@2
  input: {day: "${{ tick.local_date }}", first: "${{ default(tick.previous, \"none\") == \"none\" }}"}
  labels: {team: ops}
  priority: 10
  queue: slow
  timeout: 1h
  retry: 3
`

func TestSchedule(t *testing.T) {
	t.Parallel()
	defs, err := Parse("s.yaml", []byte(nightly))
	if err != nil {
		t.Fatal(err)
	}
	d := defs[0]
	if decoded, err := Decode(d.Canonical()); err != nil || string(decoded.Canonical()) != string(d.Canonical()) || decoded.Schedule.Run.ActionText() != "report@2" {
		t.Errorf("decoded: %v", err)
	}
	if refs := d.References(); len(refs) != 1 || refs[0].Name != "report" || refs[0].Version != 2 {
		t.Errorf("it mentions %+v", refs)
	}
	if refs := d.QueueRefs(); len(refs) != 1 || refs[0].Path != "run.queue" {
		t.Errorf("it names the queues %+v", refs)
	}
	at, ok := d.Schedule.Next(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	if want := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC); !ok || !at.Equal(want) {
		t.Errorf("next is %s, want %s", at, want)
	}
	input, err := d.Schedule.InputFor("nightly", d.Schedule.TickOf(at, time.Time{}, "on_time"), nil)
	if want := `{"day":"2026-11-21","first":true}`; err != nil || string(input) != want {
		t.Errorf("input %s (%v), want %s", input, err, want)
	}
	stored := strings.Replace(string(d.Canonical()), `"0 0 1 1 *"`, `"0 0 30 2 *"`, 1)
	if old, err := Decode([]byte(stored)); err != nil || stored == string(d.Canonical()) || old.Schedule.Strict() == nil {
		t.Errorf("one that was stored with an exception that never comes: %v", err)
	}
	also, err := Parse("s.yaml", []byte("name: nightly\naction: noop\n---\n"+nightly))
	if err != nil || len(also) != 2 {
		t.Errorf("an action and a schedule of one name: %v", err)
	}
}

func TestScheduleProblems(t *testing.T) {
	t.Parallel()
	const head = "kind: schedule\nname: s\nrun: {action: noop}\n"
	costly := strings.TrimSuffix(strings.Repeat("'0-58 * * * * *',", 40), ",")
	for src, want := range map[string]string{
		head + "every: 1s\nexcept: [" + costly + "]": "s.yaml:5:9: except: to compare 1 cron lines with 40 exceptions takes",
		head:                        "s.yaml:1:1: the schedule has 0 of cron, every and at",
		head + "cron: '0 0 30 2 *'": `s.yaml:4:7: cron: "0 0 30 2 *" never comes`,
		head + "cron: ['0 0 * * *', '0 0 13 * 5']":                                      "s.yaml:4:21: cron[1]:",
		head + "every: 1h\nzone: Berlin":                                                `s.yaml:5:7: zone: "Berlin" is not a time zone`,
		head + "every: 1h\nexcept: [tuesday]":                                           "s.yaml:5:10: except[0]:",
		head + "every: 1h\nexcept: [\"2026-12-25\", \"0 0 30 2 *\"]":                    "s.yaml:5:24: except[1]: \"0 0 30 2 *\" never comes",
		head + "every: 1h\nexcept: ['* * * * *']":                                       "s.yaml:5:9: except: no time of every: 1h0m0s is left",
		head + "every: 1h\npause_after: 0":                                              "s.yaml:5:14: pause_after:",
		head + "every: 1h\nfrom: noon":                                                  "s.yaml:5:7: from:",
		head + "every: 1h\njitter: 2d":                                                  "s.yaml:5:9: jitter:",
		head + "every: 1h\ncatch_up: {within: 60d}":                                     "s.yaml:5:20: catch_up.within:",
		head + "every: 1h\ncrn: x":                                                      `unknown field "crn"`,
		head + "cron: []":                                                               "s.yaml:4:7: cron: the list is empty",
		head + "every: 1h\nzone: ''":                                                    "s.yaml:5:7: zone: the text is empty",
		head + "every: 1h\nuntil: ''":                                                   "s.yaml:5:8: until: the text is empty",
		head + "every: 1h\noverlap: ''":                                                 "s.yaml:5:10: overlap: the text is empty",
		head + "at: '2026-12-24T08:00:00.5Z'":                                           "has a fraction of a second",
		"kind: schedule\nname: s\nevery: 1h":                                            "does not say what to run",
		"kind: schedule\nevery: 1h\nrun: {action: noop}":                                "the schedule has no name",
		"kind: schedule\nname: s\nevery: 1h\nrun: {action: workflow}":                   "run.action:",
		"kind: schedule\nname: s\nevery: 1h\nrun: {action: x, input: '${{ input.a }}'}": "run.input:",
		"kind: schedule\nname: s\nevery: 1h\nrun: {action: x, env: {A: b}}":             `unknown field "env"`,
	} {
		_, err := Parse("s.yaml", []byte(src))
		var ps Problems
		if !errors.As(err, &ps) || !slices.ContainsFunc(ps, func(p Problem) bool { return strings.Contains(p.String(), want) }) {
			t.Errorf("%s\ngives %v, want %s", src, err, want)
		}
	}
}
