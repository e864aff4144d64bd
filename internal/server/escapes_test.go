package server

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// An answer has <, > and & unescaped, regardless of who encoded the JSON in it, and is the same JSON.
func TestAnswersHaveNoHTMLEscapes(t *testing.T) {
	for in, want := range map[string]string{
		`"a\u003cb\u003E\u0026"`: `"a<b>&"`, `"\\u003c"`: `"\\u003c"`, `"\\\u003c"`: `"\\<"`, `"\u00e9\u003c"`: `"\u00e9<"`, `"\u003"`: `"\u003"`, `"\u003c`: `"<`, `{"\u003c":1}`: `{"<":1}`,
		`"\n\"\u0000\u003c"`: `"\n\"\u0000<"`,
	} {
		if got := string(withoutHTMLEscapes([]byte(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune(`<>&\"u03cCeE6ab é`))).Draw(t, "text")
		raw, err := json.Marshal(map[string]string{text: text})
		if err != nil {
			t.Fatal(err)
		}
		got, err := encode(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		var back map[string]string
		if err := json.Unmarshal(got, &back); err != nil || back[text] != text {
			t.Fatalf("%s: %v", got, err)
		}
		if strings.ContainsAny(text, "<>&") && !bytes.ContainsAny(got, "<>&") {
			t.Fatalf("%s", got)
		}
	})
}
