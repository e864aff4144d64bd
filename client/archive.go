package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/pawl-run/pawl/api"
)

// Export opens an archive of executions with all that is beneath them: those named or, without ids, those that the filter selects. The
// caller reads it to its end and closes it. One that was cut off has no seal, and is refused by Import.
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

// Import stores the executions of an archive. Importing one again is harmless. The call lasts as long as it takes: the
// answer comes when all is stored.
func (c *Client) Import(ctx context.Context, archive io.Reader) (*api.Import, error) {
	patient := *c
	if t, ok := c.http.Transport.(*http.Transport); ok {
		t = t.Clone()
		t.ResponseHeaderTimeout = 0
		defer t.CloseIdleConnections()
		patient.http = &http.Client{Transport: t}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/api/v1/executions:import", io.NopCloser(archive))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("Accept", "application/json")
	res, err := patient.send(ctx, req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	var out api.Import
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return &out, nil
}
