package client

import (
	"context"
	"io"
)

// File opens a file that a finished execution left, by its path in the result's files. The caller closes it. A file that is
// not there, or is no longer, is a Problem of the type api.ProblemNotFound.
func (c *Client) File(ctx context.Context, id, path string) (io.ReadCloser, error) {
	return c.bytes(ctx, execution(id, "/files/")+escaped(path), nil)
}
