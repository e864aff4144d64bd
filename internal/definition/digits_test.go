package definition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/jsonvalue"
)

// longNumbers are numbers that a float64 would change, and some that it would not.
var longNumbers = []string{
	"0", "-1", "0.1", "1e20", "1e300", "5e-324", "9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551614",
	"18446744073709551615", "18446744073709551616", "-9223372036854775809", "123456789012345678901234567890", "0.12345678901234567890123", "12345678901234567890.5", "1234567890123456789012345678901234567890e-20",
}

// hugeNumbers are beyond the range of a float64. Values may have them, but documents may not, because other YAML readers would misread
// them.
var hugeNumbers = []string{"1e400", "-1e400", "1e-400", "123e997"}

// A number keeps its digits in every expression and in every place of a document.
func TestNumbersKeepTheirDigitsInExpressions(t *testing.T) {
	for _, n := range slices.Concat(longNumbers, hugeNumbers) {
		for place, of := range map[string]string{
			"path": "${{ input.n }}", "default": "${{ default(input.n, 0) }}", "default of nothing": "${{ default(input.none, input.n) }}", "json": "${{ parse_json(json(input)).n }}",
			"parse_json": "${{ parse_json('[" + n + "]')[0] }}", "list": "${{ [input.n][0] }}", "map": "${{ {'n': input.n}.n }}", "map of all": "${{ input.list.map(x, x)[0] }}",
			"chosen": "${{ input.n == input.n ? input.n : 0 }}", "reverse": "${{ input.list.reverse()[0] }}", "sort": "${{ input.list.sort()[0] }}", "distinct": "${{ input.list.distinct()[0] }}",
			"flatten": "${{ [input.list].flatten()[0] }}", "slice": "${{ input.list.slice(0, 1)[0] }}", "whole": "${{ input }}", "json as text": "${{ json(input.n) }}", "string": "${{ string(input.n) }}",
			"embedded": "<${{ input.n }}>", "format": "${{ '%s'.format([input.n]) }}", "document": n, "optional": "${{ input.?n.orValue(0) }}", "sum": "${{ sum([input.n]) }}",
		} {
			if place == "document" && slices.Contains(hugeNumbers, n) {
				continue
			}
			text, err := json.Marshal(of)
			if place == "document" {
				text, err = []byte(n), nil
			}
			if err != nil {
				t.Fatal(err)
			}
			w, err := Parse("w.yaml", fmt.Appendf(nil, "name: w\ntasks:\n  t: {action: noop, with: {v: %s}}\n", text))
			if err != nil {
				t.Fatalf("%s of %s: %v", place, n, err)
			}
			got, err := w[0].Workflow.Tasks[0].With.Eval(&Vars{Input: fmt.Appendf(nil, `{"n":%s,"list":[%[1]s]}`, n)})
			if err != nil {
				if place != "sum" && place != "string" || strings.Contains(err.Error(), "overload") {
					t.Errorf("%s of %s: %v", place, n, err)
				}
				continue
			}
			var out struct{ V json.RawMessage }
			if err := json.Unmarshal(got, &out); err != nil {
				t.Fatal(err)
			}
			v := strings.Trim(string(out.V), `"<>`)
			if place == "whole" {
				var in struct{ N json.RawMessage }
				_ = json.Unmarshal(out.V, &in)
				v = string(in.N)
			}
			if strings.HasPrefix(v, `\u003c`) {
				v = v[6 : len(v)-6]
			}
			if !same(v, n) {
				t.Errorf("%s of %s: %s", place, n, out.V)
			}
		}
	}
}

func same(a, b string) bool { return canonicalOf(a) == canonicalOf(b) }

// Comparisons use all digits.
func TestNumbersAreComparedByTheirDigits(t *testing.T) {
	ordered := []string{"-1e400", "-9223372036854775809", "-9223372036854775808", "-1", "1e-400", "0.1", "0.10000000000000000001", "9007199254740992", "9007199254740993", "9223372036854775808", "18446744073709551614",
		"18446744073709551615", "18446744073709551616", "123456789012345678901234567890", "1e400"}
	for i, a := range ordered {
		for j, b := range ordered {
			v := &Vars{Input: fmt.Appendf(nil, `{"a":%s,"b":%s}`, a, b), Success: true}
			for op, want := range map[string]bool{"==": i == j, "!=": i != j, "<": i < j, "<=": i <= j, ">": i > j, ">=": i >= j} {
				w, err := Parse("w.yaml", fmt.Appendf(nil, "name: w\ntasks:\n  t: {action: noop, if: 'input.a %s input.b'}\n", op))
				if err != nil {
					t.Fatal(err)
				}
				got, err := w[0].Workflow.Tasks[0].If.Eval(v)
				if err == nil && got != want || err != nil && !strings.Contains(err.Error(), "digits") && !strings.Contains(err.Error(), "overload") {
					t.Errorf("%s %s %s: %v %v", a, op, b, got, err)
				}
			}
		}
	}
}

// Arithmetic that would lose digits is an error, like an overflow.
func TestArithmeticLosesNoDigits(t *testing.T) {
	for expr, want := range map[string]string{
		"input.long + 1": "more digits", "-input.long": "more digits", "input.long * input.long": "more digits", "1 + input.long": "", "sum([input.long, 1])": "more digits", "sum([0.5, 9007199254740993])": "lose digits",
		"input.huge * 2.0": "beyond the range", "double(input.huge)": "beyond the range of a double", "double(input.tiny)": "beyond the range of a double", "int(input.huge)": "range",
		"input.u + 1": "overload", "input.u + 1u": "overflow", "int(input.u)": "", "9223372036854775807 + 1": "overflow",
	} {
		w, err := Parse("w.yaml", fmt.Appendf(nil, "name: w\ntasks:\n  t: {action: noop, with: {v: \"${{ %s }}\"}}\n", expr))
		if err != nil { // a call of constants is refused at compile time
			if want == "" || !strings.Contains(err.Error(), "fails always: ") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", expr, err)
			}
			continue
		}
		got, err := w[0].Workflow.Tasks[0].With.Eval(&Vars{Input: json.RawMessage(`{"long":123456789012345678901,"u":18446744073709551615,"huge":1e400,"tiny":-1e-400}`)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s %v", expr, got, err)
		}
	}
	w, err := Parse("w.yaml", []byte(`{"name": "w", "tasks": {"t": {"action": "noop", "with": {"v": "${{ [double(input.long), 18446744073709551615u == input.u, input.u == 18446744073709551614u, sum([input.u, 0])] }}"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := w[0].Workflow.Tasks[0].With.Eval(&Vars{Input: json.RawMessage(`{"long":123456789012345678901,"u":18446744073709551615}`)})
	if want := `{"v":[123456789012345680000,true,false,18446744073709551615]}`; err != nil || string(got) != want {
		t.Errorf("%s %v, want %s", got, err, want)
	}
}

func canonicalOf(text string) string {
	b, err := jsonvalue.Canonical(nil, json.RawMessage(text))
	if err != nil {
		return text
	}
	return string(b)
}

// A schema's bounds and defaults keep all digits of their numbers.
func TestSchemasKeepDigits(t *testing.T) {
	for _, n := range longNumbers {
		w, err := Parse("w.yaml", fmt.Appendf(nil, "name: w\ninput: {type: object, properties: {n: {default: %s, const: %[1]s, minimum: %[1]s, maximum: %[1]s, enum: [%[1]s]}}}\ntasks: {t: {action: noop}}\n", n))
		if err != nil {
			t.Fatal(err)
		}
		got, err := validateInput(w[0], json.RawMessage(`{}`), nil)
		if err != nil || !same(string(got), `{"n":`+n+`}`) {
			t.Errorf("%s: %s %v", n, got, err)
		}
	}
	w, err := Parse("w.yaml", []byte("name: w\ninput: {type: object, properties: {n: {const: 9007199254740993}, m: {maximum: 18446744073709551614}, i: {type: integer}}}\ntasks: {t: {action: noop}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{`{"n":9007199254740992}`, `{"n":9007199254740993.1}`, `{"m":18446744073709551615}`, `{"m":18446744073709551614.5}`, `{"i":12345678901234567890.5}`} {
		if got, err := validateInput(w[0], json.RawMessage(bad), nil); err == nil {
			t.Errorf("%s passes: %s", bad, got)
		}
	}
	const bounds = "{minimum: 0.5, exclusiveMaximum: 9007199254740993, multipleOf: 0.5}"
	w, err = Parse("w.yaml", []byte("name: w\ninput: "+bounds+"\ntasks: {t: {action: noop}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for bad, want := range map[string]string{
		"9007199254740993": "9007199254740993 is not less than 9007199254740993", "0.25": "0.25 is less than 0.5",
		"0.75": "0.75 is not a multiple of 0.5",
	} {
		if _, err := validateInput(w[0], json.RawMessage(bad), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", bad, err, want)
		}
	}
}

func TestURLEncode(t *testing.T) {
	w, err := Parse("w.yaml", []byte(`{"name": "w", "tasks": {"t": {"action": "noop", "with": {"v": "${{ urlencode(input.q) }}"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := w[0].Workflow.Tasks[0].With.Eval(&Vars{Input: json.RawMessage(`{"q":"a b&c=d#e/f?ü+'()*!~-_.%"}`)})
	if want := `{"v":"a%20b%26c%3Dd%23e%2Ff%3F%C3%BC%2B'()*!~-_.%25"}`; err != nil || string(got) != want {
		t.Errorf("%s %v, want %s", got, err, want)
	}
}
