package remote_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/remote"
)

// queue hands out what is put into it and counts the calls that it gets. What it does not implement is never called.
type queue struct {
	handoff.Handoff
	work    handoff.Assignment
	entered chan struct{}
	mu      sync.Mutex
	opened  int
	calls   int
}

func (q *queue) Open(context.Context, handoff.Session) (flow.ID, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.opened++
	return flow.ID{7, byte(q.opened)}, nil
}

// Take claims just when its caller goes away.
func (q *queue) Take(ctx context.Context, _ flow.ID, _ int) ([]handoff.Assignment, error) {
	q.entered <- struct{}{}
	<-ctx.Done()
	return []handoff.Assignment{q.work}, nil
}

func (q *queue) Renew(context.Context, flow.ID) (handoff.Renewal, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls++
	return handoff.Renewal{}, nil
}

func (q *queue) Close(context.Context, flow.ID) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls++
	return nil
}

var session = handoff.Session{Name: "w", Queues: []string{"default"}, Slots: 1}

func dial(t *testing.T, h http.Handler) (*remote.Client, *httptest.Server) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := remote.Dial(srv.URL, "sesame")
	if err != nil {
		t.Fatal(err)
	}
	return c, srv
}

// Servers that share the key serve each other's sessions, whichever a load balancer picks.
func TestAnyServerServesASession(t *testing.T) {
	t.Parallel()
	q, key := &queue{}, []byte("shared by the servers")
	servers := []http.Handler{remote.Handler(q, key), remote.Handler(q, key)}
	var n atomic.Int64
	c, _ := dial(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		servers[n.Add(1)%2].ServeHTTP(w, r)
	}))
	id, err := c.Open(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := c.Renew(t.Context(), id); err != nil {
			t.Fatalf("renew: %v", err)
		}
	}
}

// Ids of sessions are there for everybody to read; they open nothing.
func TestStolenSession(t *testing.T) {
	t.Parallel()
	q := &queue{}
	owner, srv := dial(t, remote.Handler(q, nil))
	id, err := owner.Open(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	thief, err := remote.Dial(srv.URL, "sesame")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := thief.Open(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	if err := thief.Close(t.Context(), id); !errors.Is(err, handoff.ErrSessionLost) {
		t.Errorf("close: %v", err)
	}
	if _, err := thief.Renew(t.Context(), id); !errors.Is(err, handoff.ErrSessionLost) {
		t.Errorf("renew: %v", err)
	}
	if q.calls != 0 {
		t.Errorf("%d calls got through", q.calls)
	}
	if _, err := owner.Renew(t.Context(), id); err != nil {
		t.Errorf("the owner's renew: %v", err)
	}
}

func TestOtherVersion(t *testing.T) {
	t.Parallel()
	h := remote.Handler(&queue{}, nil)
	c, _ := dial(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Pawl-Worker-Protocol", "2")
		h.ServeHTTP(w, r)
	}))
	_, err := c.Open(t.Context(), session)
	if !errors.Is(err, handoff.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "same version of Pawl") {
		t.Errorf("%v", err)
	}
}

func TestWrongServers(t *testing.T) {
	t.Parallel()
	for say, h := range map[string]http.HandlerFunc{
		"check the URL":    func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"give this worker": func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusUnauthorized) },
		"read the answer": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Pawl-Worker-Protocol", "1")
			w.Write([]byte("{"))
		},
		"no Pawl server":     func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("{}")) },
		"engine unavailable": func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
	} {
		c, _ := dial(t, h)
		if _, err := c.Open(t.Context(), session); !errors.Is(err, handoff.ErrUnavailable) || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v", say, err)
		}
	}
	if _, err := remote.Dial("localhost:80", ""); err == nil {
		t.Error("dialled something that is no URL")
	}
}

func TestBadCalls(t *testing.T) {
	t.Parallel()
	_, srv := dial(t, remote.Handler(&queue{}, nil))
	post := func(path, kind, body string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+remote.Prefix+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		req.Header.Set("Pawl-Worker-Protocol", remote.Protocol)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	for _, c := range []struct {
		path, kind, body string
		status           int
	}{
		{"open", "text/plain", "{}", 415},
		{"open", "application/json", "{", 400},
		{"open", "application/json", `{"slots":0}`, 400},
		{"take", "application/json", `{"session":"x"}`, 400},
		{"take", "application/json", `{"session":"ws_00000000000000000000000001"}`, 410},
		{"nope", "application/json", `{}`, 404},
		{"report", "application/json", `{"session":"` + strings.Repeat("x", 65<<20), 413},
	} {
		if got := post(c.path, c.kind, c.body); got != c.status {
			t.Errorf("%s %.40s: %d", c.path, c.body, got)
		}
	}
}

// Work that was claimed for a call whose connection had broken comes with the next call.
func TestWorkSurvivesABrokenCall(t *testing.T) {
	t.Parallel()
	q := &queue{work: handoff.Assignment{Execution: flow.ID{1}, Attempt: 1}, entered: make(chan struct{}, 1)}
	c, _ := dial(t, remote.Handler(q, nil))
	id, err := c.Open(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	broken, hangUp := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Take(broken, id, 1)
		done <- err
	}()
	<-q.entered
	hangUp()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("the broken call: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if work, err := c.Take(ctx, id, 1); err != nil || len(work) != 1 || work[0].Execution != q.work.Execution {
		t.Fatalf("%+v, %v", work, err)
	}
}
