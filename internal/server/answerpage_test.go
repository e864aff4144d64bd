package server

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/form"
)

// No text becomes part of the page's markup, in any place.
func TestAnswerPageEscapes(t *testing.T) {
	t.Parallel()
	const hostile = `'"><script>%s</script>`
	v := &answerView{Title: hostile, Text: hostile, Say: hostile, Note: hostile, By: hostile, Foot: hostile, Bad: []string{hostile}, Open: true}
	want := 8 // the title is shown twice
	for _, kind := range []form.Kind{form.YesNo, form.Choice, form.Number, form.Whole, form.Text, form.Long, form.JSON} {
		v.Fields = append(v.Fields, answerField{form.Field{Title: hostile, Help: hostile, Kind: kind, Given: hostile, Choices: []form.Option{{Text: hostile}}}, "f1"})
		want += 3
	}
	want-- // a yes/no field does not show other values
	want++ // a choice is shown in its value and between tags, and the given one is marked
	page := v.page()
	if got := strings.Count(page, "&#39;&#34;&gt;&lt;script&gt;%s&lt;/script&gt;"); got != want || strings.Contains(page, "<script") || strings.Contains(page, "%!") {
		t.Errorf("%d texts, want %d, in\n%s", got, want, page)
	}
	if strings.Count(page, " selected") != 1 {
		t.Errorf("what was given is not chosen in\n%s", page)
	}
}

// The form of a link refuses the same answers as the API, and does not change any of them.
func TestAnswerPageReadsStrictly(t *testing.T) {
	t.Parallel()
	view := func() *answerView {
		v := &answerView{}
		for n, kind := range []form.Kind{form.Text, form.JSON} {
			v.Fields = append(v.Fields, answerField{form.Field{Name: string(kind), Title: string(kind), Kind: kind}, fmt.Sprintf("f%d", n)})
		}
		return v
	}
	for name, c := range map[string]struct {
		filled url.Values
		say    string
	}{
		"NUL in a text":         {url.Values{"f0": {"a\x00"}}, "text: has a NUL byte"},
		"not UTF-8":             {url.Values{"f0": {"a\xff"}}, "text: has a NUL byte or is not UTF-8"},
		"given twice":           {url.Values{"f0": {"a", "b"}}, "text: it is given twice"},
		"a name given twice":    {url.Values{"f1": {`{"a":1,"a":2}`}}, `json: the name "a" is given twice`},
		"NUL in JSON":           {url.Values{"f1": {`["\u0000"]`}}, "NUL character"},
		"half a character":      {url.Values{"f1": {`"\ud800"`}}, "surrogate"},
		"NUL in the note":       {url.Values{"note": {"\x00"}}, "Note: has a NUL byte"},
		"not UTF-8 in the note": {url.Values{"note": {"\xff"}}, "Note: has a NUL byte or is not UTF-8"},
	} {
		if value, bad := view().fill(c.filled); len(bad) != 1 || !strings.Contains(bad[0], c.say) {
			t.Errorf("%s: %s, %q, want %q", name, value, bad, c.say)
		}
	}
	v := view()
	if value, bad := v.fill(url.Values{"f0": {"a\r\nb"}, "f1": {`{"n":9007199254740993}`}, "note": {"a\r\nb"}}); len(bad) > 0 || string(value) != `{"json":{"n":9007199254740993},"text":"a\nb"}` || v.Note != "a\nb" {
		t.Errorf("%s %q %q", value, v.Note, bad)
	}
}
