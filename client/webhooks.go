package client

import (
	"context"
	"net/url"

	"github.com/pawl-run/pawl/api"
)

// Webhooks lists the webhooks, by name.
func (c *Client) Webhooks(ctx context.Context) ([]api.Webhook, error) {
	return collect(entries(ctx, c, "/webhooks", nil, func(p *api.WebhookPage) ([]api.Webhook, string) { return p.Webhooks, p.NextCursor }))
}

// Webhook loads one webhook, with its document and the latest refusals.
func (c *Client) Webhook(ctx context.Context, name string) (*api.Webhook, error) {
	return fetch[api.Webhook](ctx, c, get("/webhooks/"+url.PathEscape(name), nil))
}
