package jsonvalue

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/strictjson"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ want, texts string }{
		{`{"a":1,"b":[true,null,"x"]}`, `{"a":1,"b":[true,null,"x"]} | { "b" : [ true, null, "x" ], "a" : 1.0 } | {"b":[true,null,"\u0078"],"a":10e-1}`},
		{`5`, `5 | 5.0 | 5e0 | 0.5E1 | 50e-1 | 5.000`},
		{`12e2`, `1200 | 1.2e3 | 1200.0 | 12E+2`},
		{`0`, `0 | -0 | 0.00 | 0e5 | -0.0e-7`},
		{`-25e-1`, `-2.5 | -2.50 | -25e-1`},
		{`9007199254740993`, `9007199254740993 | 9007199254740993.0`},
		{`1e99999999999999999999`, `1e99999999999999999999`},
		{`"a/b\n\u0001é😀"`, `"a/b\n\u0001é😀" | "\u0061\/b\u000a\u0001\u00e9\ud83d\ude00"`},
		{`{}`, `{} | { }`},
		{`[]`, `[] | [ ]`},
		{`{"a":{"c":1,"d":{"e":[],"f":{}}},"b":2}`, `{"b":2,"a":{"d":{"f":{},"e":[]},"c":1}}`},
		{`{"a":1,"a":2}`, `{"a":1,"a":2}`},
		{`{"a":2,"a":1,"b":3}`, `{"b":3,"a":2,"a":1}`},
	} {
		for text := range strings.SplitSeq(tc.texts, " | ") {
			got, err := Canonical(nil, json.RawMessage(text))
			if err != nil || string(got) != tc.want {
				t.Errorf("%s became %s, not %s: %v", text, got, tc.want, err)
			}
		}
	}
	for _, text := range []string{"", "{", `{"a":1,}`, "1 2", "01", `"a`, "tru", strings.Repeat("[", strictjson.MaxDepth+2)} {
		if got, err := Canonical(nil, json.RawMessage(text)); err == nil {
			t.Errorf("%.20s is no JSON and became %s", text, got)
		}
	}
	if _, err := Canonical(nil, json.RawMessage(strings.Repeat("[", strictjson.MaxDepth+2))); !errors.Is(err, ErrTooDeep) {
		t.Errorf("too deep: %v", err)
	}
}

// A canonical text has the same value, is JSON, and is its own canonical text.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":[1,2.50,{"z":0,"a":-1e3}],"a":"\u00e9\n"}`, `[[],{},"",0]`, `"\ud800"`, `-0`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		once, err := Canonical(nil, raw)
		if err != nil {
			if errors.Is(err, ErrTooDeep) {
				return
			}
			t.Fatalf("%q: %v", raw, err)
		}
		twice, err := Canonical(nil, once)
		if err != nil || string(twice) != string(once) {
			t.Fatalf("%q became %q, and then %q: %v", raw, once, twice, err)
		}
		var before, after any
		if json.Unmarshal(raw, &before) != nil { // a number beyond float64
			return
		}
		if err := json.Unmarshal(once, &after); err != nil {
			t.Fatalf("%q became %q: %v", raw, once, err)
		}
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("%q became %q", raw, once)
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	raw := json.RawMessage(`[` + strings.TrimSuffix(strings.Repeat(`{"name":"some name","id":12345,"values":[1,2,3.5],"deep":{"b":1,"a":null}},`, 10_000), ",") + `]`)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Canonical(nil, raw); err != nil {
			b.Fatal(err)
		}
	}
}
