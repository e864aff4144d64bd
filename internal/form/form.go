// Package form is what a person fills in to answer a question: the fields that follow from the JSON Schema of the answer, and
// the answer that follows from what was filled in. Whether that answer fits the schema is for package definition to say. It is
// pure.
package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is how a field is filled in.
type Kind string

// The kinds of fields.
const (
	YesNo  Kind = "yes_no"
	Choice Kind = "choice" // one of Choices
	Number Kind = "number"
	Whole  Kind = "whole"
	Text   Kind = "text"
	Long   Kind = "long" // text of several lines
	JSON   Kind = "json" // anything that has no kind of its own
)

// longFrom is the maxLength from which on a text gets several lines.
const longFrom = 200

// Field is one thing to fill in.
type Field struct {
	Name     string // "" is the whole answer
	Title    string
	Help     string
	Kind     Kind
	Required bool
	Choices  []Option
	Least    string // the smallest number that is allowed, "" for none; of Number and Whole
	Most     string // the largest one
	Given    string // what is filled in already, as a text of Value
}

// Option is one of several choices.
type Option struct {
	Text  string // shown, and filled in
	Value json.RawMessage
}

// schema is as much of a JSON Schema as fields follow from.
type schema struct {
	Type        json.RawMessage            `json:"type"`
	Title       string                     `json:"title"`
	Description string                     `json:"description"`
	Properties  map[string]json.RawMessage `json:"properties"`
	Required    []string                   `json:"required"`
	Enum        []json.RawMessage          `json:"enum"`
	Default     json.RawMessage            `json:"default"`
	Minimum     json.RawMessage            `json:"minimum"`
	Maximum     json.RawMessage            `json:"maximum"`
	MaxLength   int                        `json:"maxLength"`
	Format      string                     `json:"format"`
}

// Fields are the fields of a schema: those of an object's properties, the required ones first in their order and the others by
// name; of any other schema one without a name.
func Fields(text json.RawMessage) []Field {
	var s schema
	if len(text) == 0 || json.Unmarshal(text, &s) != nil || len(s.Properties) == 0 {
		f := fieldOf("", text)
		f.Required = true
		return []Field{f}
	}
	var names []string
	for _, name := range s.Required {
		if _, ok := s.Properties[name]; ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	required := len(names)
	for name := range s.Properties {
		if !slices.Contains(names[:required], name) {
			names = append(names, name)
		}
	}
	slices.Sort(names[required:])
	fields := make([]Field, len(names))
	for i, name := range names {
		fields[i] = fieldOf(name, s.Properties[name])
		fields[i].Required = i < required
	}
	return fields
}

func fieldOf(name string, text json.RawMessage) Field {
	var s schema
	f := Field{Name: name, Title: name, Kind: JSON}
	if len(text) == 0 || json.Unmarshal(text, &s) != nil {
		return f
	}
	if s.Title != "" {
		f.Title = s.Title
	}
	f.Help = s.Description
	var kind string
	_ = json.Unmarshal(s.Type, &kind) // a list of types is anything
	switch {
	case len(s.Enum) > 0:
		f.Kind = Choice
		for i, v := range s.Enum {
			same := func(other json.RawMessage) bool { return plain(other) == plain(v) || string(other) == plain(v) }
			alone := !slices.ContainsFunc(s.Enum[:i], same) && !slices.ContainsFunc(s.Enum[i+1:], same)
			f.Choices = append(f.Choices, Option{choiceText(v, alone), v})
		}
	case kind == "boolean":
		f.Kind = YesNo
	case kind == "integer":
		f.Kind, f.Least, f.Most = Whole, whole(s.Minimum), whole(s.Maximum)
	case kind == "number":
		f.Kind, f.Least, f.Most = Number, number(s.Minimum), number(s.Maximum)
	case kind == "string" && (s.MaxLength > longFrom || s.Format == "multiline"):
		f.Kind = Long
	case kind == "string":
		f.Kind = Text
	}
	if s.Default != nil {
		f.Given = f.textOf(s.Default)
	}
	return f
}

// number is a bound of numbers, "" where it is none.
func number(bound json.RawMessage) string {
	if _, err := strconv.ParseFloat(string(bound), 64); err != nil {
		return ""
	}
	return string(bound)
}

// whole is a bound of whole numbers, "" where it is none itself: browsers count steps from the smallest number, so that with 2.5 they would
// refuse 3.
func whole(bound json.RawMessage) string {
	if _, err := strconv.ParseInt(string(bound), 10, 64); err != nil {
		return ""
	}
	return string(bound)
}

// plain is a value as it is shown: texts without quotes.
func plain(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil && len(v) > 0 && v[0] == '"' {
		return s
	}
	return string(v)
}

// choiceText is what a person sees and fills in for a value. It is JSON where the text without quotes would say another value, too, as of
// the text "1" beside the number 1, or could not be filled in, as the empty text.
func choiceText(v json.RawMessage, alone bool) string {
	if text := plain(v); alone && text != "" && text == strings.TrimSpace(text) && !strings.ContainsAny(text, "\r\n") {
		return text
	}
	return string(v)
}

func (f *Field) textOf(v json.RawMessage) string {
	if f.Kind == Choice {
		for _, o := range f.Choices {
			if string(o.Value) == string(v) {
				return o.Text
			}
		}
		return ""
	}
	if f.Kind == YesNo {
		switch string(v) {
		case "true":
			return "yes"
		case "false":
			return "no"
		}
		return ""
	}
	if f.Kind == JSON {
		return string(v)
	}
	return plain(v)
}

// Value is what was filled in, as JSON; nil when that is nothing. An error says what is wrong with it, for people.
func (f *Field) Value(text string) (json.RawMessage, error) {
	if f.Kind != Text && f.Kind != Long {
		text = strings.TrimSpace(text)
	}
	if text == "" {
		if f.Required && (f.Kind == Text || f.Kind == Long) {
			return json.RawMessage(`""`), nil
		}
		return nil, nil
	}
	switch f.Kind {
	case YesNo:
		switch strings.ToLower(text) {
		case "yes", "y", "true":
			return json.RawMessage("true"), nil
		case "no", "n", "false":
			return json.RawMessage("false"), nil
		}
		return nil, errors.New("answer yes or no")
	case Choice:
		for _, o := range f.Choices {
			if o.Text == text {
				return o.Value, nil
			}
		}
		return nil, fmt.Errorf("choose one of %s", strings.Join(f.options(), ", "))
	case Whole, Number:
		if !json.Valid([]byte(text)) || !strings.ContainsRune("-0123456789", rune(text[0])) {
			return nil, errors.New("write a number")
		}
		return json.RawMessage(text), nil
	case JSON:
		if !json.Valid([]byte(text)) {
			return nil, fmt.Errorf("write JSON, such as %s or [1, 2]", strconv.Quote("text"))
		}
		return json.RawMessage(text), nil
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return nil, fmt.Errorf("write a text: %w", err)
	}
	return raw, nil
}

func (f *Field) options() (all []string) {
	for _, o := range f.Choices {
		all = append(all, o.Text)
	}
	return all
}

// Answer puts the values of fields together; a value that is nil is left out.
func Answer(fields []Field, values []json.RawMessage) (json.RawMessage, error) {
	if len(fields) == 1 && fields[0].Name == "" {
		if values[0] == nil {
			return json.RawMessage("null"), nil
		}
		return values[0], nil
	}
	all := map[string]json.RawMessage{}
	for i := range fields {
		if values[i] != nil {
			all[fields[i].Name] = values[i]
		}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("put the answer together: %w", err)
	}
	return raw, nil
}
