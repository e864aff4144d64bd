package server

import (
	"maps"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-run/pawl/api"
)

// schemas has the schemas of package api's types, separately for requests and answers. They differ: a request may give a duration as a
// number and must not have unknown fields, while an answer has durations as strings and may get more fields in later versions.
type schemas struct{ in, out huma.Registry }

const schemaPrefix = "#/components/schemas/"

// newSchemas makes the schemas of all answers. A type that also occurs in requests gets a second schema with another name.
func newSchemas(routes []route) schemas {
	s := schemas{out: huma.NewMapRegistry(schemaPrefix, huma.DefaultSchemaNamer)}
	register(s.out)
	s.out.RegisterTypeAlias(reflect.TypeFor[api.Duration](), reflect.TypeFor[answeredDuration]())
	s.out.Schema(problemType, true, "")
	for _, t := range openTypes {
		s.out.Schema(t, true, "")
	}
	for i := range routes {
		for _, a := range routes[i].answers {
			if a.body != nil {
				s.out.Schema(a.body, true, "")
			}
		}
	}
	s.in = huma.NewMapRegistry(schemaPrefix, func(t reflect.Type, hint string) string {
		name := huma.DefaultSchemaNamer(t, hint)
		if _, answered := s.out.Map()[name]; answered {
			name += inRequests
		}
		return name
	})
	register(s.in)
	s.in.RegisterTypeAlias(reflect.TypeFor[api.Duration](), reflect.TypeFor[givenDuration]())
	return s
}

// inRequests is the suffix of the request schema of a type that also occurs in answers.
const inRequests = "Request"

// openTypes are types inside fields that the schemas leave open: the output of an execution of code, and the lines of a stream of outcomes.
// Generated clients need them: sdk/python/scripts/generate_types.py writes the classes of the Python package.
var openTypes = []reflect.Type{reflect.TypeFor[api.CodeResult](), reflect.TypeFor[api.Outcome](), reflect.TypeFor[api.OutcomesEnd]()}

var problemType = reflect.TypeFor[api.Problem]()

// register sets the schemas of types that encode themselves as JSON.
func register(r huma.Registry) {
	r.RegisterTypeAlias(reflect.TypeFor[api.Size](), reflect.TypeFor[sizeSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[api.Content](), reflect.TypeFor[contentSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[api.Comparison](), reflect.TypeFor[comparisonSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[api.Status](), reflect.TypeFor[statusSchema]())
}

// finished adds the schemas of requests to those of answers and returns all; call it after all schemas are made.
func (s schemas) finished() huma.Registry {
	for _, schema := range s.in.Map() {
		neverNull(schema)
	}
	for _, schema := range s.out.Map() {
		neverNull(schema)
		schema.AdditionalProperties = nil
	}
	maps.Copy(s.out.Map(), s.in.Map())
	return s.out
}

// neverNull marks the lists of an object as never null: an answer has no null, and a request leaves out unset lists.
func neverNull(s *huma.Schema) {
	for _, p := range s.Properties {
		if p.Type == huma.TypeArray {
			p.Nullable = false
		}
	}
}

type (
	givenDuration    struct{}
	answeredDuration struct{}
	sizeSchema       struct{}
	contentSchema    struct{}
	comparisonSchema struct{}
	statusSchema     struct{}
)

func textOrNumber(text, number string, example any) *huma.Schema {
	return &huma.Schema{
		OneOf:    []*huma.Schema{{Type: huma.TypeString, Description: text}, {Type: huma.TypeNumber, Description: number}},
		Examples: []any{example},
	}
}

func (givenDuration) Schema(huma.Registry) *huma.Schema {
	return textOrNumber(`A time span, such as "1.5s", "250ms" or "2d"`, "Seconds", "30s")
}

func (answeredDuration) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Examples: []any{"30s", "1.5s", "2h45m0s"}}
}

func (sizeSchema) Schema(huma.Registry) *huma.Schema {
	return textOrNumber(`A size, such as "64MB" or "64MiB"`, "Bytes", "64MB")
}

func (contentSchema) Schema(huma.Registry) *huma.Schema {
	text := &huma.Schema{Type: huma.TypeString}
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeString, Description: "The text"},
		{Type: huma.TypeObject, Description: "Exactly one of text, base64 and blob", Properties: map[string]*huma.Schema{
			"text": text, "base64": text, "blob": text, "mode": {Type: huma.TypeString, Description: "Octal permission bits"},
		}},
	}}
}

func (comparisonSchema) Schema(r huma.Registry) *huma.Schema {
	mode := &huma.Schema{Type: huma.TypeString, Description: "How the outputs of cases are compared with what is expected"}
	for _, m := range api.CompareModes() {
		mode.Enum = append(mode.Enum, m)
	}
	tolerance := &huma.Schema{Type: huma.TypeNumber, Description: "Of numeric, for numbers that are not both integers; 1e-6 each when neither is given, and 0 where only the other one is"}
	return &huma.Schema{OneOf: []*huma.Schema{mode, {Type: huma.TypeObject, Properties: map[string]*huma.Schema{
		"mode": mode, "absolute": tolerance, "relative": tolerance, "checker": r.Schema(reflect.TypeFor[api.Checker](), true, "Checker"),
		"interactor": r.Schema(reflect.TypeFor[api.Interactor](), true, "Interactor"),
	}}}}
}

// Schema is the schema of an execution's status; a task has two more statuses (api.Task).
func (statusSchema) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, status := range api.Statuses() {
		s.Enum = append(s.Enum, string(status))
	}
	return s
}
