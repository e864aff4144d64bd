package definition

import (
	"strings"
	"testing"
)

// A field that has no effect where it stands is refused with its place. What was stored with one before is still read.
func TestFieldsWithoutEffect(t *testing.T) {
	t.Parallel()
	const schedule = "kind: schedule\nname: s\nrun: {action: noop}\n"
	task := func(fields string) string { return "name: w\ntasks:\n  a: {" + fields + "}\n" }
	for _, c := range [][2]string{
		{schedule + "every: 1h\ncatch_up: {policy: none, within: 1h}", "catch_up.within: within has no effect"},
		{schedule + "every: 1h\ncatch_up: {policy: none, at_most: 3}", "catch_up.at_most: at_most has no effect"},
		{schedule + "every: 1h\ncatch_up: {}", "catch_up: it is empty"},
		{schedule + "at: '2030-01-01T08:00'\ncatch_up: {policy: all, at_most: 3}", "catch_up.at_most: at_most has no effect"},
		{schedule + "cron: '0 8 * * *'\ndays: both", "days: days has no effect"},
		{schedule + "cron: ['0 8 * * 1', '0 8 1 * *']\ndays: either", "days: days has no effect"},
		{schedule + "every: 1h\ndays: both", "days: days says how a cron line is read"},
		{schedule + "cron: '0 8 * * *'\noffset: 0s", "offset: offset moves the times of every"},
		{schedule + "cron: '0 8 * * *'\ngap: skip", "gap: gap has no effect: the clocks of UTC"},
		{schedule + "cron: '0 8 * * *'\nzone: UTC\nrepeat: both", "repeat: repeat has no effect"},
		{schedule + "at: '2030-01-01T08:00:00Z'\nzone: Europe/Berlin\ngap: skip", "gap: gap has no effect: at is a moment"},
		{"kind: schedule\nname: s\nevery: 1h\nrun: {action: sleep, input: {for: 1s}, queue: default}",
			"run.queue: queue has no effect on sleep"},
		{"kind: rule\nname: r\non: a.b\nrun: {action: sleep, input: {for: 1s}, queue_timeout: 1s}",
			"run.queue_timeout: queue_timeout has no effect on sleep"},
		{"name: a\naction: http\nwith: {url: 'http://h/'}\nenv: {A: b}", "env: env has no effect on http"},
		{"name: a\naction: sleep\nwith: {for: 1s}\nqueue: default", "queue: queue has no effect on sleep"},
		{task("action: sleep, with: {for: 1s}, env: {A: b}"), "tasks.a.env: env has no effect on sleep"},
		{task("action: workflow, with: {name: x}, env: {A: b}"), "tasks.a.env: env has no effect on workflow"},
		{task("action: workflow, with: {name: x}, queue: default"), "tasks.a.queue: queue has no effect on workflow"},
		{task("action: wait, with: {signal: a.b}, queue_timeout: 1m"),
			"tasks.a.queue_timeout: queue_timeout has no effect on wait"},
		{task("action: wait, with: {signal: a.b, vars: {a: 1}}"), "tasks.a.with.vars: vars has no effect"},
		{task("action: noop, concurrency: {key: k, when_full: cancel_new, fair_by: a}"),
			"tasks.a.concurrency.fair_by: fair_by has no effect"},
	} {
		src, want := c[0], c[1]
		if got := said(t, src); !strings.Contains(got, want) {
			t.Errorf("%s\ngives %s\nwant %s", src, got, want)
		}
		docs, problems := read("", []byte(src))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if _, err := Decode(docs[0].appendJSON(nil)); err != nil && !strings.HasPrefix(want, "days: days says") {
			t.Errorf("%s\nis not read from the store: %v", src, err)
		}
	}
	for _, src := range []string{
		schedule + "every: 1h\ncatch_up: {within: 1h}",
		schedule + "every: 1h\ncatch_up: {policy: last, at_most: 3}", // a number, or a word, that people change to and fro
		"name: w\ntasks:\n  a: {action: noop, retry: {max_attempts: 1, delay: 5s}, repeat: {until: 'true', max: 1, delay: 5s}}\n",
		schedule + "every: 1h\ncatch_up: {policy: all, within: 1h, at_most: 3}",
		schedule + "cron: ['0 8 * * *', '0 8 13 * 5']\ndays: both",
		schedule + "cron: '30 2 * * *'\nzone: Europe/Berlin\ngap: skip\nrepeat: both",
		schedule + "at: '2030-01-01T08:00'\nzone: Europe/Berlin\ngap: skip",
		schedule + "every: 1h\noffset: 0s",
		"name: w\nenv: {A: b}\ntotal_timeout: 1h\ntasks: {a: {action: noop, queue: default, queue_timeout: 1s}}",
		task("action: code, with: {language: bash, source: x}, env: {A: b}, queue: default"),
		task("action: mine, env: {A: b}, queue: default, retry: {max_attempts: 2, delay: 5s, max_delay: 10s}"),
		task("action: wait, with: {signal: a.b, if: 'vars.a == 1', vars: {a: 1}}"),
		task("action: noop, concurrency: {key: k, when_full: cancel_oldest, fair_by: a}"),
	} {
		if got := said(t, src); got != "" {
			t.Errorf("%s\ngives %s", src, got)
		}
	}
}

// Settings that the executions of a registered action would not use are refused where both are known.
func TestMisfitsOfSettings(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"name: pause\naction: sleep\nwith: {for: 1s}\n---\nname: w\ntasks: {a: {action: pause, queue: default}}",
			"tasks.a.queue: queue has no effect on pause"},
		{"name: get\naction: http\nwith: {url: 'http://h/'}\n---\nname: w\ntasks: {a: {action: get, env: {A: b}}}",
			"tasks.a.env: env has no effect on get"},
		{"name: run\naction: code\nwith: {language: bash, source: x}\n---\nname: w\ntasks: {a: {action: run, env: {A: b}, queue: default}}",
			""},
		{"name: own\nhandler: mine\n---\nname: w\ntasks: {a: {action: own, queue: default}}", ""},
		{"name: sub\ntasks: {a: {action: noop}}\n---\nkind: schedule\nname: s\nevery: 1h\nrun: {action: sub, queue: default}",
			"run.queue: queue has no effect on sub"},
	} {
		src, want := c[0], c[1]
		defs, err := Parse("w.yaml", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, ref := range defs[1].References() {
			for _, p := range defs[1].Misfits(&ref, defs[0], &Work{}) {
				got += p.String() + "\n"
			}
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s\ngives %q, want %q", src, got, want)
		}
	}
}
