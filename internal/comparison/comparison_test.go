package comparison

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"strconv"
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
		{Numeric, strings.Repeat("1", 2000), strings.Repeat("1", 1999), "…"},
	} {
		m := Rule{Mode: c.mode, Absolute: DefaultTolerance, Relative: DefaultTolerance}.Compare([]byte(c.got), []byte(c.want))
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
		{Rule{Mode: Numeric, Absolute: 0.1}, "10.1", "10", true},
		{Rule{Mode: Numeric, Relative: 0.1}, "110.0", "100", true},
		{Rule{Mode: Numeric, Relative: 0.1}, "111.0", "100", false},
		{Rule{Mode: Numeric, Relative: 0.1}, "0.0001", "0", false},
		{Rule{Mode: Numeric, Relative: 0.1, Absolute: 0.001}, "0.0001", "0", true},
	} {
		if same := c.rule.Compare([]byte(c.got), []byte(c.want)) == nil; same != c.same {
			t.Errorf("%+v: %s and %s: %t", c.rule, c.got, c.want, same)
		}
	}
}

// Equal and different numbers, with a tolerance of 1e-9 of either kind and without one.
func TestNumbers(t *testing.T) {
	t.Parallel()
	ones := strings.Repeat("1", 20_000)
	for _, c := range []struct {
		got, want     string
		same, exactly bool
	}{
		{"123456789012345679", "123456789012345678", false, false},
		{"1000000007", "1000000000", false, false},
		{"+007", "7", true, true},
		{"-0", "0", true, true},
		{"-0.0", "0", true, true},
		{"-7", "7", false, false},
		{ones + "2", ones + "1", false, false},
		{"0" + ones, ones, true, true},
		{"123456789012345679.0", "123456789012345678", true, false},
		{"12345678.9", "12345678.8", false, false},
		{"1.0", "1", true, true},
		{"1.", "1", true, true},
		{".5", "0.5", true, true},
		{"5e-1", ".5", true, true},
		{"1E3", "1000", true, true},
		{"1000e-3", "1", true, true},
		{"1.000000000999", "1", true, false},
		{"1.00000000100", "1", true, false},
		{"1.00000000101", "1", false, false},
		{"0.000000001", "0", true, false},
		{"-0.000000001", "0", true, false},
		{"-0.0000000005", "0.0000000005", true, false},
		{"-0.0000000005", "0.0000000006", false, false},
		{"2e400", "1e400", false, false},
		{"1.00000000001e400", "1e400", true, false},
		{"1e401", "1e400", false, false},
		{"10e400", "1e401", true, true},
		{"1e-400", "0", true, false},
		{"1e-999999999", "0", true, false},
		{"1e999999999", "1.0e999999999", true, true},
		{"1e999999999", "0", false, false},
		{"1e999999999", "1e-999999999", false, false},
		{"1.0000000011e0", "1.0000000001", true, false},
		{"1e9999999999", "1e9999999999.0", false, false},
		{"1e00000000000001", "10", true, true},
		{"0." + ones, "0." + ones + "1", false, false},
		{"0." + ones[:500], "0." + ones[:501], true, false},
		{"1_000", "1000", false, false},
		{"1,000", "1000", false, false},
		{"1e", "1", false, false},
		{"1e+", "1", false, false},
		{"e1", "0", false, false},
		{".", "0", false, false},
		{"+", "0", false, false},
		{"--1", "1", false, false},
		{"+-1", "-1", false, false},
		{"1.2.3", "1.2", false, false},
		{"1e1e1", "10", false, false},
		{"1f", "1", false, false},
		{"0b1", "1", false, false},
		{"0o7", "7", false, false},
		{"0x10", "16", true, true},
		{"0X1.8P1", "3", true, true},
		{"0x.8", "0.5", true, true},
		{"0x1p-1074", "0", true, false},
		{"0x1p-2000", "0", false, false},
		{"0x", "0", false, false},
		{"0x1_0", "16", false, false},
		{"0xp1", "0", false, false},
		{"inf", "+Infinity", true, true},
		{"INF", "inf", true, true},
		{"-inf", "inf", false, false},
		{"-nan", "nan", true, true},
		{"+NaN", "-nan(0x7)", true, true},
		{"nan(x-y)", "nan", false, false},
		{"infinit", "inf", false, false},
		{"nan", "inf", false, false},
		{"inf", "1e400", false, false},
		{"١", "1", false, false},
	} {
		for tolerance, want := range map[float64]bool{1e-9: c.same, 0: c.exactly} {
			rule := Rule{Mode: Numeric, Absolute: tolerance, Relative: tolerance}
			if same := rule.Compare([]byte(c.got), []byte(c.want)) == nil; same != want {
				t.Errorf("%.40q and %.40q within %g: %t", c.got, c.want, tolerance, same)
			}
			if tolerance == 0 && (rule.Compare([]byte(c.want), []byte(c.got)) == nil) != want {
				t.Errorf("%.40q and %.40q are the same in one direction only", c.got, c.want)
			}
		}
	}
}

// The cost of comparing a number does not grow with its exponent.
func BenchmarkNumbers(b *testing.B) {
	for name, pair := range map[string][2]string{
		"plain": {"3.14159265", "3.14159266"}, "exponents": {"1e-999999999 ", "0 "}, "long": {"0." + strings.Repeat("7", 990), "0.7777777"},
	} {
		b.Run(name, func(b *testing.B) {
			got, want := []byte(strings.Repeat(pair[0]+" ", 1000)), []byte(strings.Repeat(pair[1]+" ", 1000))
			for b.Loop() {
				if m := (Rule{Mode: Numeric, Absolute: 1e-6}).Compare(got, want); m != nil {
					b.Fatal(m)
				}
			}
		})
	}
}

// within agrees with rational numbers.
func TestWithin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(label string) string {
			return fmt.Sprintf("%s%d.%de%d", rapid.SampledFrom([]string{"", "-"}).Draw(rt, label), rapid.IntRange(0, 12).Draw(rt, label), rapid.IntRange(0, 120).Draw(rt, label), rapid.IntRange(-40, 40).Draw(rt, label))
		}
		got, want := draw("got"), draw("want")
		if rapid.Bool().Draw(rt, "alike") {
			got = want + strconv.Itoa(rapid.IntRange(0, 2).Draw(rt, "exponent"))
			want += "1"
		}
		tolerance := strings.TrimPrefix(draw("tolerance"), "-")
		g, _ := parse(got)
		w, _ := parse(want)
		d, _ := parse(tolerance)
		rational := func(s string) *big.Rat {
			r, ok := new(big.Rat).SetString(s)
			if !ok {
				rt.Fatal(s)
			}
			return r
		}
		apart := rational(got)
		apart.Abs(apart.Sub(apart, rational(want)))
		if near := apart.Cmp(rational(tolerance)) <= 0; within(g, w, d.decimal) != near {
			rt.Fatalf("%s and %s within %s: %t", got, want, tolerance, !near)
		}
	})
}

// text draws words and white space, so that texts with few differences are frequent.
func text(t *rapid.T, label string) []byte {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "1", "1.0", "1e9", "-0", "nan", "é", "\xff", "\x00", " ", "\n", "\t", "\r\n", "\u00a0", "\v"}), 0, 12).Draw(t, label)
	return []byte(strings.Join(parts, ""))
}

// oracle decides in a simple way whether a mode accepts two texts as equal.
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
		rational := func(f float64) *big.Rat {
			r, _ := new(big.Rat).SetString(fmt.Sprint(f))
			return r
		}
		apart := rational(got)
		apart.Abs(apart.Sub(apart, rational(want)))
		size := rational(math.Abs(want))
		near := apart.Cmp(rational(abs)) <= 0 || apart.Cmp(size.Mul(size, rational(rel))) <= 0
		exact := func(f float64) []byte { return strconv.AppendFloat(nil, f, 'e', -1, 64) }
		if m := rule.Compare(exact(got), exact(want)); (m == nil) != near {
			rt.Fatalf("%v and %v: %+v", got, want, m)
		}
		wider := Rule{Mode: Numeric, Absolute: 2 * abs, Relative: 2 * rel}
		if near && wider.Compare(exact(got), exact(want)) != nil {
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
