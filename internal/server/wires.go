package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
)

// wiresPath is the prefix of the protocols of other evaluators.
const wiresPath = "/compat/"

// Wire is a protocol of another evaluator. Its requests pass the same checks as all requests, and its paths are below /compat/NAME/.
type Wire struct {
	Name string
	// TokenHeader is a header that has the token in place of Authorization: Bearer; "": there is none.
	TokenHeader string
	// Outcomes are the values that Handler may count.
	Outcomes []string
	// Handler returns the handler, which counts the outcome of each evaluation. The paths of its requests are below the prefix, they end when
	// the server begins to stop, and their bodies have at most Options.BodyLimit bytes. Reading a body fails if the server has no memory for
	// it now.
	Handler func(count func(outcome string)) http.Handler
}

func (w Wire) prefix() string { return wiresPath + w.Name + "/" }

func (s *Server) wired(w Wire) http.Handler {
	s.metrics.Wire(w.Name, w.Outcomes)
	inner := http.StripPrefix(strings.TrimSuffix(w.prefix(), "/"), w.Handler(func(outcome string) { s.metrics.Wired(w.Name, outcome) }))
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		// The values of the request's context would make the calls inside this process look like the client's, so they would be checked again.
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		defer context.AfterFunc(r.Context(), func() { cancel(context.Canceled) })()
		defer context.AfterFunc(s.draining, func() { cancel(engine.ErrClosed) })()
		rc := http.NewResponseController(rw)
		_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout))
		body := &countedBody{ReadCloser: http.MaxBytesReader(rw, r.Body, s.BodyLimit), among: &s.bodies, over: func() { _ = rc.SetReadDeadline(time.Time{}) }}
		defer body.release()
		r = r.WithContext(ctx)
		r.Body = body
		inner.ServeHTTP(rw, r)
	})
}

// countedBody counts in a budget the bytes read beyond a small body, until it is released.
type countedBody struct {
	io.ReadCloser
	among      *budget
	over       func() // called at the end
	read, used int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if err != nil {
		b.over()
	}
	if more := b.read - b.among.first - b.used; more > 0 {
		if !b.among.take(more) {
			return 0, fmt.Errorf("%w: the large bodies under way take all of the memory set aside for them", engine.ErrOverloaded)
		}
		b.used += more
	}
	return n, err
}

func (b *countedBody) release() { b.among.used.Add(-b.used) }
