package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/sqlite"
)

// The same client works without a socket, including streams, and needs no token there.
func TestInProcess(t *testing.T) {
	t.Parallel()
	h := build(t, Options{Tokens: []string{token}})
	h.client = client.NewInProcess(h.Handler())
	id := h.code(t, "talk")
	voice := h.voice(id)
	go func() { voice <- "one" }()
	var got []string
	for c, err := range h.client.FollowLogs(t.Context(), id, client.LogQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, c.Text); len(got) == 1 {
			voice <- "two" // only now, because the first came while it was running
			close(voice)
		}
	}
	if want := []string{"one", "two"}; !slices.Equal(got, want) {
		t.Errorf("followed %q, want %q", got, want)
	}
}

func TestEventsTellTheWholeStory(t *testing.T) {
	t.Parallel()
	h := build(t, Options{})
	h.client = client.NewInProcess(h.Handler())
	id := h.code(t, "fail")
	var types []string
	for e, err := range h.client.FollowEvents(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, e.Type)
	}
	if want := []string{"requested", "scheduled", "provisioning", "running", "failed"}; !slices.Equal(types, want) {
		t.Errorf("history %v, want %v", types, want)
	}
	x, err := h.client.Wait(t.Context(), id)
	if err != nil || x.Status != api.Failed || x.Error == nil || x.Error.Code != "nonzero_exit" {
		t.Errorf("%+v, %v", x, err)
	}
}

func TestClusterAndStats(t *testing.T) {
	t.Parallel()
	h := build(t, Options{Version: "1.2.3"})
	c := client.NewInProcess(h.Handler())
	h.client = c
	id := h.code(t, "hang")
	h.await(t, id, "running", running)
	workers, err := c.Workers(t.Context())
	if err != nil || len(workers) != 1 || workers[0].Slots != 16 || !workers[0].Embedded || workers[0].Session == "" {
		t.Errorf("workers %+v, %v", workers, err)
	}
	queues, err := c.Queues(t.Context())
	if err != nil || len(queues) != 1 || queues[0].Queue != "default" || queues[0].Workers != 1 || queues[0].Slots != 16 {
		t.Errorf("queues %+v, %v", queues, err)
	}
	if _, err := h.engine.Open(t.Context(), handoff.Session{Name: "thumbs", Queues: []string{"resize", "default"}, Kinds: []string{"resize"}, Slots: 3}); err != nil {
		t.Fatal(err)
	}
	queues, err = c.Queues(t.Context())
	want := []api.Queue{{Queue: "default", Workers: 1, Slots: 16}, {Queue: "default", Handler: "resize", Workers: 1, Slots: 3}, {Queue: "resize", Handler: "resize", Workers: 1, Slots: 3}}
	if err != nil || !reflect.DeepEqual(queues, want) {
		t.Errorf("queues with a handler %+v, %v", queues, err)
	}
	for i := range 3 {
		if _, err := c.Submit(t.Context(), api.Submission{Action: "code", Input: json.RawMessage(`{"language":"python","source":"hang"}`),
			Concurrency: &api.Concurrency{Key: "acme", Limit: 1 + i/3}}); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := c.Keys(t.Context())
	if err != nil || len(keys) != 1 || keys[0] != (api.Key{Key: "acme", Holders: 1, Waiting: 2}) {
		t.Errorf("keys %+v, %v", keys, err)
	}
	s, err := c.Stats(t.Context())
	if err != nil || s.Version != "1.2.3" || s.Counters["executions_submitted"] != 4 || s.Slots != 19 || s.StoreBytes == 0 {
		t.Errorf("stats %+v, %v", s, err)
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	for x, err := range c.All(t.Context(), client.Filter{Status: []api.Status{api.Requested, api.Scheduled, api.Provisioning, api.Running}}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Cancel(t.Context(), x.ID, "tidy up", 10*time.Second); err != nil && !client.IsFinished(err) {
			t.Error(err)
		}
	}
}

// If the store does not answer, there is a 503 with Retry-After, and nothing else.
func TestStoreIsGone(t *testing.T) {
	t.Parallel()
	st, err := sqlite.Open(t.Context(), sqlite.InMemory, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{Store: st})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = e.Run(ctx) })
	cancel()
	wg.Wait()
	s, err := New(Options{Engine: e})
	if err != nil {
		t.Fatal(err)
	}
	c := client.NewInProcess(s.Handler(), client.WithPatience(0))
	var p *api.Problem
	if _, err := c.Submit(t.Context(), api.Submission{Action: "noop"}); !errors.As(err, &p) || p.Status != 503 || p.Type != api.ProblemUnavailable {
		t.Errorf("submit: %v", err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"ready": c.Ready(t.Context()), "get": second(c.Get(t.Context(), "ex_00000000000000000000000010")),
		"list": second(c.List(t.Context(), listAll)), "stats": second(c.Stats(t.Context())),
	} {
		if !errors.As(err, &p) || p.Status != 503 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestErrorsBecomeProblems(t *testing.T) {
	for err, want := range map[error]int{
		fmt.Errorf("x: %w", store.ErrNotFound): 404, fmt.Errorf("x: %w", store.ErrUnavailable): 503, store.ErrUnknown: 503,
		engine.ErrOverloaded: 429, engine.ErrIdempotencyMismatch: 422, &fault.Invalid{}: 422, errors.New("boo: secret"): 500,
	} {
		p := problemOf(err)
		if p.Status != want || p.Title == "" || want == 500 && p.Detail != "the server's log has the details under the request's id" {
			t.Errorf("%v: %+v", err, p)
		}
	}
}

// benchSubmit submits one at a time from many goroutines, as `pawl bench` does.
func benchSubmit(b *testing.B, h *house) {
	b.ReportAllocs()
	b.SetParallelism(50)
	var failed atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := h.client.Submit(b.Context(), api.Submission{Action: "noop"}); err != nil {
				failed.Add(1)
			}
		}
	})
	if failed.Load() > 0 {
		b.Fatalf("%d failed", failed.Load())
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submitted/s")
}

func BenchmarkSubmitInProcess(b *testing.B) {
	h := build(b, Options{})
	h.client = client.NewInProcess(h.Handler())
	benchSubmit(b, h)
}

func BenchmarkSubmitOverHTTP(b *testing.B) {
	h := start(b, Options{})
	h.http.Transport = nil
	c, err := client.New(h.url, client.WithoutIdempotencyKeys())
	if err != nil {
		b.Fatal(err)
	}
	h.client = c
	benchSubmit(b, h)
}

func BenchmarkSubmitBatch(b *testing.B) {
	h := build(b, Options{})
	c := client.NewInProcess(h.Handler())
	batch := make([]api.Submission, 1000)
	for i := range batch {
		batch[i] = api.Submission{Action: "noop", Input: json.RawMessage(`{"n":1}`)}
	}
	b.ReportAllocs()
	for b.Loop() {
		r, err := c.SubmitBatch(b.Context(), batch)
		if err != nil || r.Refused > 0 {
			b.Fatalf("%+v, %v", r, err)
		}
	}
	b.ReportMetric(float64(b.N*len(batch))/b.Elapsed().Seconds(), "submitted/s")
}
