package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/pawl-run/pawl/api"
)

// Define registers the definitions in a document (YAML, which may contain several documents, or JSON): all of them or none. file is the
// name for error messages; it may be empty.
func (c *Client) Define(ctx context.Context, document []byte, file string) (*api.Defined, error) {
	return fetch[api.Defined](ctx, c, documentRequest("/definitions", document, file))
}

// DefineFor is Define that also moves an alias to the registered versions. A name without @ selects the same version as before. by is the
// person who does it; it may be empty.
func (c *Client) DefineFor(ctx context.Context, document []byte, file, alias, by string) (*api.Defined, error) {
	r := documentRequest("/definitions", document, file)
	set(r.query, "alias", alias)
	set(r.query, "by", by)
	return fetch[api.Defined](ctx, c, r)
}

// Validate checks a document as Define does and stores nothing. Errors in the document are part of the answer, not an error of the call.
func (c *Client) Validate(ctx context.Context, document []byte, file string) (*api.Validation, error) {
	return fetch[api.Validation](ctx, c, documentRequest("/definitions:validate", document, file))
}

func documentRequest(path string, document []byte, file string) request {
	q := url.Values{}
	set(q, "file", file)
	if document == nil {
		document = []byte{}
	}
	return request{method: http.MethodPost, path: path, query: q, body: document, repeatable: true,
		header: http.Header{"Content-Type": {"application/yaml"}}}
}

// Definition loads a version of a definition; version 0 is the latest.
func (c *Client) Definition(ctx context.Context, name string, version int) (*api.Definition, error) {
	q := url.Values{}
	setInt(q, "version", int64(version))
	return fetch[api.Definition](ctx, c, get("/definitions/"+url.PathEscape(name), q))
}

// Retire makes the server refuse new submissions of a definition, or undoes that. When it returns, every server does so; workflows that
// have begun continue, and so do their tasks that run it.
func (c *Client) Retire(ctx context.Context, name string, o api.RetireOrder) (*api.Definition, error) {
	return fetch[api.Definition](ctx, c, post("/definitions/"+url.PathEscape(name)+"/retire", o))
}

// Graph loads a version of a workflow laid out as a graph; version 0 is the latest. With an older version in since, the graph also contains
// the tasks of that version, and marks the added, changed and removed ones.
func (c *Client) Graph(ctx context.Context, name string, version, since int) (*api.Graph, error) {
	q := url.Values{}
	setInt(q, "version", int64(version))
	setInt(q, "since", int64(since))
	return fetch[api.Graph](ctx, c, get("/definitions/"+url.PathEscape(name)+"/graph", q))
}

// Definitions walks through the latest versions of all definitions, by name. An error ends the walk.
func (c *Client) Definitions(ctx context.Context) iter.Seq2[api.Definition, error] {
	return c.definitions(ctx, "/definitions")
}

// DefinitionVersions walks through the versions of a definition, newest first, without their documents. An error ends the walk.
func (c *Client) DefinitionVersions(ctx context.Context, name string) iter.Seq2[api.Definition, error] {
	return c.definitions(ctx, "/definitions/"+url.PathEscape(name)+"/versions")
}

func (c *Client) definitions(ctx context.Context, path string) iter.Seq2[api.Definition, error] {
	return entries(ctx, c, path, nil, func(p *api.DefinitionPage) ([]api.Definition, string) { return p.Definitions, p.NextCursor })
}
