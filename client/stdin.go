package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/pawl-run/pawl/api"
)

// Stdin returns how much input an interactive evaluation has received.
func (c *Client) Stdin(ctx context.Context, id string) (*api.Stdin, error) {
	return fetch[api.Stdin](ctx, c, get(execution(id, "/stdin"), nil))
}

// StdinWriter sends input to an interactive evaluation while it runs. Input is stored when Write or Close returns: it survives the server
// and the program's attempts, each of which reads all of it. It is for one goroutine.
type StdinWriter struct {
	client *Client
	ctx    context.Context
	id     string
	offset int64
}

// mostWrite is the number of bytes that one call carries at most.
const mostWrite = 1 << 20

// WriteStdin returns a StdinWriter that continues at an offset: 0 at the beginning, or that of [Client.Stdin]. ctx bounds its calls, which
// are repeated while the server cannot be reached: bytes that are sent twice arrive once.
func (c *Client) WriteStdin(ctx context.Context, id string, offset int64) *StdinWriter {
	return &StdinWriter{client: c, ctx: ctx, id: id, offset: offset}
}

// Offset is the position in the stdin at which the next write continues.
func (w *StdinWriter) Offset() int64 { return w.offset }

// Write sends p and returns once it is stored.
func (w *StdinWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		piece := p[:min(len(p), mostWrite)]
		if err = w.send(piece, false); err == nil {
			n, p = n+len(piece), p[len(piece):]
		}
	}
	return n, err
}

// Close sends the program an end of file after the bytes written.
func (w *StdinWriter) Close() error { return w.send(nil, true) }

func (w *StdinWriter) send(piece []byte, last bool) error {
	q := url.Values{"offset": {strconv.FormatInt(w.offset, 10)}}
	setTrue(q, "eof", last)
	r := request{
		method: http.MethodPost, path: execution(w.id, "/stdin"), query: q, body: piece,
		header: http.Header{"Content-Type": {"application/octet-stream"}}, repeatable: true,
	}
	if err := w.client.call(w.ctx, r, nil); err != nil {
		return err
	}
	w.offset += int64(len(piece))
	return nil
}
