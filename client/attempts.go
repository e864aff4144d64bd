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

// Attempt returns the content that the worker of an attempt got, and how the attempt ended. Attempts are numbered from 1.
func (c *Client) Attempt(ctx context.Context, id string, number int) (*api.Attempt, error) {
	return fetch[api.Attempt](ctx, c, get(execution(id, "/attempts/"+strconv.Itoa(number)), nil))
}

// Given opens a blob that the input of an execution refers to, from an offset on. The caller closes it. A missing or removed blob gives a
// Problem of the type api.ProblemNotFound.
func (c *Client) Given(ctx context.Context, id, blob string, offset int64) (io.ReadCloser, error) {
	q := url.Values{}
	setInt(q, "offset", offset)
	return c.bytes(ctx, execution(id, "/given/")+escaped(blob), q)
}

// StdinBytes opens the input that an interactive evaluation has received so far. The caller closes it.
func (c *Client) StdinBytes(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.bytes(ctx, execution(id, "/stdin/bytes"), nil)
}

// bytes opens an answer that is not JSON.
func (c *Client) bytes(ctx context.Context, path string, q url.Values) (io.ReadCloser, error) {
	res, err := c.open(ctx, request{method: http.MethodGet, path: path, query: q, repeatable: true, header: http.Header{"Accept": {"application/octet-stream"}}})
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

func escaped(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}
