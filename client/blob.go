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

// Upload sends a content ahead of the submissions that name it, and returns what they name it by. It reads the content twice:
// to learn its sum, and to send it, which it does not when the server has it already.
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

// waitsToBeAsked reports whether the transport sends a body only when the server asks for it. One that announces to wait and
// does not would write into a connection that the server, which has answered, closes.
func (c *Client) waitsToBeAsked() bool {
	switch t := c.http.Transport.(type) {
	case inProcess, nil: // nil is http.DefaultTransport, which waits
		return true
	case *http.Transport:
		return t.ExpectContinueTimeout > 0
	}
	return false
}
