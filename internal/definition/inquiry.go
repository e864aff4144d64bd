package definition

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/problem"
)

// maxFormValues limits the work of compiling the form of a question, which the engine does when it asks.
const maxFormValues = 1_000

// Questions parses questions and answers. It caches compiled forms and expressions: many executions ask with the same ones. The zero value
// is ready to use, and it is safe for concurrent use.
type Questions struct {
	forms   recent[*Schema]
	accepts conditions
}

// remembered is the total size in bytes of the cached forms, or of the cached expressions. Compiled they need several times as much.
const remembered = 1 << 20

// recent is a cache of compiled texts. When it is full, it is emptied.
type recent[T any] struct {
	mu    sync.Mutex
	all   map[string]T
	bytes int // of the texts
}

func (k *recent[T]) get(text string) (compiled T, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	compiled, known = k.all[text]
	return compiled, known
}

func (k *recent[T]) keep(text string, compiled T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.bytes += len(text); k.all == nil || k.bytes > remembered {
		k.all, k.bytes = map[string]T{}, len(text)
	}
	k.all[text] = compiled
}

// Read reads the payload of kind "ask": the question and its purpose ("" lets the caller choose). A default answer is completed with the
// form's defaults. An error of type Problems lists all errors.
func (k *Questions) Read(raw json.RawMessage) (q flow.Question, purpose string, err error) {
	a, err := payload.Question(raw)
	if err != nil {
		var ps problem.List
		if !errors.As(err, &ps) {
			return q, "", err
		}
		return q, "", ps
	}
	q = flow.Question{Title: a.Title, Text: a.Text, Assignees: a.Assignees, Exclude: a.Exclude, Accept: strings.TrimSpace(a.Accept), Expires: time.Duration(a.Expires)}
	for _, after := range a.Remind {
		q.Remind = append(q.Remind, time.Duration(after))
	}
	if a.Form != nil {
		var form bytes.Buffer
		if err := json.Compact(&form, a.Form); err != nil {
			return q, "", Problems{{Path: "form", Message: err.Error()}}
		}
		q.Form = form.Bytes()
	}
	_, ps := k.form(q.Form)
	_, more := k.accept(q.Accept)
	if ps = append(ps, more...); len(ps) > 0 {
		return q, "", ps
	}
	if a.Default == nil {
		return q, a.Purpose, nil
	}
	if q.Default, err = k.Answer(&q, a.Default, "default"); err != nil {
		return q, "", err
	}
	accepted, err := k.Accepts(&q, q.Default)
	if err != nil {
		return q, "", Problems{{Path: "default", Message: err.Error()}}
	}
	q.DefaultDeclined = !accepted
	return q, a.Purpose, nil
}

// Answer checks a value against the form of a question, and fills in the form's defaults. The error is of type Problems with paths that
// begin with root.
func (k *Questions) Answer(q *flow.Question, value json.RawMessage, root string) (json.RawMessage, error) {
	s, ps := k.form(q.Form)
	switch {
	case len(ps) > 0:
		return nil, ps
	case s != nil:
		if err := s.unasked(value, root, false); err != nil {
			return nil, err
		}
		return s.validate(value, root, nil)
	}
	return checkJSON(orNull(value), root)
}

// Accepts reports whether a question accepts an answer. An error is an *EvalError: the expression cannot be evaluated for the answer.
func (k *Questions) Accepts(q *flow.Question, answer json.RawMessage) (bool, error) {
	c, ps := k.accept(q.Accept)
	switch {
	case len(ps) > 0:
		return false, ps
	case c == nil:
		return true, nil
	}
	return c.Eval(&Vars{Answer: answer, Success: true})
}

// form compiles a form. It returns nil for nil.
func (k *Questions) form(text json.RawMessage) (*Schema, Problems) {
	if text == nil {
		return nil, nil
	}
	if s, known := k.forms.get(string(text)); known {
		return s, nil
	}
	s, ps := readForm(text)
	if len(ps) == 0 {
		k.forms.keep(string(text), s)
	}
	return s, ps
}

// accept compiles the expression of a question's accept. It returns nil for an empty text.
func (k *Questions) accept(text string) (*Condition, Problems) {
	return k.accepts.of(text, "accept", scopeAnswer)
}

const formFix = "write a JSON Schema, such as {type: object, properties: {approved: {type: boolean}}}"

func readForm(form json.RawMessage) (*Schema, Problems) {
	if k := jsonvalue.KindOf(form); k != "object" && k != "boolean" {
		return nil, Problems{{Path: "form", Message: "it is not a JSON Schema", Fix: formFix}}
	}
	val, err := jsonvalue.Decode(form)
	if err != nil {
		return nil, Problems{{Path: "form", Message: err.Error()}}
	}
	if n := countOf(val); n > maxFormValues {
		return nil, Problems{{Path: "form", Message: fmt.Sprintf("the schema has %d values", n), Fix: fmt.Sprintf("ask for less; at most %d are allowed", maxFormValues)}}
	}
	s := newSchema(form)
	var ps Problems
	if _, err := s.compile(); err != nil {
		for _, p := range schemaProblems(err) {
			ps = append(ps, Problem{Path: pathIn("form", val, p.steps), Message: "not a valid JSON Schema: " + p.message, Fix: cmp.Or(p.fix, formFix)})
		}
	}
	return s, ps
}

// countOf returns how many values a decoded value consists of.
func countOf(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, el := range v {
			n += countOf(el)
		}
	case map[string]any:
		for _, el := range v {
			n += countOf(el)
		}
	}
	return n
}

// askPayload checks the constant parts of a question in the document. Values of expressions are checked when the question is asked.
func (b *builder) askPayload(with *value, path string) {
	if b.trusted {
		return
	}
	known := with.known("ask", "title")
	if known.get("expires") == nil && with.get("expires") != nil || known.get("default") == nil && with.get("default") != nil {
		known.drop("on_expiry", "default")
	}
	_, _, err := new(Questions).Read(known.appendJSON(nil))
	if ps, ok := errors.AsType[Problems](err); ok {
		b.withProblems(with, path, ps)
	}
}

// known returns the members of a kind's payload that contain no expressions. The required one is a made-up text if it has an expression or
// is missing, since missing and unknown members were reported already.
func (v *value) known(kind flow.Kind, required string) *value {
	known := &value{kind: objectValue}
	fields, _, _ := payload.Fields(kind)
	if v.get(required) == nil {
		known.fields = append(known.fields, field{name: required, value: &value{kind: textValue, text: "x"}})
	}
	for _, f := range v.fields {
		switch {
		case !slices.Contains(fields, f.name):
		case !f.value.mentions(opening):
			known.fields = append(known.fields, f)
		case f.name == required:
			f.value = &value{kind: textValue, text: "x"}
			known.fields = append(known.fields, f)
		}
	}
	return known
}

func (v *value) drop(names ...string) {
	v.fields = slices.DeleteFunc(v.fields, func(f field) bool { return slices.Contains(names, f.name) })
}

func (v *value) mentions(part string) bool {
	return strings.Contains(v.text, part) ||
		slices.ContainsFunc(v.list, func(el *value) bool { return el.mentions(part) }) ||
		slices.ContainsFunc(v.fields, func(f field) bool { return f.value.mentions(part) })
}
