package outgoing_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/task/outgoing"
)

func egress(t *testing.T, o outgoing.EgressOptions) *outgoing.Egress {
	t.Helper()
	e, err := outgoing.NewEgress(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func call(ctx context.Context, h task.Handler, payload any) (map[string]any, *host, error) {
	b, err := json.Marshal(payload)
	if err != nil {
		return nil, nil, err
	}
	d := &host{}
	out, err := h.Run(ctx, &task.Task{Execution: flow.ID{1}, Attempt: 1, Payload: b, Host: d})
	if te, ok := errors.AsType[*task.Error](err); ok {
		out = te.Output
	}
	var m map[string]any
	if len(out) > 0 {
		if err := json.Unmarshal(out, &m); err != nil {
			return nil, d, err
		}
	}
	return m, d, err
}

type obj = map[string]any

// host is the worker's side of a task: it keeps what is written to streams.
type host struct {
	mu      sync.Mutex
	written map[string]string
}

// stream is one of its streams.
type stream struct {
	*host
	name string
}

func (h *host) Log(name string) io.Writer { return stream{h, name} }

func (s stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written == nil {
		s.written = map[string]string{}
	}
	s.written[s.name] += string(p)
	return len(p), nil
}

func (h *host) Input(context.Context) io.Reader { return strings.NewReader("") }

func (h *host) Progress(context.Context, json.RawMessage) error { return nil }

func (h *host) text(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.written[name]
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/echo":
			b, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			json.NewEncoder(w).Encode(obj{"method": r.Method, "body": string(b), "type": r.Header.Get("Content-Type"), "key": r.Header.Get("Idempotency-Key"), "x": r.Header.Get("X"), "host": r.Host})
		case "/busy":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, "slow down")
		case "/text":
			fmt.Fprint(w, "plain")
		case "/bytes":
			w.Write([]byte{0xff, 0})
		case "/latin":
			w.Header().Set("Content-Type", "text/plain; charset=ISO-8859-1")
			w.Write([]byte("Z\xfcrich"))
		case "/undeclared":
			w.Header().Set("Content-Type", "text/plain")
			w.Write([]byte("Z\xfcrich"))
		case "/utf16":
			w.Header().Set("Content-Type", "application/json; charset=utf-16le")
			for _, c := range `{"a":"ü"}` {
				w.Write([]byte{byte(c), byte(c >> 8)})
			}
		case "/bom":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, "\uFEFF{\"a\":1}")
		case "/nul":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"a":"\u0000"}`)
		case "/surrogate", "/twice":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, map[string]string{"/surrogate": `{"a":"\ud800"}`, "/twice": `{"a":1,"a":2}`}[r.URL.Path])
		case "/escaped":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"a":"\\u0000"}`)
		case "/big":
			io.WriteString(w, strings.Repeat("x", 2000))
		case "/hang":
			<-r.Context().Done()
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/jump":
			http.Redirect(w, r, "/text", http.StatusFound)
		}
	}))
	t.Cleanup(srv.Close)
	h := outgoing.HTTP{Egress: egress(t, outgoing.EgressOptions{AllowPrivate: true})}
	for _, c := range []struct {
		name  string
		in    obj
		code  string // of the error
		check func(out obj) bool
	}{
		{"post JSON", obj{"url": "/echo", "body": obj{"a": 1}, "headers": obj{"X": "y", "Host": "other"}}, "", func(o obj) bool {
			b := o["body"].(obj)
			return b["method"] == "POST" && b["body"] == `{"a":1}` && b["type"] == "application/json" && b["x"] == "y" && b["key"] == flow.ID{1}.String() && b["host"] == "other"
		}},
		{"put text", obj{"url": "/echo", "method": "put", "body": "hi"}, "", func(o obj) bool {
			b := o["body"].(obj)
			return b["method"] == "PUT" && b["body"] == "hi" && strings.HasPrefix(b["type"].(string), "text/plain")
		}},
		{"own key", obj{"url": "/echo", "headers": obj{"idempotency-key": "mine"}}, "", func(o obj) bool { return o["body"].(obj)["key"] == "mine" }},
		{"text", obj{"url": "/text"}, "", func(o obj) bool { return o["body"] == "plain" && o["status"] == 200.0 }},
		{"JSON as text", obj{"url": "/echo", "response": "text"}, "", func(o obj) bool { _, ok := o["body"].(string); return ok }},
		{"not JSON", obj{"url": "/text", "response": "json"}, "invalid_response", func(o obj) bool { return o["body"] == "plain" }},
		{"bytes", obj{"url": "/bytes"}, "", func(o obj) bool { return o["body"] == "\uFFFD\uFFFD" && o["body_base64"] == "/wA=" }},
		{"declared charset", obj{"url": "/latin"}, "", func(o obj) bool { return o["body"] == "Zürich" && o["body_base64"] == nil }},
		{"JSON in UTF-16", obj{"url": "/utf16"}, "", func(o obj) bool { b, _ := o["body"].(obj); return b["a"] == "ü" }},
		{"wrong charset", obj{"url": "/undeclared"}, "", func(o obj) bool { return o["body"] == "Z\uFFFDrich" && o["body_base64"] == "WvxyaWNo" }},
		{"byte order mark", obj{"url": "/bom"}, "", func(o obj) bool { b, _ := o["body"].(obj); return b["a"] == 1.0 }},
		{"NUL in JSON", obj{"url": "/nul"}, "", func(o obj) bool { return o["body"] == `{"a":"\u0000"}` }},
		{"no NUL in JSON", obj{"url": "/escaped"}, "", func(o obj) bool { b, _ := o["body"].(obj); return b["a"] == `\u0000` }},
		{"half of a surrogate pair", obj{"url": "/surrogate"}, "", func(o obj) bool { return o["body"] == `{"a":"\ud800"}` }},
		{"a name twice", obj{"url": "/twice"}, "", func(o obj) bool { return o["body"] == `{"a":1,"a":2}` }},
		{"a name twice in JSON that is wanted", obj{"url": "/twice", "response": "json"}, "invalid_response", nil},
		{"NUL in JSON that is wanted", obj{"url": "/nul", "response": "json"}, "invalid_response", nil},
		{"status", obj{"url": "/busy"}, "http_429", func(o obj) bool { return o["status"] == 429.0 && o["body"] == "slow down" }},
		{"expected status", obj{"url": "/busy", "expect": []any{200, "420-430"}}, "", func(o obj) bool { return o["status"] == 429.0 }},
		{"class", obj{"url": "/text", "expect": "4xx"}, "http_200", nil},
		{"too large", obj{"url": "/big", "max_bytes": "1KB"}, "response_too_large", nil},
		{"slow", obj{"url": "/hang", "timeout": 0.05}, "timeout", nil},
		{"loop", obj{"url": "/loop"}, "too_many_redirects", nil},
		{"redirect", obj{"url": "/jump"}, "", func(o obj) bool { return o["body"] == "plain" }},
		{"no redirect", obj{"url": "/jump", "follow_redirects": false, "expect": 302}, "", func(o obj) bool { return o["headers"].(obj)["location"] == "/text" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.in["url"] = srv.URL + c.in["url"].(string)
			out, d, err := call(t.Context(), h, c.in)
			got := ""
			if te, ok := errors.AsType[*task.Error](err); ok {
				got = te.Code
			}
			if got != c.code || (c.check != nil && !c.check(out)) {
				t.Errorf("%v, %v", err, out)
			}
			if !strings.Contains(d.text("log"), " → ") {
				t.Errorf("log %q", d.text("log"))
			}
			if c.code == "http_429" && !strings.Contains(string(err.(*task.Error).Details), `"retry_after":"7"`) {
				t.Errorf("details %s", err.(*task.Error).Details)
			}
		})
	}
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(20*time.Millisecond, func() { cancel(&task.Stop{As: flow.Cancelled, Reason: "enough"}) })
		if _, _, err := call(ctx, h, obj{"url": srv.URL + "/hang"}); !strings.Contains(fmt.Sprint(err), "enough") {
			t.Errorf("%v", err)
		}
	})
}

func TestHTTPRefusals(t *testing.T) {
	t.Parallel()
	for in, say := range map[string]string{
		`{}`:                                   "url: it is not an absolute",
		`{"url":"file:///etc/passwd"}`:         "http or https",
		`{"url":"http://a","nope":1}`:          `nope: there is no such field: "nope" (one of method`,
		`{"url":1}`:                            "url: it is a number and should be a string: 1 (write it in quotes",
		`{"url":"http://a","expect":"ok"}`:     "not a status",
		`{"url":"http://a","expect":[200,99]}`: "not a status",
		`{"url":"http://a","response":"xml"}`:  "one of auto, json, text",
		`{"url":"http://a","max_bytes":"1TB"}`: "out of range",
		`{"url":"http://a"} {}`:                "something follows the JSON value",
		`{"url":"http://a","timeout":-1}`:      "negative",
	} {
		if err := payload.Validate(flow.KindHTTP, []byte(in)); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// A task can reach non-public addresses only if the operator allows it, whichever way it tries.
func TestEgress(t *testing.T) {
	t.Parallel()
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "secret") }))
	t.Cleanup(inner.Close)
	port := netip.MustParseAddrPort(strings.TrimPrefix(inner.URL, "http://")).Port()
	outer := httptest.NewServer(http.RedirectHandler(inner.URL, http.StatusFound))
	t.Cleanup(outer.Close)

	closed := outgoing.HTTP{Egress: egress(t, outgoing.EgressOptions{})}
	for _, u := range []string{inner.URL, fmt.Sprintf("http://localhost:%d", port), fmt.Sprintf("http://[::1]:%d", port), fmt.Sprintf("http://[::ffff:127.0.0.1]:%d", port),
		fmt.Sprintf("http://0.0.0.0:%d", port), fmt.Sprintf("http://2130706433:%d", port), "http://169.254.169.254/", "http://10.0.0.1/", "http://100.100.100.200/", "http://[fd00:ec2::254]/", "http://[64:ff9b::a9fe:a9fe]/"} {
		_, _, err := call(t.Context(), closed, obj{"url": u, "timeout": 5})
		te, ok := errors.AsType[*task.Error](err)
		if !ok || (te.Code != "address_refused" && !strings.Contains(u, "2130706433")) {
			t.Errorf("%s: %v", u, err)
		}
	}
	for _, c := range []struct {
		allow string
		url   string
		code  string
	}{
		{"127.0.0.0/8", inner.URL, ""},
		{"127.0.0.1", inner.URL, ""},
		{fmt.Sprintf("localhost:%d", port), fmt.Sprintf("http://localhost:%d", port), ""},
		{"10.0.0.0/8", inner.URL, "address_refused"},
		{fmt.Sprintf("127.0.0.1:%d", port), inner.URL, ""},
		{strings.TrimPrefix(outer.URL, "http://"), outer.URL, "address_refused"}, // the redirect leads elsewhere
	} {
		h := outgoing.HTTP{Egress: egress(t, outgoing.EgressOptions{Allow: []string{c.allow}})}
		_, _, err := call(t.Context(), h, obj{"url": c.url})
		code := ""
		if te, ok := errors.AsType[*task.Error](err); ok {
			code = te.Code
		}
		if code != c.code {
			t.Errorf("allow %s, call %s: %v", c.allow, c.url, err)
		}
	}
	if _, err := outgoing.NewEgress(outgoing.EgressOptions{Allow: []string{"http://x"}}); err == nil {
		t.Error("a URL is no place")
	}
}

// A redirect's URL is encoded, and keys are not sent on to another host.
func TestRedirectsLeaveKeysBehind(t *testing.T) {
	t.Parallel()
	type seen struct{ query, key, auth, accept string }
	var got atomic.Pointer[seen]
	note := func(w http.ResponseWriter, r *http.Request) {
		got.Store(&seen{r.URL.RawQuery, r.Header.Get("X-Api-Key"), r.Header.Get("Authorization"), r.Header.Get("Accept")})
		w.Header().Add("Set-Cookie", "a=1; Expires=Wed, 01 Jan 2031 00:00:00 GMT")
		w.Header().Add("Set-Cookie", "b=2")
	}
	other := httptest.NewServer(http.HandlerFunc(note))
	t.Cleanup(other.Close)
	var first *httptest.Server
	first = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			w.Header().Set("Location", other.URL+"/?q=two words&u=ü")
		case "/there-and-back":
			w.Header().Set("Location", first.URL+"/away")
		case "/here":
			w.Header().Set("Location", "/there?q=two words")
		default:
			note(w, r)
			return
		}
		w.WriteHeader(http.StatusFound)
	}))
	t.Cleanup(first.Close)
	h := outgoing.HTTP{Egress: egress(t, outgoing.EgressOptions{AllowPrivate: true})}
	for path, want := range map[string]seen{
		"/away": {"q=two%20words&u=%C3%BC", "", "", "text/x"}, "/there-and-back": {"q=two%20words&u=%C3%BC", "", "", "text/x"}, "/here": {"q=two%20words", "secret", "Bearer secret", "text/x"},
	} {
		out, _, err := call(t.Context(), h, obj{"url": first.URL + path, "headers": obj{"X-Api-Key": "secret", "Authorization": "Bearer secret", "Accept": "text/x"}})
		if err != nil || *got.Load() != want {
			t.Errorf("%s: %+v %v, want %+v", path, got.Load(), err, want)
		}
		if cookies := out["headers"].(obj)["set-cookie"]; cookies != "a=1; Expires=Wed, 01 Jan 2031 00:00:00 GMT\nb=2" {
			t.Errorf("%q", cookies)
		}
	}
}
