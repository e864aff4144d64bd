package wires

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// callback is a request to a callback_url.
type callback struct {
	method, kind, body, path string
	Token                    string
	Stdout, Stderr           *string
	Time                     *string
	Memory                   *int64
	Message                  *string
	Status                   struct {
		ID          int
		Description string
	}
}

// receiver answers requests to callback_urls; the first errors of them with an error.
func receiver(t *testing.T, errors int) (url string, got <-chan callback) {
	t.Helper()
	all := make(chan callback, 100)
	var failed atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		c := callback{method: r.Method, kind: r.Header.Get("Content-Type"), path: r.URL.Path, body: string(body)}
		if err == nil {
			err = json.Unmarshal(body, &c)
		}
		if err != nil {
			t.Errorf("a callback has %q: %v", body, err)
		}
		if failed.Add(1) <= int64(errors) {
			w.WriteHeader(http.StatusBadGateway)
		}
		all <- c
	}))
	t.Cleanup(s.Close)
	return s.URL, all
}

func next(t *testing.T, got <-chan callback) callback {
	t.Helper()
	select {
	case c := <-got:
		return c
	case <-time.After(time.Minute):
		t.Fatal("no callback came")
	}
	return callback{}
}

func text(t *testing.T, encoded *string) string {
	t.Helper()
	if encoded == nil {
		return ""
	}
	b, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(*encoded, "\n", ""))
	if err != nil {
		t.Errorf("%q is not base64: %v", *encoded, err)
	}
	return string(b)
}

// token submits a program to Judge0's wire.
func (p *process) token(t *testing.T, body string) string {
	t.Helper()
	var out struct{ Token string }
	got := p.post("/compat/judge0/submissions", body)
	if err := json.Unmarshal([]byte(got.body), &out); err != nil || got.status != http.StatusCreated {
		t.Fatalf("%v, %v", got, err)
	}
	return out.Token
}

// A callback has the default fields, in base64, and is repeated until it is answered with success.
func TestCallback(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--allow-hosts", "127.0.0.1")
	url, got := receiver(t, 2)
	token := s.token(t, `{"source_code": "print(6*7)", "language_id": 71, "expected_output": "42", "callback_url": "`+url+`/done?of=1"}`)
	for range 3 {
		c := next(t, got)
		if c.method != "PUT" || c.kind != "application/json" || c.path != "/done" || c.Token != token || c.Status.ID != 3 || c.Status.Description != "Accepted" ||
			text(t, c.Stdout) != "42\n" || c.Stderr != nil || c.Time == nil || c.Memory == nil || !strings.Contains(c.body, `"compile_output":null`) || strings.Contains(c.body, "source_code") {
			t.Errorf("got %+v", c)
		}
	}
	sent := s.request(t, token)
	if sent.Status != api.Completed || sent.Attempt != 3 {
		t.Errorf("the request is %s in attempt %d", sent.Status, sent.Attempt)
	}
	if len(got) > 0 {
		t.Errorf("after an answer there is another callback: %+v", <-got)
	}
}

// request waits for the end of the execution that sends a token's callback.
func (p *process) request(t *testing.T, token string) *api.Execution {
	t.Helper()
	page, err := p.client.List(t.Context(), client.Filter{Labels: map[string]string{"judge0.callback": token}})
	if err != nil || len(page.Executions) != 1 {
		t.Fatalf("%d executions, %v", len(page.Executions), err)
	}
	x, err := p.client.Wait(t.Context(), page.Executions[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Programs that are wrong, write more than a row holds, or are killed have callbacks, too, and each program of a batch has its own.
func TestCallbackOfEachEnd(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--allow-hosts", "127.0.0.1")
	url, got := receiver(t, 0)
	one := func(source, more string) string {
		return fmt.Sprintf(`{"source_code": %q, "language_id": 71, "callback_url": %q%s}`, source, url, more)
	}
	answer := s.post("/compat/judge0/submissions/batch", `{"submissions": [`+one("print('x' * 300_000)", "")+`, `+one("print(1)", `, "expected_output": "2"`)+`, `+
		one("import sys; sys.exit('no')", "")+`]}`)
	if answer.status != http.StatusCreated {
		t.Fatal(answer)
	}
	killed := s.token(t, one("import time; time.sleep(9)", ""))
	if _, err := s.client.Kill(t.Context(), killed, "a test", 0); err != nil {
		t.Fatal(err)
	}
	ends := map[int]string{}
	for range 4 {
		c := next(t, got)
		ends[c.Status.ID] = text(t, c.Stdout) + text(t, c.Stderr) + text(t, c.Message)
	}
	if len(ends[3]) != 300_001 || !strings.HasPrefix(ends[4], "1\n") || !strings.Contains(ends[11], "no") || !strings.Contains(ends[13], "a test") {
		t.Errorf("got %d bytes, %q, %q, %q", len(ends[3]), ends[4], ends[11], ends[13])
	}
}

// The server is killed while programs run, and while callbacks are sent: the next server sends all of them.
func TestCallbacksOutliveTheServer(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	s := serve(t, state, "--allow-hosts", "127.0.0.1")
	reached, release := make(chan struct{}, 10), make(chan struct{})
	stuck := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer stuck.Close()
	url, got := receiver(t, 0)
	sending := s.token(t, `{"source_code": "print(1)", "language_id": 71, "callback_url": "`+stuck.URL+`"}`)
	<-reached
	var tokens []string
	for range 4 {
		tokens = append(tokens, s.token(t, `{"source_code": "import time; time.sleep(1); print(2)", "language_id": 71, "callback_url": "`+url+`"}`))
	}
	s.running(t, "judge0", 1)
	s.Kill()
	close(release)
	again := serve(t, state, "--allow-hosts", "127.0.0.1")
	told := map[string]int{}
	for range tokens {
		c := next(t, got)
		if told[c.Token]++; c.Status.ID != 3 {
			t.Errorf("got %+v", c)
		}
	}
	for _, token := range append(tokens, sending) {
		if x := again.request(t, token); x.Status != api.Completed {
			t.Errorf("the callback of %s is %s: %v", token, x.Status, x.Error)
		}
	}
	if len(told) != len(tokens) {
		t.Errorf("of %d submissions there were callbacks of %v", len(tokens), told)
	}
}

// A callback_url follows the rules for other addresses of tasks: private ones only where the operator allows it.
func TestCallbackToPrivateAddress(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	url, got := receiver(t, 0)
	token := s.token(t, `{"source_code": "print(1)", "language_id": 71, "callback_url": "`+url+`"}`)
	if x := s.request(t, token); x.Status != api.Failed || x.Error.Code != "address_refused" || len(got) > 0 {
		t.Errorf("got %s, %v and %d callbacks", x.Status, x.Error, len(got))
	}
	for _, wrong := range []string{"example.com/x", "ftp://example.com", "http://", "/x"} {
		answer := s.post("/compat/judge0/submissions", `{"source_code": "print(1)", "language_id": 71, "callback_url": "`+wrong+`"}`)
		if answer.status != http.StatusUnprocessableEntity || !strings.Contains(answer.body, `{"callback_url":["it is not a URL`) {
			t.Errorf("%s: %v", wrong, answer)
		}
	}
}
