package payload

import (
	"encoding/json"
	"reflect"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// spec describes the payload of a built-in kind.
type spec struct {
	fields   []strictjson.Name
	validate func(payload []byte, o Operator) error
	needs    func(payload []byte) []string // nil: nothing
}

// specs are the built-in kinds whose payloads have fixed fields; the others accept anything. flow.Kind has the properties of a kind for the
// engine, package task its handler.
var specs = map[flow.Kind]spec{
	flow.KindCode: {
		fields: fieldsOf[api.Code](),
		validate: func(payload []byte, o Operator) error {
			c, err := Code(payload)
			if err == nil {
				err = blobNames(&c).Err()
			}
			if err == nil {
				err = o.languages(&c)
			}
			if err == nil {
				err = o.joined(&c)
			}
			if err != nil {
				return err
			}
			return o.Most.Code(&c)
		},
		needs: needsOfCode,
	},
	flow.KindContainer: {
		fields: fieldsOf[api.Container](),
		validate: func(payload []byte, o Operator) error {
			c, err := Container(payload)
			if err == nil {
				err = blobNames(&api.Code{Files: c.Files, Stdin: c.Stdin}).Err()
			}
			if err != nil {
				return err
			}
			return o.Most.Container(&c)
		},
		needs: needsOfContainer,
	},
	flow.KindHTTP:    {fields: fieldsOf[Request](), validate: readable(HTTP)},
	flow.KindLLM:     {fields: fieldsOf[Chat](), validate: readable(LLM)},
	flow.KindWebhook: {fields: fieldsOf[Notice](), validate: readable(Webhook)},
	flow.KindAsk:     {fields: fieldsOf[Ask](), validate: readable(Question)},
	flow.KindWait:    {fields: fieldsOf[Wait](), validate: readable(Signal)},
	// The engine reads these itself.
	flow.KindSleep: {fields: fieldsOf[struct {
		For json.RawMessage `json:"for"`
	}](), validate: anything},
	flow.KindWorkflow: {fields: fieldsOf[struct {
		Name    string          `json:"name"`
		Input   json.RawMessage `json:"input,omitempty"`
		Version int             `json:"version,omitempty"`
	}](), validate: anything},
}

func fieldsOf[T any]() []strictjson.Name { return strictjson.Names(reflect.TypeFor[T]()) }

func readable[T any](read func([]byte) (T, error)) func([]byte, Operator) error {
	return func(payload []byte, _ Operator) error {
		_, err := read(payload)
		return err
	}
}

func anything([]byte, Operator) error { return nil }

// Fields lists the fields of a kind's payload, and the required ones among them. known is false for a kind that accepts anything.
func Fields(kind flow.Kind) (fields, required []string, known bool) {
	s, known := specs[kind]
	for _, f := range s.fields {
		fields = append(fields, f.Name)
		if f.Required {
			required = append(required, f.Name)
		}
	}
	return fields, required, known
}
