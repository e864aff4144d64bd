package api

import (
	"encoding/json"
	"time"
)

// Webhook makes signals of the requests to POST /hooks/{name}.
type Webhook struct {
	Name      string          `json:"name" doc:"The end of its path"`
	Version   int             `json:"version" doc:"Of its document"`
	Path      string          `json:"path" doc:"Where requests go, as in /hooks/github"`
	Scheme    string          `json:"scheme" doc:"How requests are known to be the provider's: standard, github, stripe, slack, hmac, token, bearer, basic or none"`
	Trigger   string          `json:"trigger" doc:"Of the signals, as the document has it"`
	Paused    bool            `json:"paused,omitempty" doc:"Requests are answered with 503 for now"`
	CreatedAt time.Time       `json:"created_at" doc:"When this version was applied"`
	Missing   []string        `json:"missing,omitempty" doc:"Secrets that this server does not have, or may not use"`
	Refusals  []HookRefusal   `json:"refusals,omitempty" doc:"The last 100 requests that this server has refused, the latest first"`
	Document  json.RawMessage `json:"document,omitempty" doc:"Its document; not in lists"`
}

// HookRefusal is a request that a webhook has refused. Nothing of it is stored.
type HookRefusal struct {
	At      time.Time `json:"at" doc:"When it came"`
	Reason  string    `json:"reason" doc:"missing, garbled, mismatch, stale or future (of its signature or secret), guessing, secret, too_large, invalid, paused, not_local, unavailable"`
	Message string    `json:"message" doc:"For people"`
	Remote  string    `json:"remote,omitempty" doc:"The address that it came from"`
}

// WebhookPage is a page of webhooks.
type WebhookPage struct {
	Webhooks   []Webhook `json:"webhooks" doc:"By name"`
	NextCursor string    `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}

// Received is the answer to a request to a webhook.
type Received struct {
	Signal   string `json:"signal" doc:"Its id; begins with sg_"`
	Existing bool   `json:"existing,omitempty" doc:"The request came before, and this is its signal"`
	Differs  bool   `json:"differs,omitempty" doc:"The request's id or key came before with other content, which stands"`
	Replayed bool   `json:"replayed,omitempty" doc:"The same content came before under another id: it is kept, and no rule is asked about it"`
}
