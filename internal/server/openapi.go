package server

import (
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-run/pawl/api"
)

// newSchemas makes the schemas of package api's types, where those that write themselves as JSON say how.
func newSchemas() huma.Registry {
	r := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	r.RegisterTypeAlias(reflect.TypeFor[api.Duration](), reflect.TypeFor[durationSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[api.Size](), reflect.TypeFor[sizeSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[api.Content](), reflect.TypeFor[contentSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[api.Comparison](), reflect.TypeFor[comparisonSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[api.Status](), reflect.TypeFor[statusSchema]())
	return r
}

type (
	durationSchema   struct{}
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

func (durationSchema) Schema(huma.Registry) *huma.Schema {
	return textOrNumber(`A time span, such as "1.5s", "250ms" or "2h45m"`, "Seconds; only in requests", "30s")
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
	tolerance := &huma.Schema{Type: huma.TypeNumber, Description: "Of numeric; 1e-6 when neither is given"}
	return &huma.Schema{OneOf: []*huma.Schema{mode, {Type: huma.TypeObject, Properties: map[string]*huma.Schema{
		"mode": mode, "absolute": tolerance, "relative": tolerance, "checker": r.Schema(reflect.TypeFor[api.Checker](), true, "Checker"),
	}}}}
}

func (statusSchema) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, status := range append(api.Statuses(), api.TaskPending, api.TaskSkipped) {
		s.Enum = append(s.Enum, string(status))
	}
	return s
}

var pathParam = regexp.MustCompile(`\{(\w+)(?:\.\.\.)?\}`)

// operation describes one route.
func operation(rt *route, schemas huma.Registry) *huma.Operation {
	op := &huma.Operation{
		Method: rt.method, OperationID: rt.name, Summary: rt.summary, Tags: []string{rt.tag},
		Responses: map[string]*huma.Response{},
	}
	for _, m := range pathParam.FindAllStringSubmatch(rt.path, -1) {
		op.Parameters = append(op.Parameters, &huma.Param{Name: m[1], In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}})
	}
	for _, p := range rt.params {
		op.Parameters = append(op.Parameters, p.describe())
	}
	for _, h := range rt.headers {
		op.Parameters = append(op.Parameters, &huma.Param{Name: h, In: "header", Schema: &huma.Schema{Type: huma.TypeString}})
	}
	switch {
	case rt.document:
		op.RequestBody = &huma.RequestBody{Required: true, Description: "Definitions, in YAML (also several documents) or JSON", Content: map[string]*huma.MediaType{}}
		for _, m := range mediaDocument {
			if m != "" {
				op.RequestBody.Content[m] = &huma.MediaType{}
			}
		}
	case rt.raw:
		op.RequestBody = &huma.RequestBody{Description: "Bytes, as they are; they are taken in as they arrive", Content: map[string]*huma.MediaType{}}
		for _, m := range mediaBytes {
			if m != "" {
				op.RequestBody.Content[m] = &huma.MediaType{}
			}
		}
	case rt.body != nil:
		op.RequestBody = &huma.RequestBody{Required: !rt.optional, Content: map[string]*huma.MediaType{
			"application/json": {Schema: schemas.Schema(rt.body, true, rt.name+"Request")},
		}}
	}
	for _, a := range rt.answers {
		op.Responses[strconv.Itoa(a.status)] = a.describe(schemas, rt.name)
	}
	op.Responses["default"] = &huma.Response{Description: "A problem", Content: map[string]*huma.MediaType{
		"application/problem+json": {Schema: schemas.Schema(reflect.TypeFor[api.Problem](), true, "Problem")},
	}}
	return op
}

func (p param) describe() *huma.Param {
	schema := &huma.Schema{Type: p.kind}
	for _, c := range p.choices {
		schema.Enum = append(schema.Enum, c)
	}
	if p.repeat {
		schema = &huma.Schema{Type: huma.TypeArray, Items: schema}
	}
	return &huma.Param{Name: p.name, In: "query", Description: p.doc, Schema: schema}
}

func (a answer) describe(schemas huma.Registry, name string) *huma.Response {
	res := &huma.Response{Description: a.doc}
	if a.doc == "" {
		res.Description = http.StatusText(a.status)
	}
	media := a.media
	if a.body != nil && !slices.Contains(media, "application/json") {
		media = append([]string{"application/json"}, media...)
	}
	for _, m := range media {
		if res.Content == nil {
			res.Content = map[string]*huma.MediaType{}
		}
		content := &huma.MediaType{}
		switch {
		case m == "application/json" && a.body != nil:
			content.Schema = schemas.Schema(a.body, true, fmt.Sprintf("%sAnswer", name))
		case m == "text/event-stream", m == "text/plain":
			content.Schema = &huma.Schema{Type: huma.TypeString}
		}
		res.Content[m] = content
	}
	return res
}
