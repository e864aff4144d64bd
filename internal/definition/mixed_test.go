package definition

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
)

// mixedNumbers are equal or nearly equal as float64, and have CEL's three types and longNumber.
var mixedNumbers = []string{
	"-9223372036854775808", "-9007199254740993", "-9007199254740992.0", "-1", "-0.0", "0", "0u", "0.5", "1", "1.0", "1u", "9007199254740992", "9007199254740992.0", "9007199254740993",
	"9007199254740993u", "9007199254740994.0", "9223372036854775807", "9223372036854775808.0", "9223372036854775808u", "18446744073709551615u", "18446744073709551616.0", "1e300",
	"1e-300",
}

func exactly(t *testing.T, n string) *big.Rat {
	t.Helper()
	text := strings.TrimSuffix(n, "u")
	if strings.ContainsAny(text, ".e") { // a literal of a double has the value of the double
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return new(big.Rat).SetFloat64(f)
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatal(n)
	}
	return r
}

// Everything that compares numbers of two types uses all their digits: operators, lists and objects, sets, sorting and extremes.
func TestNumbersOfTwoTypesAreComparedExactly(t *testing.T) {
	t.Parallel()
	for i, a := range mixedNumbers {
		for _, b := range mixedNumbers[max(0, i-4):min(len(mixedNumbers), i+5)] {
			// Functions that make elements unique use the JSON text, in which -0 differs from 0, and 2^63 as a double has fewer digits.
			once := a == b || a != "-0.0" && b != "-0.0" && a != "9223372036854775808.0" && b != "9223372036854775808.0"
			n := exactly(t, a).Cmp(exactly(t, b))
			extreme := func(of string, want string) string { return fmt.Sprintf("%s == %s", of, want) }
			greatest, least := a, a
			if n < 0 {
				greatest = b
			} else if n > 0 {
				least = b
			}
			for _, dyn := range []bool{false, true} {
				x, y := a, b
				if dyn {
					x, y = "dyn("+a+")", "dyn("+b+")"
				}
				for expression, want := range map[string]bool{
					x + " == " + y: n == 0, x + " != " + y: n != 0, x + " < " + y: n < 0, x + " <= " + y: n <= 0, x + " > " + y: n > 0, x + " >= " + y: n >= 0,
					fmt.Sprintf("[%s] == [%s]", x, y): n == 0, fmt.Sprintf("[[1, %s]] != [[1, %s]]", x, y): n != 0, fmt.Sprintf("{'k': %s} == {'k': %s}", x, y): n == 0,
					fmt.Sprintf("%s in [0.25, %s]", x, y): n == 0, fmt.Sprintf("[%s] in [[0.25], [%s]]", x, y): n == 0,
					fmt.Sprintf("[%s].exists(v, v == %s)", x, y):                                     n == 0,
					extreme(fmt.Sprintf("math.greatest(%s, %s)", x, y), greatest):                    true,
					extreme(fmt.Sprintf("math.least([%s, %s])", x, y), least):                        true,
					extreme(fmt.Sprintf("[%s, %s].sort()[0]", x, y), least):                          true,
					extreme(fmt.Sprintf("[%s, %s].sortBy(v, v)[1]", x, y), greatest):                 true,
					fmt.Sprintf("!%t || size([%s, %s].distinct()) == %d", once, x, y, min(2, 1+n*n)): true,
					fmt.Sprintf("!%t || sets.contains([%s], [%s]) == %t", once, x, y, n == 0):        true,
					fmt.Sprintf("optional.of(%s) == optional.of(%s)", x, y):                          n == 0,
				} {
					w, err := Parse("w.yaml", fmt.Appendf(nil, "name: w\ntasks:\n  t: {action: noop, if: %q}\n", expression))
					if err != nil {
						if !strings.Contains(err.Error(), "does not take") {
							t.Errorf("%s: %v", expression, err)
						}
						continue
					}
					got, err := w[0].Workflow.Tasks[0].If.Eval(&Vars{Success: true})
					if err != nil || got != want {
						t.Errorf("%s: %v %v", expression, got, err)
					}
				}
			}
		}
	}
}

// A key of an object is found only by an equal number.
func TestNumbersAsKeys(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]bool{
		"9007199254740992.0 in {9007199254740993: 1}": false, "9007199254740992.0 in {9007199254740992: 1}": true, "9007199254740993u in {9007199254740993: 1}": true,
		"dyn(9007199254740992.0) in {9007199254740993u: 1}": false, "{9007199254740993: 1} == {9007199254740993u: 1}": true,
		"{1: 9007199254740993} == {1: 9007199254740992.0}": false, "has({'a': 1}.a)": true,
	} {
		w, err := Parse("w.yaml", fmt.Appendf(nil, "name: w\ntasks:\n  t: {action: noop, if: %q}\n", expression))
		if err != nil {
			if !strings.Contains(err.Error(), "does not take") {
				t.Errorf("%s: %v", expression, err)
			}
			continue
		}
		if got, err := w[0].Workflow.Tasks[0].If.Eval(&Vars{Success: true}); err != nil || got != want {
			t.Errorf("%s: %v %v", expression, got, err)
		}
	}
}
