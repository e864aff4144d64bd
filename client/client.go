// Package client is a client of Pawl's HTTP API, for a remote server or for one in the same process. The command line and the tests use
// nothing else.
//
// A Client is safe for concurrent use. Every method takes a context and gives up when it ends. A refusal by the server is a *[api.Problem]
// (use errors.As). Calls that are safe to repeat are repeated while the server cannot be reached, is unavailable or is overloaded, for a
// minute unless [WithPatience] says otherwise. Submissions carry an idempotency key, so they are safe to repeat.
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
	keys      bool // generate idempotency keys for submissions
}

// Option changes how a Client works.
type Option func(*Client)

// WithToken sends the bearer token with every request.
func WithToken(token string) Option { return func(c *Client) { c.token = token } }

// WithHTTPClient uses h for requests. Its Timeout should be 0: it would end streams.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithUserAgent sets the User-Agent.
func WithUserAgent(s string) Option { return func(c *Client) { c.userAgent = s } }

// chainVariable is the environment variable with the chain of rules that led to this program.
const chainVariable = "PAWL_CHAIN"

// WithChain sends the header Pawl-Chain with signals and submissions. It names the rules that led to them, so that Pawl detects a loop of
// rules through a program. Without this option the value is $PAWL_CHAIN; in a handler it is the task's Chain.
func WithChain(chain string) Option { return func(c *Client) { c.chain = chain } }

// WithPatience sets how long a call that is safe to repeat is retried while the server cannot be reached, is unavailable or is overloaded,
// and how long a broken stream is reopened. The end of the context ends the retries earlier. The default is DefaultPatience, longer than a
// server needs to restart. With 0, calls are tried once.
func WithPatience(d time.Duration) Option { return func(c *Client) { c.patience = d } }

// WithOnRetry calls f before each retry of a call or a stream, with the error of the last try, the time of the first failure, and the time
// at which retrying ends. Goroutines that share the client may call f concurrently.
func WithOnRetry(f func(err error, since, until time.Time)) Option {
	return func(c *Client) { c.onRetry = f }
}

// DefaultPatience is how long calls are retried unless WithPatience says otherwise. A server in the same process is either running or
// stopping, so inProcessPatience is enough for it.
const (
	DefaultPatience   = time.Minute
	inProcessPatience = time.Second
)

// DefaultServer is the address at which a server listens by default.
const DefaultServer = "http://127.0.0.1:7411"

// WithoutIdempotencyKeys generates no keys for submissions (keys that the caller sets are still sent). Such a submission is not repeated
// when its answer is lost, but the server does not have to store a key for it.
func WithoutIdempotencyKeys() Option { return func(c *Client) { c.keys = false } }

// New returns a client of the server at baseURL, such as "http://127.0.0.1:7411". If baseURL is "", it is $PAWL_SERVER, with the token
// $PAWL_TOKEN unless WithToken gives another, else DefaultServer. It does not connect yet.
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

// NewInProcess returns a client of a server in the same process, without a socket. Streams work as over a socket. It generates no
// idempotency keys for submissions, since no answer can be lost. On PostgreSQL the server may answer that the result of a submission is
// unknown (a Problem with the status 503); a caller that wants to repeat such a submission has to set a key.
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

// IsNotFound reports whether err means that the object does not exist.
func IsNotFound(err error) bool { return problemType(err) == api.ProblemNotFound }

// IsFinished reports whether err means that the execution had already ended.
func IsFinished(err error) bool { return problemType(err) == api.ProblemFinished }

func problemType(err error) string {
	var p *api.Problem
	if !errors.As(err, &p) {
		return ""
	}
	return p.Type
}

// key returns given, or a new idempotency key if the client generates them.
func (c *Client) key(given string) string {
	if !c.keys {
		return given
	}
	return cmp.Or(given, rand.Text())
}
