package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/pawl-run/pawl/api"
)

func aliasPath(name, alias string) string {
	return "/definitions/" + url.PathEscape(name) + "/aliases/" + url.PathEscape(alias)
}

// MoveAlias makes an alias of a definition select other versions, or removes it. When it returns, every server uses the new versions;
// executions that have begun are not affected.
func (c *Client) MoveAlias(ctx context.Context, name, alias string, o api.AliasOrder) (*api.Alias, error) {
	return fetch[api.Alias](ctx, c, request{method: http.MethodPut, path: aliasPath(name, alias), body: o, repeatable: !o.Back})
}

// Aliases lists the current aliases of a definition, by name.
func (c *Client) Aliases(ctx context.Context, name string) ([]api.Alias, error) {
	var page api.AliasPage
	err := c.call(ctx, get("/definitions/"+url.PathEscape(name)+"/aliases", nil), &page)
	return page.Aliases, err
}

// AliasMoves walks through the moves of an alias, newest first. An error ends the walk.
func (c *Client) AliasMoves(ctx context.Context, name, alias string) iter.Seq2[api.Alias, error] {
	return entries(ctx, c, aliasPath(name, alias), nil, func(p *api.AliasPage) ([]api.Alias, string) { return p.Aliases, p.NextCursor })
}
