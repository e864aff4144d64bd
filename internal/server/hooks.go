package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/signature"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const hooksPath = "/hooks/"

func webhookRoutes() []route {
	typeReceived := reflect.TypeFor[api.Received]()
	return []route{
		{method: "POST", path: hooksPath + "{name}", name: "receive", tag: tagWebhooks,
			summary: "Receive a request of a provider; its signature or secret replaces the token",
			headers: []string{engine.ChainHeader}, anyQuery: true, raw: true,
			answers: []answer{{http.StatusAccepted, "Accepted and stored durably", typeReceived, nil},
				{http.StatusOK, "It came before; or the provider asked whether the webhook is there, and is answered as it expects", typeReceived, nil}}, handle: (*call).receive},
		{method: "GET", path: "/api/v1/webhooks", name: "list-webhooks", tag: tagWebhooks, summary: "List webhooks, by name",
			params: []param{paramLimit, paramCursor}, answers: []answer{ok(reflect.TypeFor[api.WebhookPage]())}, handle: (*call).webhooks},
		{method: "GET", path: "/api/v1/webhooks/{name}", name: "get-webhook", tag: tagWebhooks,
			summary: "Get one webhook and its latest refusals",
			answers: []answer{ok(reflect.TypeFor[api.Webhook]())}, handle: (*call).webhook},
	}
}

// Reasons of refusals, in addition to those of package signature.
const (
	hookSecret      = "secret"
	hookTooLarge    = "too_large"
	hookInvalid     = "invalid"
	hookPaused      = "paused"
	hookNotLocal    = "not_local"
	hookUnavailable = "unavailable"
	hookUnknown     = "unknown"
	hookGuessing    = "guessing"
)

type hookError struct {
	reason  string
	problem *api.Problem // the answer to the sender
	more    error        // for the log and the list of refusals; nil: the same as the answer
}

func (e *hookError) Error() string {
	if e.more != nil {
		return e.more.Error()
	}
	return e.problem.Detail
}

func (e *hookError) Unwrap() error { return e.problem }

func hookFailure(reason string, status int, kind, detail string) *hookError {
	return &hookError{reason: reason, problem: refusal(status, kind, detail)}
}

// withoutSecret is answered with 503, so that the provider sends the request again. The log names the missing secret; the answer does not.
func withoutSecret(err error) *hookError {
	return hookFailure(hookSecret, http.StatusServiceUnavailable, api.ProblemUnavailable, "the webhook cannot verify requests just now: send the request again later").because(err)
}

const hookLater = "the server cannot take requests to webhooks just now: send the request again later"

// because adds details that the sender does not see.
func (e *hookError) because(err error) *hookError {
	e.more = err
	return e
}

// receive accepts a request to a webhook. It answers once the signal is committed, and stores nothing from a request that it refuses.
func (c *call) receive() error {
	name := c.r.PathValue("name")
	w, err := c.Engine.Webhook(c.ctx(), name)
	if errors.Is(err, store.ErrNotFound) {
		c.metrics.Refused("", hookUnknown)
		return notFound("webhook", name)
	}
	if err == nil {
		err = c.receiveFor(w)
	}
	if err == nil {
		return nil
	}
	if w == nil {
		c.metrics.Refused("", hookUnavailable) // it is unknown whether this webhook exists
		return hookFailure(hookUnavailable, http.StatusServiceUnavailable, api.ProblemUnavailable, hookLater).because(err)
	}
	reason, message := hookUnavailable, problemOf(err).Detail
	if h, ok := errors.AsType[*hookError](err); ok {
		reason, message = h.reason, h.Error()
	} else if p := problemOf(err); p.Status == http.StatusUnprocessableEntity {
		reason = hookInvalid
	} else if p.Status == http.StatusServiceUnavailable { // the detail may have the database's address, which the sender must not learn
		err = hookFailure(hookUnavailable, p.Status, p.Type, hookLater).because(err)
	}
	remote, _, _ := net.SplitHostPort(c.r.RemoteAddr)
	c.metrics.Refused(name, reason)
	c.refusals.add(name, reason, message, remote, c.begun)
	if reason == hookSecret && c.said.due(hooksPath+name, c.begun) {
		c.log.Error("a webhook cannot verify its requests", telemetry.Webhook, name, telemetry.Err, err)
	}
	return err
}

func (c *call) receiveFor(w *engine.Webhook) error {
	hook := w.Webhook
	if hook.Paused {
		return hookFailure(hookPaused, http.StatusServiceUnavailable, api.ProblemUnavailable, "the webhook is paused: send the request again later")
	}
	if hook.Verify.Scheme == signature.None {
		if err := c.fromHere(); err != nil {
			return err
		}
	}
	secrets, missing := c.secrets(hook)
	if len(secrets) == 0 && hook.Verify.Scheme != signature.None {
		return withoutSecret(errors.Join(missing...))
	}
	limit := min(hook.MaxBody, c.BodyLimit)
	tooLarge := func() error {
		c.w.Header().Set("Connection", "close")
		return hookFailure(hookTooLarge, http.StatusRequestEntityTooLarge, api.ProblemTooLarge, fmt.Sprintf("the body has more than the %d bytes that this webhook takes (max_body)", limit))
	}
	return c.bytes(&c.hookBodies, limit, tooLarge, func(body []byte) error { return c.verified(w, secrets, body) })
}

func (c *call) verified(w *engine.Webhook, secrets []string, body []byte) error {
	hook := w.Webhook
	d, err := signature.Verify(&hook.Verify, secrets, c.r.Header, body, time.Now())
	r, refused := errors.AsType[*signature.Refusal](err)
	if hook.Verify.Scheme.Shared() && slices.ContainsFunc(secrets, func(s string) bool { return CheckToken(s) != nil }) {
		if err := c.guessed(w.Name, !refused || r.Reason != signature.Mismatch); err != nil {
			return err
		}
	}
	if refused {
		if text := hook.Verify.Challenge(); text != "" {
			c.w.Header().Set("WWW-Authenticate", text)
		}
		e := hookFailure(r.Reason, http.StatusUnauthorized, api.ProblemUnauthorized, r.Message)
		e.problem.Title = "The request is not signed as this webhook asks" // an API token would not help
		return e
	}
	if err != nil {
		return withoutSecret(err)
	}
	query := c.query
	if query == nil {
		query = url.Values{}
	}
	request, err := hook.Request(c.r.Header, query, body)
	if err != nil {
		return hookFailure(hookInvalid, http.StatusUnprocessableEntity, api.ProblemInvalid, err.Error())
	}
	if text, ok := hook.Answer(request); ok {
		c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		c.send(c.w, http.StatusOK, []byte(text))
		return nil
	}
	chain, err := c.chain()
	if err != nil {
		return err
	}
	out, err := c.Engine.Deliver(c.ctx(), w, d, request, chain)
	differs := errors.Is(err, engine.ErrIdempotencyMismatch)
	if err != nil && !differs {
		return err
	}
	status := http.StatusAccepted
	if out.Existing || differs {
		status = http.StatusOK // so that the provider does not send it again
	}
	return c.json(status, api.Received{Signal: out.Signal.Text(flow.SignalPrefix), Existing: out.Existing, Differs: differs, Replayed: out.Replayed})
}

// forwarded are the headers by which a proxy marks a request that it passes on.
var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"}

// fromHere refuses requests from other machines, for webhooks without signatures. A proxy on this machine passes on requests from
// elsewhere, so if the server has tokens, this also requires a token.
func (c *call) fromHere() error {
	local, ok := c.ctx().Value(http.LocalAddrContextKey).(net.Addr)
	through := slices.ContainsFunc(forwarded, func(name string) bool { return c.r.Header.Get(name) != "" })
	if token, _ := bearer(c.r); len(c.tokens) > 0 && !c.knownToken(token) {
		through = true
	}
	if !ok || !through && isLocal(local) && (local.Network() == "unix" || ownName(c.r.Host)) && crossOrigin.Check(c.r) == nil {
		return nil
	}
	return hookFailure(hookNotLocal, http.StatusForbidden, api.ProblemForbidden,
		"the webhook checks no signature (scheme none), so it takes requests of programs on this machine only, by 127.0.0.1 or localhost, through no proxy, and with a token where the server has tokens: "+
			"for other senders write scheme: bearer, basic or token, with a secret")
}

// secrets reads the secrets of a webhook, and collects the errors of unreadable ones.
func (c *call) secrets(hook *definition.Webhook) (all []string, missing []error) {
	for _, name := range hook.Secrets {
		value, err := "", errors.New("this server has no secrets")
		if c.Secret != nil {
			value, err = c.Secret(name)
		}
		if err != nil {
			missing = append(missing, fmt.Errorf("%s: %w", name, err))
			continue
		}
		all = append(all, value)
	}
	return all, missing
}

// guessed counts a request to a webhook with a secret that is short enough to be guessed. After too many wrong secrets it refuses the
// address, as for logins. Requests to webhooks with longer secrets are not counted: many senders can share the address of a proxy, and one
// of them with an old secret would lock the others out.
func (c *call) guessed(hook string, right bool) error {
	wait := c.hookLogins.of(hook).attempt(clientAddress(c.r), right, time.Now())
	if wait == 0 {
		return nil
	}
	seconds := c.retryAfter(wait)
	return hookFailure(hookGuessing, http.StatusTooManyRequests, api.ProblemTooManyLogins,
		fmt.Sprintf("%d requests from this address had a wrong secret within a minute: try again in %d s, or use a secret of at least %d characters, "+
			"which is not limited", wrongLogins, seconds, minToken))
}

func (c *call) renderWebhook(w *engine.Webhook) api.Webhook {
	out := api.Webhook{Name: w.Name, Version: w.Version, Path: hooksPath + w.Name, Scheme: string(w.Webhook.Verify.Scheme), Trigger: w.Webhook.TriggerText, Paused: w.Webhook.Paused, CreatedAt: w.CreatedAt}
	_, missing := c.secrets(w.Webhook)
	for _, err := range missing {
		out.Missing = append(out.Missing, err.Error())
	}
	return out
}

func (c *call) webhooks() error {
	limit := int(c.number("limit", 100, 1, 1000))
	if err := c.checked(); err != nil {
		return err
	}
	all, err := c.Engine.Webhooks(c.ctx(), c.query.Get("cursor"), limit)
	if err != nil {
		return err
	}
	page := api.WebhookPage{Webhooks: make([]api.Webhook, len(all))}
	for i, w := range all {
		page.Webhooks[i] = c.renderWebhook(w)
	}
	if len(all) == limit {
		page.NextCursor = all[limit-1].Name
	}
	return c.json(http.StatusOK, page)
}

func (c *call) webhook() error {
	name := c.r.PathValue("name")
	w, err := c.Engine.Webhook(c.ctx(), name)
	if err != nil {
		return missing("webhook", name, err)
	}
	out := c.renderWebhook(w)
	out.Document, out.Refusals = w.Canonical(), c.refusals.of(name)
	return c.json(http.StatusOK, out)
}
