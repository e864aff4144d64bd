package server

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/form"
)

// No text becomes a part of the page's markup, wherever it stands.
func TestAnswerPageEscapes(t *testing.T) {
	t.Parallel()
	const hostile = `'"><script>%s</script>`
	v := &answerView{Title: hostile, Text: hostile, Say: hostile, Note: hostile, By: hostile, Foot: hostile, Bad: []string{hostile}, Open: true}
	want := 8 // the title stands twice
	for _, kind := range []form.Kind{form.YesNo, form.Choice, form.Number, form.Whole, form.Text, form.Long, form.JSON} {
		v.Fields = append(v.Fields, answerField{form.Field{Title: hostile, Help: hostile, Kind: kind, Given: hostile, Choices: []form.Option{{Text: hostile}}}, "f1"})
		want += 3
	}
	want-- // a yes or no shows nothing else that was given
	want++ // a choice stands in its value and between tags, and is marked as the one that was given
	page := v.page()
	if got := strings.Count(page, "&#39;&#34;&gt;&lt;script&gt;%s&lt;/script&gt;"); got != want || strings.Contains(page, "<script") || strings.Contains(page, "%!") {
		t.Errorf("%d texts, want %d, in\n%s", got, want, page)
	}
	if strings.Count(page, " selected") != 1 {
		t.Errorf("what was given is not chosen in\n%s", page)
	}
}
