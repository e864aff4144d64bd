// Package server serves the engine over HTTP: the API with its streams, the checks of tokens and cookies, and metrics. It checks requests
// strictly, calls the engine for all decisions, and answers with the types of package api.
package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/server/metrics"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// Options configures a Server. Engine is required.
type Options struct {
	Engine *engine.Engine
	Log    *slog.Logger
	// Tracer records submissions, in the trace of the request or in a new one. If it is nil, there is no tracing.
	Tracer *telemetry.Tracer
	// Version is the version that the server reports.
	Version string
	// Tokens are the bearer tokens that give access. Without tokens, only requests over a loopback address have access.
	Tokens []string
	// Workers serves /api/v1/workers/… for workers in other processes. If it is nil, these paths are not served.
	Workers http.Handler
	// Broker returns the figures of the message broker between this server and its workers. It is nil without a broker.
	Broker func() metrics.Broker
	// Secret reads a secret of a webhook from a variable or a file of this process. If it is nil, there are no secrets.
	Secret func(name string) (string, error)
	// Page serves the web page, at / and below /ui/, if it is not nil. Its files need no token, because they contain no data: the page
	// gets data from the API.
	Page http.Handler
	// Wires are protocols of other evaluators, each served below /compat/NAME/.
	Wires []Wire
	// Most are the operator's ceilings of the limits of one program: definitions with higher ones are refused. Zero: none.
	Most payload.Ceilings
	// Archive is the archive that this server shows, or nil for a normal server. With an archive it refuses requests that could change
	// something.
	Archive *api.Archive
	// BodyLimit is the largest size of a request's body; 0: 16 MB.
	BodyLimit int64
	// UploadLimit is the largest size of one upload; 0: 1 GiB.
	UploadLimit int64
	// Reach is how many executions a list examines one by one before it gives up and reports how far it got; 0: 40,000.
	Reach int
	// Patience is how long a client may take to read one answer, or 64 KB of a stream, before its connection is closed (a
	// stream can be resumed); 0: 15 s.
	Patience time.Duration
	// Grace is how long running requests may take to finish once the server is told to stop; 0: 10 s.
	Grace time.Duration
}

// Time limits on the parts of a request.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = time.Minute // to send a request's body
	idleTimeout   = 2 * time.Minute
	maxWait       = time.Minute // for ?wait=
)

// Server answers the HTTP API. It is safe for concurrent use.
type Server struct {
	Options
	log     *slog.Logger
	tokens  [][sha256.Size]byte
	handler http.Handler
	// document is the OpenAPI document.
	document     []byte
	started      time.Time
	metrics      *metrics.Metrics
	done         activity
	verifies     sync.Mutex                       // held while the store is verified
	lastVerified atomic.Pointer[api.Verification] // the latest result
	replays      *atOnce
	archives     *atOnce
	answers      answers
	bodies       budget
	// hookBodies is the budget of requests to webhooks.
	hookBodies budget
	said       said
	refusals   refusals
	sets       sets
	logins     logins
	hookLogins hookLogins
	layouts    sync.Mutex // held while a graph is laid out

	draining context.Context // ends when draining begins
	drain    context.CancelFunc
}

func New(o Options) (*Server, error) {
	if o.Engine == nil {
		return nil, errors.New("new server: no engine given")
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.BodyLimit = cmp.Or(o.BodyLimit, 16<<20)
	o.UploadLimit = cmp.Or(o.UploadLimit, defaultUploadLimit)
	o.Patience = cmp.Or(o.Patience, 15*time.Second)
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	s := &Server{Options: o, log: o.Log, started: time.Now(), replays: newPlaces(replaysAtOnce), archives: newPlaces(archivesAtOnce)}
	s.draining, s.drain = context.WithCancel(context.Background())
	s.bodies.limit, s.bodies.first, s.bodies.part, s.bodies.free = max(bodiesInFlight, 2*o.BodyLimit), smallBody, smallBody, true
	s.hookBodies.limit, s.hookBodies.first, s.hookBodies.part = max(hookBodiesInFlight, 2*o.BodyLimit), hookFirst, hookPart
	for _, t := range o.Tokens {
		if err := CheckToken(t); err != nil {
			return nil, err
		}
		s.tokens = append(s.tokens, sha256.Sum256([]byte(t)))
	}
	s.metrics = metrics.New(metrics.Options{Engine: o.Engine, Log: o.Log, Version: o.Version, Broker: o.Broker})
	handler, err := s.routed()
	if err != nil {
		return nil, fmt.Errorf("new server: %w", err)
	}
	s.handler = handler
	return s, nil
}

// Handler returns the handler of all requests. Requests over a network have access by the rule of Options.Tokens; requests made inside this
// process (which have no local address) always have access.
func (s *Server) Handler() http.Handler { return s.handler }

// Serve answers on l until ctx ends, then stops in order: the server becomes not ready, streams and waits end, running requests finish. It
// closes l. Without tokens it refuses an address that other machines can reach.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if len(s.tokens) == 0 && !isLocal(l.Addr()) {
		_ = l.Close()
		return fmt.Errorf("listen on %s without a token: other machines could run code here; set a token (--token, PAWL_TOKEN or PAWL_TOKEN_FILE), or listen on 127.0.0.1", l.Addr())
	}
	s.done.start(ctx, s.Engine.Stats)
	hs := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	over := make(chan error, 1)
	go func() { over <- hs.Serve(l) }()
	select {
	case err := <-over:
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	s.Drain()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Grace)
	defer cancel()
	if err := hs.Shutdown(last); err != nil {
		s.log.Warn("some requests did not finish in time", "grace", s.Grace, telemetry.Err, err)
		_ = hs.Close()
	}
	<-over
	return nil
}

// Drain makes the server not ready and ends streams and waits; requests are still answered. A second call does nothing.
func (s *Server) Drain() { s.drain() }
