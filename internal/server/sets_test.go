package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/blob"
)

// uploaded sends a content, and returns its name.
func (h *house) uploaded(t *testing.T, text string) string {
	t.Helper()
	b, err := h.client.Upload(t.Context(), bytes.NewReader([]byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	return b.Blob
}

// Many evaluations can name a list of cases that was uploaded once. Errors in it are reported when it is named, with their place in it.
func TestSets(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	set := h.uploaded(t, `[{"stdin": "1", "expect": "1"}, {"stdin": "2", "expect": "2"}]`)
	submit := func(set, rest string) string {
		return `{"language": "python", "source": "measured", "cases": {"set": "` + set + `"}` + rest + `}`
	}
	res, body := h.do(t, "POST", "/api/v1/evaluations", submit(set, ""))
	var x api.Execution
	if err := json.Unmarshal(body, &x); err != nil || res.StatusCode != 202 {
		t.Fatalf("%s\n%s", res.Status, body)
	}
	if got, err := h.client.Get(t.Context(), x.ID); err != nil || !bytes.Contains(got.Input, []byte(`"cases":[{"set":"`+set+`"}]`)) {
		t.Errorf("%v\n%s", err, got.Input)
	}
	// It is kept as long as an execution names it; the worker finds it through the input.
	if held := blob.References(x.Input); len(x.Input) > 0 && len(held) != 1 {
		t.Errorf("%v", held)
	}
	for _, c := range []struct{ set, rest, path string }{
		{blob.SumText(sha256.Sum256([]byte("never sent"))), "", "cases[0].set"},
		{h.uploaded(t, `{"cases": []}`), "", "cases.set"},
		{h.uploaded(t, `[]`), "", "cases"},
		{h.uploaded(t, `[{"stdin": "1", "expected": "2"}]`), "", "cases[0].expected"},
		{h.uploaded(t, `[{"call": {"function": "f"}}]`), `, "compare": "exact"`, "compare.mode"},
		{set, `, "stdin": "1"`, "stdin"},
	} {
		if p := h.problem(t, 422, api.ProblemInvalid, "POST", "/api/v1/evaluations", submit(c.set, c.rest)); len(p.Errors) != 1 || p.Errors[0].Path != c.path {
			t.Errorf("%s: %+v", c.path, p.Errors)
		}
	}
	// In a batch each item is refused by itself.
	out := h.batch(t, `{"evaluations": [`+submit(set, "")+`, `+submit(h.uploaded(t, `[{"x": 1}]`), "")+`]}`)
	if out.Results[0].ID == "" || out.Results[1].Problem == nil || out.Results[1].Problem.Errors[0].Path != "evaluations[1].cases[0].x" {
		t.Errorf("%+v", out)
	}
}

// The memory of sets is limited, and a set is valid only for the settings with which it was checked.
func TestSetsRemembered(t *testing.T) {
	t.Parallel()
	var s sets
	for i := range 2 * setsKept {
		key := fmt.Sprint(i)
		if s.take(key, false) {
			t.Fatalf("%s is well before it was looked at", key)
		}
		if s.take(key, true); !s.take(key, false) || len(s.well) > setsKept {
			t.Fatalf("%s, %d are remembered", key, len(s.well))
		}
	}
}
