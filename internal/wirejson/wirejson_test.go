package wirejson

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

type row struct {
	At      time.Time         `json:"at"`
	Ended   *time.Time        `json:"ended,omitempty"`
	Zero    time.Time         `json:"zero,omitzero"`
	Never   *time.Time        `json:"never,omitempty"`
	List    []time.Time       `json:"list"`
	ByName  map[string]string `json:"by_name"`
	Output  json.RawMessage   `json:"output,omitempty"`
	Text    string            `json:"text"`
	Count   int               `json:"count,omitempty"`
	Ratio   float64           `json:"ratio"`
	Bytes   []byte            `json:"bytes"`
	For     time.Duration     `json:"for"`
	Nothing []string          `json:"nothing"`
	Any     any               `json:"any"`
}

func written(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	if err := Append(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// All times have six digits and sort as strings; times in users' data stay unchanged.
func TestTimesHaveSixDigits(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 12, 0, 0, 10_030_000, time.FixedZone("", 3600))
	whole := at.Truncate(time.Second)
	got := written(t, row{At: at, Ended: &whole, List: []time.Time{at, whole}, Output: json.RawMessage(`{"at":"2026-01-01T00:00:00.5Z"}`), Any: map[string]any{"at": whole}})
	for _, want := range []string{
		`"at":"2026-11-28T11:00:00.010030Z"`, `"ended":"2026-11-28T11:00:00.000000Z"`, `"list":["2026-11-28T11:00:00.010030Z","2026-11-28T11:00:00.000000Z"]`,
		`"output":{"at":"2026-01-01T00:00:00.5Z"}`, `"any":{"at":"2026-11-28T11:00:00.000000Z"}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if strings.Contains(got, "zero") || strings.Contains(got, "never") {
		t.Errorf("absent times are in %s", got)
	}
	var texts []string
	var times []time.Time
	for range 1000 {
		times = append(times, at.Add(time.Duration(rand.IntN(3_000_000))*time.Microsecond))
	}
	slices.SortFunc(times, time.Time.Compare)
	for _, at := range times {
		texts = append(texts, written(t, at))
	}
	if !slices.IsSorted(texts) {
		t.Error("they do not sort as texts")
	}
}

// Everything except times is as in encoding/json.
func TestAsEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		row{Text: "<a> & \"\\\x00\x7f é 😀", Ratio: 1e21, Count: -1, Bytes: []byte{0, 255}, For: time.Second, ByName: map[string]string{"b": "", "a": "x"}},
		row{Output: json.RawMessage(`{"n":12345678901234567890.10,"e":"\u00e9\ud83d\ude00\/","<":"\u003c", " ":"\u2028", "d":1, "d":2}`), Ratio: math.SmallestNonzeroFloat64, Any: []any{1.0, math.Copysign(0, -1), nil, "x"}},
		map[string]any{"z": json.Number("1e400"), "a": []int(nil), "n": nil}, "text", nil, []row{}, [2]bool{true},
		struct {
			A int    `json:"a,string"`
			B string `json:"-"`
			C []int  `json:",omitempty"`
		}{A: 3, B: "no"},
	} {
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		zero, zeroed := `"0001-01-01T00:00:00Z"`, `"0001-01-01T00:00:00.000000Z"`
		if got := written(t, v) + "\n"; got != strings.ReplaceAll(want.String(), zero, zeroed) {
			t.Errorf("%T: got\n%swant\n%s", v, got, want.String())
		}
		want.Reset()
		e = json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := AppendIndented(&got, v); err != nil || got.String() != strings.ReplaceAll(want.String(), zero, zeroed) {
			t.Errorf("%T, indented: %v got\n%swant\n%s", v, err, got.String(), want.String())
		}
	}
	if got := written(t, "a\xffb"); got != "\"a\uFFFDb\"" {
		t.Errorf("what is not UTF-8 is %q", got)
	}
	for _, v := range []any{math.NaN(), json.RawMessage(`{`), func() {}, make(chan int)} {
		if err := Append(&bytes.Buffer{}, v); err == nil {
			t.Errorf("%T has a JSON form", v)
		}
	}
}
