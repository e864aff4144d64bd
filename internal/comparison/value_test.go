package comparison

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

func TestValues(t *testing.T) {
	numeric := Rule{Mode: Numeric, Absolute: 1e-6, Relative: 1e-6}
	for _, c := range []struct {
		rule      Rule
		got, want string
		say       string // empty: they are equal
	}{
		{got: `1`, want: `1`},
		{got: `1.0`, want: `1`},
		{got: `1e2`, want: `100`},
		{got: `0.10`, want: `0.1`},
		{got: `-0`, want: `0`},
		{got: `0.30000000000000004`, want: `0.3`, say: `got 0.30000000000000004, expected 0.3`},
		{rule: numeric, got: `0.30000000000000004`, want: `0.3`},
		{rule: numeric, got: `1000001`, want: `1000000`, say: `got 1000001, expected 1000000`},
		{got: `123456789012345678901234567890`, want: `123456789012345678901234567891`, say: `got 123456789012345678901234567890, expected 123456789012345678901234567891`},
		{got: `1`, want: `true`, say: `got 1, expected true`},
		{got: `true`, want: `1`, say: `got true, expected 1`},
		{got: `"1"`, want: `1`, say: `got "1", expected 1`},
		{got: `null`, want: `null`},
		{got: `null`, want: `false`, say: `got null, expected false`},
		{got: `[]`, want: `{}`, say: `got [], expected {}`},
		{got: `[1, 2]`, want: `[1,2]`},
		{got: `[1]`, want: `[1,2]`, say: `[1]: got (nothing), expected 2`},
		{got: `[1,2,3]`, want: `[1,2]`, say: `[2]: got 3, expected (nothing)`},
		{got: `{"a":1,"b":[{"c":2}]}`, want: `{"b":[{"c":2.0}],"a":1}`},
		{got: `{"b":[{"c":2}]}`, want: `{"b":[{"c":3}]}`, say: `b[0].c: got 2, expected 3`},
		{got: `{}`, want: `{"a b":1}`, say: `["a b"]: got (nothing), expected 1`},
		{got: `{"a":1}`, want: `{}`, say: `a: got 1, expected (nothing)`},
		{got: `"\u003c\u00e9"`, want: `"<é"`},
	} {
		m, err := c.rule.Values([]byte(c.got), []byte(c.want))
		say := ""
		if m != nil {
			say = m.Say
		}
		if err != nil || say != c.say {
			t.Errorf("%s and %s: %q, %v; want %q", c.got, c.want, say, err, c.say)
		}
	}
	for _, bad := range []string{``, `nothing`, `1 2`, `[1,`, `{"a":}`} {
		if _, err := (Rule{}).Values([]byte(bad), []byte(`1`)); err == nil {
			t.Errorf("%q is taken for a value", bad)
		}
		if _, err := (Rule{}).Values([]byte(`1`), []byte(bad)); err == nil {
			t.Errorf("%q is taken for an expected value", bad)
		}
	}
}

// jsonValues are values three levels deep.
func jsonValues(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Float64Range(-1e6, 1e6).AsAny(), rapid.StringN(0, 3, -1).AsAny())
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(leaf, rapid.SliceOfN(jsonValues(depth-1), 0, 3).AsAny(), rapid.MapOfN(rapid.StringN(0, 2, -1), jsonValues(depth-1), 0, 3).AsAny())
}

// A value equals itself in any indentation, and differs from another one if their JSON, with sorted names, differs.
func TestValuesAtRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := jsonValues(2).Draw(t, "a"), jsonValues(2).Draw(t, "b")
		plain, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		indented, err := json.MarshalIndent(a, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		other, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := (Rule{}).Values(plain, indented); m != nil || err != nil {
			t.Fatalf("%s is not itself: %+v, %v", plain, m, err)
		}
		m, err := (Rule{}).Values(plain, other)
		if err != nil {
			t.Fatal(err)
		}
		if same := string(plain) == string(other); same && m != nil {
			t.Fatalf("%s and %s: %+v", plain, other, m)
		}
		back, err := (Rule{}).Values(other, plain)
		if err != nil || (m == nil) != (back == nil) {
			t.Fatalf("%s and %s are the same in one direction alone", plain, other)
		}
	})
}
