package brokerrpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc/brokerrpctest"
)

// engine is a hand-off in memory. Methods that it does not implement are never called.
type engine struct {
	handoff.Handoff
	mu      sync.Mutex
	opened  int
	renewed int
	down    int // how many reports fail
	work    []handoff.Assignment
	reports []flow.Report
	came    chan struct{}
}

func (e *engine) Open(context.Context, handoff.Session) (flow.ID, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opened++
	return flow.ID{7, byte(e.opened), byte(e.opened >> 8)}, nil
}

func (e *engine) Renew(context.Context, flow.ID) (handoff.Renewal, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.renewed++
	return handoff.Renewal{Lease: handoff.Lease}, nil
}

func (e *engine) Take(ctx context.Context, _ flow.ID, n int) ([]handoff.Assignment, error) {
	for {
		e.mu.Lock()
		if len(e.work) > 0 {
			work := e.work[:min(n, len(e.work))]
			e.work = e.work[len(work):]
			e.mu.Unlock()
			return work, nil
		}
		e.mu.Unlock()
		select {
		case <-e.came:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (e *engine) Report(_ context.Context, _ flow.ID, reports []flow.Report) ([]flow.Receipt, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down > 0 {
		e.down--
		return nil, handoff.ErrUnavailable
	}
	e.reports = append(e.reports, reports...)
	return make([]flow.Receipt, len(reports)), nil
}

var session = handoff.Session{Name: "w", Queues: []string{"default"}, Slots: 1}

// serve starts a server of e on m, with the token "sesame".
func serve(t *testing.T, m brokerrpc.Transport, e handoff.Handoff) (stop func()) {
	t.Helper()
	s := brokerrpc.NewServer(brokerrpc.ServerOptions{Transport: m, Handoff: e, Key: []byte("shared"), Tokens: []string{"sesame"},
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = s.Run(ctx) // never fails
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-over
	})
	t.Cleanup(stop)
	return stop
}

func dial(t *testing.T, m brokerrpc.Transport, token string) *brokerrpc.Client {
	t.Helper()
	c := brokerrpc.NewClient(m, token)
	t.Cleanup(c.Stop)
	return c
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func open(t *testing.T, c *brokerrpc.Client) flow.ID {
	t.Helper()
	id, err := c.Open(within(t), session)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A worker with another token gets a final refusal; no session is opened.
func TestToken(t *testing.T) {
	t.Parallel()
	m, e := &brokerrpctest.Model{}, &engine{}
	serve(t, m, e)
	for _, token := range []string{"", "open"} {
		if _, err := dial(t, m, token).Open(within(t), session); !errors.Is(err, handoff.ErrRefused) {
			t.Errorf("token %q: %v", token, err)
		}
	}
	if e.opened != 0 {
		t.Errorf("%d sessions were opened", e.opened)
	}
	open(t, dial(t, m, "sesame"))
}

// tapped is a broker whose messages an attacker reads and changes.
type tapped struct {
	*brokerrpctest.Model
	mu       sync.Mutex
	messages [][]byte
	change   func(message []byte) []byte
}

func (o *tapped) Send(ctx context.Context, line brokerrpc.Line, body []byte, valid time.Duration) error {
	o.mu.Lock()
	o.messages = append(o.messages, bytes.Clone(body))
	o.mu.Unlock()
	return o.Model.Send(ctx, line, body, valid)
}

func (o *tapped) Put(ctx context.Context, replyQueue string, message []byte) error {
	o.mu.Lock()
	change := o.change
	o.mu.Unlock()
	if change != nil {
		message = change(bytes.Clone(message))
	}
	return o.Model.Put(ctx, replyQueue, message)
}

// A process that reads and writes everything in the broker cannot impersonate a worker or a server, and learns no secret.
func TestForgery(t *testing.T) {
	t.Parallel()
	o, e := &tapped{Model: &brokerrpctest.Model{}}, &engine{came: make(chan struct{})}
	serve(t, o, e)
	var passed [][]byte
	o.change = func(m []byte) []byte {
		passed = append(passed, m)
		return m
	}
	c := dial(t, o, "sesame")
	id := open(t, c)
	if _, err := c.Renew(within(t), id); err != nil {
		t.Fatal(err)
	}
	secret := c.Secret(id)
	for _, seen := range append(passed, o.messages...) {
		if bytes.Contains(seen, []byte(secret)) || bytes.Contains(seen, []byte("sesame")) {
			t.Errorf("a secret is there to read: %q", seen)
		}
	}

	// Calls for the session with another secret.
	thief := dial(t, o, "")
	thief.Recall(id, strings.Repeat("0", len(secret)))
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := thief.Report(short, id, []flow.Report{{Execution: flow.ID{1}}}); err == nil || len(e.reports) > 0 {
		t.Errorf("a forged report: %v, %+v", err, e.reports)
	}
	// Calls with changed content.
	o.mu.Lock()
	last := bytes.Clone(o.messages[1])
	o.mu.Unlock()
	before := e.renewed
	if err := o.Model.Send(t.Context(), brokerrpc.Asks, bytes.Replace(last, []byte("renew"), []byte("close"), 1), 0); err != nil {
		t.Fatal(err)
	}
	for dead := 0; dead < 2; {
		all, err := o.Dead(within(t), brokerrpc.ListDead)
		if err != nil || t.Context().Err() != nil {
			t.Fatal(err)
		}
		dead = len(all)
	}
	// A repeated call has no second effect.
	if err := o.Model.Send(t.Context(), brokerrpc.Asks, last, 0); err != nil {
		t.Fatal(err)
	}
	for again := before; again == before; {
		e.mu.Lock()
		again = e.renewed
		e.mu.Unlock()
	}

	// A changed answer is ignored.
	o.mu.Lock()
	o.change = func(m []byte) []byte {
		m[len(m)-2] ^= 1
		return m
	}
	o.mu.Unlock()
	short, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if r, err := c.Renew(short, id); err == nil {
		t.Errorf("a forged answer: %+v", r)
	}
}

// A message that is not a call is dead-lettered, with the reason.
func TestPoison(t *testing.T) {
	t.Parallel()
	m, e := &brokerrpctest.Model{}, &engine{}
	serve(t, m, e)
	head := strings.Repeat("\x00", 32)
	for _, body := range []string{"", "x", head + "no end", head + "{\n", head + `{"v":9,"kind":"open"}` + "\n{}", head + `{"v":1,"kind":"renew","session":"x"}` + "\n{}"} {
		if err := m.Send(t.Context(), brokerrpc.Tells, []byte(body), 0); err != nil {
			t.Fatal(err)
		}
	}
	for ctx := within(t); ; {
		dead, err := m.Dead(ctx, brokerrpc.ListDead)
		if err != nil {
			t.Fatal(err)
		}
		if len(dead) == 6 {
			for _, d := range dead {
				if d.Reason == "" {
					t.Errorf("%+v", d)
				}
			}
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%+v", dead)
		}
		<-time.After(time.Millisecond)
	}
}

// While the store takes no reports they stay in hand, and are not dead-lettered as broken.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	m, e := &brokerrpctest.Model{}, &engine{down: 4}
	serve(t, m, e)
	c := dial(t, m, "sesame")
	id := open(t, c)
	if _, err := c.Report(within(t), id, []flow.Report{{Execution: flow.ID{1}, Attempt: 1}}); err != nil {
		t.Fatal(err)
	}
	if dead, _ := m.Dead(t.Context(), brokerrpc.ListDead); len(dead) > 0 {
		t.Errorf("dead letters %+v", dead)
	}
	for ctx := within(t); ; { // the worker has its answer before the server takes the message out of the line
		lines, err := m.Backlog(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if lines[brokerrpc.Tells].Messages == 0 {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%+v", lines)
		}
		<-time.After(time.Millisecond)
	}
}

// A report that a server had in hand when it ended is recorded by another, even if its worker is gone.
func TestServerGone(t *testing.T) {
	t.Parallel()
	m, e := &brokerrpctest.Model{}, &engine{down: 1 << 30}
	stop := serve(t, m, e)
	c := dial(t, m, "sesame")
	id := open(t, c)
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, _ = c.Report(short, id, []flow.Report{{Execution: flow.ID{1}, Attempt: 1}}) // nobody answers
	c.Stop()
	stop()
	e.mu.Lock()
	e.down = 0
	e.mu.Unlock()
	s := brokerrpc.NewServer(brokerrpc.ServerOptions{Transport: m, Handoff: e, Key: []byte("shared")})
	if err := s.DrainBroker(short); err == nil {
		t.Error("nothing is late while a report lies in the broker")
	}
	serve(t, m, e)
	if err := s.DrainBroker(within(t)); err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.reports) != 1 {
		t.Errorf("reports %+v", e.reports)
	}
}

// Work and reports larger than a message arrive whole, also over a bad broker.
func TestHeavyWork(t *testing.T) {
	t.Parallel()
	large := json.RawMessage(`"` + strings.Repeat("<", 2<<20) + `"`)
	n := 0
	var mu sync.Mutex
	m := &brokerrpctest.Model{Fate: func(string) brokerrpctest.Fate {
		mu.Lock()
		defer mu.Unlock()
		n++
		return brokerrpctest.Fate{Lost: n > 20 && n%29 == 0, Copies: n / 7 % 2, Delay: time.Duration(n%5) * time.Millisecond}
	}}
	e := &engine{came: make(chan struct{})}
	serve(t, m, e)
	c := dial(t, m, "sesame")
	var id flow.ID
	var err error
	if id, err = c.Open(within(t), session); err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	e.work = []handoff.Assignment{{Execution: flow.ID{1}, Attempt: 1, Payload: large}}
	e.mu.Unlock()
	var work []handoff.Assignment
	for began := time.Now(); len(work) == 0 && time.Since(began) < time.Minute; {
		work, err = c.Take(within(t), id, 1)
	}
	if err != nil || len(work) != 1 || !bytes.Equal(work[0].Payload, large) {
		t.Fatalf("%d, %v", len(work), err)
	}
	report := flow.Report{Execution: flow.ID{1}, Attempt: 1, Events: []flow.Event{{Seq: 4, Outcome: &flow.Outcome{Output: large}}}}
	if _, err := c.Report(within(t), id, []flow.Report{report}); err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.reports) == 0 || !bytes.Equal(e.reports[0].Events[0].Outcome.Output, large) {
		t.Errorf("%d reports", len(e.reports))
	}
}

// shelf carries blobs in memory.
type shelf struct {
	engine
	blobs map[string][]byte
}

func (s *shelf) PutBlob(_ context.Context, _ flow.ID, q handoff.BlobQuery, r io.Reader) (int64, error) {
	if q.Name == "refused" {
		return 0, handoff.ErrBlobRefused
	}
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

// Blobs arrive whole in both directions and from an offset on; a refused upload ends at once.
func TestBlobs(t *testing.T) {
	t.Parallel()
	m, s := &brokerrpctest.Model{}, &shelf{blobs: map[string][]byte{}}
	serve(t, m, s)
	c := dial(t, m, "sesame")
	id := open(t, c)
	for name, content := range map[string]string{"empty": "", "small": "x", "large": strings.Repeat("0123456789", 500_000)} {
		q := handoff.BlobQuery{Execution: flow.ID{1}, Attempt: 1, Name: name}
		if n, err := c.PutBlob(within(t), id, q, strings.NewReader(content)); err != nil || n != int64(len(content)) {
			t.Fatalf("put %s: %d, %v", name, n, err)
		}
		q.From = int64(len(content) / 2)
		r, err := c.GetBlob(within(t), id, q)
		if err != nil {
			t.Fatalf("get %s: %v", name, err)
		}
		got, err := io.ReadAll(r)
		if err != nil || string(got) != content[q.From:] {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		_ = r.Close() // never fails
	}
	began := time.Now()
	q := handoff.BlobQuery{Execution: flow.ID{1}, Attempt: 1, Name: "refused"}
	_, err := c.PutBlob(within(t), id, q, strings.NewReader(strings.Repeat("x", 5<<20)))
	if !errors.Is(err, handoff.ErrBlobRefused) || time.Since(began) > 45*time.Second {
		t.Errorf("refused after %s: %v", time.Since(began), err)
	}
	if _, err := c.GetBlob(within(t), id, q); !errors.Is(err, handoff.ErrNoBlob) {
		t.Errorf("get what is not there: %v", err)
	}
	broken := io.MultiReader(strings.NewReader("x"), errReader{})
	if _, err := c.PutBlob(within(t), id, handoff.BlobQuery{Execution: flow.ID{1}, Attempt: 1, Name: "broken"}, broken); !errors.Is(err, errSource) {
		t.Errorf("a source that fails: %v", err)
	}
}

var errSource = errors.New("the source has failed")

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errSource }
