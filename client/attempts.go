package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/api"
)

// Attempt tells what the worker of an attempt was given and how the attempt ended. Attempts are numbered from 1 on.
func (c *Client) Attempt(ctx context.Context, id string, number int) (*api.Attempt, error) {
	return fetch[api.Attempt](ctx, c, get(execution(id, "/attempts/"+strconv.Itoa(number)), nil))
}

// Given opens a blob that the input of an execution names, from an offset on. The caller closes it. One that is not there, or is no longer,
// is a Problem of the type api.ProblemNotFound.
func (c *Client) Given(ctx context.Context, id, blob string, offset int64) (io.ReadCloser, error) {
	q := url.Values{}
	setInt(q, "offset", offset)
	return c.bytes(ctx, execution(id, "/given/")+escaped(blob), q)
}

// StdinBytes opens what an interactive evaluation has been given to read so far. The caller closes it.
func (c *Client) StdinBytes(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.bytes(ctx, execution(id, "/stdin/bytes"), nil)
}

// bytes opens an answer that is no JSON.
func (c *Client) bytes(ctx context.Context, path string, q url.Values) (io.ReadCloser, error) {
	res, err := c.open(ctx, request{method: http.MethodGet, path: path, query: q, repeatable: true, header: http.Header{"Accept": {"application/octet-stream"}}})
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// escaped is a path whose parts may have any character.
func escaped(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}
