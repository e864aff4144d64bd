package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/inquiries"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/form"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// answerPath is the prefix of the links with which people answer questions without a token: the link itself is the proof. Opening a link
// changes nothing, because mail scanners open links before people do; only its form answers.
const answerPath = "/answer/"

// loggedPath returns the path of a request for the log. It leaves out the token of an answer link, with which a reader of the log could
// answer.
func loggedPath(r *http.Request) string {
	if before, _, ok := strings.Cut(r.URL.Path, answerPath); ok { // a proxy may have kept its own prefix
		return before + answerPath + "…"
	}
	return r.URL.Path
}

const (
	mediaHTML = "text/html"
	mediaForm = "application/x-www-form-urlencoded"
)

type answerView struct {
	Title, Text, Say, Note, By, Foot string
	Bad                              []string
	Open                             bool
	Fields                           []answerField
}

// answerField is a field of the form. Its name is made by the server, because the document chooses the names of the form's
// properties.
type answerField struct {
	form.Field
	Key string
}

// answerBody is the largest size of a filled-in form.
const answerBody = 1 << 20

func (c *call) answerPage() error {
	i, p, err := c.Engine.Inquiries().Invited(c.ctx(), c.r.PathValue("token"))
	if err != nil {
		return c.showLost(err)
	}
	return c.showAnswer(http.StatusOK, viewOf(i, p))
}

func (c *call) answerByLink() error {
	i, p, err := c.Engine.Inquiries().Invited(c.ctx(), c.r.PathValue("token"))
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
	i, err = c.Engine.Inquiries().Answer(c.ctx(), i.ID, inquiries.Reply{By: p.Name, Groups: p.Groups, Value: value, Note: v.Note, Via: "link"})
	if err != nil && i == nil {
		return c.showLost(err)
	}
	if err == nil {
		return c.showAnswer(http.StatusOK, viewOf(i, p))
	}
	refused := problemOf(err)
	if v.Bad = []string{refused.Detail}; refused.Status == http.StatusServiceUnavailable { // the detail may have the database's address
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
	case i.Answer != nil && i.Answer.By != p.Name: // the link lets its holder answer, not read the answers of others
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
	for n, f := range form.Fields(i.Form) { // also when the question is answered, since the same form may be sent again
		f.Title = cmp.Or(f.Title, "Answer")
		v.Fields = append(v.Fields, answerField{f, fmt.Sprintf("f%d", n)})
	}
	return v
}

func clockText(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// fill reads the fields of a sent form as the answer, and shows them again.
func (v *answerView) fill(filled url.Values) (value json.RawMessage, bad []string) {
	v.Note = strings.TrimSpace(strings.ReplaceAll(filled.Get("note"), "\r\n", "\n"))
	if text := fault.BadText(v.Note, math.MaxInt); text != "" {
		bad = append(bad, "Note: "+text)
	}
	fields := make([]form.Field, len(v.Fields))
	values := make([]json.RawMessage, len(v.Fields))
	for n := range v.Fields {
		f := &v.Fields[n]
		f.Given = strings.ReplaceAll(filled.Get(f.Key), "\r\n", "\n")
		fields[n] = f.Field
		var err error
		switch text := fault.BadText(f.Given, math.MaxInt); {
		case text != "":
			err = errors.New(text)
		case len(filled[f.Key]) > 1:
			err = errors.New("it is given twice")
		default:
			if values[n], err = f.Value(f.Given); err == nil && values[n] != nil {
				err = new(strictjson.Rules).Decode(values[n], "", new(json.RawMessage)) // in the same way as an answer to the API
			}
		}
		if err != nil {
			bad = append(bad, f.Title+": "+err.Error())
		}
	}
	value, err := form.Answer(fields, values)
	if err != nil {
		bad = append(bad, err.Error())
	}
	return value, bad
}

// saying prefixes a message with the label that the form shows for the field.
func (v *answerView) saying(path, message string) string {
	for _, f := range v.Fields {
		if path == "answer."+f.Name {
			return f.Title + ": " + message
		}
	}
	return strings.TrimPrefix(path, "answer.") + ": " + message
}

// showLost shows that a link is not valid, or that the server cannot check it at the moment.
func (c *call) showLost(err error) error {
	if errors.Is(err, inquiries.ErrBadLink) {
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
	h := c.w.Header()
	h.Set("Content-Type", mediaHTML+"; charset=utf-8")
	h.Set("Content-Security-Policy", answerPolicy)
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, browsers would send Origin: null with the form
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Robots-Tag", "noindex")
	c.send(c.w, status, []byte(v.page()))
	return nil
}
