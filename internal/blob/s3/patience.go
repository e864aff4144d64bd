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
	// headerTimeout is how long a request without a body may be unanswered, and how long a body that is being read may be silent.
	headerTimeout = 30 * time.Second
	// bodyTimeout is how long a request with a body may be unanswered after its last bytes were sent. A part has 5 MiB, and parts of many
	// blobs may share a slow connection: twenty at the same time take 100 s at 1 MB/s, and a limit on the whole request would end all of them
	// each time.
	bodyTimeout = time.Minute
	// assembleTimeout is how long a service may take to assemble an object from parts, which some do by copying them.
	assembleTimeout = 5 * time.Minute
)

var (
	errSilent = errors.New("the service did not answer in time")
	errTaken  = errors.New("the request has ended")
	// errForeign is a 404 from a component in front of the service, such as a router that has no service at the moment. The library would take
	// it for the answer that the object does not exist.
	errForeign = errors.New("404 was not answered in XML, as a service does it")
)

// patience is a transport that limits every wait, and that reads the service's clock. The limit is for one try: the library tries again
// after it.
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
		DisableCompression:  true, // content must arrive as it was put
	}
	return &patience{RoundTripper: t, idle: t.CloseIdleConnections}
}

// CloseIdleConnections is called by http.Client.
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

func (p *patience) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	most := allowed(r)
	watch := time.AfterFunc(most, func() { cancel(errSilent) })
	sent := time.Now()
	r = r.WithContext(ctx)
	if r.Body != nil {
		body := &lent{ReadCloser: r.Body, left: r.ContentLength, moves: func() { watch.Reset(most) }}
		defer watch.Stop() // from the time when the last bytes of the body were sent, if that was later
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
		_ = resp.Body.Close() // it is not used
		cancel(nil)
		return nil, fmt.Errorf("%w, but with %.60q", errForeign, kind)
	}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		answered := time.Now()
		// A date is truncated to seconds, and was written approximately in the middle of the round trip.
		p.skew.Store(int64(at.Add(time.Second / 2).Sub(sent.Add(answered.Sub(sent) / 2))))
	}
	resp.Body = &watched{ReadCloser: resp.Body, cause: ctx, watch: watch, cancel: cancel}
	return resp, nil
}

// lent gives the transport access to a request's body only during the request. The transport may continue to read a body after it has
// returned, when the service answers early or the connection breaks. By then the library reads the same bytes for its next try, and the
// store may have refilled their buffer.
type lent struct {
	io.ReadCloser
	mu    sync.Mutex
	left  int64
	taken bool
	moves func() // called when the transport has read some of it
}

func (l *lent) takeBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = true
}

func (l *lent) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken && l.left <= 0 {
		return 0, io.EOF // the transport checks that there are no extra bytes, and keeps the connection if there are none
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

// watched is a body with a time limit for every read.
type watched struct {
	io.ReadCloser
	cause  context.Context
	watch  *time.Timer
	cancel context.CancelCauseFunc
}

func (w *watched) Read(p []byte) (int, error) {
	w.watch.Reset(headerTimeout)
	n, err := w.ReadCloser.Read(p)
	w.watch.Stop()
	if err != nil && errors.Is(context.Cause(w.cause), errSilent) {
		err = errSilent
	}
	return n, err
}

func (w *watched) Close() error {
	w.watch.Stop()
	w.cancel(nil)
	return w.ReadCloser.Close()
}
