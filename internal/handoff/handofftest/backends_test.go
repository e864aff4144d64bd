package handofftest_test

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/blob/file"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/direct"
	"github.com/pawl-run/pawl/internal/handoff/handofftest"
	"github.com/pawl-run/pawl/internal/handoff/remote"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/sqlite"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// build is an engine on SQLite in memory, passed to carry.
func build(t *testing.T, carry func(t *testing.T, e *engine.Engine) handoff.Handoff) *handofftest.Rig {
	t.Helper()
	return leased(t, 0, carry)
}

// leased is build with another length of leases.
func leased(t *testing.T, lease time.Duration, carry func(t *testing.T, e *engine.Engine) handoff.Handoff) *handofftest.Rig {
	t.Helper()
	began := time.Now()
	var ahead atomic.Int64 // of every clock
	uptime := func() time.Duration { return time.Since(began) + time.Duration(ahead.Load()) }
	st, err := sqlite.Open(t.Context(), sqlite.InMemory, sqlite.Options{Now: func() time.Time { return began.Add(uptime()) }, Uptime: uptime})
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := file.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blobs.Close() })
	e, err := engine.New(engine.Options{Store: st, Blobs: blobs, Exclusive: true, Lease: lease, Uptime: uptime, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		broken, err := st.Check(context.Background())
		if err != nil || len(broken) > 0 {
			t.Errorf("check: %+v, %v", broken, err)
		}
		stop()
		if err := <-done; err != nil {
			t.Errorf("engine: %v", err)
		}
		if err := st.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	defs, err := definition.Parse("handlers.yaml", []byte("name: resize\nhandler: resize\nqueue: default\n"))
	if err == nil {
		_, err = e.Define(t.Context(), defs)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &handofftest.Rig{
		Handoff: carry(t, e),
		Submit: func(t *testing.T, kind flow.Kind, input json.RawMessage) flow.ID {
			t.Helper()
			out, err := e.Submit(t.Context(), []engine.Submission{{Action: string(kind), Input: input}})
			if err != nil || out[0].Err != nil {
				t.Fatalf("submit: %v, %+v", err, out)
			}
			return out[0].Execution
		},
		SubmitFor: func(t *testing.T, labels map[string]string) flow.ID {
			t.Helper()
			out, err := e.Submit(t.Context(), []engine.Submission{{Action: string(flow.KindNoop), WorkerLabels: labels}})
			if err != nil || out[0].Err != nil {
				t.Fatalf("submit: %v, %+v", err, out)
			}
			return out[0].Execution
		},
		Cancel: func(t *testing.T, id flow.ID) {
			t.Helper()
			if _, err := e.Cancel(t.Context(), id, "no longer wanted"); err != nil {
				t.Fatalf("cancel: %v", err)
			}
		},
		Feed: func(t *testing.T, id flow.ID, piece string, last bool) {
			t.Helper()
			if _, err := e.Feed(t.Context(), id, engine.AtEnd, []byte(piece), last); err != nil {
				t.Fatalf("feed: %v", err)
			}
		},
		Reader: e.Reader(),
		Pass:   func(d time.Duration) { ahead.Add(int64(d)) },
	}
}

func TestDirect(t *testing.T) {
	t.Parallel()
	handofftest.Exercise(t, func(t *testing.T) *handofftest.Rig {
		return build(t, func(_ *testing.T, e *engine.Engine) handoff.Handoff { return direct.New(e) })
	})
}

func TestRemote(t *testing.T) {
	t.Parallel()
	handofftest.Exercise(t, func(t *testing.T) *handofftest.Rig {
		return build(t, func(t *testing.T, e *engine.Engine) handoff.Handoff {
			srv := httptest.NewServer(remote.Handler(e, nil))
			t.Cleanup(srv.Close)
			c, err := remote.Dial(srv.URL, "")
			if err != nil {
				t.Fatal(err)
			}
			return c
		})
	})
}

// brokenLine loses some calls, before or after they have reached the engine.
type brokenLine struct {
	http.Handler
	mu sync.Mutex
	n  int
}

func (l *brokenLine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	l.n++
	n := l.n
	l.mu.Unlock()
	switch {
	case n%7 == 3:
		panic(http.ErrAbortHandler) // never arrives
	case n%7 == 5 && !strings.HasSuffix(r.URL.Path, "/take"): // a lost claim is recovered only after a lease
		l.Handler.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler) // the answer never arrives
	}
	l.Handler.ServeHTTP(w, r)
}

// A worker on a bad connection does everything once.
func TestWorkerOverABrokenLine(t *testing.T) {
	t.Parallel()
	rig := build(t, func(t *testing.T, e *engine.Engine) handoff.Handoff {
		srv := httptest.NewUnstartedServer(&brokenLine{Handler: remote.Handler(e, nil)})
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.Start()
		t.Cleanup(srv.Close)
		c, err := remote.Dial(srv.URL, "")
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
	w, err := worker.New(worker.Options{Handoff: rig.Handoff, Slots: 4, Grace: time.Second, Handlers: task.Passes(task.Handlers{
		flow.KindNoop: task.Func(func(_ context.Context, tk *task.Task) (json.RawMessage, error) {
			_, err := io.WriteString(tk.Log("log"), "hello")
			return tk.Payload, err
		}),
	})})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	var ids []flow.ID
	for range 60 {
		ids = append(ids, rig.Submit(t, flow.KindNoop, json.RawMessage(`{"a":1}`)))
	}
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, id := range ids {
		for {
			x, err := rig.Reader.Get(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if x.Stage.Terminal() {
				if x.Stage != flow.Completed || x.Attempt != 1 || string(x.Outcome.Output) != `{"a":1}` {
					t.Errorf("%s in attempt %d: %+v", x.Stage, x.Attempt, x.Outcome)
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is still %s", id, x.Stage)
			}
			<-tick.C
		}
		chunks, err := rig.Reader.ReadLogs(t.Context(), store.LogQuery{Execution: id, Limit: 1 << 20})
		if err != nil || len(chunks) != 1 || string(chunks[0].Data) != "hello" {
			t.Errorf("log of %s: %+v, %v", id, chunks, err)
		}
	}
}
