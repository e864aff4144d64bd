package output

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
		if err := WriteResult(&b, json.RawMessage(c.raw)); err != nil {
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

// Pretty-printed JSON is the same JSON, and no line is too long unless it must be.
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
	if err := WriteData(&b, AsYAML, map[string]any{"a": "1", "b": "true", "c": "x: y", "d": 1, "e": "two\nlines\n", "f": "", "g": "<b>"}); err != nil {
		t.Fatal(err)
	}
	want := "a: \"1\"\nb: \"true\"\nc: \"x: y\"\nd: 1\ne: |\n  two\n  lines\nf: \"\"\ng: <b>\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

// A command that lists nothing prints an empty list, over which programs can iterate, and not null.
func TestNoListIsNull(t *testing.T) {
	t.Parallel()
	for f, want := range map[Format]string{AsJSON: "[]\n", AsYAML: "[]\n"} {
		var b strings.Builder
		if err := WriteData(&b, f, []string(nil)); err != nil || b.String() != want {
			t.Errorf("%s: %q (%v), want %q", f, b.String(), err, want)
		}
	}
}
