package payload

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// Request is the payload of kind "http".
type Request struct {
	Method string `json:"method,omitempty" check:"method"` // default: GET, or POST if there is a body
	URL    string `json:"url" check:"url"`
	// Query is added to the URL, encoded: for a list each element, for null nothing.
	Query     map[string]json.RawMessage `json:"query,omitempty" check:"query"`
	Headers   map[string]string          `json:"headers,omitempty"`
	Body      json.RawMessage            `json:"body,omitempty"`   // a string is sent unchanged, null: no body, anything else as JSON
	Expect    Statuses                   `json:"expect,omitempty"` // default: 2xx
	Response  string                     `json:"response,omitempty" enum:"auto,json,text"`
	MaxBytes  api.Size                   `json:"max_bytes,omitempty"`
	Timeout   api.Duration               `json:"timeout,omitempty"`
	Redirects *bool                      `json:"follow_redirects,omitempty"`
}

// methods are the registered HTTP methods for requests to a URL, and those that purge caches.
var methods = []string{
	"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "QUERY", "SEARCH", "TRACE", "LINK", "UNLINK",
	"ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "COPY", "LABEL", "LOCK", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL",
	"MKREDIRECTREF", "MKWORKSPACE", "MOVE", "ORDERPATCH", "PROPFIND", "PROPPATCH", "REBIND", "REPORT", "UNBIND", "UNCHECKOUT", "UNLOCK",
	"UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL", "PURGE", "BAN",
}

// BadMethod returns the error of a method, and its fix; both are empty for an HTTP method in any case.
func BadMethod(method string) (message, fix string) {
	if slices.Contains(methods, strings.ToUpper(method)) {
		return "", ""
	}
	return "it is not a method of HTTP", cmp.Or(problem.Nearest(method, methods[:7]), problem.OneOf(methods[:7]))
}

func checkMethod(r *strictjson.Reader, at string, v reflect.Value) {
	if text := v.String(); text != "" {
		if message, fix := BadMethod(text); message != "" {
			r.ProblemAt(at, text, message, fix)
		}
	}
}

// The default and the maximum size of a response.
const (
	responseBytes     = 10_000_000
	mostResponseBytes = 25_000_000
)

// HTTP reads the payload of kind "http" and fills in its defaults. The error is a *strictjson.Error that lists all errors.
func HTTP(payload []byte) (*Request, error) {
	r, err := decode[Request](payload)
	if err != nil {
		return nil, err
	}
	if jsonvalue.KindOf(r.Body) == "null" {
		r.Body = nil
	}
	if r.Method == "" {
		r.Method = "GET"
		if r.Body != nil {
			r.Method = "POST"
		}
	}
	r.Method = strings.ToUpper(r.Method)
	r.URL = withQuery(EncodedURL(r.URL), r.Query)
	r.Response = cmp.Or(r.Response, "auto")
	r.MaxBytes = cmp.Or(r.MaxBytes, responseBytes)
	if len(r.Expect) == 0 {
		r.Expect = Statuses{{200, 299}}
	}
	return &r, nil
}

func wholeRequest(r *strictjson.Reader, q *Request) {
	if q.MaxBytes < 0 || q.MaxBytes > mostResponseBytes {
		r.ProblemAt("max_bytes", q.MaxBytes.String(), "it is out of range", "1 byte to 25MB")
	}
}

// Statuses are ranges of HTTP statuses.
type Statuses [][2]int

func (s Statuses) Has(status int) bool {
	return slices.ContainsFunc(s, func(r [2]int) bool { return r[0] <= status && status <= r[1] })
}

// UnmarshalJSON reads 204, "2xx", "200-299", or a list of these.
func (s *Statuses) UnmarshalJSON(b []byte) error {
	var items []json.RawMessage
	if json.Unmarshal(b, &items) != nil {
		items = []json.RawMessage{b}
	}
	for _, item := range items {
		var r [2]int
		text := strings.Trim(string(item), `"`)
		low, high, isRange := strings.Cut(text, "-")
		if class, ok := strings.CutSuffix(strings.ToLower(text), "xx"); ok {
			low, high, isRange = class+"00", class+"99", true
		}
		if !isRange {
			high = low
		}
		var err1, err2 error
		r[0], err1 = strconv.Atoi(low)
		r[1], err2 = strconv.Atoi(high)
		if err1 != nil || err2 != nil || r[0] < 100 || r[1] > 599 || r[0] > r[1] {
			return fmt.Errorf("%.40s is not a status: write 204, \"2xx\", \"200-299\" or a list of such", item)
		}
		*s = append(*s, r)
	}
	return nil
}
