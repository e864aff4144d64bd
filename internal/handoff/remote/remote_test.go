package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/remote"
)

// queue hands out what is put into it and counts the calls that it gets. Methods that it does not implement are never called.
type queue struct {
	handoff.Handoff
	work    handoff.Assignment
	entered chan struct{}
	mu      sync.Mutex
	opened  int
	calls   int
	lease   time.Duration
}

func (q *queue) Lease() time.Duration { return q.lease }

func (q *queue) Open(context.Context, handoff.Session) (flow.ID, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.opened++
	return flow.ID{7, byte(q.opened)}, nil
}

// Take claims at the moment its caller goes away.
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

// Servers with the same key serve each other's sessions, whichever a load balancer picks.
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

// Ids of sessions are public; they give no access.
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
	if !errors.Is(err, handoff.ErrUnavailable) || !errors.Is(err, handoff.ErrRefused) || !strings.Contains(fmt.Sprint(err), "same version of Pawl") {
		t.Errorf("%v", err)
	}
}

func TestWrongServers(t *testing.T) {
	t.Parallel()
	many := slices.Repeat([]string{"q"}, 1001)
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
		if _, err := c.Open(t.Context(), session); !errors.Is(err, handoff.ErrUnavailable) || !strings.Contains(err.Error(), say) ||
			errors.Is(err, handoff.ErrRefused) != (say == "give this worker") {
			t.Errorf("%s: %v", say, err)
		}
	}
	c, _ := dial(t, remote.Handler(&queue{}, nil))
	for say, s := range map[string]handoff.Session{
		"needs at least one": {Queues: []string{"default"}}, "1000 of each": {Slots: 1, Queues: many}, "at most 512": {Slots: 1, Queues: many[:1], Name: strings.Repeat("x", 600)},
	} {
		if _, err := c.Open(t.Context(), s); !errors.Is(err, handoff.ErrUnavailable) || !strings.Contains(err.Error(), say) {
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
		{"take", "application/json", `{"session":"ws_00000000000000000000000004"}`, 410},
		{"nope", "application/json", `{}`, 404},
		{"report", "application/json", `{"session":"` + strings.Repeat("x", 65<<20), 413},
	} {
		if got := post(c.path, c.kind, c.body); got != c.status {
			t.Errorf("%s %.40s: %d", c.path, c.body, got)
		}
	}
}

// The log of one execution can have neither blobs of another execution nor more bytes than a chunk may have.
func TestLogOfABlob(t *testing.T) {
	t.Parallel()
	c, _ := dial(t, remote.Handler(&queue{}, nil))
	id, err := c.Open(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Log(t.Context(), id, []flow.LogChunk{{Execution: flow.ID{1}, Attempt: 1, Seq: 1, Stream: "stdout", Blob: "files/other/1/0", Size: 1 << 40}})
	if err == nil || !strings.Contains(err.Error(), "names blob files/other/1/0") {
		t.Errorf("%v", err)
	}
}

// Work claimed for a call whose connection had broken comes with the next call.
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if work, err := c.Take(ctx, id, 1); err != nil || len(work) != 1 || work[0].Execution != q.work.Execution {
		t.Fatalf("%+v, %v", work, err)
	}
}

// heavy hands out much work at once, and records what it gets back.
type heavy struct {
	queue
	left  []handoff.Assignment
	asked []int // how much was asked for
	got   []flow.Report
}

func (h *heavy) Take(_ context.Context, _ flow.ID, n int) ([]handoff.Assignment, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, n)
	work := h.left
	h.left = nil
	return work, nil
}

func (h *heavy) Report(_ context.Context, _ flow.ID, reports []flow.Report) ([]flow.Receipt, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got = reports
	return make([]flow.Receipt, len(reports)), nil
}

func (h *heavy) Resume(context.Context, handoff.Session, flow.ID, []flow.AttemptID) (flow.ID, []handoff.Assignment, error) {
	return flow.ID{8}, h.left, nil
}

// All work for a worker's slots arrives: in parts, even with the largest inputs. So do the reports about it.
func TestHeavyWork(t *testing.T) {
	t.Parallel()
	const all = 2
	h := &heavy{}
	large := json.RawMessage(`"` + strings.Repeat("<", 11<<20) + `"`) // six times as much when escaped
	for i := range all {
		h.left = append(h.left, handoff.Assignment{Execution: flow.ID{byte(i)}, Attempt: 1, Payload: large})
	}
	c, _ := dial(t, remote.Handler(h, nil))
	id, err := c.Open(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	next, work, err := c.Resume(t.Context(), session, id, nil)
	if err != nil || len(work) != all {
		t.Fatalf("resumed %d, %v", len(work), err)
	}
	for taken := 0; taken < all; {
		work, err := c.Take(t.Context(), next, all)
		if err != nil || len(work) == all {
			t.Fatalf("%d of %d at once, %v", len(work), all, err)
		}
		for _, a := range work {
			if a.Execution != (flow.ID{byte(taken)}) || !bytes.Equal(a.Payload, large) {
				t.Errorf("%d: %s with %d bytes", taken, a.Execution, len(a.Payload))
			}
			taken++
		}
	}
	for range 2 {
		h.left = []handoff.Assignment{{Execution: flow.ID{1}, Attempt: 1}}
		if _, err := c.Take(t.Context(), next, all); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(h.asked, []int{all, 1, all}) { // work that only waits may be taken back
		t.Errorf("asked for %v", h.asked)
	}
	report := flow.Report{Events: []flow.Event{{Outcome: &flow.Outcome{Output: large}}}}
	if _, err := c.Report(t.Context(), next, []flow.Report{report}); err != nil || !bytes.Equal(h.got[0].Events[0].Outcome.Output, large) {
		t.Errorf("reported: %v", err)
	}
}

// shelf carries blobs in memory.
type shelf struct {
	queue
	mu    sync.Mutex
	blobs map[string][]byte
}

func (s *shelf) PutBlob(_ context.Context, _ flow.ID, q handoff.BlobQuery, r io.Reader) (int64, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs[q.Name] = b
	return int64(len(b)), nil
}

func (s *shelf) GetBlob(_ context.Context, _ flow.ID, q handoff.BlobQuery) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.blobs[q.Name]; ok {
		return io.NopCloser(bytes.NewReader(b[q.From:])), nil
	}
	return nil, handoff.ErrNoBlob
}

var someBlob = handoff.BlobQuery{Execution: flow.ID{1}, Attempt: 1, Name: "files/x/1/0"}

// spoilt makes a transport corrupt its data: the byte at an offset changes, or the data ends there.
type spoilt struct {
	from io.ReadCloser
	at   int
	cut  bool
}

func (s *spoilt) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if s.at >= 0 && s.at < n {
		if s.cut {
			s.at, n, err = 0, s.at, io.ErrUnexpectedEOF
			return n, err
		}
		p[s.at] ^= 1
	}
	s.at -= n
	return n, err
}

func (s *spoilt) Close() error { return s.from.Close() }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A transfer that is changed or cut off in transit is neither stored nor accepted as complete.
func TestSpoiltBlobs(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 100_000)
	for _, at := range []int{2, 4, 300_000, 1_000_016, 1_000_030} {
		for _, cut := range []bool{false, true} {
			s := &shelf{blobs: map[string][]byte{}}
			c, _ := dial(t, remote.Handler(s, nil))
			id, err := c.Open(t.Context(), session)
			if err != nil {
				t.Fatal(err)
			}
			c.Over(roundTrip(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPut {
					r.Body = &spoilt{r.Body, at, cut}
				}
				res, err := http.DefaultTransport.RoundTrip(r)
				if err == nil && r.Method == http.MethodGet {
					res.Body = &spoilt{res.Body, at, cut}
				}
				return res, err
			}))
			if _, err := c.PutBlob(t.Context(), id, someBlob, strings.NewReader(content)); !errors.Is(err, handoff.ErrUnavailable) {
				t.Errorf("put, spoilt at %d, cut %v: %v", at, cut, err)
			}
			if len(s.blobs) != 0 {
				t.Errorf("spoilt at %d, cut %v: it was stored", at, cut)
			}
			s.blobs[someBlob.Name] = []byte(content)
			r, err := c.GetBlob(t.Context(), id, someBlob)
			if err == nil {
				_, err = io.ReadAll(r)
				_ = r.Close()
			}
			if !errors.Is(err, handoff.ErrUnavailable) {
				t.Errorf("get, spoilt at %d, cut %v: %v", at, cut, err)
			}
		}
	}
}

// The upload of a blob may begin at one server and be repeated at another; a server too old for blobs reports that.
func TestBlobsOfOtherVersions(t *testing.T) {
	t.Parallel()
	key, s := []byte("shared"), &shelf{blobs: map[string][]byte{}}
	old := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Pawl-Worker-Protocol", "1")
		http.NotFound(w, r)
	})
	present := remote.Handler(s, key)
	var n atomic.Int64
	c, _ := dial(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 2 {
			old(w, r)
			return
		}
		present.ServeHTTP(w, r)
	}))
	id, err := c.Open(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.PutBlob(t.Context(), id, someBlob, strings.NewReader("x"))
	if !errors.Is(err, handoff.ErrUnavailable) || !strings.Contains(err.Error(), "older version") {
		t.Errorf("put at an old server: %v", err)
	}
	if size, err := c.PutBlob(t.Context(), id, someBlob, strings.NewReader("x")); err != nil || size != 1 {
		t.Errorf("put at the next: %d, %v", size, err)
	}

	plain, _ := dial(t, remote.Handler(&queue{}, key))
	if id, err = plain.Open(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	if _, err := plain.GetBlob(t.Context(), id, someBlob); !errors.Is(err, handoff.ErrBlobRefused) {
		t.Errorf("get where no blobs are carried: %v", err)
	}
	thief, _ := dial(t, present)
	if _, err := thief.PutBlob(t.Context(), flow.ID{1}, someBlob, strings.NewReader("x")); !errors.Is(err, handoff.ErrSessionLost) {
		t.Errorf("put with a session that is not one's own: %v", err)
	}
}

// A write deadline that an earlier call left on the connection does not apply to this call.
func TestBlobsOverAnOldConnection(t *testing.T) {
	t.Parallel()
	s := &shelf{blobs: map[string][]byte{}}
	h := remote.Handler(s, nil)
	c, _ := dial(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(-time.Second))
		h.ServeHTTP(w, r)
	}))
	id, err := c.Open(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetBlob(t.Context(), id, someBlob); !errors.Is(err, handoff.ErrNoBlob) {
		t.Errorf("get: %v", err)
	}
	if n, err := c.PutBlob(t.Context(), id, someBlob, strings.NewReader("x")); err != nil || n != 1 {
		t.Errorf("put: %d, %v", n, err)
	}
}

// The error names a proxy that refuses large bodies.
func TestBlobTooLargeForAProxy(t *testing.T) {
	t.Parallel()
	s := &shelf{blobs: map[string][]byte{}}
	h := remote.Handler(s, nil)
	c, _ := dial(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			return
		}
		h.ServeHTTP(w, r)
	}))
	id, err := c.Open(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.PutBlob(t.Context(), id, someBlob, strings.NewReader(strings.Repeat("x", 5<<20)))
	if !errors.Is(err, handoff.ErrBlobRefused) || !strings.Contains(err.Error(), "client_max_body_size") {
		t.Errorf("put: %v", err)
	}
}
