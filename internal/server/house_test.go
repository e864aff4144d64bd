package server

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/blob/file"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff/direct"
	"github.com/pawl-run/pawl/internal/store/sqlite"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a whole Pawl with a store in memory, reached over real HTTP.
type house struct {
	*Server
	engine *engine.Engine
	store  *sqlite.Store
	url    string
	http   *http.Client
	client *client.Client
	stop   context.CancelFunc // tells the server to stop
	reads  *hooked
	served chan error

	mu  sync.Mutex
	say map[string]chan string // execution → text that its code writes; closing the channel ends it
}

// hooked is a store that calls a function before it reads an execution.
type hooked struct {
	*sqlite.Store
	before atomic.Pointer[func(flow.ID)]
}

func (s *hooked) Get(ctx context.Context, id flow.ID) (*flow.Execution, error) {
	if f := s.before.Load(); f != nil {
		(*f)(id)
	}
	return s.Store.Get(ctx, id)
}

func build(t testing.TB, o Options) *house {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	st, err := sqlite.Open(ctx, sqlite.InMemory, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := file.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blobs.Close() })
	reads := &hooked{Store: st}
	e, err := engine.New(engine.Options{Store: reads, Blobs: blobs, Exclusive: true, Retention: 720 * time.Hour, Lease: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{engine: e, store: st, reads: reads, say: map[string]chan string{}, served: make(chan error, 1)}
	w, err := worker.New(worker.Options{Handoff: direct.New(e), Slots: 16, Grace: time.Second, Handlers: task.Passes(task.Handlers{flow.KindCode: task.Func(h.runCode)})})
	if err != nil {
		t.Fatal(err)
	}
	o.Engine = e
	if h.Server, err = New(o); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	workerCtx, stopWorker := context.WithCancel(ctx)
	wg.Go(func() { _ = e.Run(ctx) })
	workerDone := make(chan struct{})
	go func() { defer close(workerDone); _ = w.Run(workerCtx) }()
	t.Cleanup(func() {
		stopWorker()
		<-workerDone
		cancel()
		wg.Wait()
		if err := st.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return h
}

// start is build with a listener on the loopback interface.
func start(t testing.TB, o Options) *house {
	t.Helper()
	h := build(t, o)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.stop = cancel
	go func() { h.served <- h.Serve(ctx, l) }()
	h.url = "http://" + l.Addr().String()
	transport := &http.Transport{}
	h.http = &http.Client{Transport: transport}
	var token string
	if len(o.Tokens) > 0 {
		token = o.Tokens[0]
	}
	if h.client, err = client.New(h.url, client.WithHTTPClient(h.http), client.WithToken(token)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-h.served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return h
}

// runCode replaces the sandbox. The source selects what it does: "hang", "hang on" (until there is no grace), "fail", "talk" (write the
// test's texts), "echo" (write its stdin), or write any other source to stdout.
func (h *house) runCode(ctx context.Context, t *task.Task) (json.RawMessage, error) {
	var code api.Code
	if err := json.Unmarshal(t.Payload, &code); err != nil {
		return nil, err
	}
	stopped := func() error {
		s, _ := task.Stopped(ctx)
		return &task.Error{As: s.As, Code: s.Code, Message: s.Reason, Output: json.RawMessage(`{"verdict":"killed"}`)}
	}
	switch code.Source {
	case "hang":
		<-ctx.Done()
		return nil, stopped()
	case "hang on":
		<-ctx.Done()
		<-t.AtOnce
		return nil, stopped()
	case "fail":
		return nil, &task.Error{Code: "nonzero_exit", Message: "exit code 3"}
	case "measured":
		return json.Marshal(api.CodeResult{Verdict: "ok", ExitCode: new(int), WallMS: 12.5, CPUMS: 3.25, PeakMemoryBytes: 1 << 20})
	case "exit 3":
		return nil, &task.Error{Code: "nonzero_exit", Message: "exit code 3: " + strings.Repeat("x", 5000),
			Output: json.RawMessage(`{"verdict":"nonzero_exit","exit_code":3,"wall_ms":7,"cpu_ms":5,"peak_memory_bytes":4096}`)}
	case "graded":
		return nil, &task.Error{Code: "wrong_answer", Message: "2 of 3 cases passed", Output: json.RawMessage(`{"verdict":"wrong_answer","wall_ms":9,
			"cases":[{"name":"1","verdict":"ok","stdout":"6"},{"name":"2","verdict":"wrong_answer","stdout":"7"},{"name":"3","verdict":"ok"}],"summary":{"total":3,"passed":2,"failed":1}}`)}
	case "echo":
		if _, err := io.Copy(t.Log("stdout"), t.Input(ctx)); err != nil {
			return nil, stopped()
		}
		return json.RawMessage(`{"verdict":"ok"}`), nil
	case "talk":
		for {
			select {
			case text, more := <-h.voice(t.Execution.String()):
				if !more {
					return json.RawMessage(`{"verdict":"ok"}`), nil
				}
				if _, err := io.WriteString(t.Log("stdout"), text); err != nil {
					return nil, err
				}
			case <-ctx.Done():
				return nil, stopped()
			}
		}
	}
	if _, err := io.WriteString(t.Log("stdout"), code.Source); err != nil {
		return nil, err
	}
	return json.Marshal(api.CodeResult{Verdict: "ok", Files: []api.ResultFile{
		{Path: "out/said.txt", Content: &code.Source, Size: int64(len(code.Source))},
		{Path: "raw", Base64: []byte{0, 255}, Size: 2},
		{Path: "ünïcode \"x\".bin", Blob: "files/" + t.Execution.String() + "/1/0", Size: 300_000},
		{Path: "gone", Blob: "files/" + t.Execution.String() + "/1/1", Size: 1},
		{Path: "stolen", Blob: "files/other/1/0", Size: 7},
	}})
}

func (h *house) voice(id string) chan string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.say[id] == nil {
		h.say[id] = make(chan string)
	}
	return h.say[id]
}

// code submits a piece of code and returns its id.
func (h *house) code(t testing.TB, source string) string {
	t.Helper()
	x, err := h.client.Evaluate(t.Context(), api.Evaluation{Code: api.Code{Language: "python", Source: source}})
	if err != nil {
		t.Fatal(err)
	}
	return x.ID
}

// interactive submits a piece of code that echoes what it reads, and returns its id.
func (h *house) interactive(t testing.TB) string {
	t.Helper()
	x, err := h.client.Evaluate(t.Context(), api.Evaluation{Code: api.Code{Language: "python", Source: "echo", Interactive: true}})
	if err != nil {
		t.Fatal(err)
	}
	return x.ID
}

func (h *house) await(t testing.TB, id string, what string, is func(*api.Execution) bool) *api.Execution {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for {
		x, err := h.client.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if is(x) {
			return x
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s is %s and never became %s", id, x.Status, what)
		}
	}
}

func running(x *api.Execution) bool  { return x.Status == api.Running }
func terminal(x *api.Execution) bool { return x.Status.Terminal() }

// do sends a request and returns the answer with its body.
func (h *house) do(t testing.TB, method, path, body string, header ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := h.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, answer
}

// problem sends a request that must be refused.
func (h *house) problem(t testing.TB, want int, kind, method, path, body string, header ...string) api.Problem {
	t.Helper()
	res, answer := h.do(t, method, path, body, header...)
	if res.StatusCode != want {
		t.Fatalf("%s %s: %s, want %d\n%s", method, path, res.Status, want, answer)
	}
	if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("%s %s: content type %q", method, path, got)
	}
	var p api.Problem
	if err := json.Unmarshal(answer, &p); err != nil {
		t.Fatalf("%v\n%s", err, answer)
	}
	if p.Type != kind || p.Status != want || p.Title == "" || p.RequestID == "" || p.RequestID != res.Header.Get("X-Request-Id") {
		t.Errorf("%s %s: problem %+v, want type %s", method, path, p, kind)
	}
	return p
}
