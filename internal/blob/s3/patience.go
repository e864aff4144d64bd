package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	connectTimeout = 5 * time.Second
	// headerTimeout is how long a request without a body may go unanswered, and a body that is read may be silent.
	headerTimeout = 30 * time.Second
	// bodyTimeout is how long a request may go unanswered whose body is sent, since the last of it was taken. A part has 5 MiB, and those
	// of many blobs may share a slow way: twenty at once take 100 s at 1 MB/s, and a bound on the whole would end all of them each time.
	bodyTimeout = time.Minute
	// assembleTimeout is how long a service may take to make one object of parts, which some do by copying them.
	assembleTimeout = 5 * time.Minute
)

var (
	errSilent = errors.New("the service did not answer in time")
	errTaken  = errors.New("the request has ended")
	// errForeign is a 404 of what stands before a service, such as a router that knows of no service just now. The library would
	// take it for the answer that there is no such object.
	errForeign = errors.New("404 was not answered in XML, as a service does it")
)

// patience is a transport on which every wait has an end, and which reads the service's clock. The end is that of one try: the
// library tries again after it.
type patience struct {
	http.RoundTripper
	idle func()
	skew atomic.Int64
}

func newPatience() *patience {
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: connectTimeout, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout: connectTimeout,
		MaxIdleConnsPerHost: 32,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true, // bytes come as they were put
	}
	return &patience{RoundTripper: t, idle: t.CloseIdleConnections}
}

// CloseIdleConnections is what http.Client calls.
func (p *patience) CloseIdleConnections() { p.idle() }

func allowed(r *http.Request) time.Duration {
	switch {
	case r.Method == http.MethodPost && r.URL.Query().Has("uploadId"):
		return assembleTimeout
	case r.ContentLength > 0:
		return bodyTimeout
	}
	return headerTimeout
}

// RoundTrip implements http.RoundTripper.
func (p *patience) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	most := allowed(r)
	watch := time.AfterFunc(most, func() { cancel(errSilent) })
	sent := time.Now()
	r = r.WithContext(ctx)
	if r.Body != nil {
		body := &lent{ReadCloser: r.Body, left: r.ContentLength, moves: func() { watch.Reset(most) }}
		defer watch.Stop() // after the last of the body was taken, if it was taken late
		defer body.takeBack()
		r.Body = body
	}
	resp, err := p.RoundTripper.RoundTrip(r)
	watch.Stop()
	if err != nil {
		if errors.Is(context.Cause(ctx), errSilent) {
			err = errSilent
		}
		cancel(nil)
		return nil, err
	}
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode == http.StatusNotFound && r.Method != http.MethodHead && !strings.Contains(kind, "xml") {
		_ = resp.Body.Close() // nothing of it is used
		cancel(nil)
		return nil, fmt.Errorf("%w, but with %.60q", errForeign, kind)
	}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		answered := time.Now()
		// A date is cut to its second, and was written about in the middle of the round trip.
		p.skew.Store(int64(at.Add(time.Second / 2).Sub(sent.Add(answered.Sub(sent) / 2))))
	}
	resp.Body = &watched{ReadCloser: resp.Body, cause: ctx, watch: watch, cancel: cancel}
	return resp, nil
}

// lent is the body of a request for as long as the request lasts. The transport may go on reading a body after it has
// returned, when the service answers early or the connection breaks; the library reads the same bytes for its next try by then, and
// the store may have filled their buffer again.
type lent struct {
	io.ReadCloser
	mu    sync.Mutex
	left  int64
	taken bool
	moves func() // is called when the transport has taken some of it
}

func (l *lent) takeBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = true
}

// Read implements io.Reader.
func (l *lent) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken && l.left <= 0 {
		return 0, io.EOF // the transport looks for more than it was promised, and keeps the connection when there is none
	}
	if l.taken {
		return 0, errTaken
	}
	n, err := l.ReadCloser.Read(p)
	l.left -= int64(n)
	if n > 0 {
		l.moves()
	}
	return n, err
}

// watched is a body of which every read has an end.
type watched struct {
	io.ReadCloser
	cause  context.Context
	watch  *time.Timer
	cancel context.CancelCauseFunc
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	w.watch.Reset(headerTimeout)
	n, err := w.ReadCloser.Read(p)
	w.watch.Stop()
	if err != nil && errors.Is(context.Cause(w.cause), errSilent) {
		err = errSilent
	}
	return n, err
}

// Close implements io.Closer.
func (w *watched) Close() error {
	w.watch.Stop()
	w.cancel(nil)
	return w.ReadCloser.Close()
}
