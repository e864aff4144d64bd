package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

var listAll = client.Filter{}

const token = "0123456789abcdef0123"

func TestLoopbackRule(t *testing.T) {
	t.Parallel()
	h := build(t, Options{})
	for _, address := range []string{"0.0.0.0:0", "[::]:0"} {
		l, err := net.Listen("tcp", address)
		if errors.Is(err, syscall.EAFNOSUPPORT) {
			t.Skipf("this system has no IPv6: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		err = h.Serve(t.Context(), l)
		if err == nil || !strings.Contains(err.Error(), "token") || !strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("serving %s without a token: %v", address, err)
		}
		if _, err := l.Accept(); err == nil {
			t.Errorf("%s is still open", address)
		}
	}
	if _, err := New(Options{Engine: h.engine, Tokens: []string{"short"}}); err == nil {
		t.Error("a short token was taken")
	}
}

// A connection that did not come over a loopback address needs a token, regardless of where the handler is mounted.
func TestRemoteConnections(t *testing.T) {
	t.Parallel()
	outside := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7411}
	ask := func(h http.Handler, header ...string) int {
		r := httptest.NewRequestWithContext(contextWith(t, outside), "GET", "http://pawl.example/api/v1/queues", nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	if got := ask(build(t, Options{}).Handler()); got != 401 {
		t.Errorf("without tokens: %d, want 401", got)
	}
	h := build(t, Options{Tokens: []string{token, "another-0123456789"}}).Handler()
	for header, want := range map[string]int{
		"": 401, "Bearer wrong": 401, "Basic " + token: 401, token: 401, "Bearer " + token + "x": 401, "Bearer": 401,
		"Bearer " + token: 200, "bearer another-0123456789": 200,
	} {
		if got := ask(h, "Authorization", header); got != want {
			t.Errorf("Authorization %q: %d, want %d", header, got, want)
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Tokens: []string{token}})
	h.problem(t, 401, api.ProblemUnauthorized, "GET", "/api/v1/executions", "")
	h.problem(t, 401, api.ProblemUnauthorized, "GET", "/metrics", "")
	h.problem(t, 401, api.ProblemUnauthorized, "POST", "/api/eval", `{}`)
	for _, path := range []string{"/healthz", "/readyz"} {
		if res, _ := h.do(t, "GET", path, ""); res.StatusCode != 200 {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	if _, err := h.client.Stats(t.Context()); err != nil {
		t.Errorf("with the token: %v", err)
	}
}

func TestHostAndOrigin(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	for host, want := range map[string]int{
		"localhost": 200, "localhost:80": 200, "127.0.0.1:1": 200, "127.9.9.9": 200, "[::1]:80": 200, "a.localhost": 200,
		"evil.example": 403, "pawl.lan:80": 403, "localhost.evil.example": 403, "10.0.0.1": 403, "127.0.0.1.evil.example": 403,
	} {
		if res, body := h.do(t, "GET", "/api/v1/queues", "", "Host", host); res.StatusCode != want {
			t.Errorf("Host %q: %s, want %d\n%s", host, res.Status, want, body)
		}
	}
	const path, body = "/api/v1/executions", `{"action":"noop"}`
	h.problem(t, 403, api.ProblemForbidden, "POST", path, body, "Origin", "https://evil.example")
	h.problem(t, 403, api.ProblemForbidden, "POST", path, body, "Origin", "null")
	h.problem(t, 403, api.ProblemForbidden, "POST", path, body, "Sec-Fetch-Site", "cross-site")
	if res, _ := h.do(t, "POST", path, body, "Origin", h.url); res.StatusCode != 202 {
		t.Errorf("own origin: %s", res.Status)
	}
	if res, _ := h.do(t, "GET", path, "", "Origin", "https://evil.example"); res.StatusCode != 200 || res.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("reading from elsewhere: %s %v", res.Status, res.Header)
	}
}

// A worker's call may wait for longer than a client may take to read an answer.
func TestWorkersMayWaitLong(t *testing.T) {
	t.Parallel()
	const patience = 5 * time.Second // an answer that is ready takes less, even on a busy machine
	h := start(t, Options{Patience: patience, Workers: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(2 * patience)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
		_, _ = w.Write([]byte("work"))
	})})
	if res, _ := h.do(t, "GET", "/healthz", ""); res.StatusCode != 200 {
		t.Fatal(res.Status)
	}
	if res, body := h.do(t, "POST", "/api/v1/workers/x/take", ""); res.StatusCode != 200 || string(body) != "work" {
		t.Errorf("%s %q", res.Status, body)
	}
	if res, _ := h.do(t, "GET", "/api/v1/workers", ""); res.StatusCode != 200 {
		t.Error(res.Status)
	}
}

// A refused request is logged with its origin and the reason.
func TestTurnedAwayIsLogged(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	var mu sync.Mutex
	h := start(t, Options{
		Tokens:  []string{"a-token-that-is-long-enough"},
		Log:     slog.New(slog.NewTextHandler(writer(func(b []byte) { mu.Lock(); defer mu.Unlock(); log.Write(b) }), nil)),
		Workers: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "old", http.StatusUpgradeRequired) }),
	})
	h.do(t, "POST", "/api/v1/workers/open", "{}", "Authorization", "Bearer wrong")
	h.do(t, "POST", "/api/v1/workers/open", "{}", "Authorization", "Bearer a-token-that-is-long-enough")
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"request turned away", "remote=127.0.0.1", "the token is none of this server's", "worker turned away", "status=426"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in\n%s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "wrong") {
		t.Errorf("a token is in the log:\n%s", log.String())
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}

// /readyz needs no token, so without one it does not repeat the error of the database driver, which names hosts and users.
func TestReasonsOfReadyz(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Tokens: []string{token}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for given, want := range map[string]string{"": "the database does not answer or takes no writes", "Bearer " + token: context.Canceled.Error(), "Bearer x": "the database does not answer"} {
		r := httptest.NewRequestWithContext(ctx, "GET", "http://localhost/readyz", nil)
		r.Header.Set("Authorization", given)
		w := httptest.NewRecorder()
		h.Handler().ServeHTTP(w, r)
		if w.Code != 503 || !strings.Contains(w.Body.String(), want) || given != "Bearer "+token && strings.Contains(w.Body.String(), "cancel") {
			t.Errorf("with %q: %d %s", given, w.Code, w.Body)
		}
	}
}
