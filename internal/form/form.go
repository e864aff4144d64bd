// Package form derives the fields for a question from the JSON Schema of its answer, and the answer from the filled-in fields. Package
// definition checks whether that answer matches the schema. It is pure.
package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

type Kind string

const (
	YesNo  Kind = "yes_no"
	Choice Kind = "choice" // one of Choices
	Number Kind = "number"
	Whole  Kind = "whole"
	Text   Kind = "text"
	Long   Kind = "long" // text of several lines
	JSON   Kind = "json" // any other value, as JSON
)

// longFrom is the maxLength from which a text has several lines.
const longFrom = 200

type Field struct {
	Name     string // "" is the whole answer
	Title    string
	Help     string
	Kind     Kind
	Required bool
	Choices  []Option
	Least    string // smallest allowed number, "" for none; for Number and Whole
	Most     string // the largest one
	Given    string // prefilled value, as a text for Value
}

type Option struct {
	Text  string // shown, and used as input
	Value json.RawMessage
}

// schema has the parts of a JSON Schema that determine fields.
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

// Fields returns the fields of a schema: those of an object's properties, required ones first in their order and the others by name; for
// any other schema a single field without a name.
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
	_ = json.Unmarshal(s.Type, &kind) // a list of types allows anything
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

// number returns a bound, "" if it is not a number.
func number(bound json.RawMessage) string {
	if _, err := strconv.ParseFloat(string(bound), 64); err != nil {
		return ""
	}
	return string(bound)
}

// whole returns a bound for integers, "" if it is not an integer: browsers count steps from the smallest number, so with 2.5 they would
// refuse 3.
func whole(bound json.RawMessage) string {
	if _, err := strconv.ParseInt(string(bound), 10, 64); err != nil {
		return ""
	}
	return string(bound)
}

// plain returns a value as it is shown: strings without quotes.
func plain(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil && len(v) > 0 && v[0] == '"' {
		return s
	}
	return string(v)
}

// choiceText returns the text that a person sees and fills in for a value. It is JSON if the text without quotes would be ambiguous, such
// as the string "1" next to the number 1, or could not be filled in, such as the empty string.
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

// Value returns the filled-in text as JSON; nil if it is empty. The error explains to a person what is wrong.
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

// Answer combines the values of fields; nil values are left out.
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
