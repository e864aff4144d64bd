// Package wirejson writes the JSON of API responses, archives, -o json and the data of Pawl's own signals and events: like encoding/json,
// but with six digits of a second in every time, and without escaping the characters of HTML and JavaScript. Times of equal length sort as
// strings in the order of time, which 12:00:00.01003Z and 12:00:00.010035Z do not. It is pure.
package wirejson

import (
	"bytes"
	std "encoding/json"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	v1 "github.com/go-json-experiment/json/v1"
)

// Form is RFC 3339 in UTC with six digits of a second, the precision of the stores.
const Form = "2006-01-02T15:04:05.000000Z"

var options = json.JoinOptions(v1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), jsontext.EscapeForJS(false), json.WithMarshalers(json.JoinMarshalers(
	json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
		return e.WriteToken(jsontext.String(t.UTC().Format(Form)))
	}),
	json.MarshalToFunc(func(e *jsontext.Encoder, n std.Number) error { return e.WriteValue(jsontext.Value(n)) }),
)))

// Marshal returns the JSON of v. Its errors are those of encoding/json.
func Marshal(v any) (std.RawMessage, error) {
	text, err := json.Marshal(v, options)
	return std.RawMessage(text), err
}

// Append appends the JSON of v to b, without a line break. Its errors are those of encoding/json.
func Append(b *bytes.Buffer, v any) error { return json.MarshalWrite(b, v, options) }

// AppendIndented is Append with one member or element per line, two spaces of indentation per level, and a line break at the end.
func AppendIndented(b *bytes.Buffer, v any) error {
	if err := json.MarshalWrite(b, v, options, jsontext.WithIndent("  ")); err != nil {
		return err
	}
	return b.WriteByte('\n')
}
