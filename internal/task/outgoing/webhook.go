package outgoing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/secret"
	"github.com/pawl-run/pawl/internal/signature"
	"github.com/pawl-run/pawl/internal/task"
)

type WebhookOptions struct {
	Egress *Egress
	// Secrets are the worker's variables and files that tasks may name, each in the form that secret.Parse reads.
	Secrets []string
}

// Webhook sends an event to a URL, signed as Standard Webhooks specifies. All attempts of an execution send its id as
// webhook-id and the same body, so a receiver can recognise a repetition and respond at once.
type Webhook struct {
	egress  *Egress
	secrets secret.Grants
}

func NewWebhook(o WebhookOptions) (*Webhook, error) {
	secrets, err := secret.Parse(o.Secrets)
	if err != nil {
		return nil, fmt.Errorf("new webhook handler: %w", err)
	}
	return &Webhook{o.Egress, secrets}, nil
}

const (
	webhookTimeout = 30 * time.Second // for a response: the longest that Standard Webhooks recommends
	answerLimit    = 64 << 10         // bytes of a response that are read; only its status matters
)

type delivered struct {
	ID     string `json:"id" doc:"webhook-id header, the same in all attempts"`
	Status int    `json:"status" doc:"HTTP status that the receiver answered"`
}

func (h *Webhook) Run(ctx context.Context, t *task.Task) (json.RawMessage, error) {
	n, err := payload.Webhook(t.Payload)
	if err != nil {
		return nil, task.Errorf(flow.CodeInvalidInput, "%s", err)
	}
	ctx, cancel := deadline(ctx, time.Duration(n.Timeout), t.Timeout, webhookTimeout)
	defer cancel()
	req, err := h.request(ctx, n, t)
	if err != nil {
		return nil, err
	}
	client := *h.egress.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the URL names the receiver
	began := time.Now()
	say := func(what any) {
		fmt.Fprintf(t.Log("log"), "%s → %s: %v (%d ms)\n", n.Event, req.URL.Redacted(), what, time.Since(began).Milliseconds())
	}
	res, err := client.Do(req)
	if err != nil {
		err = callError(ctx, err)
		say(err)
		return nil, err
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(res.Body, answerLimit)) // the beginning is for people; the status decides
	say(res.Status)
	switch {
	case res.StatusCode/100 == 2:
		return json.Marshal(delivered{t.IdempotencyKey(), res.StatusCode})
	case res.StatusCode == http.StatusGone:
		return nil, task.Errorf(flow.CodeGone, "%s answered %s: the receiver wants no more of these events", req.URL.Redacted(), res.Status)
	}
	return nil, statusError(res, body)
}

func (h *Webhook) request(ctx context.Context, n *payload.Notice, t *task.Task) (*http.Request, error) {
	body, err := json.Marshal(struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data,omitempty"`
	}{n.Event, n.Data})
	if err != nil {
		return nil, task.Errorf(flow.CodeInvalidInput, "write the body: %v", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.URL, bytes.NewReader(body))
	if err != nil {
		return nil, task.Errorf(flow.CodeInvalidInput, "%v (check url)", err)
	}
	key, err := h.secrets.For(n.Secret(), req.URL)
	if no, ok := errors.AsType[*secret.Error](err); ok {
		if no.Absent { // the variable or file may exist at the next attempt
			return nil, task.Errorf("secret_unavailable", "%s: %s", n.Secret(), no)
		}
		return nil, task.Errorf(flow.CodeInvalidInput, "%s: %s", n.Secret(), no)
	}
	fields, err := signature.Sign(&signature.Hook{Scheme: signature.Standard}, key, t.IdempotencyKey(), time.Now(), body)
	if err != nil {
		return nil, task.Errorf("secret_unavailable", "%s: %v", n.Secret(), err)
	}
	for _, f := range fields {
		req.Header.Set(f.Name, f.Value)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "pawl")
	if t.Traceparent != "" {
		req.Header.Set("Traceparent", t.Traceparent)
	}
	t.SetChain(req.Header)
	return req, nil
}
