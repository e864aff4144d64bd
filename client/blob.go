package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"

	"github.com/pawl-run/pawl/api"
)

// Upload sends a content before the submissions that use it, and returns the reference for them. It reads the content twice: for its
// SHA-256, and to send it. If the server already has it, it is not sent.
func (c *Client) Upload(ctx context.Context, content io.ReadSeeker) (*api.Blob, error) {
	h := sha256.New()
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("upload: %w", err)
	}
	size, err := io.Copy(h, content)
	if err != nil {
		return nil, fmt.Errorf("upload: %w", err)
	}
	header := http.Header{"Content-Type": {"application/octet-stream"}}
	if c.waitsToBeAsked() {
		header.Set("Expect", "100-continue")
	}
	return fetch[api.Blob](ctx, c, request{
		method: http.MethodPut, path: "/blobs/sha256:" + hex.EncodeToString(h.Sum(nil)), stream: content, size: size, repeatable: true,
		header: header,
	})
}

// waitsToBeAsked reports whether the transport waits for "100 Continue" before it sends a body. A transport that sends the header Expect
// but does not wait would write into a connection that the server closes after its answer.
func (c *Client) waitsToBeAsked() bool {
	switch t := c.http.Transport.(type) {
	case inProcess, nil: // nil is http.DefaultTransport, which waits
		return true
	case *http.Transport:
		return t.ExpectContinueTimeout > 0
	}
	return false
}
