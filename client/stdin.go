package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/pawl-run/pawl/api"
)

// Stdin tells how much an interactive evaluation has been given to read.
func (c *Client) Stdin(ctx context.Context, id string) (*api.Stdin, error) {
	return fetch[api.Stdin](ctx, c, get(execution(id, "/stdin"), nil))
}

// StdinWriter gives an interactive evaluation something to read while it runs. What Write and Close have returned from is
// kept: it survives the server and the program's own attempts, each of which reads all of it. It is used by one goroutine.
type StdinWriter struct {
	client *Client
	ctx    context.Context
	id     string
	offset int64
}

// mostWrite is how many bytes one call carries.
const mostWrite = 1 << 20

// WriteStdin makes a StdinWriter that goes on from an offset: 0 at the beginning, or what [Client.Stdin] says. ctx bounds
// its calls, which are repeated when the server cannot be reached: sent twice, bytes arrive once.
func (c *Client) WriteStdin(ctx context.Context, id string, offset int64) *StdinWriter {
	return &StdinWriter{client: c, ctx: ctx, id: id, offset: offset}
}

// Offset is how many bytes of the stdin there are up to where this writer goes on.
func (w *StdinWriter) Offset() int64 { return w.offset }

// Write sends p and returns once it is kept.
func (w *StdinWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		piece := p[:min(len(p), mostWrite)]
		if err = w.send(piece, false); err == nil {
			n, p = n+len(piece), p[len(piece):]
		}
	}
	return n, err
}

// Close gives the program an end of file behind what was written.
func (w *StdinWriter) Close() error { return w.send(nil, true) }

func (w *StdinWriter) send(piece []byte, last bool) error {
	q := url.Values{"offset": {strconv.FormatInt(w.offset, 10)}}
	if last {
		q.Set("eof", "true")
	}
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
