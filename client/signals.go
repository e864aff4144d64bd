package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/pawl-run/pawl/api"
)

// Emit sends a signal. If the same content was emitted before under the same trigger and key, the result is the earlier signal, with
// Existing set. Without a key, the client does not repeat it after a failure: each call may emit another signal.
func (c *Client) Emit(ctx context.Context, m api.Emission) (*api.Emitted, error) {
	return fetch[api.Emitted](ctx, c, request{method: http.MethodPost, path: "/signals", body: m, repeatable: m.Key != ""})
}

// EmitTo is Emit for a signal about an unfinished execution: its tasks may wait for it. The subject of m stays empty.
func (c *Client) EmitTo(ctx context.Context, id string, m api.Emission) (*api.Emitted, error) {
	return fetch[api.Emitted](ctx, c, request{method: http.MethodPost, path: "/executions/" + url.PathEscape(id) + "/signals", body: m, repeatable: m.Key != ""})
}

// EmitBatch emits up to api.BatchLimit signals. Each signal has its own result; the error is only about the whole batch.
func (c *Client) EmitBatch(ctx context.Context, all []api.Emission) (*api.BatchResult, error) {
	batch := api.EmissionBatch{Signals: make([]api.Emission, len(all))}
	repeatable := true
	for i, m := range all {
		batch.Signals[i], repeatable = m, repeatable && m.Key != ""
	}
	return fetch[api.BatchResult](ctx, c, request{method: http.MethodPost, path: "/signals:batch", body: batch, repeatable: repeatable})
}

// Signal loads one signal.
func (c *Client) Signal(ctx context.Context, id string) (*api.Signal, error) {
	return fetch[api.Signal](ctx, c, get("/signals/"+url.PathEscape(id), nil))
}

// SignalFilter selects signals. Zero fields select everything.
type SignalFilter struct {
	Trigger string
	Subject string
	Source  string
	Since   time.Time // emitted at or after
	Limit   int       // of a page: 1 to 1000; 100 by default
	Cursor  string    // NextCursor of the page before
}

func (f SignalFilter) query() url.Values {
	q := url.Values{}
	set(q, "trigger", f.Trigger)
	set(q, "subject", f.Subject)
	set(q, "source", f.Source)
	set(q, "cursor", f.Cursor)
	setTime(q, "since", f.Since)
	setInt(q, "limit", int64(f.Limit))
	return q
}

// FollowSignals walks through the latest signals that f selects, f.Limit at most, oldest first, and then through each new one, and each
// that is matched while it is among the latest, until ctx ends. When the connection breaks, it reconnects by itself and yields the latest
// signals again.
func (c *Client) FollowSignals(ctx context.Context, f SignalFilter) iter.Seq2[api.Signal, error] {
	return follow[api.Signal](ctx, c, "/signals", f.query(), api.StreamSignal)
}

// Signals returns one page, newest first.
func (c *Client) Signals(ctx context.Context, f SignalFilter) (*api.SignalPage, error) {
	return fetch[api.SignalPage](ctx, c, get("/signals", f.query()))
}

// AllSignals walks through all signals that f selects, newest first, page by page. An error ends the walk.
func (c *Client) AllSignals(ctx context.Context, f SignalFilter) iter.Seq2[api.Signal, error] {
	return entries(ctx, c, "/signals", f.query(), func(p *api.SignalPage) ([]api.Signal, string) { return p.Signals, p.NextCursor })
}
