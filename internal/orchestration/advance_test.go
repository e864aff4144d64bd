package orchestration

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// An Advance reads back as it was written, in each field, also with names that JSON escapes.
func TestAdvanceIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, a := range []Advance{
		{},
		{Started: map[string]int{"a": 1, "b-2": 100_000}},
		{Expanded: map[string]int{"each": 0}, Started: map[string]int{"each": 3}, Skipped: []string{"x", "y"}, Cancelled: []string{"z"}},
		{Broken: []string{`a"b\c`}, Reached: []string{"<r>"}, NotReached: []string{"é"}},
	} {
		data, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ReadAdvance(data); err != nil || !reflect.DeepEqual(*got, a) {
			t.Errorf("%s is read as %+v, %v", data, got, err)
		}
	}
}

// Data that no step can have written is refused, with its place.
func TestAdvanceThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		``:                        "JSON",
		`[]`:                      "JSON has a list where an object is expected",
		`{"started":{"a":1.5}}`:   "started: a is 1.5, not a whole number",
		`{"expanded":["a"]}`:      "expanded: JSON has a list where an object is expected",
		`{"skipped":["a",7]}`:     "skipped: element 1 is 7, not a string",
		`{"not_reached":{"a":1}}`: "not_reached: JSON has an object where a list is expected",
		`{"started":{"a":1}`:      "JSON",
	} {
		if got, err := ReadAdvance([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want an error with %q", data, got, err, want)
		}
	}
}

// A plan does what its own event says, and no event with one item more, less or different.
func TestPlanDoesWhatItsEventSays(t *testing.T) {
	t.Parallel()
	w := workflow(t, "  a: {action: noop}\n  b: {foreach: \"${{ [1, 2] }}\", action: noop}\n  c: {action: noop}\n  d: {action: noop}\n")
	a, b := w.Task("a"), w.Task("b")
	p := Plan{Marks: []Marking{{Task: w.Task("d").Index, Mark: Skipped}, {Task: w.Task("c").Index, Mark: Skipped}, {Task: b.Index, Mark: Expanded, Total: 2}},
		Children: []Child{{Task: a}, {Task: b}, {Task: b, Index: 1}}}
	for data, does := range map[string]bool{
		`{"started":{"a":1,"b":2},"expanded":{"b":2},"skipped":["c","d"]}`:             true,
		`{"started":{"a":2,"b":1},"expanded":{"b":2},"skipped":["c","d"]}`:             false,
		`{"started":{"a":1,"b":2},"expanded":{"b":3},"skipped":["c","d"]}`:             false,
		`{"started":{"a":1,"b":2},"expanded":{"b":2},"cancelled":["c","d"]}`:           false,
		`{"started":{"a":1,"b":2},"expanded":{"b":2},"skipped":["c"]}`:                 false,
		`{"started":{"a":1,"b":2},"expanded":{"b":2},"skipped":["c"],"broken":["d"]}`:  false,
		`{"started":{"a":1,"b":2},"expanded":{"b":2},"skipped":["c"],"reached":["d"]}`: false,
		`{"started":{"a":1,"c":2},"expanded":{"b":2},"skipped":["c","d"]}`:             false,
		`{}`: false,
	} {
		was, err := ReadAdvance([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		if p.Does(w, was) != does {
			t.Errorf("it does %s: %v; want %v", data, !does, does)
		}
	}
}
