package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
)

// large submits an execution with an output of size bytes, and waits for its end.
func (h *house) large(t *testing.T, size int) string {
	t.Helper()
	x, err := h.client.Submit(t.Context(), api.Submission{Action: "noop", Input: []byte(`"` + strings.Repeat("x", size-2) + `"`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.client.Wait(t.Context(), x.ID); err != nil {
		t.Fatal(err)
	}
	return x.ID
}

// idle sends requests and does not read the answers.
func (h *house) idle(t *testing.T, n int, path string) {
	t.Helper()
	for range n {
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
			t.Fatal(err)
		}
	}
}

// patient is far more than a test takes, so a call ends earlier only because another call needs what it holds.
const patient = time.Hour

// Clients that request large outputs and do not read them hold no more memory than the budget for answers, and do not block other requests.
func TestLargeAnswersHaveABudget(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Patience: patient})
	path := "/api/v1/executions/" + h.large(t, 12<<20)
	h.idle(t, 30, path)
	waitFor(t, "the memory for answers to be taken", func() bool { return h.answers.used.Load() > 10<<20 })
	for range 3 {
		waitFor(t, "an answer for a client that reads", func() bool {
			if used := h.answers.used.Load(); used > answersInFlight {
				t.Fatalf("answers hold %d bytes", used)
			}
			res, body := h.do(t, "GET", path, "")
			switch {
			case res.StatusCode == http.StatusOK:
				return len(body) > 24<<20
			case res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || !strings.Contains(string(body), "try again"):
				t.Fatalf("%s: %.300s", res.Status, body)
			}
			return false
		})
	}
}

// A small answer needs none of that budget, and an answer larger than the whole budget is sent if no other is held.
func TestAnswersOutsideOfTheBudget(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	c := &call{Server: h.Server, r: &http.Request{Method: http.MethodGet}}
	if err := c.hold(answersInFlight + 1); err != nil {
		t.Fatal(err)
	}
	second := &call{Server: h.Server, r: &http.Request{Method: http.MethodGet}}
	if err := second.hold(smallAnswer); err != nil {
		t.Errorf("a small answer: %v", err)
	}
	if err := second.hold(smallAnswer + 1); err == nil {
		t.Error("a large answer was given beside one that takes everything")
	}
	c.release()
	if err := second.hold(smallAnswer + 1); err != nil {
		t.Error(err)
	}
	if second.release(); h.answers.used.Load() != 0 {
		t.Errorf("%d bytes are still held", h.answers.used.Load())
	}
}

// Clients that do not read an archive lose their places when another client needs one.
func TestIdleClientsLoseTheirPlaces(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Patience: patient})
	path := "/api/v1/executions:export?id=" + h.large(t, 12<<20)
	h.idle(t, archivesAtOnce, path)
	waitFor(t, "all places to be taken", func() bool { return len(h.archives.free) == archivesAtOnce })
	waitFor(t, "a place for a client that reads", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), "GET", h.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := h.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode == http.StatusTooManyRequests {
			return false
		}
		if err != nil || res.StatusCode != http.StatusOK || n < 24<<20 {
			t.Fatalf("%s, %d bytes: %v", res.Status, n, err)
		}
		return true
	})
}
