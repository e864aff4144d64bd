package blob_test

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/blob"
)

func TestReferences(t *testing.T) {
	t.Parallel()
	sum := blob.SumText(blob.Sum{1})
	for payload, want := range map[string][]blob.Reference{
		``:                                 nil,
		`{"stdin": "blob"}`:                nil,
		`{"stdin": {"blob": "a"}}`:         {{"stdin.blob", "a"}},
		`{"stdin": {"\u0062lob": "a"}}`:    {{"stdin.blob", "a"}},
		`{"blob": 1, "x": [{"blob": {}}]}`: nil,
		`{"files": {"d/x": {"blob": "a", "mode": "0755"}}, "cases": [{}, {"stdin": {"blob": "b"}, "expect": {"blob": "a"}}]}`: {
			{`files["d/x"].blob`, "a"}, {"cases[1].stdin.blob", "b"}, {"cases[1].expect.blob", "a"}},
		`{"blob": "a", `:                               {{"blob", "a"}},
		`{"cases": {"set": "` + sum + `"}}`:            {{"cases.set", sum}},
		`{"cases": [{"\u0073et": "` + sum + `"}]}`:     {{"cases[0].set", sum}},
		`{"env": {"set": "x"}, "labels": {"set": ""}}`: nil,
	} {
		if diff := cmp.Diff(want, blob.References([]byte(payload))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", payload, diff)
		}
	}
}

func TestSums(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("x"))
	text := blob.SumText(sum)
	if got, ok := blob.ParseSum(text); !ok || got != sum {
		t.Errorf("%s: %x, %v", text, got, ok)
	}
	for _, bad := range []string{"", "sha256:", text[1:], text[:len(text)-2], text + "00", strings.ToUpper(text), "sha256:" + strings.ToUpper(text[7:]), "sha256:" + strings.Repeat("g", 64)} {
		if _, ok := blob.ParseSum(bad); ok {
			t.Errorf("%q is taken for a sum", bad)
		}
	}
}
