package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/form"
)

// answerPath is where the links lie by which people answer questions without a token: the link is their proof. To look at one
// changes nothing, because mail scanners do so before people; only the form on it answers.
const answerPath = "/answer/"

// loggedPath is the path of a request as the log has it: without the token of a link, which lets its reader answer.
func loggedPath(r *http.Request) string {
	if before, _, is := strings.Cut(r.URL.Path, answerPath); is { // a proxy may have left its own prefix
		return before + answerPath + "…"
	}
	return r.URL.Path
}

const (
	mediaHTML = "text/html"
	mediaForm = "application/x-www-form-urlencoded"
)

// answerStyle is the whole style of the page. The page's policy allows it by its hash, and nothing else.
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

var answerTemplate = template.Must(template.New("answer").Funcs(template.FuncMap{"style": func() template.CSS { return answerStyle }}).Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">
<title>{{.Title}}</title><style>{{style}}</style></head><body>
<main><h1>{{.Title}}</h1>
{{with .Text}}<p class="text">{{.}}</p>{{end}}
{{with .Say}}<p role="status">{{.}}</p>{{end}}
{{with .Bad}}<div class="bad" role="alert"><p>The answer was not taken:</p><ul>{{range .}}<li>{{.}}</li>{{end}}</ul></div>{{end}}
{{if .Open}}<form method="post">
{{range .Fields}}{{$f := .}}
{{if eq .Kind "yes_no"}}<fieldset><legend>{{.Title}}{{if not .Required}} <span class="faint">(optional)</span>{{end}}</legend>
<label><input type="radio" name="{{.Key}}" value="yes"{{if eq .Given "yes"}} checked{{end}}{{if .Required}} required{{end}}> Yes</label>
<label><input type="radio" name="{{.Key}}" value="no"{{if eq .Given "no"}} checked{{end}}> No</label></fieldset>
{{else}}<label for="{{.Key}}">{{.Title}}{{if not .Required}} <span class="faint">(optional)</span>{{end}}</label>
{{if eq .Kind "choice"}}<select id="{{.Key}}" name="{{.Key}}">{{if or (not .Required) (eq .Given "")}}<option value=""></option>{{end}}{{range .Choices}}<option value="{{.Text}}"{{if eq .Text $f.Given}} selected{{end}}>{{.Text}}</option>{{end}}</select>
{{else if eq .Kind "number"}}<input id="{{.Key}}" name="{{.Key}}" type="number" step="any" value="{{.Given}}"{{if .Required}} required{{end}}>
{{else if eq .Kind "whole"}}<input id="{{.Key}}" name="{{.Key}}" type="number" step="1" value="{{.Given}}"{{if .Required}} required{{end}}>
{{else if eq .Kind "text"}}<input id="{{.Key}}" name="{{.Key}}" type="text" value="{{.Given}}">
{{else}}<textarea id="{{.Key}}" name="{{.Key}}" rows="{{if eq .Kind "json"}}3{{else}}6{{end}}">{{.Given}}</textarea>{{if eq .Kind "json"}}<span class="faint">as JSON</span>{{end}}
{{end}}{{end}}{{with .Help}}<p class="faint">{{.}}</p>{{end}}
{{end}}
<label for="note">Note <span class="faint">(optional)</span></label><textarea id="note" name="note" rows="2" maxlength="4096">{{.Note}}</textarea>
<button type="submit">Answer as {{.By}}</button></form>{{end}}
{{with .Foot}}<p class="faint">{{.}}</p>{{end}}
</main></body></html>
`))

// answerView is what the page shows.
type answerView struct {
	Title, Text, Say, Note, By, Foot string
	Bad                              []string
	Open                             bool
	Fields                           []answerField
}

// answerField is a field under a name of its own: those of the form are chosen by the document.
type answerField struct {
	form.Field
	Key string
}

// answerBody is how many bytes a filled-in form may have.
const answerBody = 1 << 20

func (c *call) answerPage() error {
	i, p, err := c.Engine.Invited(c.ctx(), c.r.PathValue("token"))
	if err != nil {
		return c.showLost(err)
	}
	return c.showAnswer(http.StatusOK, viewOf(i, p))
}

func (c *call) answerByLink() error {
	i, p, err := c.Engine.Invited(c.ctx(), c.r.PathValue("token"))
	if err != nil {
		return c.showLost(err)
	}
	v := viewOf(i, p)
	if kind, err := c.mediaType([]string{mediaForm}); err != nil || kind == "" {
		v.Bad = []string{"the form did not arrive as a browser sends it"}
		return c.showAnswer(http.StatusUnsupportedMediaType, v)
	}
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, answerBody))
	var filled url.Values
	if err == nil {
		filled, err = url.ParseQuery(string(body))
	}
	if err != nil {
		v.Bad = []string{"the form did not arrive whole: send it again"}
		return c.showAnswer(http.StatusBadRequest, v)
	}
	value, bad := v.fill(filled)
	if len(bad) > 0 {
		v.Bad = bad
		return c.showAnswer(http.StatusUnprocessableEntity, v)
	}
	i, err = c.Engine.Answer(c.ctx(), i.ID, engine.Reply{By: p.Name, Groups: p.Groups, Value: value, Note: v.Note, Via: "link"})
	if err != nil && i == nil {
		return c.showLost(err)
	}
	if err == nil {
		return c.showAnswer(http.StatusOK, viewOf(i, p))
	}
	refused := problemOf(err)
	if v.Bad = []string{refused.Detail}; refused.Status == http.StatusServiceUnavailable { // its detail may have the database's address
		v.Bad = []string{"the server cannot take answers just now: send it again later"}
	}
	if len(refused.Errors) > 0 {
		v.Bad = nil
	}
	for _, e := range refused.Errors {
		v.Bad = append(v.Bad, v.saying(e.Path, e.Message))
	}
	if i.State != flow.InquiryOpen {
		now := viewOf(i, p)
		now.Bad = v.Bad
		v = now
	}
	return c.showAnswer(refused.Status, v)
}

func viewOf(i *flow.Inquiry, p flow.Person) *answerView {
	v := &answerView{Title: i.Title, Text: i.Text, By: p.Name, Open: i.State == flow.InquiryOpen}
	switch {
	case i.Answer != nil && i.Answer.Defaulted:
		v.Say = fmt.Sprintf("Nobody answered in time. At %s this became the answer: %s", clockText(i.ClosedAt), i.Answer.Value)
	case i.Answer != nil && i.Answer.By != p.Name: // the link was for answering, not for what others have said
		v.Text, v.Say = "", "This question is not open any more: it has an answer."
	case i.Answer != nil:
		v.Say = fmt.Sprintf("%s answered at %s: %s", i.Answer.By, clockText(i.Answer.At), i.Answer.Value)
		if i.Answer.Note != "" {
			v.Foot = "Note: " + i.Answer.Note
		}
	case !v.Open:
		v.Say = fmt.Sprintf("This question is not open any more: it was %s at %s.", i.State, clockText(i.ClosedAt))
	default:
		whom := "anybody"
		if len(i.Assignees) > 0 {
			whom = strings.Join(i.Assignees, ", ")
		}
		v.Foot = "For " + whom + "."
		if !i.Due.IsZero() {
			v.Foot += " Until " + clockText(i.Due) + "."
		}
	}
	for n, f := range form.Fields(i.Form) { // also of one that is answered: the same form may be sent again
		if f.Title == "" {
			f.Title = "Answer"
		}
		v.Fields = append(v.Fields, answerField{f, fmt.Sprintf("f%d", n)})
	}
	return v
}

func clockText(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// fill takes what was filled in as the answer, and shows it again.
func (v *answerView) fill(filled url.Values) (value json.RawMessage, bad []string) {
	v.Note = strings.TrimSpace(filled.Get("note"))
	fields := make([]form.Field, len(v.Fields))
	values := make([]json.RawMessage, len(v.Fields))
	for n := range v.Fields {
		f := &v.Fields[n]
		f.Given = strings.ReplaceAll(filled.Get(f.Key), "\r\n", "\n")
		fields[n] = f.Field
		var err error
		if values[n], err = f.Value(f.Given); err != nil {
			bad = append(bad, f.Title+": "+err.Error())
		}
	}
	value, err := form.Answer(fields, values)
	if err != nil {
		bad = append(bad, err.Error())
	}
	return value, bad
}

// saying names a field as the form does.
func (v *answerView) saying(path, message string) string {
	for _, f := range v.Fields {
		if path == "answer."+f.Name {
			return f.Title + ": " + message
		}
	}
	return strings.TrimPrefix(path, "answer.") + ": " + message
}

// showLost shows that a link leads nowhere, or why that cannot be said just now.
func (c *call) showLost(err error) error {
	if errors.Is(err, engine.ErrBadLink) {
		return c.showAnswer(http.StatusNotFound, &answerView{Title: "This link is not valid", Say: "It was not made by this server, or the question has been asked anew since: ask for another link."})
	}
	var ps definition.Problems
	if p := problemOf(err); !errors.As(err, &ps) && p.Status >= http.StatusInternalServerError {
		c.log.Error("a link to answer cannot be served", "error", err)
		return c.showAnswer(p.Status, &answerView{Title: "The server cannot work just now", Say: "Try again in a moment."})
	}
	return c.showAnswer(http.StatusNotFound, &answerView{Title: "This link is not valid", Say: "The question is gone."})
}

func (c *call) showAnswer(status int, v *answerView) error {
	var b bytes.Buffer
	if err := answerTemplate.Execute(&b, v); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	h := c.w.Header()
	h.Set("Content-Type", mediaHTML+"; charset=utf-8")
	h.Set("Content-Security-Policy", answerPolicy)
	h.Set("Referrer-Policy", "same-origin") // with no-referrer browsers send Origin: null along with the form
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Robots-Tag", "noindex")
	c.send(c.w, status, b.Bytes())
	return nil
}
