// Package jsonvalue reads and writes JSON texts of values: their kinds and elements, their decoded values for expressions, and their
// canonical text.
package jsonvalue

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-run/pawl/internal/strictjson"
)

// ErrTooDeep is the error for values with more levels than strictjson.MaxDepth.
var ErrTooDeep = errors.New("nested too deep")

// ValidNumber reports whether s is a number in JSON's grammar.
func ValidNumber(s string) bool {
	v := jsontext.Value(s)
	return v.Kind() == '0' && s[len(s)-1] != ' ' && s[0] != ' ' && v.IsValid()
}

// Elements returns the texts of a list's elements.
func Elements(raw []byte) ([]json.RawMessage, error) {
	var list []json.RawMessage
	err := strictjson.Elements(raw, func(_ int, el []byte) error {
		list = append(list, el)
		return nil
	})
	return list, err
}

// KindOf returns the type of a JSON text, by its first byte, in users' terms.
func KindOf(raw []byte) string {
	switch jsontext.Value(raw).Kind() {
	case '{':
		return "object"
	case '[':
		return "list"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case '0':
		return "number"
	}
	return "null"
}

// Decode decodes one JSON value for expressions: integers become int64 if they fit, else uint64; other numbers become float64 if that has
// all their digits, else json.Number; objects become map[string]any. If a name occurs twice, it takes the last value.
func Decode(raw []byte) (v any, err error) {
	if len(raw) == 0 {
		return nil, nil
	}
	err = strictjson.Read(raw, func(dec *jsontext.Decoder) error {
		var err error
		if v, err = decodeValue(dec); err != nil {
			return err
		}
		return strictjson.End(raw, dec)
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}

func decodeValue(dec *jsontext.Decoder) (any, error) {
	if dec.StackDepth() > strictjson.MaxDepth {
		return nil, fmt.Errorf("%w: more than %d levels", ErrTooDeep, strictjson.MaxDepth)
	}
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case '{':
		m := map[string]any{}
		for dec.PeekKind() != '}' {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			if m[key], err = decodeValue(dec); err != nil {
				return nil, err
			}
		}
		_, err = dec.ReadToken()
		return m, err
	case '[':
		list := []any{}
		for dec.PeekKind() != ']' {
			v, err := decodeValue(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = dec.ReadToken()
		return list, err
	case '"':
		return tok.String(), nil
	case 't', 'f':
		return tok.Bool(), nil
	case 'n':
		return nil, nil
	}
	return number(tok.String())
}

// AppendText appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func AppendText(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error only reports invalid UTF-8
	return b
}
