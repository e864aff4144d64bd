package brokerrpc

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/wire"
)

type blobCall struct {
	Execution flow.ID `json:"execution"`
	Attempt   int     `json:"attempt"`
	Name      string  `json:"name"`
	From      int64   `json:"from,omitempty"`
}

func (c *Client) PutBlob(ctx context.Context, session flow.ID, q handoff.BlobQuery, r io.Reader) (int64, error) {
	body, err := wire.Encode(blobCall(q))
	if err != nil {
		return 0, fmt.Errorf("put blob %s: %w", q.Name, err)
	}
	fault := &wire.Source{Reader: r}
	f, err := c.ask(ctx, session, kindPut, &call{line: Asks, body: body, content: fault, patience: stallAfter})
	var out wire.Stored
	if err == nil {
		err = json.Unmarshal(f.body, &out)
	}
	switch {
	case err == nil:
		return out.Size, nil
	case fault.Err != nil:
		return 0, fault.Err
	}
	return 0, fmt.Errorf("put blob %s: %w", q.Name, unavailable(ctx, err))
}

func (c *Client) GetBlob(ctx context.Context, session flow.ID, q handoff.BlobQuery) (io.ReadCloser, error) {
	body, err := wire.Encode(blobCall(q))
	if err != nil {
		return nil, fmt.Errorf("get blob %s: %w", q.Name, err)
	}
	f, err := c.ask(ctx, session, kindGet, &call{line: Asks, body: body, patience: stallAfter})
	if err != nil {
		return nil, fmt.Errorf("get blob %s: %w", q.Name, unavailable(ctx, err))
	}
	if f.Pipe == "" {
		return nil, fmt.Errorf("get blob %s: %w: the answer names no transfer", q.Name, handoff.ErrUnavailable)
	}
	reading, cancel := context.WithCancel(ctx)
	from := c.correlator.receive(reading, f.Pipe, f.To, []byte(c.Secret(session)), byWorker, byServer)
	from.stopAfter = cancel
	return from, nil
}
