package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

// inProcess serves requests by calling a handler. A short answer is passed on whole; after the first flush, or beyond inProcessBuffer, it
// streams.
type inProcess struct{ handler http.Handler }

const inProcessBuffer = 64 << 10

func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	in := r.Clone(ctx)
	in.RequestURI = in.URL.RequestURI()
	in.Host = in.URL.Host
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := &inProcessAnswer{header: http.Header{}, begun: make(chan struct{}), cancel: cancel}
	go func() {
		defer cancel(nil)
		defer func() { _ = in.Body.Close() }()
		defer func() {
			if v := recover(); v != nil { // as net/http handles a handler that panics
				w.finish(fmt.Errorf("handler panicked: %v", v))
			}
		}()
		t.handler.ServeHTTP(w, in)
		w.finish(nil)
	}()
	select {
	case <-w.begun:
	case <-r.Context().Done():
		cancel(context.Cause(r.Context()))
		return nil, context.Cause(r.Context())
	}
	if w.failed != nil {
		return nil, w.failed
	}
	res := &http.Response{
		Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: w.body, ContentLength: w.length, Request: r,
	}
	return res, nil
}

// inProcessAnswer is the handler's http.ResponseWriter. Only the handler's goroutine calls its methods.
type inProcessAnswer struct {
	header http.Header
	buffer bytes.Buffer
	wrote  bool
	pipe   *io.PipeWriter // set once the answer streams
	cancel context.CancelCauseFunc

	deadline time.Time // of writes to the pipe; zero: none

	// The fields below are ready once begun is closed.
	begun  chan struct{}
	status int
	sent   http.Header
	body   io.ReadCloser
	length int64
	failed error
}

func (w *inProcessAnswer) Header() http.Header { return w.header }

func (w *inProcessAnswer) WriteHeader(status int) {
	if w.wrote || status < 200 {
		return
	}
	w.wrote = true
	w.status = status
	w.sent = w.header.Clone()
}

func (w *inProcessAnswer) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.pipe != nil {
		return w.stream(b)
	}
	w.buffer.Write(b)
	if w.buffer.Len() > inProcessBuffer {
		return len(b), w.FlushError()
	}
	return len(b), nil
}

// FlushError passes on the bytes written so far and starts streaming.
func (w *inProcessAnswer) FlushError() error {
	w.WriteHeader(http.StatusOK)
	if w.pipe != nil {
		return nil // a write to a pipe returns once it was read
	}
	reader, writer := io.Pipe()
	w.pipe = writer
	w.body = &inProcessBody{PipeReader: reader, cancel: w.cancel}
	w.length = -1
	close(w.begun)
	if w.buffer.Len() == 0 {
		return nil
	}
	_, err := w.stream(w.buffer.Bytes())
	w.buffer = bytes.Buffer{}
	return err
}

// Flush is FlushError for handlers that know only http.Flusher.
func (w *inProcessAnswer) Flush() { _ = w.FlushError() }

// stream writes to the reader. If the deadline passes meanwhile, the answer is broken off.
func (w *inProcessAnswer) stream(b []byte) (int, error) {
	if !w.deadline.IsZero() {
		pipe := w.pipe
		late := time.AfterFunc(time.Until(w.deadline), func() { _ = pipe.CloseWithError(os.ErrDeadlineExceeded) })
		defer late.Stop()
	}
	return w.pipe.Write(b)
}

// SetWriteDeadline applies to later writes, as for a connection: a deadline that passes while nothing is written has no effect.
func (w *inProcessAnswer) SetWriteDeadline(t time.Time) error {
	w.deadline = t
	return nil
}

// SetReadDeadline does nothing: the request's body is in memory.
func (w *inProcessAnswer) SetReadDeadline(time.Time) error { return nil }

func (w *inProcessAnswer) finish(failed error) {
	switch {
	case w.pipe != nil:
		_ = w.pipe.CloseWithError(failed) // nil: EOF
	case failed != nil:
		w.failed = failed
		close(w.begun)
	default:
		w.WriteHeader(http.StatusOK)
		w.length = int64(w.buffer.Len())
		w.body = io.NopCloser(&w.buffer)
		close(w.begun)
	}
}

// inProcessBody cancels the handler's context when the reader closes the body.
type inProcessBody struct {
	*io.PipeReader
	cancel context.CancelCauseFunc
}

func (b *inProcessBody) Close() error {
	b.cancel(context.Canceled)
	return b.PipeReader.Close()
}
