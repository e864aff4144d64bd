package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/wire"
)

// Client is the hand-off of a worker over HTTP. It is safe for concurrent use. A call that cannot be delivered returns
// ErrUnavailable: the worker tries again, at its own pace and with jitter.
type Client struct {
	wire.Asking
	wire.Secrets
	base  string
	token string
	http  *http.Client
}

// Dial prepares a Client for the server at a URL such as "https://pawl.example.com". token may be empty if the server requires
// none. Nothing is sent yet.
func Dial(server, token string) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("server %q is not an http or https URL: write one such as http://127.0.0.1:7411", server)
	}
	c := &Client{
		base:  strings.TrimSuffix(u.String(), "/") + Prefix,
		token: token,
		http: &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
			ExpectContinueTimeout: 2 * time.Second,
		}},
	}
	c.Do = c.call
	return c, nil
}

// Over makes the client's calls use another transport than TCP. It must be called before the first call.
func (c *Client) Over(t http.RoundTripper) { c.http = &http.Client{Transport: t} }

func (c *Client) Open(ctx context.Context, s handoff.Session) (flow.ID, error) {
	var out wire.Opened
	if err := c.post(ctx, wire.Open, "", s, &out); err != nil {
		return flow.ID{}, fmt.Errorf("open session: %w", err)
	}
	id, err := c.opened(out)
	if err != nil {
		return flow.ID{}, fmt.Errorf("open session: %w", err)
	}
	return id, nil
}

func (c *Client) opened(out wire.Opened) (flow.ID, error) {
	id, err := flow.ParseID(flow.SessionPrefix, out.Session)
	if err != nil {
		return flow.ID{}, fmt.Errorf("%w: %w", handoff.ErrUnavailable, err)
	}
	c.Recall(id, out.Secret)
	return id, nil
}

// Resume implements handoff.Handoff. The secret of the previous session must be known; see Recall.
func (c *Client) Resume(ctx context.Context, s handoff.Session, before flow.ID, keep []flow.AttemptID) (flow.ID, []handoff.Assignment, error) {
	var out wire.Opened
	err := c.post(ctx, wire.Resume, c.Secret(before), wire.Asked{Session: before.Text(flow.SessionPrefix), Next: &s, Keep: keep}, &out)
	if err != nil {
		return flow.ID{}, nil, fmt.Errorf("resume session: %w", err)
	}
	id, err := c.opened(out)
	if err != nil {
		return flow.ID{}, nil, fmt.Errorf("resume session: %w", err)
	}
	c.Forget(before)
	return id, out.Work, nil
}

func (c *Client) Take(ctx context.Context, session flow.ID, n int) ([]handoff.Assignment, error) {
	for {
		out, err := c.call(ctx, session, wire.Take, wire.Asked{N: n})
		if err != nil || len(out.Work) > 0 {
			return out.Work, err
		}
	}
}

func (c *Client) Close(ctx context.Context, session flow.ID) error {
	_, err := c.call(ctx, session, wire.Close, wire.Asked{})
	if err == nil || errors.Is(err, handoff.ErrSessionLost) {
		c.Forget(session)
	}
	return err
}

func (c *Client) call(ctx context.Context, session flow.ID, name string, in wire.Asked) (wire.Answer, error) {
	secret := c.Secret(session)
	in.Session = session.Text(flow.SessionPrefix)
	if in.Session == "" {
		return wire.Answer{}, fmt.Errorf("%s: %w: there is none", name, handoff.ErrSessionLost)
	}
	var out wire.Answer
	if err := c.post(ctx, name, secret, in, &out); err != nil {
		return wire.Answer{}, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

// introduce sets the headers with the protocol's version, the caller's token and the session's secret.
func (c *Client) introduce(req *http.Request, secret string) {
	req.Header.Set(versionHeader, Protocol)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if secret != "" {
		req.Header.Set(secretHeader, secret)
	}
}

// post makes one call. Its error is ErrSessionLost, ErrNotHeld, ErrUnavailable (which may be ErrRefused as well) or ctx's own.
func (c *Client) post(ctx context.Context, name, secret string, in, out any) error {
	body, err := wire.Encode(in)
	if err != nil {
		return fmt.Errorf("%w: write the call: %w", handoff.ErrUnavailable, err)
	}
	calling, cancel := context.WithTimeout(ctx, pollFor+answerWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(calling, http.MethodPost, c.base+name, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", handoff.ErrUnavailable, err)
	}
	req.Header.Set("Content-Type", "application/json")
	c.introduce(req, secret)
	res, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", handoff.ErrUnavailable, err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, wire.MostAnswer))
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: read the answer: %w", handoff.ErrUnavailable, err)
	}
	if res.StatusCode == http.StatusOK && res.Header.Get(versionHeader) == Protocol {
		if err := json.Unmarshal(raw, out); err != nil {
			return fmt.Errorf("%w: read the answer: %w", handoff.ErrUnavailable, err)
		}
		return nil
	}
	return refusal(res, raw)
}

// refusal is the reason why a call was refused.
func refusal(res *http.Response, raw []byte) error {
	var a wire.Answer
	say := res.Status
	if json.Unmarshal(raw, &a) == nil && a.Error != "" {
		say = a.Error
	}
	switch status := res.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fmt.Errorf("%w: %w: the server refuses the token (%s): give this worker a valid one", handoff.ErrUnavailable, handoff.ErrRefused, say)
	case res.Header.Get(versionHeader) == "":
		return fmt.Errorf("%w: %s answered %s, which is no Pawl server that takes workers: check the URL", handoff.ErrUnavailable, res.Request.URL.Redacted(), res.Status)
	case status == http.StatusGone, status == http.StatusNotFound: // after 404 the worker opens a new session instead of resuming
		return fmt.Errorf("%w: %s", handoff.ErrSessionLost, say)
	case status == http.StatusConflict:
		return fmt.Errorf("%w: %s", handoff.ErrNotHeld, say)
	case status == http.StatusBadRequest:
		return fmt.Errorf("%w: %w: %s", handoff.ErrUnavailable, handoff.ErrBadCall, say)
	case status == http.StatusUpgradeRequired:
		return fmt.Errorf("%w: %w: %s", handoff.ErrUnavailable, handoff.ErrRefused, say)
	}
	return fmt.Errorf("%w: %s", handoff.ErrUnavailable, say)
}
