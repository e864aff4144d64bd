package definition

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"cel.dev/cel-go/common/types"
)

// conditionOf makes a condition of a rule; nil: it does not compile.
func conditionOf(text string) *Condition {
	c := &Condition{expr: &expression{field: "if", compiled: newCompiled(text, scopeSignal)}}
	if len(c.expr.compiles()) > 0 {
		return nil
	}
	return c
}

// formulaValue is what a formula of a whole condition makes of a signal's data.
func formulaValue(c *Condition, data string) (s Scalar, is bool) {
	f := c.formulaOf(c.tree().Expr())
	if f == nil {
		return s, false
	}
	v, at := signalVars(data), []int(nil)
	var values []Scalar
	for i, o := range f.Paths() {
		values, at = append(values, o.Scalar(v)), append(at, i)
	}
	return f.root.value(values, at), true
}

func signalVars(data string) *Vars {
	return &Vars{Signal: json.RawMessage(`{"data":` + data + `}`), Success: true}
}

// sameAsCEL reports whether the formula of an expression has a value, and fails where CEL has another one.
func sameAsCEL(t *testing.T, text, data string) (known bool) {
	t.Helper()
	c := conditionOf(text)
	if c == nil {
		return false
	}
	got, is := formulaValue(c, data)
	if !is || got.kind == scalarUnknown || got.kind == scalarMany {
		return false
	}
	var want Scalar
	val, err := c.part("(" + text + ")").run(signalVars(data))
	switch val := val.(type) {
	case types.Bool:
		want = truth(bool(val))
	case types.Int:
		want = Scalar{kind: scalarInt, bits: int64(val)}
	case types.Double:
		want = realOf(float64(val))
	case types.String:
		want = Scalar{kind: scalarText, text: string(val)}
	case types.Null:
		want = Scalar{kind: scalarNull}
	}
	if err != nil || got != want {
		t.Errorf("%s of %s: the formula says %+v, CEL %v, %v", text, data, got, val, err)
	}
	return true
}

func TestFormula(t *testing.T) {
	t.Parallel()
	const data = `{"n":7,"m":2,"x":2.5,"s":"héllo","long":"` + "LONG" + `","t":true,"z":null,"list":[1,2],"o":{"a b":3},"big":9223372036854775807,"least":-9223372036854775808,"e":1e300}`
	for text, known := range map[string]bool{
		`signal.data.n`: true, `signal.data.n + signal.data.m * 3`: true, `signal.data.n / signal.data.m`: true, `-signal.data.n % 4`: true, `signal.data.x * 2.0 - 1.0`: true,
		`signal.data.x * 2`: false, `signal.data.n / 0`: false, `signal.data.n % 0`: false, `signal.data.x / 0.0 > 1`: true, `signal.data.x % 2.0`: false, `0.0 / 0.0 > 1.0`: false,
		`signal.data.big + 1`: false, `signal.data.big - 1 > 0`: true, `signal.data.least - 1`: false, `-signal.data.least`: false, `signal.data.least / -1`: false, `signal.data.big * 2`: false,
		`signal.data.e * signal.data.e > 1.0`: true, `signal.data.big + -1`: true, `signal.data.least + 1`: true, `signal.data.least - 0`: true,
		`size(signal.data.s) == 5`: true, `signal.data.s.size() == 5`: true, `size(signal.data.list)`: true, `size(signal.data.o)`: true, `size(signal.data.n)`: false,
		`signal.data.s.startsWith("hé")`: true, `signal.data.s.endsWith(signal.data.s)`: true, `signal.data.s.contains("x")`: true, `signal.data.n.contains("x")`: false,
		`signal.data.s < "i"`: true, `signal.data.s < 3`: false, `signal.data.n < 7.5`: true, `signal.data.n == 7.0`: true, `signal.data.t == true`: true, `signal.data.t > false`: false,
		`signal.data.z == null`: true, `signal.data.n == null`: true, `signal.data.n != "7"`: true, `signal.data.list == [1, 2]`: false, `signal.data.list == 3`: false, `signal.data.gone == 3`: false,
		`signal.data.gone == 3 || signal.data.t`: true, `signal.data.gone == 3 && !signal.data.t`: true, `signal.data.gone == 3 || !signal.data.t`: false, `signal.data.n && signal.data.t`: false,
		`signal.data.s.matches("x") && !signal.data.t`: true, `signal.data.s.matches("x") || !signal.data.t`: false,
		`signal.data.t ? signal.data.n : signal.data.gone`: true, `signal.data.gone ? 1 : 2`: false, `signal.data.n in [1, 7.0, "x"]`: true, `signal.data.s in []`: true, `signal.data.gone in []`: false,
		`signal.data.n in [signal.data.m]`: false, `signal.data.list in [1]`: false, `signal.data.o["a b"] + 1`: true, `signal.data.list[0] == 1`: false, `signal.data.?n == 7`: false, `signal.data[?"n"] == 7`: false,
		`signal.data.s + "x" == "x"`: false, `signal.data.long == "x"`: false, `1 + 2 > 2`: true, `b"x" == b"x"`: false, `5u > 3u`: false,
	} {
		if got := sameAsCEL(t, text, strings.Replace(data, "LONG", strings.Repeat("x", formulaText+1), 1)); got != known {
			t.Errorf("%s: the formula has a value: %t, want %t", text, got, known)
		}
	}
}

// What formulas make of expressions and data made at random is what CEL makes of them.
func TestFormulaAtRandom(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	value := func() string {
		return one("0", "1", "-1", "2", "3.5", "-0.0", "1e18", "9007199254740993", "9223372036854775807", "-9223372036854775808", `"x"`, `"xy"`, `""`, "true", "false", "null", "[1]", `{"d":1}`)
	}
	var expr func(depth int) string
	expr = func(depth int) string {
		if depth == 0 {
			return one("signal.data.a", "signal.data.b", "signal.data.c.d", "0", "1", "2", "-1", "2.0", "0.5", `"x"`, "true", "null", "9223372036854775807")
		}
		a, b := expr(r.IntN(depth)), expr(r.IntN(depth))
		switch r.IntN(12) {
		case 0, 1, 2:
			return fmt.Sprintf("(%s %s %s)", a, one("+", "-", "*", "/", "%"), b)
		case 3, 4, 5:
			return fmt.Sprintf("(%s %s %s)", a, one("==", "!=", "<", "<=", ">", ">="), b)
		case 6, 7:
			return fmt.Sprintf("(%s %s %s)", a, one("&&", "||"), b)
		case 8:
			return one("!", "-") + "(" + a + ")"
		case 9:
			return fmt.Sprintf("(%s ? %s : %s)", a, b, expr(r.IntN(depth)))
		case 10:
			return fmt.Sprintf("(%s in [%s, %s])", a, one("1", "2.5", `"x"`), one("0", "true", `"xy"`))
		}
		return one("size("+a+")", fmt.Sprintf("(%s).%s(%s)", a, one("startsWith", "endsWith", "contains"), b))
	}
	compared := 0
	for range 6_000 {
		var fields []string
		for _, name := range []string{"a", "b", "c"} {
			if r.IntN(5) > 0 {
				fields = append(fields, fmt.Sprintf("%q:%s", name, value()))
			}
		}
		if sameAsCEL(t, expr(1+r.IntN(4)), "{"+strings.Join(fields, ",")+"}") {
			compared++
		}
	}
	if compared < 500 {
		t.Errorf("only %d formulas had a value", compared)
	}
}
