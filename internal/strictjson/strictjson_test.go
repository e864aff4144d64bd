package strictjson

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

type shape struct {
	Name  string            `json:"name"`
	Count int               `json:"count,omitempty" check:"small"`
	Mode  string            `json:"mode,omitempty" enum:"fast,slow"`
	Tags  map[string]string `json:"tags,omitempty"`
	Parts []*shape          `json:"parts,omitempty"`
	Free  json.RawMessage   `json:"free,omitempty"`
	Frees []json.RawMessage `json:"frees,omitempty"`
	Long  string            `json:"long,omitempty" also:"lengthy"`
}

var rules = Rules{Checks: map[string]Check{"small": func(r *Reader, at string, v reflect.Value) {
	if v.Int() > 9 {
		r.ProblemAt(at, "", "it is not small", "write less")
	}
}}}

func TestDecode(t *testing.T) {
	t.Parallel()
	var got shape
	err := rules.Decode([]byte(` {"name":"a\u00e9","count":3,"tags":{"k":"v"},"parts":[{"name":"p"},null],"free":{"x":[1,null]},"lengthy":"y","mode":null}`), "f", &got)
	want := shape{Name: "aé", Count: 3, Tags: map[string]string{"k": "v"}, Parts: []*shape{{Name: "p"}, nil}, Free: json.RawMessage(`{"x":[1,null]}`), Long: "y"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// Every error is found in one reading, with its place, even if a name is repeated and the library stops.
func TestAllProblems(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{\"nam\":1,\n \"count\":10,\"parts\":[{\"count\":\"x\"}]}": `f:1:2: nam: there is no such field: "nam" (did you mean "name"?)
f:2:10: count: it is not small (write less)
f:2:31: parts[0].count: it is a string and should be a number: "x" (write it in digits, without quotes)
f:2:22: parts[0].name: it is missing
f:1:1: name: it is missing`,
		`{"name":"a","name":"b","tags":{"k":1,"k":"v"},"free":{"a":[{"b":1,"b":2}],"a":"\u0000"},"count":11}`: `f:1:13: name: the name "name" is given twice in one object (give it once)
f:1:36: tags.k: it is a number and should be a string: 1 (write it in quotes: "…")
f:1:38: tags.k: the name "k" is given twice in one object (give it once)
f:1:67: free: the name "b" is given twice in one object (give it once)
f:1:75: free: the name "a" is given twice in one object (give it once)
f:1:79: free: it holds a NUL character at byte 0 (remove \u0000; where bytes are allowed send {"base64": "…"})
f:1:97: count: it is not small (write less)`,
		`{"name":"a","frees":[{"b":1,"b":2},3,{"a":["\u0000"]}]}`: `f:1:29: frees[0]: the name "b" is given twice in one object (give it once)
f:1:44: frees[2]: it holds a NUL character at byte 0 (remove \u0000; where bytes are allowed send {"base64": "…"})`,
		`{"name":"a","tags":{"k":null},"count":1.0}`: `f:1:25: tags.k: it is null (leave it out, or give a value)
f:1:39: count: it is not a whole number within the range: 1.0 (write it in digits, without a point or an exponent)`,
		`{"name":"a","mode":"slwo","long":"x","lengthy":"y"}`: `f:1:20: mode: it is not a known value: "slwo" (did you mean "slow"?)
f:1:38: lengthy: it means the same as long (give one of them)`,
	} {
		err := rules.Decode([]byte(text), "f", new(shape))
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Syntax || e.Problems.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", text, strings.ReplaceAll(err.Error(), "; ", "\n     "), strings.ReplaceAll(want, "\n", "\n     "))
		}
	}
}

func TestSyntax(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                     `f:1:1: the JSON is empty`,
		`{"name":"a"`:          `f:1:12: the JSON ends too early`,
		`{"name":"a}`:          `f:1:12: the JSON ends too early`,
		`{"name":"a",}`:        `f:1:12: an object's field begins with its name in double quotes; there is none behind the comma`,
		`{'name':1}`:           `f:1:2: an object's field begins with its name in double quotes, not with '\''`,
		`{"name" 1}`:           `f:1:9: a name is followed by a colon and its value, not by '1'`,
		`{"name":tru}`:         `f:1:12: '}' is not expected here: the words are true, false and null`,
		`{"name":"a"} x`:       `f:1:14: something follows the JSON value`,
		`{"name":"a"},`:        `f:1:13: something follows the JSON value`,
		`{"name":"a"} :`:       `f:1:14: something follows the JSON value`,
		`{"count":01}`:         `f:1:11: it is not a JSON number: it begins with 0`,
		`{"count":1.}`:         `f:1:12: '}' is not expected in a number`,
		`{"name":"\x"}`:        `f:1:10: \x is not an escape`,
		`{"name":"\u12g4"}`:    `f:1:10: \u12g4 is not an escape`,
		`{"parts":[{} {}]}`:    `f:1:14: a list's items are separated by commas and end with ]; here is '{'`,
		"{\"name\":\"a\nb\"}":  `f:1:11: a string has the control character '\n'`,
		"{\"name\":\"\xff\"}":  `f:1:10: the text is not UTF-8`,
		"{\"name\":\"a\x00\"}": `f:1:11: the text has a NUL byte`,
		strings.Repeat("[", 300) + strings.Repeat("]", 300): `f:1:201: the JSON is nested deeper than 200 levels`,
	} {
		err := rules.Decode([]byte(text), "f", new(shape))
		e, ok := errors.AsType[*Error](err)
		if !ok || !e.Syntax || !strings.HasPrefix(e.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	raw := []byte(` {"a" : [1, 2] , "b\n":"x", "a":null}`)
	var got []string
	err := Members(raw, func(name string, value []byte) error {
		got = append(got, name+"="+string(value))
		return nil
	})
	if want := []string{"a=[1, 2]", "b\n=\"x\"", "a=null"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for text, say := range map[string]string{`[1]`: "a list where an object", `{"a":}`: "cannot begin", `{"a":1`: "ends too early", ``: "ends too early"} {
		if err := Members([]byte(text), func(string, []byte) error { return nil }); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzDecode checks that accepted text is JSON, and that a refusal has a reason.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"name":"a","parts":[{"name":"b"}],"free":[{"x":1,"x":2}]}`, `{"name":"\u0000"}`, `[`, `{"a":`, "\"\xff", `{"name":"a"}{`, `{"tags":{"a":"b","a":1}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := rules.Decode(text, "f", new(shape))
		if err == nil && !json.Valid(text) {
			t.Fatalf("took %q, which is no JSON", text)
		}
		if e, ok := errors.AsType[*Error](err); err != nil && (!ok || len(e.Problems) == 0 || e.Problems[0].Message == "" || e.Problems[0].Line == 0) {
			t.Fatalf("%q: %#v", text, err)
		}
		_ = Members(text, func(string, []byte) error { return nil })
	})
}
