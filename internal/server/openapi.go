package server

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

const mediaOpenAPI = "application/openapi+json"

// headerDocs describes request headers whose names need an explanation.
var headerDocs = map[string]string{
	"Idempotency-Key": "Repeating a request with the same key returns the same executions; " +
		"a different request with that key is refused (422). For a batch it covers the whole request; " +
		"items with their own idempotency_key keep that. A cancel that is repeated with its key is not a second cancel",
	"Last-Event-ID": "Streams only: continue after the message with this ID",
	"Pawl-Chain": "Rules that led to this request, as Pawl sent them in this header or in PAWL_CHAIN; " +
		"with it, rules that start each other through an outside system are detected",
	"traceparent": "W3C trace context, passed on to the work",
}

var pathParam = regexp.MustCompile(`\{(\w+)(?:\.\.\.)?\}`)

func operation(rt *route, s schemas) *huma.Operation {
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
		op.Parameters = append(op.Parameters, &huma.Param{Name: h, In: "header", Description: headerDocs[h], Schema: &huma.Schema{Type: huma.TypeString}})
	}
	switch {
	case rt.document:
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{},
			Description: "Definitions as YAML, one or more documents, or JSON"}
		for _, m := range mediaDocument {
			if m != "" {
				op.RequestBody.Content[m] = &huma.MediaType{}
			}
		}
	case rt.form:
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{mediaForm: {}},
			Description: "The form of the page at the same path, filled in"}
	case rt.raw:
		op.RequestBody = &huma.RequestBody{Description: "Raw bytes, processed as they arrive", Content: map[string]*huma.MediaType{}}
		for _, m := range mediaBytes {
			if m != "" {
				op.RequestBody.Content[m] = &huma.MediaType{}
			}
		}
	case rt.body != nil:
		op.RequestBody = &huma.RequestBody{Required: !rt.optional, Content: map[string]*huma.MediaType{
			"application/json": {Schema: s.in.Schema(rt.body, true, rt.name+"Request")},
		}}
	}
	for _, a := range rt.answers {
		op.Responses[strconv.Itoa(a.status)] = a.describe(s.out, rt.name)
	}
	refusal := huma.Response{Content: map[string]*huma.MediaType{mediaProblem: {Schema: s.out.Schema(problemType, true, "Problem")}}}
	for status, doc := range map[string]string{
		"4XX": "The request is wrong: type and errors of the problem tell how",
		"5XX": "The server failed or is unavailable (503: try again after Retry-After)",
	} {
		r := refusal
		r.Description = doc
		op.Responses[status] = &r
	}
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
	return &huma.Param{Name: p.name, In: "query", Description: p.doc, Required: p.required, Schema: schema}
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
		case m == "text/event-stream", m == "text/plain", m == mediaHTML:
			content.Schema = &huma.Schema{Type: huma.TypeString}
		}
		res.Content[m] = content
	}
	return res
}

func (c *call) openAPI() error {
	c.w.Header().Set("Content-Type", mediaOpenAPI)
	c.send(c.w, http.StatusOK, c.document)
	return nil
}
