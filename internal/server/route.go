package server

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// route is one operation of the API. The same row makes the handler and the OpenAPI document.
type route struct {
	method  string
	path    string
	aliases []string // other paths that do the same
	name    string   // operation id
	tag     string
	summary string
	params  []param // of the query
	// anyQuery says that the query is the caller's own.
	anyQuery bool
	headers  []string     // request headers that mean something here
	body     reflect.Type // of the JSON body; nil: none
	// document says that the body is a definition document instead, in YAML or JSON.
	document bool
	// raw says that the body is bytes as they are.
	raw bool
	// form says that the body is a form as browsers send it.
	form     bool
	optional bool // the body may be left out
	answers  []answer
	handle   func(*call) error
}

// param is one parameter of the query.
type param struct {
	name, doc string
	kind      string // JSON Schema's: string, integer, boolean
	repeat    bool
	required  bool
	choices   []string
}

// answer is one way in which a route answers when all is well.
type answer struct {
	status int
	doc    string
	body   reflect.Type // nil: none, or no JSON
	media  []string     // instead of application/json
}

func ok(t reflect.Type, media ...string) answer {
	return answer{http.StatusOK, "As asked for", t, media}
}

// onlyEvents reports whether the route answers with nothing but server-sent events.
func (rt *route) onlyEvents() bool {
	return len(rt.answers) == 1 && rt.answers[0].body == nil && slices.Equal(rt.answers[0].media, []string{mediaEvents})
}

// routed is the handler of everything: the routes, what lies around them, and problems for all else.
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

// served makes the handler of one route.
func (s *Server) served(rt *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{Server: s, w: w, r: r, route: rt, begun: time.Now()}
		err := c.readQuery()
		if err == nil {
			err = rt.handle(c)
		}
		if err != nil {
			s.refuse(w, r, err)
		}
	})
}

// pollGrace is how long what workers in other processes ask may go on once draining has begun: enough for a report to be
// committed, and the end for those that wait for work.
const pollGrace = time.Second

// lettingGo ends the requests to h soon after draining has begun.
func (s *Server) lettingGo(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		stop := context.AfterFunc(s.draining, func() { time.AfterFunc(pollGrace, cancel) })
		defer stop()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// around does what every request needs: an id, the guard, a metric, and a problem where a handler panics.
func (s *Server) around(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-Id")
		if !plainID(id) {
			id = newRequestID()
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
		seen := &seenWriter{ResponseWriter: w}
		done := s.metrics.request(r, seen)
		defer func() {
			v := recover()
			if v != nil && v != http.ErrAbortHandler {
				s.log.Error("handler panicked", telemetry.Method, r.Method, telemetry.Path, loggedPath(r), telemetry.RequestID, id, telemetry.Panic, v, telemetry.Stack, stack())
				if seen.status == 0 {
					s.refuse(seen, r, fmt.Errorf("panic: %v", v))
				}
			}
			done()
			s.noteWorker(r, id, seen.status)
			if v != nil {
				panic(http.ErrAbortHandler) // a part of an answer may have been sent: the connection is cut, so that it does not pass for a whole one
			}
		}()
		mux.ServeHTTP(seen, r)
	})
}

// noteWorker logs that a worker elsewhere was turned away for what it is or says: also one whose session is over, as it
// looks like one that speaks for another's.
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

// workersPath is where workers in other processes call.
const workersPath = "/api/v1/workers/"

// pagePath is where the web page lies.
const pagePath = "/ui/"

// describe writes the OpenAPI document of the routes.
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
