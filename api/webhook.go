package api

import (
	"encoding/json"
	"time"
)

// Webhook turns requests to POST /hooks/{name} into signals.
type Webhook struct {
	Name    string `json:"name" doc:"Name, which is also the end of its path"`
	Version int    `json:"version" doc:"Version of the document"`
	Path    string `json:"path" doc:"Path for requests, for example /hooks/github"`

	Scheme string `json:"scheme" doc:"How requests are verified: standard, github, stripe, slack, hmac, token, bearer, basic or none"`

	Trigger   string          `json:"trigger" doc:"Trigger of its signals, as written in the document"`
	Paused    bool            `json:"paused,omitempty" doc:"Requests are answered with 503 while it is paused"`
	CreatedAt time.Time       `json:"created_at" doc:"When this version was applied"`
	Missing   []string        `json:"missing,omitempty" doc:"Secrets that this server does not have or may not use"`
	Refusals  []HookRefusal   `json:"refusals,omitempty" doc:"Last 100 requests that this server refused, newest first"`
	Document  json.RawMessage `json:"document,omitempty" doc:"Document; left out in lists"`
}

// HookRefusal is a request that a webhook refused. The request itself is not stored.
type HookRefusal struct {
	At      time.Time `json:"at" doc:"When the request came"`
	Reason  string    `json:"reason" doc:"missing, garbled, mismatch, stale or future (of its signature or secret), guessing, secret, too_large, invalid, paused, not_local, unavailable"`
	Message string    `json:"message" doc:"Message for people"`
	Remote  string    `json:"remote,omitempty" doc:"Address of the sender"`
}

// WebhookPage is a page of webhooks.
type WebhookPage struct {
	Webhooks   []Webhook `json:"webhooks" doc:"Webhooks by name"`
	NextCursor string    `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}

// Received is the answer to a request to a webhook.
type Received struct {
	Signal   string `json:"signal" doc:"ID of the signal; begins with sg_"`
	Existing bool   `json:"existing,omitempty" doc:"The request came before; this is its signal"`
	Differs  bool   `json:"differs,omitempty" doc:"An earlier request had this ID or key and other content; that one is kept"`
	Replayed bool   `json:"replayed,omitempty" doc:"Unsigned repeat of earlier content under another ID; it is kept, but starts nothing"`
}
