package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/api"
)

// Queues lists the queues with waiting executions or live workers.
func (c *Client) Queues(ctx context.Context) ([]api.Queue, error) {
	return collect(entries(ctx, c, "/queues", nil, func(q *api.Queues) ([]api.Queue, string) { return q.Queues, q.NextCursor }))
}

// Keys lists the concurrency keys in use, the fullest first.
func (c *Client) Keys(ctx context.Context) ([]api.Key, error) {
	var k api.Keys
	err := c.call(ctx, get("/keys", nil), &k)
	return k.Keys, err
}

// Workers lists the live worker sessions.
func (c *Client) Workers(ctx context.Context) ([]api.Worker, error) {
	return collect(entries(ctx, c, "/workers", nil, func(w *api.Workers) ([]api.Worker, string) { return w.Workers, w.NextCursor }))
}

// BusyWorkers lists the live worker sessions with the executions that each holds, and the recently lost sessions.
func (c *Client) BusyWorkers(ctx context.Context) (workers []api.Worker, lost []api.LostWorker, err error) {
	q := url.Values{"executions": {"true"}, "lost": {"true"}}
	workers, err = collect(entries(ctx, c, "/workers", q, func(w *api.Workers) ([]api.Worker, string) {
		lost = append(lost, w.Lost...)
		return w.Workers, w.NextCursor
	}))
	return workers, lost, err
}

// QueueLine returns the first waiting executions of a queue with their places; with labels, only the executions that have them. With limit
// 0 the server's default applies.
func (c *Client) QueueLine(ctx context.Context, queue string, labels map[string]string, limit int) (*api.QueueLine, error) {
	return fetch[api.QueueLine](ctx, c, get("/queues/"+url.PathEscape(queue)+"/line", lineQuery(labels, limit)))
}

// KeyLine returns the executions that hold a concurrency key, and the first that wait for it, with their places; with labels, only the
// executions that have them. With limit 0 the server's default applies.
func (c *Client) KeyLine(ctx context.Context, key string, labels map[string]string, limit int) (*api.KeyLine, error) {
	q := lineQuery(labels, limit)
	q.Set("key", key)
	return fetch[api.KeyLine](ctx, c, get("/keys:line", q))
}

func lineQuery(labels map[string]string, limit int) url.Values {
	q := url.Values{}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	for name, value := range labels {
		q.Add("label", name+"="+value)
	}
	return q
}

// Stats sums up the server.
func (c *Client) Stats(ctx context.Context) (*api.Stats, error) {
	return fetch[api.Stats](ctx, c, get("/stats", nil))
}

// Activity returns the work of the server in each of the latest spans of time, oldest first. A step is a number of whole minutes; all steps
// lie within the last day.
func (c *Client) Activity(ctx context.Context, step time.Duration, steps int) (*api.Activity, error) {
	return fetch[api.Activity](ctx, c, get("/activity", url.Values{"step": {step.String()}, "limit": {strconv.Itoa(steps)}}))
}

// LastVerification returns the result of the server's latest verification of its store. If there was none since the server started,
// IsNotFound(err) is true.
func (c *Client) LastVerification(ctx context.Context) (*api.Verification, error) {
	return fetch[api.Verification](ctx, c, get("/verify", url.Values{"last": {"true"}}))
}

// Verify makes the server check every row of its store against the invariants. It reads the whole store; a second verification at the same
// time is refused.
func (c *Client) Verify(ctx context.Context) (*api.Verification, error) {
	return fetch[api.Verification](ctx, c, get("/verify", nil))
}

// VerifyHistories does what Verify does and also replays every history, as Replay does for one execution.
func (c *Client) VerifyHistories(ctx context.Context) (*api.Verification, error) {
	return fetch[api.Verification](ctx, c, get("/verify", url.Values{"replay": {"true"}}))
}

// Ready returns nil if the server accepts work: its store answers and it is not stopping.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.once(ctx, request{method: http.MethodGet, path: "//readyz"}, nil)
	return err
}

func collect[T any](list iter.Seq2[T, error]) (all []T, err error) {
	for x, err := range list {
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}
