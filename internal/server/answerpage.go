package server

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"strings"

	"github.com/pawl-run/pawl/internal/form"
)

// answerStyle is the whole style of the page. The page's policy allows this style, by its hash, and no other.
const answerStyle = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}body{max-width:40rem;margin:3rem auto;padding:0 1rem}
h1{font-size:1.4rem;overflow-wrap:anywhere}.text{white-space:pre-wrap;overflow-wrap:anywhere}.faint{opacity:.75}.bad{color:#b00020}
label,legend{display:block;font-weight:600;margin-top:1rem}fieldset{border:0;padding:0;margin:0}fieldset label{display:inline;font-weight:400;margin-right:1rem}
input[type=text],input[type=number],select,textarea{font:inherit;width:100%;box-sizing:border-box;padding:.4rem}button{font:inherit;margin-top:1.5rem;padding:.5rem 1.5rem}
@media (prefers-color-scheme:dark){.bad{color:#ff8a80}}`

// answerPolicy allows the page its style and its form, and no script.
var answerPolicy = func() string {
	sum := sha256.Sum256([]byte(answerStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}()

// markup builds HTML. It does not use html/template, which calls methods by name, so that the linker would have to keep every exported
// method of every type: 16 MB.
type markup struct{ strings.Builder }

// add writes HTML in which each %s is replaced by a text, between tags or in double quotes. Texts are escaped, so they cannot become HTML.
func (m *markup) add(form string, texts ...string) {
	escaped := make([]any, len(texts))
	for i, text := range texts {
		escaped[i] = html.EscapeString(text)
	}
	fmt.Fprintf(m, form, escaped...)
}

// addSome writes HTML with a text if the text is not empty.
func (m *markup) addSome(form, text string) {
	if text != "" {
		m.add(form, text)
	}
}

// only returns an HTML attribute without a value, such as required, or "" if is is false.
func only(attribute string, is bool) string {
	if is {
		return " " + attribute
	}
	return ""
}

const optional = ` <span class="faint">(optional)</span>`

func (v *answerView) page() string {
	var m markup
	m.add(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">
<title>%s</title><style>`, v.Title)
	m.WriteString(answerStyle)
	m.add("</style></head><body>\n<main><h1>%s</h1>\n", v.Title)
	m.addSome(`<p class="text">%s</p>`, v.Text)
	m.addSome(`<p role="status">%s</p>`, v.Say)
	if len(v.Bad) > 0 {
		m.add(`<div class="bad" role="alert"><p>The answer was not taken:</p><ul>`)
		for _, bad := range v.Bad {
			m.add("<li>%s</li>", bad)
		}
		m.add("</ul></div>")
	}
	if v.Open {
		m.add("<form method=\"post\">\n")
		for _, f := range v.Fields {
			m.field(f)
		}
		m.add(`<label for="note">Note`+optional+`</label><textarea id="note" name="note" rows="2" maxlength="4096">%s</textarea>
<button type="submit">Answer as %s</button></form>`, v.Note, v.By)
	}
	m.addSome(`<p class="faint">%s</p>`, v.Foot)
	m.add("\n</main></body></html>\n")
	return m.String()
}

// field writes the input element of one field of the form.
func (m *markup) field(f answerField) {
	mark, required := optional, only("required", f.Required)
	if f.Required {
		mark = ""
	}
	if f.Kind == form.YesNo {
		m.add("<fieldset><legend>%s"+mark+"</legend>\n", f.Title)
		m.add(`<label><input type="radio" name="%s" value="yes"`+only("checked", f.Given == "yes")+required+"> Yes</label>\n", f.Key)
		m.add(`<label><input type="radio" name="%s" value="no"`+only("checked", f.Given == "no")+"> No</label></fieldset>\n", f.Key)
	} else {
		m.add(`<label for="%s">%s`+mark+"</label>\n", f.Key, f.Title)
		m.input(f, required)
	}
	m.addSome(`<p class="faint">%s</p>`, f.Help)
}

func (m *markup) input(f answerField, required string) {
	switch f.Kind {
	case form.Choice:
		m.add(`<select id="%s" name="%s">`, f.Key, f.Key)
		if !f.Required || f.Given == "" {
			m.add(`<option value=""></option>`)
		}
		for _, o := range f.Choices {
			m.add(`<option value="%s"`+only("selected", o.Text == f.Given)+">%s</option>", o.Text, o.Text)
		}
		m.add("</select>\n")
	case form.Number, form.Whole:
		step := "any"
		if f.Kind == form.Whole {
			step = "1"
		}
		m.add(`<input id="%s" name="%s" type="number" step="%s"`, f.Key, f.Key, step)
		m.addSome(` min="%s"`, f.Least)
		m.addSome(` max="%s"`, f.Most)
		m.add(` value="%s"`+required+">\n", f.Given)
	case form.Text:
		m.add(`<input id="%s" name="%s" type="text" value="%s">`+"\n", f.Key, f.Key, f.Given)
	case form.JSON:
		m.add(`<textarea id="%s" name="%s" rows="3">%s</textarea><span class="faint">as JSON</span>`+"\n", f.Key, f.Key, f.Given)
	default:
		m.add(`<textarea id="%s" name="%s" rows="6">%s</textarea>`+"\n", f.Key, f.Key, f.Given)
	}
}
