package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
)

// Validate checks what a built-in handler would get, without running it. The error names the field, the value and the
// fix. Kinds that take anything are never at fault.
func Validate(kind flow.Kind, payload []byte) error { return validate(kind, payload, nil) }

// Validating is Validate where code may also be in the languages that knows says yes to, beside the built-in ones.
func Validating(knows func(language string) bool) func(kind flow.Kind, payload []byte) error {
	return func(kind flow.Kind, payload []byte) error { return validate(kind, payload, knows) }
}

func validate(kind flow.Kind, payload []byte, knows func(string) bool) error {
	switch kind {
	case flow.KindCode:
		c, err := api.DecodeCode(payload)
		if err != nil {
			return err
		}
		for at, name := range c.LanguagesUsed() {
			if _, builtIn := api.LanguageName(name); !builtIn && (knows == nil || !knows(name)) {
				return invalid(at, name, "no profile of this server or of a worker of its knows it", "one of "+strings.Join(api.Languages(), ", ")+", or add a profile")
			}
		}
		return nil
	case flow.KindContainer:
		_, err := api.DecodeContainer(payload)
		return err
	case flow.KindHTTP:
		_, err := decodeRequest(payload)
		return err
	case flow.KindLLM:
		_, err := decodeChat(payload)
		return err
	}
	return nil
}

// decode reads a payload strictly. fields lists what there is, for whoever has misspelt one.
func decode(payload []byte, into any, fields string) error {
	if len(bytes.TrimSpace(payload)) == 0 {
		payload = []byte("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		if _, err = dec.Token(); err == io.EOF {
			return nil
		}
		return Errorf(flow.CodeInvalidInput, "there is something after the JSON object (send one object)")
	}
	if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return Errorf(flow.CodeInvalidInput, "%s: it is a JSON %s (write a %s)", orWhole(te.Field), te.Value, te.Type)
	}
	msg := strings.TrimPrefix(err.Error(), "json: ")
	if strings.HasPrefix(msg, "unknown field") {
		msg += " (one of " + fields + ")"
	}
	return Errorf(flow.CodeInvalidInput, "%s", msg)
}

func orWhole(field string) string {
	if field == "" {
		return "the input"
	}
	return field
}

func invalid(path string, value any, message, fix string) *Error {
	return Errorf(flow.CodeInvalidInput, "%s: %s: %.60q (%s)", path, message, fmt.Sprint(value), fix)
}

// Depth is how deep valid JSON is nested.
func Depth(b []byte) int {
	most, now := 0, 0
	quoted := false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}
