package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-run/pawl/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// both runs a test with a server behind a socket and with one in the same process.
func both(t *testing.T, h http.Handler, test func(*testing.T, *Client)) {
	t.Helper()
	t.Run("socket", func(t *testing.T) {
		s := httptest.NewServer(h)
		c, err := New(s.URL, WithPatience(2*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		test(t, c)
		c.http.CloseIdleConnections()
		s.Close()
	})
	t.Run("in process", func(t *testing.T) { test(t, NewInProcess(h, WithPatience(2*time.Second))) })
}

func refuse(w http.ResponseWriter, status int, kind string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(api.Problem{Type: kind, Status: status, Detail: "no", Errors: []api.FieldError{{Path: "action", Message: "it is missing"}}})
}

func TestAddresses(t *testing.T) {
	for _, bad := range []string{" ", "localhost:7411", "ftp://x", "http://", "http://u:p@x", "http://x?a=b", "http://x#y", "://"} {
		if _, err := New(bad); err == nil || !strings.Contains(err.Error(), "server address") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	c, err := New("https://pawl.example/base/")
	if err != nil || c.BaseURL() != "https://pawl.example/base" || c.token != "" {
		t.Errorf("%v, %v", c, err)
	}
	t.Setenv("PAWL_SERVER", "")
	t.Setenv("PAWL_TOKEN", "secret")
	if c, err = New(""); err != nil || c.BaseURL() != DefaultServer || c.token != "secret" {
		t.Errorf("%v, %v", c, err)
	}
	t.Setenv("PAWL_SERVER", "https://pawl.example")
	if c, err = New("", WithToken("other")); err != nil || c.BaseURL() != "https://pawl.example" || c.token != "other" {
		t.Errorf("%v, %v", c, err)
	}
	if c, err = New("https://elsewhere.example"); err != nil || c.token != "" {
		t.Errorf("the token of $PAWL_SERVER goes elsewhere: %v, %v", c, err)
	}
}

func TestRepeatsUntilItIsTakenIn(t *testing.T) {
	var tries atomic.Int32
	var keys [8]string
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var s api.Submission
		_ = json.NewDecoder(r.Body).Decode(&s)
		n := tries.Add(1)
		keys[n] = s.IdempotencyKey
		switch n {
		case 1:
			refuse(w, 503, api.ProblemUnavailable)
		case 2:
			panic(http.ErrAbortHandler) // the answer is lost
		case 3:
			refuse(w, 429, api.ProblemOverloaded)
		default:
			_, _ = io.WriteString(w, `{"id":"ex_1"}`)
		}
	})
	s := httptest.NewServer(h)
	defer s.Close()
	c, err := New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.http.CloseIdleConnections()
	x, err := c.Submit(t.Context(), api.Submission{Action: "noop"})
	if err != nil || x.ID != "ex_1" || tries.Load() != 4 {
		t.Fatalf("%+v, %v after %d tries", x, err, tries.Load())
	}
	if keys[1] == "" || keys[1] != keys[2] || keys[1] != keys[4] {
		t.Errorf("idempotency keys %q", keys)
	}
}

// A cancel whose answer was lost is repeated with its key: without a key the server would take it for a second cancel, which ends the
// clean-up.
func TestRepeatsACancel(t *testing.T) {
	for _, many := range []bool{false, true} {
		var keys []string
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if keys = append(keys, r.Header.Get("Idempotency-Key")); len(keys) < 3 {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, `{}`)
		})
		s := httptest.NewServer(h)
		c, err := New(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		if many {
			_, err = c.CancelMany(t.Context(), Filter{Action: "a"}, api.BulkRequest{})
		} else {
			_, err = c.Cancel(t.Context(), "ex_1", "enough", 0)
		}
		if err != nil || len(keys) != 3 || keys[0] == "" || keys[1] != keys[0] || keys[2] != keys[0] {
			t.Errorf("%v: %q", err, keys)
		}
		c.http.CloseIdleConnections()
		s.Close()
	}
}

// The server does not know the result of two items. The client submits only these again, under their keys, and not the one without a key.
func TestRepeatsTheItemsOfABatch(t *testing.T) {
	for _, keys := range []bool{true, false} {
		var sent [][]string
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var b api.Batch
			_ = json.NewDecoder(r.Body).Decode(&b)
			out := api.BatchResult{Results: make([]api.BatchEntry, len(b.Executions))}
			var some []string
			for i, s := range b.Executions {
				some = append(some, s.IdempotencyKey)
				unknown := strings.HasPrefix(s.Action, "unknown") && len(sent) < 2 || s.Action == "unknown, then refused" && len(sent) == 2
				at := fmt.Sprintf("executions[%d]", i)
				switch {
				case s.Action == "bad", s.Action == "unknown, then refused" && !unknown:
					out.Refused++
					out.Results[i].Problem = &api.Problem{Type: api.ProblemInvalid, Status: 422, Instance: at, Errors: []api.FieldError{{Path: at + ".action"}}}
				case unknown:
					out.Refused++
					out.Results[i].Problem = &api.Problem{Type: api.ProblemUnavailable, Status: 503, Instance: at}
				default:
					out.Accepted++
					out.Results[i].ID = "ex_" + s.Action
				}
			}
			sent = append(sent, some)
			_ = json.NewEncoder(w).Encode(out)
		})
		s := httptest.NewServer(h)
		c, err := New(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		if !keys {
			WithoutIdempotencyKeys()(c)
		}
		all := []api.Submission{{Action: "bad"}, {Action: "a"}, {Action: "unknown, then refused", IdempotencyKey: "mine"}, {Action: "unknown"}}
		r, err := c.SubmitBatch(t.Context(), all)
		s.Close()
		if err != nil || len(r.Results) != 4 || all[0].IdempotencyKey != "" {
			t.Fatalf("%+v, %v", r, err)
		}
		p := r.Results[2].Problem
		if r.Results[0].Problem.Status != 422 || r.Results[1].ID != "ex_a" || p == nil || p.Status != 422 || p.Instance != "executions[2]" || p.Errors[0].Path != "executions[2].action" {
			t.Errorf("%+v", r.Results)
		}
		if !keys {
			if r.Results[3].Problem == nil || r.Accepted != 1 || r.Refused != 3 || len(sent) != 4 || len(sent[1]) != 1 || sent[1][0] != "mine" {
				t.Errorf("without keys: %+v after %q", r, sent)
			}
			continue
		}
		if r.Results[3].ID != "ex_unknown" || r.Accepted != 2 || r.Refused != 2 || len(sent) != 4 {
			t.Errorf("%+v after %q", r, sent)
		}
		if len(sent[1]) != 2 || sent[1][0] != "mine" || sent[1][1] == "" || sent[1][1] != sent[0][3] || len(sent[3]) != 1 {
			t.Errorf("sent were %q", sent)
		}
	}
}

func TestDoesNotRepeatWhatMayHaveBeenDone(t *testing.T) {
	var tries atomic.Int32
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		tries.Add(1)
		refuse(w, 503, api.ProblemUnavailable)
	})
	both(t, h, func(t *testing.T, c *Client) {
		c.keys = false
		tries.Store(0)
		if _, err := c.Retry(t.Context(), "ex_1"); err == nil || tries.Load() != 1 {
			t.Errorf("a retry without a key: %v after %d tries", err, tries.Load())
		}
		tries.Store(0)
		if _, err := c.Submit(t.Context(), api.Submission{Action: "noop"}); err == nil || tries.Load() != 1 {
			t.Errorf("a submission without a key: %v after %d tries", err, tries.Load())
		}
	})
}

func TestProblems(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/x") {
			refuse(w, 404, api.ProblemNotFound)
			return
		}
		w.WriteHeader(502)
		_, _ = io.WriteString(w, "<html>a proxy's page")
	})
	both(t, h, func(t *testing.T, c *Client) {
		_, err := c.Get(t.Context(), "x")
		var p *api.Problem
		if !errors.As(err, &p) || p.Status != 404 || !IsNotFound(err) || IsFinished(err) || !strings.Contains(err.Error(), "action: it is missing") {
			t.Errorf("%v", err)
		}
		if _, err = c.Get(t.Context(), "y"); !errors.As(err, &p) || p.Status != 502 || !strings.Contains(err.Error(), "a proxy's page") {
			t.Errorf("%v", err)
		}
	})
}

// An id that would make another path of a request is refused, and nothing is sent: /executions/../signals is /signals.
func TestIDsThatAreSteps(t *testing.T) {
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s was sent", r.Method, r.URL) })
	both(t, h, func(t *testing.T, c *Client) {
		for _, id := range []string{"", ".", ".."} {
			if _, err := c.Get(t.Context(), id); err == nil || !strings.Contains(err.Error(), "neither a name nor an id") {
				t.Errorf("get %q: %v", id, err)
			}
			if _, err := c.Cancel(t.Context(), id, "", 0); err == nil {
				t.Errorf("cancel %q: %v", id, err)
			}
		}
	})
}

// A string that is not UTF-8 is refused: encoding/json would send U+FFFD in its place.
func TestTextThatIsNotUTF8(t *testing.T) {
	for path, body := range map[string]any{
		"labels.a":              api.Submission{Action: "noop", Labels: map[string]string{"a": "\xff"}},
		"source":                map[string]string{"source": "print('\xfc')"},
		"executions.0.labels.b": map[string]any{"executions": []api.Submission{{Labels: map[string]string{"b": "\xc3"}}}},
	} {
		_, err := encode(body)
		var p *api.Problem
		if !errors.As(err, &p) || p.Type != api.ProblemInvalid || len(p.Errors) != 1 || !strings.HasPrefix(p.Errors[0].Path, path) || p.Errors[0].Fix == "" {
			t.Errorf("%s: %v", path, err)
		}
	}
	in := api.Submission{Action: "noop", Input: json.RawMessage(`{"n": 1e400, "n": 1, "s": "\ud800<\ud83d\ude00>"}`), Labels: map[string]string{"a": "\ufffd"}}
	got, err := encode(in)
	if want, _ := json.Marshal(in); err != nil || string(got) != string(want) {
		t.Errorf("%s, want %s, %v", got, want, err)
	}
}

func TestConnectionRefused(t *testing.T) {
	c, err := New("http://127.0.0.1:1", WithPatience(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "reach the server") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("changed my mind"))
	if _, err := c.Get(ctx, "x"); err == nil || err.Error() != "changed my mind" {
		t.Errorf("%v", err)
	}
}

// streamer sends events 1 … 9, three per connection, then the end.
func streamer(breaks *atomic.Int32) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := 0
		_, _ = fmt.Sscan(r.Header.Get("Last-Event-ID"), &from)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "retry: 1\n\n: a comment\n\n")
		for i := from + 1; i <= 9; i++ {
			_, _ = fmt.Fprintf(w, "event: event\r\nid: %d\r\ndata: {\"seq\":\r\ndata: %d}\r\n\r\n", i, i)
			w.(http.Flusher).Flush()
			if i%3 == 0 && i < 9 {
				breaks.Add(1)
				_, _ = io.WriteString(w, "event: event\nid: 99\ndata: {\"se") // truncated
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
		}
		_, _ = io.WriteString(w, "event: end\ndata: {\"status\":\"completed\"}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
}

func TestFollowResumes(t *testing.T) {
	var breaks atomic.Int32
	both(t, streamer(&breaks), func(t *testing.T, c *Client) {
		breaks.Store(0)
		want := int64(1)
		for e, err := range c.FollowEvents(t.Context(), "x", 0) {
			if err != nil || e.Seq != want {
				t.Fatalf("event %d, want %d: %v", e.Seq, want, err)
			}
			want++
		}
		if want != 10 || breaks.Load() != 2 {
			t.Errorf("saw up to %d over %d breaks", want-1, breaks.Load())
		}
	})
}

func TestFollowStops(t *testing.T) {
	var breaks atomic.Int32
	both(t, streamer(&breaks), func(t *testing.T, c *Client) {
		for e, err := range c.FollowEvents(t.Context(), "x", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Seq == 2 {
				break // the connection ends with it: goleak would report it
			}
		}
	})
	refusing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuse(w, 404, api.ProblemNotFound) })
	both(t, refusing, func(t *testing.T, c *Client) {
		n := 0
		for _, err := range c.FollowLogs(t.Context(), "x", LogQuery{}) {
			if n++; !IsNotFound(err) {
				t.Errorf("%v", err)
			}
		}
		if n != 1 {
			t.Errorf("%d turns", n)
		}
	})
	quiet := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	both(t, quiet, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		for _, err := range c.FollowLogs(ctx, "x", LogQuery{}) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestInProcessStreamsWhileItIsWritten(t *testing.T) {
	steps := make(chan string)
	gone := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		for s := range steps {
			if err := rc.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Error(err)
			}
			if _, err := io.WriteString(w, s); err != nil {
				t.Error(err)
			}
			if err := rc.Flush(); err != nil {
				t.Error(err)
			}
		}
		<-r.Context().Done()
		close(gone)
	})
	res, err := (&http.Client{Transport: inProcess{h}}).Get("http://in-process/" + step(steps, "one"))
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 3)
	if _, err := io.ReadFull(res.Body, buf); err != nil || string(buf) != "one" {
		t.Fatalf("%q, %v", buf, err)
	}
	step(steps, "two")
	if _, err := io.ReadFull(res.Body, buf); err != nil || string(buf) != "two" {
		t.Fatalf("%q, %v", buf, err)
	}
	close(steps)
	_ = res.Body.Close()
	<-gone
}

// step sends the text from another goroutine.
func step(to chan<- string, text string) string {
	go func() { to <- text }()
	return ""
}

func TestInProcessSlowReader(t *testing.T) {
	failed := make(chan error, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.Flush()
		_ = rc.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
		_, err := w.Write([]byte("nobody reads this"))
		failed <- err
	})
	res, err := (&http.Client{Transport: inProcess{h}}).Get("http://in-process/")
	if err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("a write that nobody took succeeded")
	}
	_ = res.Body.Close()
}

// A deadline limits one write: a stream may be quiet for longer than that.
func TestInProcessQuietStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			rc := http.NewResponseController(w)
			for range 3 {
				_ = rc.SetWriteDeadline(time.Now().Add(15 * time.Second))
				if _, err := io.WriteString(w, "alive "); err != nil || rc.Flush() != nil {
					t.Errorf("the stream broke: %v", err)
				}
				time.Sleep(time.Minute)
			}
		})
		res, err := (&http.Client{Transport: inProcess{h}}).Get("http://in-process/")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(res.Body); err != nil || string(b) != "alive alive alive " {
			t.Errorf("%q, %v", b, err)
		}
	})
}

func TestInProcessAnswers(t *testing.T) {
	big := strings.Repeat("x", 3*inProcessBuffer)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic("oh")
		case "/big":
			_, _ = io.WriteString(w, big)
		case "/echo":
			w.Header().Set("X-Host", r.Host)
			w.WriteHeader(201)
			w.Header().Set("X-Late", "1")
			_, _ = io.Copy(w, r.Body)
		}
	})
	c := &http.Client{Transport: inProcess{h}}
	if _, err := c.Get("http://in-process/panic"); err == nil {
		t.Error("a panic was no error")
	}
	res, err := c.Get("http://in-process/big")
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil || string(b) != big {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	res, err = c.Post("http://in-process/echo", "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	b, _ = io.ReadAll(res.Body)
	if res.StatusCode != 201 || string(b) != "hello" || res.Header.Get("X-Host") != "in-process" || res.Header.Get("X-Late") != "" || res.ContentLength != 5 {
		t.Errorf("%s %v %q", res.Status, res.Header, b)
	}
	res, err = c.Get("http://in-process/empty")
	if err != nil || res.StatusCode != 200 {
		t.Errorf("%v, %v", res, err)
	}
}
