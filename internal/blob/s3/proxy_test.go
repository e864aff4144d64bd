package s3_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/pawl-run/pawl/internal/blob/s3/s3test"
)

// fault is the effect of a proxy on one request.
type fault int

const (
	none    fault = iota
	refused       // answered with 503 SlowDown; not passed to the service
	broken        // answered with 500 although the service has processed it
	dropped       // the connection ends before the service gets it
	lost          // the service has processed it, but its answer does not arrive
	cut           // half of the body arrives
	slow          // the body arrives in small pieces
	faults
	foreign // answered with 404 by a component in front of the service
	unknown // answered with 501: the service does not support the request
)

// proxy is between a store and the service.
type proxy struct {
	t        testing.TB
	to       string
	choose   func(*http.Request) fault
	rewrite  func(*http.Request, []byte) []byte            // nil: answers are passed on unchanged
	instead  func(*http.Request) (status int, code string) // answer instead of the service's; nil or 0: none
	requests atomic.Int64
}

// through returns the URL of the same place through a proxy.
func through(t testing.TB, u *url.URL, p *proxy) *url.URL {
	t.Helper()
	service, err := url.Parse(u.Query().Get("endpoint"))
	if err != nil {
		t.Fatal(err)
	}
	p.t, p.to = t, service.Host
	if p.choose == nil {
		p.choose = func(*http.Request) fault { return none }
	}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	return s3test.With(u, "endpoint", s.URL)
}

const slowDown = `<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`

// ServeHTTP implements http.Handler. The host header stays the one that the client has signed.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.requests.Add(1)
	if p.instead != nil {
		if status, code := p.instead(r); status != 0 {
			answer(w, status, fmt.Sprintf(`<?xml version="1.0"?><Error><Code>%s</Code><Message>No.</Message></Error>`, code))
			return
		}
	}
	f := p.choose(r)
	switch f {
	case refused:
		answer(w, http.StatusServiceUnavailable, slowDown)
		return
	case unknown:
		answer(w, http.StatusNotImplemented, `<?xml version="1.0"?><Error><Code>NotImplemented</Code><Message>A header you provided implies functionality that is not implemented</Message></Error>`)
		return
	case foreign:
		http.NotFound(w, r)
		return
	case dropped:
		panic(http.ErrAbortHandler)
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = "http", p.to, ""
	resp, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	switch f {
	case broken:
		answer(w, http.StatusInternalServerError, `<?xml version="1.0"?><Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>`)
		return
	case lost:
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), resp.Header)
	if p.rewrite != nil && r.Method != http.MethodHead {
		body = p.rewrite(r, body)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(resp.StatusCode)
	switch f {
	case cut:
		_, _ = w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	case slow:
		for piece := range bytes.Lines(body) {
			_, _ = w.Write(piece) // the client may have disconnected
			_ = http.NewResponseController(w).Flush()
		}
	default:
		_, _ = w.Write(body)
	}
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // the client may have disconnected
}
