package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"
)

// JSON is parsed as JSON: what YAML lacks, such as an emoji written as two escapes, is converted so that YAML can read it.
func TestWriteYAMLOfAnyJSON(t *testing.T) {
	for raw, want := range map[string]string{
		`{"text":"\ud83d\ude00 done"}`: "😀 done", `{"text":"\ud83d"}`: "\ufffd", `{"text":"a\udc00\ud83d b"}`: "a\ufffd\ufffd b", `{"text":"\u0000"}`: "\x00", `{"text":"a\/b"}`: "a/b",
		`{"text":"x\r\ny"}`: "x\r\ny", `{"text":"\u2028"}`: "\u2028", `{"text":"0123"}`: "0123", `{"text":"1_000"}`: "1_000", `{"text":"yes"}`: "yes", `{"text":"\ufeffx"}`: "\ufeffx",
		`{"text":"a\n\n"}`: "a\n\n", `{"text":" a\nb"}`: " a\nb", `{"text":"\n"}`: "\n", `{"text":""}`: "", `{"text":"# a\n- b\n"}`: "# a\n- b\n", `{"text":"é\u0085ñ"}`: "é\u0085ñ", `{"text":"<<"}`: "<<",
		`{"text":"a\tb\n\tc"}`: "a\tb\n\tc", `{"text":"a \nb "}`: "a \nb ",
	} {
		var b bytes.Buffer
		if err := WriteYAML(&b, []byte(raw)); err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		var got struct{ Text string }
		if err := yaml.Load(b.Bytes(), &got); err != nil || got.Text != want {
			t.Errorf("%s: %q reads as %q %v, want %q", raw, b.String(), got.Text, err, want)
		}
	}
	for _, n := range []string{"1e400", "9007199254740993", "123456789012345678901234567890", "1.50", "-0", "1E3", "1e-999", "true", "null"} {
		var b bytes.Buffer
		if err := WriteYAML(&b, []byte(`{"n":`+n+`}`)); err != nil || b.String() != "n: "+n+"\n" {
			t.Errorf("%s: %q %v", n, b.String(), err)
		}
	}
}

// YAML readers read the value that was written.
func TestWriteYAMLKeepsTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("a \n\t\r:#-'\"{}[]&*!|>%@`~0,.\\😀\u0085\u2028\ufeff\u202e\u2066\u061c\u00ad\u200d\U000e0041"))))).Draw(t, "texts")
		object := map[string]string{}
		for i, s := range texts {
			object[fmt.Sprint(i, s)] = s
		}
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var want, got map[string]string
		var b bytes.Buffer
		if err := WriteYAML(&b, raw); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Load(b.Bytes(), &got); err != nil || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%v\n%s\nread as %q, want %q", err, strings.ToValidUTF8(b.String(), "?"), got, want)
		}
	})
}

// Characters that reorder or hide other text are escaped, in values and in names; joiners of emojis are not.
func TestWhatHidesIsShown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\u202eb": `"a\u202Eb"`, "\u2066a\u2069": `"\u2066a\u2069"`, "a\u061cb": `"a\u061Cb"`, "a b\u200fc": `"a b\u200Fc"`, "\U000e0041": `"\U000E0041"`, "\u00ad": `"\u00AD"`,
		"\u009b31m": `"\x9b31m"`, "\u0646\u200c\u0647": "\u0646\u200c\u0647",
	} {
		raw, err := json.Marshal(map[string]string{text: text})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := WriteYAML(&b, raw); err != nil || !strings.EqualFold(b.String(), want+": "+want+"\n") {
			t.Errorf("%q: %q %v, want %s", text, b.String(), err, want)
		}
		b.Reset()
		var back string
		if err := WriteLine(&b, text); err != nil || json.Unmarshal(b.Bytes(), &back) != nil || back != text || bytes.ContainsFunc(b.Bytes(), hides) {
			t.Errorf("%q as JSON: %q reads as %q, %v", text, b.String(), back, err)
		}
	}
}

// Other programs can read the output, also by the rules of YAML 1.1.
func TestYAMLQuotesWordsOfOlderReaders(t *testing.T) {
	t.Parallel()
	for text, quoted := range map[string]bool{
		"no": true, "Yes": true, "ON": true, "off": true, "12:30": true, "190:20:30": true, "1:30.5": true, "007": true, "1_000": true, "0o7": true,
		"nobody": false, "y": false, "n": false, "on call": false, "12:90": false, "a:b": false, "yes, please": false,
	} {
		if n := yamlText(text); (n.Style == yaml.DoubleQuotedStyle) != quoted {
			t.Errorf("%s: quotes %t, want %t", text, !quoted, quoted)
		}
	}
}
