package form

import (
	"encoding/json"
	"testing"
)

// FuzzAnswer fills in the fields of a form: accepted texts give JSON of the field's kind, and prefilled values are accepted.
func FuzzAnswer(f *testing.F) {
	const all = `{"type":"object","required":["ok","n"],"properties":{"ok":{"type":"boolean"},"n":{"type":"integer","default":3},"x":{"type":"number"},
		"why":{"type":"string","default":"a b"},"pick":{"enum":["now",2,null]},"more":{"type":"array","default":[1]}}}`
	for _, text := range []string{"yes", "No", "3", "-1.5e3", "now", "null", "[1,2]", `{"a":`, " 1 2", "\xff", `"`, ""} {
		f.Add(all, text)
	}
	f.Add(`{"type":"boolean"}`, "y")
	f.Add(`{"enum":[]}`, "x")
	f.Add(`[1`, "x")
	f.Fuzz(func(t *testing.T, schema, text string) {
		fields := Fields(json.RawMessage(schema))
		if len(fields) == 0 {
			return
		}
		values := make([]json.RawMessage, len(fields))
		for i := range fields {
			field := &fields[i]
			if _, err := field.Value(field.Given); err != nil && json.Valid([]byte(schema)) && field.Kind != Choice {
				t.Errorf("%s: what is given already, %q, is not taken: %v", schema, field.Given, err)
			}
			value, err := field.Value(text)
			if err != nil {
				continue
			}
			if values[i] = value; value == nil {
				continue
			}
			var is any
			if err := json.Unmarshal(value, &is); err != nil {
				t.Fatalf("%s: %q is taken as %q: %v", schema, text, value, err)
			}
			fits := true
			switch field.Kind {
			case YesNo:
				_, fits = is.(bool)
			case Whole, Number:
				_, fits = is.(float64)
			case Text, Long:
				_, fits = is.(string)
			}
			if !fits {
				t.Errorf("%s: %q, a %s, is taken as %s", schema, text, field.Kind, value)
			}
		}
		if answer, err := Answer(fields, values); err != nil || !json.Valid(answer) {
			t.Errorf("%s, %q: the answer is %q, %v", schema, text, answer, err)
		}
	})
}
