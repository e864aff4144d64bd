package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/duration"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/query"
	"github.com/pawl-run/pawl/internal/wirejson"
)

// call is one request while its handler runs.
type call struct {
	*Server
	w     http.ResponseWriter
	r     *http.Request
	route *route
	begun time.Time
	query url.Values
	where *query.Query     // the condition of a list; nil: none
	wrong []api.FieldError // errors in the query

	memory   int64        // counted bytes of the answer
	leave    func()       // releases the memory of answers; nil: nothing is held
	waits    atomic.Int64 // since when it waits for its client to read, in nanoseconds since 1970; 0: it does not wait
	cutShort atomic.Bool  // another call needs the memory or place that this one holds: nothing more is written
}

func (c *call) ctx() context.Context { return c.r.Context() }

func (c *call) json(status int, v any) error {
	body, err := encode(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	if err := c.hold(len(body)); err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Add("Vary", "Accept-Encoding")
	if len(body) >= compressedFrom && takesGzip(c.r) {
		body = compressed(body)
		c.w.Header().Set("Content-Encoding", "gzip")
	}
	if len(body) <= pieceSize {
		c.send(c.w, status, body)
		return nil
	}
	sized(c.w.Header(), len(body))
	c.w.WriteHeader(status)
	_ = c.writeWithin(http.NewResponseController(c.w), body, time.Now().Add(c.timeFor(len(body)))) // an error means that the client has gone
	return nil
}

// compressedFrom is the size from which an answer is compressed if the client accepts that: a page of 100 executions has 60 KB and becomes
// 5 KB in 0.4 ms. Shorter answers fit into a few packets anyway.
const compressedFrom = 8 << 10

// takesGzip reports whether a request accepts gzip, with a weight (q) above 0.
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			return strings.Trim(strings.TrimPrefix(strings.TrimSpace(weight), "q="), "0.") != "" || weight == ""
		}
	}
	return false
}

var compressors = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid, so there is no error
	return w
}}

func compressed(body []byte) []byte {
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	var out bytes.Buffer
	w.Reset(&out)
	_, _ = w.Write(body) // writing to memory does not fail
	_ = w.Close()
	return out.Bytes()
}

// encode writes JSON followed by a newline, for terminals and tools that read lines. It does not escape "<" for HTML as encoding/json does,
// which would make an output full of "<" six times as long.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	err := wirejson.Append(&b, v)
	b.WriteByte('\n')
	return withoutHTMLEscapes(b.Bytes()), err
}

// withoutHTMLEscapes unescapes <, > and & in the strings of a JSON text. Inputs and outputs are stored as encoding/json wrote them, with
// \u003c, \u003e and \u0026: six bytes each, and unreadable in the source of a program.
func withoutHTMLEscapes(b []byte) []byte {
	next := bytes.Index(b, []byte(`\u00`))
	if next < 0 {
		return b
	}
	// The result is never longer than the text read so far, so it overwrites that text. Each escape is read as a whole: \\u003c is an escaped
	// backslash followed by five letters, and stays.
	out := b[:0]
	for {
		next = bytes.IndexByte(b, '\\')
		if next < 0 || next+6 > len(b) {
			return append(out, b...)
		}
		out = append(out, b[:next]...)
		switch escape := b[next : next+6]; string(bytes.ToLower(escape)) {
		case `\u003c`:
			out, b = append(out, '<'), b[next+6:]
		case `\u003e`:
			out, b = append(out, '>'), b[next+6:]
		case `\u0026`:
			out, b = append(out, '&'), b[next+6:]
		default:
			out, b = append(out, escape[:2]...), b[next+2:]
		}
	}
}

// perMegabyte is how much more time a client gets for each megabyte of an answer.
const perMegabyte = 4 * time.Second

// timeFor is how long a client may take to read a whole answer of size bytes.
func (s *Server) timeFor(size int) time.Duration {
	return s.Patience + perMegabyte*time.Duration(size>>20)
}

// sized sets the headers of an answer whose length is known.
func sized(h http.Header, size int) {
	h.Set("Content-Length", strconv.Itoa(size))
	h.Set("X-Content-Type-Options", "nosniff")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
}

// send writes a whole answer. If the client does not read it in time, the connection is closed.
func (s *Server) send(w http.ResponseWriter, status int, body []byte) {
	sized(w.Header(), len(body))
	// A writer without deadlines has no connection that a slow client could hold.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.timeFor(len(body))))
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client has disconnected
}

// execution reads the id in the path, unless the query has errors.
func (c *call) execution() (flow.ID, error) {
	if err := c.checked(); err != nil {
		return flow.ID{}, err
	}
	return executionNamed(c.r.PathValue("id"))
}

func executionNamed(text string) (flow.ID, error) {
	return idNamed("execution", flow.ExecutionPrefix, text)
}

// idNamed reads an id. An invalid id gives a not-found problem.
func idNamed(what, prefix, text string) (flow.ID, error) {
	id, err := flow.ParseID(prefix, text)
	if err != nil {
		return flow.ID{}, refusal(http.StatusNotFound, api.ProblemNotFound, fmt.Sprintf("there is no %s of this id: %v", what, err))
	}
	if id.IsZero() {
		return flow.ID{}, notFound(what, text)
	}
	return id, nil
}

// get loads the execution named in the path.
func (c *call) get() (*flow.Execution, error) {
	id, err := c.execution()
	if err != nil {
		return nil, err
	}
	x, err := c.Engine.Reader().Get(c.ctx(), id)
	if err != nil {
		return nil, fmt.Errorf("execution %s: %w", id, err)
	}
	return x, c.holdRow(x)
}

// holdRow counts the memory of an execution from which the answer is made.
func (c *call) holdRow(x *flow.Execution) error {
	size := x.PayloadSize()
	if x.Outcome != nil {
		size += len(x.Outcome.Output)
	}
	return c.hold(size)
}

// checkKey refuses an empty Idempotency-Key, which would protect nothing, and a second one, which would be ignored.
func (c *call) checkKey() error {
	const name = "Idempotency-Key"
	switch given := c.r.Header.Values(name); {
	case len(given) > 1:
		return unreadable(api.FieldError{Path: name, Value: problem.Clip(strings.Join(given, ", "), 60), Message: "the header is given more than once", Fix: "give it once"})
	case len(given) == 1 && given[0] == "":
		return unreadable(api.FieldError{Path: name, Message: "the header is empty", Fix: "give a key that is the same whenever the request is sent again, or leave it out"})
	}
	return nil
}

// readQuery parses the query. It refuses parameters that the route does not have, and empty ones: an unset variable of a script would
// select everything. An empty cursor is the beginning of a list, so that a loop over pages can start with it.
func (c *call) readQuery() error {
	if c.r.URL.RawQuery == "" {
		return nil
	}
	q, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return unreadable(api.FieldError{Path: "?", Value: problem.Clip(c.r.URL.RawQuery, 60), Message: err.Error(), Fix: "encode it as in ?label=team%3Dblue"})
	}
	c.query = q
	if c.route.anyQuery {
		return nil
	}
	for name, values := range q {
		i := slices.IndexFunc(c.route.params, func(p param) bool { return p.name == name })
		if i < 0 {
			var names []string
			for _, p := range c.route.params {
				names = append(names, p.name)
			}
			fix := "leave it out"
			if len(names) > 0 {
				fix = problem.NearestOr(name, names, "one of")
			}
			c.fault(name, values[0], "there is no such parameter", fix)
			continue
		}
		if len(values) > 1 && !c.route.params[i].repeat {
			c.fault(name, strings.Join(values, ", "), "it is given more than once", "give it once")
		}
		for _, v := range values {
			if v == "" && !c.route.params[i].begins {
				c.fault(name, "", "it is empty", "give it a value, or leave it out")
			}
			if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
				c.fault(name, strconv.QuoteToASCII(v), "it is not UTF-8 or has a NUL character", "")
			}
		}
	}
	return c.checked()
}

func (c *call) fault(name, value, message, fix string) {
	c.wrong = append(c.wrong, api.FieldError{Path: "?" + name, Value: problem.Clip(value, 60), Message: message, Fix: fix})
}

// noPlace records that the query's cursor is not valid.
func (c *call) noPlace() {
	c.fault("cursor", c.query.Get("cursor"), "it is not a place in the list", "pass it as the server gave it")
}

// checked returns an error with all errors found in the query so far.
func (c *call) checked() error {
	if len(c.wrong) > 0 {
		slices.SortFunc(c.wrong, func(a, b api.FieldError) int { return strings.Compare(a.Path, b.Path) })
		return unreadable(c.wrong...)
	}
	return nil
}

func (c *call) number(name string, otherwise, least, most int64) int64 {
	text := c.query.Get(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		c.fault(name, text, "it is not a whole number within the range", fmt.Sprintf("give %d to %d", least, most))
		return otherwise
	}
	return n
}

func (c *call) flag(name string) bool {
	switch text := c.query.Get(name); text {
	case "", "false", "0":
		return false
	case "true", "1":
		return true
	default:
		c.fault(name, text, "it is neither true nor false", "")
		return false
	}
}

func (c *call) time(name string) time.Time {
	text := c.query.Get(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	t = t.UTC()
	switch {
	case err != nil:
		c.fault(name, text, "it is not a time", "write RFC 3339, as in 2026-11-21T08:00:00Z")
	case t.Year() < 1 || t.Year() > 9999:
		c.fault(name, text, "in UTC its year has not four digits", "write a year from 0001 to 9999")
	}
	return t
}

// wait reads how long the server may delay the answer.
func (c *call) wait() time.Duration {
	return min(c.duration("wait", 0, "write it as in 30s, or as a number of seconds; at most "+maxWait.String()), maxWait)
}

func (c *call) duration(name string, otherwise time.Duration, fix string) time.Duration {
	text := c.query.Get(name)
	if text == "" {
		return otherwise
	}
	d, err := duration.Parse(text)
	if err != nil {
		c.fault(name, text, "it is not a duration", fix)
	}
	return d
}
