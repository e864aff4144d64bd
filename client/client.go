// Package client speaks Pawl's HTTP API: with a server somewhere, or with one in the same process. The command line and
// the tests use nothing else.
//
// A Client is safe for concurrent use. Every method takes a context and gives up when it ends. What the server refuses
// comes back as a *[api.Problem] (use errors.As). Calls that are safe to repeat are repeated when the server cannot be
// reached, is unavailable or overloaded, for a minute unless [WithPatience] says otherwise; submissions carry an idempotency key and
// so are safe as well.
package client

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
)

// Client is a connection to one server.
type Client struct {
	base      string // without a slash at the end
	http      *http.Client
	token     string
	userAgent string
	patience  time.Duration
	onRetry   func(error, time.Time, time.Time)
	chain     string
	keys      bool // give submissions an idempotency key of their own
}

// Option changes how a Client works.
type Option func(*Client)

// WithToken sends the bearer token with every request.
func WithToken(token string) Option { return func(c *Client) { c.token = token } }

// WithHTTPClient uses h for requests. Its Timeout should be 0: it would end streams.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithUserAgent sets the User-Agent.
func WithUserAgent(s string) Option { return func(c *Client) { c.userAgent = s } }

// chainVariable is where a program that a rule has led to finds the rules.
const chainVariable = "PAWL_CHAIN"

// WithChain sends the header Pawl-Chain with signals and submissions: the rules that have led to them, so that rules which lead to one
// another through a program are noticed. Without it the header is what $PAWL_CHAIN says; in a handler it is the task's Chain.
func WithChain(chain string) Option { return func(c *Client) { c.chain = chain } }

// WithPatience sets for how long a call that is safe to repeat is tried again while the server cannot be reached, is unavailable or
// overloaded, and a stream is taken up again; a context that ends earlier ends it earlier. By default it is DefaultPatience, which
// outlasts the restart of a server. 0: calls are tried once.
func WithPatience(d time.Duration) Option { return func(c *Client) { c.patience = d } }

// WithOnRetry calls f before a call or a stream is tried again: with why the last try failed, since when it fails, and until when it is
// tried. Goroutines that share the client call it at the same time.
func WithOnRetry(f func(err error, since, until time.Time)) Option {
	return func(c *Client) { c.onRetry = f }
}

// DefaultPatience is how long calls are repeated unless WithPatience says otherwise. A server in the same process is there or
// ending: it is given inProcessPatience.
const (
	DefaultPatience   = time.Minute
	inProcessPatience = time.Second
)

// DefaultServer is where a server listens unless it was told otherwise.
const DefaultServer = "http://127.0.0.1:7411"

// WithoutIdempotencyKeys leaves submissions without a key of their own (keys that the caller sets are still sent). Such a
// submission is not repeated when its answer was lost, and spares the server remembering a key for each.
func WithoutIdempotencyKeys() Option { return func(c *Client) { c.keys = false } }

// New makes a client of the server at baseURL, such as "http://127.0.0.1:7411"; "" is $PAWL_SERVER, with the token $PAWL_TOKEN unless
// WithToken gives another, or else DefaultServer. It does not connect yet.
func New(baseURL string, options ...Option) (*Client, error) {
	token := ""
	if baseURL == "" {
		baseURL, token = cmp.Or(os.Getenv("PAWL_SERVER"), DefaultServer), os.Getenv("PAWL_TOKEN")
	}
	u, err := url.Parse(baseURL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("server address %q is not a URL: write it as in http://127.0.0.1:7411", baseURL)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("server address %q: only scheme, host, port and path are allowed; give a token apart", baseURL)
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		MaxIdleConns:          256,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       60 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: 5 * time.Second,
		ResponseHeaderTimeout: 2 * maxWait,
	}
	c := &Client{
		base: strings.TrimRight(u.String(), "/"), http: &http.Client{Transport: transport},
		token: token, userAgent: "pawl-client", patience: DefaultPatience, onRetry: func(error, time.Time, time.Time) {}, chain: os.Getenv(chainVariable), keys: true,
	}
	for _, o := range options {
		o(c)
	}
	return c, nil
}

// NewInProcess makes a client of a server in the same process, without a socket. Streams flow as they do over one.
// Submissions get no idempotency keys of their own: no answer can be lost on the way. On PostgreSQL an answer can say
// that it is not known what became of a submission (a Problem with the status 503): a caller that wants to repeat it
// then gives it a key.
func NewInProcess(h http.Handler, options ...Option) *Client {
	c := &Client{
		base: "http://in-process", http: &http.Client{Transport: inProcess{h}},
		userAgent: "pawl-client", patience: inProcessPatience, onRetry: func(error, time.Time, time.Time) {}, chain: os.Getenv(chainVariable),
	}
	for _, o := range options {
		o(c)
	}
	return c
}

// BaseURL is the server's address.
func (c *Client) BaseURL() string { return c.base }

// IsNotFound reports whether err says that there is no such thing.
func IsNotFound(err error) bool { return problemType(err) == api.ProblemNotFound }

// IsFinished reports whether err says that the execution had ended already.
func IsFinished(err error) bool { return problemType(err) == api.ProblemFinished }

func problemType(err error) string {
	var p *api.Problem
	if !errors.As(err, &p) {
		return ""
	}
	return p.Type
}

// key returns given, or a fresh idempotency key when the client makes them.
func (c *Client) key(given string) string {
	if !c.keys {
		return given
	}
	return cmp.Or(given, rand.Text())
}
