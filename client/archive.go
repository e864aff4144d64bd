package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
)

// Export opens an archive of executions with everything beneath them: those in ids or, without ids, those that the filter selects. The
// caller reads it to the end and closes it. A truncated archive has no seal, and pawl open refuses it.
func (c *Client) Export(ctx context.Context, ids []string, f Filter) (io.ReadCloser, error) {
	f.TopLevel, f.Outputs, f.Cases, f.Limit, f.Cursor = false, false, false, 0, "" // whole trees, and all of them
	q := f.query()
	if len(ids) > 0 {
		q = url.Values{"id": ids}
	}
	res, err := c.open(ctx, request{method: http.MethodGet, path: "/executions:export", query: q, repeatable: true, header: http.Header{"Accept": {"application/x-tar"}}})
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}
