package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// route is one operation of the API. The handler and the OpenAPI document are made from the same row.
type route struct {
	method  string
	path    string
	aliases []string // other paths of the same operation
	name    string   // operation id
	tag     string
	summary string
	params  []param // of the query
	// anyQuery means that any query parameters are allowed.
	anyQuery bool
	headers  []string     // request headers that the route reads
	body     reflect.Type // of the JSON body; nil: none
	// document means that the body is a definition document in YAML or JSON.
	document bool
	// raw means that the body is any bytes.
	raw bool
	// form means that the body is an HTML form.
	form     bool
	optional bool // the body may be missing
	answers  []answer
	handle   func(*call) error
}

type param struct {
	name, doc string
	kind      string // type in JSON Schema: string, integer, boolean
	repeat    bool
	required  bool
	choices   []string
	begins    bool // an empty value means the beginning of a list
}

// answer is a successful answer of a route.
type answer struct {
	status int
	doc    string
	body   reflect.Type // nil: no body, or one that is not JSON
	media  []string     // instead of application/json
}

func ok(t reflect.Type, media ...string) answer {
	return answer{http.StatusOK, "As asked for", t, media}
}

// onlyEvents reports whether the route answers only with server-sent events.
func (rt *route) onlyEvents() bool {
	return len(rt.answers) == 1 && rt.answers[0].body == nil && slices.Equal(rt.answers[0].media, []string{mediaEvents})
}

// routed returns the handler of all requests: the routes, the checks before them, and problems for unknown paths.
func (s *Server) routed() (http.Handler, error) {
	routes := s.routes()
	mux := http.NewServeMux()
	allowed := map[string][]string{} // path → methods
	for i := range routes {
		rt := &routes[i]
		for _, path := range append([]string{rt.path}, rt.aliases...) {
			mux.Handle(rt.method+" "+path, s.served(rt))
			allowed[path] = append(allowed[path], rt.method)
		}
	}
	for path, methods := range allowed {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			s.refuse(w, r, refusal(http.StatusMethodNotAllowed, api.ProblemMethodNotAllowed,
				fmt.Sprintf("%.20q is not allowed on %s: use %s", r.Method, path, strings.Join(methods, " or "))))
		})
	}
	var err error
	if s.document, err = describe(routes, s.Version); err != nil {
		return nil, err
	}
	if s.Workers != nil {
		mux.Handle(workersPath, s.lettingGo(s.Workers))
	}
	for _, w := range s.Wires {
		mux.Handle(w.prefix(), s.wired(w))
	}
	if s.Page != nil {
		mux.Handle("GET /{$}", s.Page)
		mux.Handle("GET "+strings.TrimSuffix(pagePath, "/"), s.Page)
		mux.Handle("GET "+pagePath, s.Page)
	}
	unknown := func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, refusal(http.StatusNotFound, api.ProblemNotFound,
			fmt.Sprintf("there is nothing at %.100q: see /openapi.json for what there is", r.URL.Path)))
	}
	mux.HandleFunc("/", unknown)
	return s.around(mux), nil
}

func (s *Server) served(rt *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{Server: s, w: w, r: r, route: rt, begun: time.Now()}
		defer c.release()
		err := cmp.Or(c.checkKey(), c.readQuery())
		if err == nil {
			err = rt.handle(c)
		}
		if err != nil {
			s.refuse(w, r, err)
		}
	})
}

// pollGrace is how long calls of workers in other processes may go on after draining has begun: long enough to commit a report. Calls that
// wait for work end then.
const pollGrace = time.Second

// lettingGo ends the requests to h pollGrace after draining has begun.
func (s *Server) lettingGo(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		stop := context.AfterFunc(s.draining, func() { time.AfterFunc(pollGrace, cancel) })
		defer stop()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// around adds to every request an id, the guard and metrics, and a problem if the handler panics.
func (s *Server) around(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-Id")
		if !plainID(id) {
			id = rand.Text()
		}
		w.Header().Set("X-Request-Id", id)
		if err := s.guard(r); err != nil {
			if problemOf(err).Status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="pawl"`)
			}
			s.log.Warn("request turned away", telemetry.Method, r.Method, telemetry.Path, loggedPath(r), telemetry.RequestID, id,
				telemetry.Remote, r.RemoteAddr, telemetry.Why, err)
			s.refuse(w, r, err)
			return
		}
		if s.Archive != nil && r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			s.refuse(w, r, refusal(http.StatusMethodNotAllowed, api.ProblemMethodNotAllowed,
				fmt.Sprintf("this is an opened archive, which is read-only: %.20q is refused, and only GET and HEAD are answered; to run something of it again, "+
					"register its definitions on a server (pawl open FILE --definitions | pawl apply -) and submit it there", r.Method)))
			return
		}
		seen := &seenWriter{ResponseWriter: w}
		done := s.metrics.Request(r)
		defer func() {
			v := recover()
			if v != nil && v != http.ErrAbortHandler { //nolint:errorlint // net/http compares the recovered value itself
				s.log.Error("handler panicked", telemetry.Method, r.Method, telemetry.Path, loggedPath(r), telemetry.RequestID, id, telemetry.Panic, v, telemetry.Stack, string(debug.Stack()))
				if seen.status == 0 {
					s.refuse(seen, r, fmt.Errorf("panic: %v", v))
				}
			}
			done(seen.status)
			s.noteWorker(r, id, seen.status)
			if v != nil {
				panic(http.ErrAbortHandler) // a part of the answer may have been sent: a closed connection keeps the client from taking it for complete
			}
		}()
		mux.ServeHTTP(seen, r)
	})
}

// seenWriter records the status that was sent.
type seenWriter struct {
	http.ResponseWriter
	status int
}

func (w *seenWriter) WriteHeader(status int) {
	w.status = cmp.Or(w.status, status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *seenWriter) Write(b []byte) (int, error) {
	w.status = cmp.Or(w.status, http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *seenWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// plainID reports whether a request id from the client may be passed on and logged.
func plainID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}

// noteWorker logs that a worker in another process was refused: for its token or its version, or because its session has ended, which looks
// like a call for another worker's session.
func (s *Server) noteWorker(r *http.Request, id string, status int) {
	switch status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUpgradeRequired:
	default:
		return
	}
	if strings.HasPrefix(r.URL.Path, workersPath) {
		s.log.Warn("worker turned away", telemetry.Path, loggedPath(r), telemetry.RequestID, id, telemetry.Remote, r.RemoteAddr,
			telemetry.Why, http.StatusText(status), telemetry.Status, status)
	}
}

// workersPath is the prefix of calls by workers in other processes.
const workersPath = "/api/v1/workers/"

const pagePath = "/ui/"

func describe(routes []route, version string) ([]byte, error) {
	s := newSchemas(routes)
	d := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Pawl", Version: version,
			Description: "Durable evaluations and workflows. Errors are RFC 9457 problems; every request may carry X-Request-ID.",
			License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers: []*huma.Server{{URL: "/", Description: "The server that this document comes from"}},
		Components: &huma.Components{
			SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer", Description: "Needed unless the server is bound to loopback without tokens"}},
		},
		Security: []map[string][]string{{"token": {}}, {}},
	}
	for i := range routes {
		rt := &routes[i]
		for n, path := range append([]string{rt.path}, rt.aliases...) {
			op := operation(rt, s)
			op.Path = strings.ReplaceAll(path, "...}", "}")
			if n > 0 {
				op.OperationID += fmt.Sprintf("-alias-%d", n)
				op.Description = "The same as " + rt.path
			}
			d.AddOperation(op)
		}
	}
	d.Components.Schemas = s.finished()
	b, err := d.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	return append(b, '\n'), nil
}
