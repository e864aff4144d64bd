package client

import (
	"context"
	"io"
)

// File opens a file that a finished execution wrote, by its path in the result's files. The caller closes it. A missing or removed file
// gives a Problem of the type api.ProblemNotFound.
func (c *Client) File(ctx context.Context, id, path string) (io.ReadCloser, error) {
	return c.bytes(ctx, execution(id, "/files/")+escaped(path), nil)
}
