package definition

import (
	"strings"
	"testing"
	"time"
)

func TestRepeat(t *testing.T) {
	t.Parallel()
	defs, err := Parse("w.yaml", []byte("name: w\ntasks:\n  a:\n    action: noop\n    repeat: {until: \"${{ output.n >= 3 && round > 1 }}\", max: 5, delay: 1m30s}\n    with: {n: \"${{ round }}\", last: \"${{ previous }}\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := Decode(defs[0].Canonical())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*Definition{defs[0], decoded} {
		r := d.Workflow.Tasks[0].Repeat
		if r.Max != 5 || r.Delay != 90*time.Second || r.Until.Text() != "output.n >= 3 && round > 1" {
			t.Errorf("the repeat is %+v, until %q", r, r.Until.Text())
		}
	}
}

// TestBadRepeats has one row for each mistake, with its position and fix.
func TestBadRepeats(t *testing.T) {
	t.Parallel()
	for repeat, want := range map[string]string{
		"5":                                   "w.yaml:4:29: tasks.a.repeat: want an object with until, max and delay, not a number",
		"{max: 3}":                            "w.yaml:4:29: tasks.a.repeat: until is missing",
		"{until: round > 1}":                  "w.yaml:4:29: tasks.a.repeat: max is missing: it says how many rounds there are at most (add max: 10)",
		"{until: round > 1, max: 0}":          "w.yaml:4:53: tasks.a.repeat.max: 0 is out of range (write a whole number from 1 to 1000)",
		"{until: x, max: 1001}":               "w.yaml:4:45: tasks.a.repeat.max: 1001 is out of range",
		"{until: round + 1, max: 3}":          "w.yaml:4:37: tasks.a.repeat.until: the condition is of type int, not true or false (compare it with something)",
		"{until: outptu.n, max: 3}":           `w.yaml:4:37: tasks.a.repeat.until: "outptu" is not a variable or function here (did you mean "output"?)`,
		"{until: item > 1, max: 3}":           "item exists in a task with `foreach` only",
		"{until: true, max: 3, per: 1}":       `w.yaml:4:51: tasks.a.repeat: unknown field "per"`,
		"{until: true, max: 3, delay: soon}":  "w.yaml:4:58: tasks.a.repeat.delay: ",
		"{until: true, max: 3}, foreach: [1]": "w.yaml:4:29: tasks.a.repeat: a task with foreach cannot repeat: each of its items would have rounds of its own (let the foreach run a sub-workflow whose task has the repeat)",
		"{until: tasks.b.output, max: 3}":     "tasks.a.repeat.until: there is no task \"b\"",
	} {
		_, err := Parse("w.yaml", []byte("name: w\n\ntasks:\n  a: {action: noop, repeat: "+repeat+"}\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v, want\n%s", repeat, err, want)
		}
	}
	_, err := Parse("w.yaml", []byte("name: w\ntasks: {a: {action: noop, with: {n: \"${{ round }}\", p: \"${{ previous }}\"}}}\n"))
	if err == nil || !strings.Contains(err.Error(), "round exists in a task with `repeat` only") || !strings.Contains(err.Error(), "previous exists in a task with `repeat` only") {
		t.Errorf("without repeat: %v", err)
	}
}
