package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/pawl-run/pawl/api"
)

// Define registers the definitions in a document (YAML, also with several documents in it, or JSON): all of them or none.
// file is the name that problems are reported with; it may be empty.
func (c *Client) Define(ctx context.Context, document []byte, file string) (*api.Defined, error) {
	return fetch[api.Defined](ctx, c, documentRequest("/definitions", document, file))
}

// DefineFor is Define that moves an alias to what it registers. A name without @ goes on to stand for what it stands for. by says who
// does it; it may be empty.
func (c *Client) DefineFor(ctx context.Context, document []byte, file, alias, by string) (*api.Defined, error) {
	r := documentRequest("/definitions", document, file)
	set(r.query, "alias", alias)
	set(r.query, "by", by)
	return fetch[api.Defined](ctx, c, r)
}

// Validate checks a document as Define does and stores nothing. What is wrong is in the answer and is no error.
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

// Retire lets nothing new of a definition be accepted, or brings it back. When it returns every server goes by it;
// workflows that have begun go on, with tasks that run it too.
func (c *Client) Retire(ctx context.Context, name string, o api.RetireOrder) (*api.Definition, error) {
	return fetch[api.Definition](ctx, c, post("/definitions/"+url.PathEscape(name)+"/retire", o))
}

// Graph loads a version of a workflow laid out as a graph; version 0 is the latest. With another version in since, the
// graph has what that one had as well, and says what was added, changed and removed.
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

// DefinitionVersions walks through the versions of a definition, the newest first, without their documents. An error ends the walk.
func (c *Client) DefinitionVersions(ctx context.Context, name string) iter.Seq2[api.Definition, error] {
	return c.definitions(ctx, "/definitions/"+url.PathEscape(name)+"/versions")
}

func (c *Client) definitions(ctx context.Context, path string) iter.Seq2[api.Definition, error] {
	return entries(ctx, c, path, nil, func(p *api.DefinitionPage) ([]api.Definition, string) { return p.Definitions, p.NextCursor })
}
