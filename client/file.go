package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// File opens a file that a finished execution left, by its path in the result's files. The caller closes it. A file that is
// not there, or is no longer, is a Problem of the type api.ProblemNotFound.
func (c *Client) File(ctx context.Context, id, path string) (io.ReadCloser, error) {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	res, err := c.open(ctx, request{method: http.MethodGet, path: execution(id, "/files/") + strings.Join(parts, "/"), repeatable: true,
		header: http.Header{"Accept": {"application/octet-stream"}}})
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}
