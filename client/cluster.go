package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/api"
)

// Queues lists the queues that have executions waiting or workers serving.
func (c *Client) Queues(ctx context.Context) ([]api.Queue, error) {
	return paged(func(cursor string) ([]api.Queue, string, error) {
		var q api.Queues
		err := c.get(ctx, "/queues", cursor, &q)
		return q.Queues, q.NextCursor, err
	})
}

// Keys lists the concurrency keys in use, the fullest first.
func (c *Client) Keys(ctx context.Context) ([]api.Key, error) {
	var k api.Keys
	err := c.get(ctx, "/keys", "", &k)
	return k.Keys, err
}

// Workers lists the live worker sessions.
func (c *Client) Workers(ctx context.Context) ([]api.Worker, error) {
	return paged(func(cursor string) ([]api.Worker, string, error) {
		var w api.Workers
		err := c.get(ctx, "/workers", cursor, &w)
		return w.Workers, w.NextCursor, err
	})
}

// BusyWorkers lists the live worker sessions with what each holds, and the sessions that the server has lost lately.
func (c *Client) BusyWorkers(ctx context.Context) (workers []api.Worker, lost []api.LostWorker, err error) {
	workers, err = paged(func(cursor string) ([]api.Worker, string, error) {
		q := url.Values{"executions": {"true"}, "lost": {"true"}}
		set(q, "cursor", cursor)
		var w api.Workers
		err := c.call(ctx, request{method: http.MethodGet, path: "/workers", query: q, repeatable: true}, &w)
		lost = append(lost, w.Lost...)
		return w.Workers, w.NextCursor, err
	})
	return workers, lost, err
}

// QueueLine returns the first executions that wait in a queue, or the first with labels, with their places. A limit of 0 is the server's own.
func (c *Client) QueueLine(ctx context.Context, queue string, labels map[string]string, limit int) (*api.QueueLine, error) {
	var l api.QueueLine
	err := c.call(ctx, request{method: http.MethodGet, path: "/queues/" + url.PathEscape(queue) + "/line", query: lineQuery(labels, limit), repeatable: true}, &l)
	return orNil(&l, err)
}

// KeyLine returns the executions that hold a concurrency key, and the first that wait for it, or the first with labels, with their places. A limit
// of 0 is the server's own.
func (c *Client) KeyLine(ctx context.Context, key string, labels map[string]string, limit int) (*api.KeyLine, error) {
	q := lineQuery(labels, limit)
	q.Set("key", key)
	var l api.KeyLine
	err := c.call(ctx, request{method: http.MethodGet, path: "/keys:line", query: q, repeatable: true}, &l)
	return orNil(&l, err)
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
	var s api.Stats
	err := c.get(ctx, "/stats", "", &s)
	return orNil(&s, err)
}

// Activity returns what the server has done in each of the latest spans of time, the oldest first. A step is whole minutes; all of them lie
// within the last day.
func (c *Client) Activity(ctx context.Context, step time.Duration, steps int) (*api.Activity, error) {
	var a api.Activity
	err := c.call(ctx, request{method: http.MethodGet, path: "/activity", query: url.Values{"step": {step.String()}, "limit": {strconv.Itoa(steps)}}, repeatable: true}, &a)
	return orNil(&a, err)
}

// LastVerification returns what the server found when it verified its store the last time. IsNotFound reports that it has not since it started.
func (c *Client) LastVerification(ctx context.Context) (*api.Verification, error) {
	var v api.Verification
	err := c.call(ctx, request{method: http.MethodGet, path: "/verify", query: url.Values{"last": {"true"}}, repeatable: true}, &v)
	return orNil(&v, err)
}

// Verify has the server check every row of its store against what Pawl promises. It reads all there is; a second one at
// the same time is refused.
func (c *Client) Verify(ctx context.Context) (*api.Verification, error) {
	var v api.Verification
	err := c.get(ctx, "/verify", "", &v)
	return orNil(&v, err)
}

// VerifyHistories does what Verify does and lets the rules decide every history once more, as Replay does for one.
func (c *Client) VerifyHistories(ctx context.Context) (*api.Verification, error) {
	var v api.Verification
	err := c.call(ctx, request{method: http.MethodGet, path: "/verify", query: url.Values{"replay": {"true"}}, repeatable: true}, &v)
	return orNil(&v, err)
}

// Ready returns nil when the server takes work: its store answers and it is not about to stop.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.once(ctx, request{method: http.MethodGet, path: "//readyz"}, nil)
	return err
}

// get asks for a path; cursor is of the page when it is not the first.
func (c *Client) get(ctx context.Context, path, cursor string, out any) error {
	q := url.Values{}
	set(q, "cursor", cursor)
	return c.call(ctx, request{method: http.MethodGet, path: path, query: q, repeatable: true}, out)
}

// paged gathers the pages of a list, each asked for with the cursor of the one before.
func paged[T any](page func(cursor string) (items []T, next string, err error)) ([]T, error) {
	var all []T
	for cursor := ""; ; {
		items, next, err := page(cursor)
		if err != nil {
			return nil, err
		}
		if all = append(all, items...); next == "" {
			return all, nil
		}
		cursor = next
	}
}
