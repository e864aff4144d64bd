package comparison

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode      Mode
		got, want string
		say       string // "" means the same
	}{
		{Exact, "a\n", "a\n", ""},
		{Exact, "a\n", "a", "line 1: 1 bytes more"},
		{Exact, "", "a\nb", "line 1: the output ends 3 bytes too early"},
		{Exact, "one\ntwo\n", "one\ntoo\n", "line 2, column 2: 'w' instead of 'o'"},
		{Exact, "a\xff", "aé", "column 2: byte 0xff instead of 'é'"},
		{Trimmed, "a  \r\nb\t\n\n\n", "a\nb", ""},
		{Trimmed, " a", "a", `line 1: got " a", expected "a"`},
		{Trimmed, "a\n\nb", "a\nb", `line 2: got "", expected "b"`},
		{Trimmed, "a", "a\nb", `line 2: got (nothing), expected "b"`},
		{Trimmed, "\n\n", "", ""},
		{Trimmed, "a\nb\n", "a", `line 2: got "b", expected (nothing)`},
		{Tokens, "1 2\n3", " 1\n2   3 \n", ""},
		{Tokens, "1 23", "12 3", `word 1 of the output: got "1", expected "12"`},
		{Tokens, "a\nb\nd", "a b c", `line 3, word 3 of the output: got "d", expected "c"`},
		{Tokens, "a", "a b", `got (nothing), expected "b"`},
		{Tokens, "1.0", "1", `got "1.0", expected "1"`},
		{Numeric, "1.0000001", "1", ""},
		{Numeric, "1.1", "1", `got "1.1", expected "1"`},
		{Numeric, "x 1e3", "x 1000", ""},
		{Numeric, "x 1", "y 1", `got "x", expected "y"`},
		{Numeric, "NaN inf -inf", "nan +Inf -Infinity", ""},
		{Numeric, "inf", "-inf", `got "inf"`},
		{Numeric, "nan", "1", `got "nan"`},
		{Numeric, "1e999", "1e998", ""},
		{Numeric, strings.Repeat("1", 2000), strings.Repeat("1", 1999), "…"},
	} {
		m := Rule{Mode: c.mode}.Compare([]byte(c.got), []byte(c.want))
		if (m == nil) != (c.say == "") || m != nil && !strings.Contains(m.Say, c.say) {
			t.Errorf("%s: %.40q and %.40q: %+v, want %q", c.mode, c.got, c.want, m, c.say)
		}
	}
}

func TestTolerances(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule      Rule
		got, want string
		same      bool
	}{
		{Rule{Mode: Numeric, Absolute: 0.5}, "10.5", "10", true},
		{Rule{Mode: Numeric, Absolute: 0.5}, "10.51", "10", false},
		{Rule{Mode: Numeric, Relative: 0.1}, "110", "100", true},
		{Rule{Mode: Numeric, Relative: 0.1}, "111", "100", false},
		{Rule{Mode: Numeric, Relative: 0.1}, "0.0001", "0", false},
		{Rule{Mode: Numeric, Relative: 0.1, Absolute: 0.001}, "0.0001", "0", true},
	} {
		if same := c.rule.Compare([]byte(c.got), []byte(c.want)) == nil; same != c.same {
			t.Errorf("%+v: %s and %s: %t", c.rule, c.got, c.want, same)
		}
	}
}

// text draws words and white space, so that texts that differ in little are frequent.
func text(t *rapid.T, label string) []byte {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "1", "1.0", "1e9", "-0", "nan", "é", "\xff", "\x00", " ", "\n", "\t", "\r\n", "\u00a0", "\v"}), 0, 12).Draw(t, label)
	return []byte(strings.Join(parts, ""))
}

// oracle says by plain means whether a mode takes two texts for the same.
func oracle(m Mode, got, want []byte) bool {
	switch m {
	case Exact:
		return string(got) == string(want)
	case Trimmed:
		plain := func(b []byte) string {
			lines := strings.Split(string(b), "\n")
			for i := range lines {
				lines[i] = string(bytes.TrimRight([]byte(lines[i]), " \t\r\v\f\u00a0\u0085"))
			}
			return strings.TrimRight(strings.Join(lines, "\n"), "\n")
		}
		return plain(got) == plain(want)
	}
	return fmt.Sprintf("%q", bytes.Fields(got)) == fmt.Sprintf("%q", bytes.Fields(want))
}

func TestProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		got, want := text(rt, "got"), text(rt, "want")
		if rapid.Bool().Draw(rt, "alike") { // else nearly all differ
			want = append(bytes.Clone(got), rapid.SampledFrom([]string{"", " ", "\n", "\n\n", "\r\n", "x"}).Draw(rt, "end")...)
		}
		before := false
		for _, mode := range Modes() {
			rule := Rule{Mode: mode}
			m := rule.Compare(got, want)
			if rule.Compare(got, got) != nil {
				rt.Fatalf("%s: %q is not the same as itself", mode, got)
			}
			if mode != Numeric && (m == nil) != oracle(mode, got, want) {
				rt.Fatalf("%s: %q and %q: %+v", mode, got, want, m)
			}
			if mode != Numeric && (m == nil) != (rule.Compare(want, got) == nil) {
				rt.Fatalf("%s: %q and %q are the same in one direction only", mode, got, want)
			}
			if before && m != nil {
				rt.Fatalf("%s is stricter than the mode before it on %q and %q: %s", mode, got, want, m.Say)
			}
			before = m == nil
			if m != nil && (m.Line < 1 || m.Line > 1+bytes.Count(got, []byte{'\n'})+1 || mode != Exact && m.Got == m.Want || m.Say == "") {
				rt.Fatalf("%s: %q and %q: %+v", mode, got, want, m)
			}
		}
	})
}

func TestNumbersWithinTolerance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.Float64Range(-1e12, 1e12).Draw(rt, "want")
		got := rapid.Float64Range(-1e12, 1e12).Draw(rt, "got")
		abs, rel := rapid.Float64Range(1e-12, 1e13).Draw(rt, "abs"), rapid.Float64Range(1e-12, 3).Draw(rt, "rel")
		rule := Rule{Mode: Numeric, Absolute: abs, Relative: rel}
		near := math.Abs(got-want) <= abs || math.Abs(got-want) <= rel*math.Abs(want)
		if m := rule.Compare(fmt.Append(nil, got), fmt.Append(nil, want)); (m == nil) != near {
			rt.Fatalf("%v and %v: %+v", got, want, m)
		}
		wider := Rule{Mode: Numeric, Absolute: 2 * abs, Relative: 2 * rel}
		if near && wider.Compare(fmt.Append(nil, got), fmt.Append(nil, want)) != nil {
			rt.Fatal("more tolerance is less")
		}
	})
}

func FuzzCompare(f *testing.F) {
	f.Add([]byte("1 2\n"), []byte("1\n2"))
	f.Add([]byte("\xff\x00"), []byte("nan"))
	f.Fuzz(func(t *testing.T, got, want []byte) {
		for _, mode := range Modes() {
			m := Rule{Mode: mode, Absolute: 1, Relative: 1}.Compare(got, want)
			if mode == Tokens && (m == nil) != oracle(mode, got, want) {
				t.Errorf("%s: %q and %q: %+v", mode, got, want, m)
			}
			if m != nil && (m.Line < 1 || len(m.Say) > 2000) {
				t.Errorf("%+v", m)
			}
		}
	})
}
