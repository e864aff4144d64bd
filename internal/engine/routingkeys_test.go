package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// needs reads the runtime, or the language of an offer, from a test's payload.
func needs(_ flow.Kind, payload []byte) (all []string) {
	var p struct{ Runtime, Language string }
	_ = json.Unmarshal(payload, &p)
	for _, need := range []string{p.Runtime, p.Language} {
		if need != "" {
			all = append(all, need)
		}
	}
	return all
}

func (r *rig) workerWith(runtimes ...string) *hand {
	r.Helper()
	var kinds []string
	for _, name := range runtimes {
		kinds = append(kinds, flow.OfferRuntime(name))
	}
	return r.workerOf(kinds...)
}

func (r *rig) workerLabelled(labels string) *hand {
	r.Helper()
	all, err := flow.ParseLabels(labels)
	if err != nil {
		r.Fatal(err)
	}
	return r.workerOf(flow.OfferLabels(all)...)
}

func (r *rig) workerOf(kinds ...string) *hand {
	r.Helper()
	id, err := r.e.Open(r.ctx, handoff.Session{Name: "able", Queues: []string{flow.DefaultQueue}, Kinds: kinds, Slots: 100})
	if err != nil {
		r.Fatalf("open session: %v", err)
	}
	return &hand{r, id}
}

func awaitTakers(t testing.TB, e *Engine, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); e.Stats().Takers < n; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d workers wait, not %d", e.Stats().Takers, n)
		}
	}
}

// An execution that needs a runtime waits for a worker that has it, and does not delay others.
func TestRuntimeChoosesWorker(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Needs = needs })
	plain := r.worker()
	special := r.submit(Submission{Action: "noop", Input: json.RawMessage(`{"runtime":"boat"}`)})
	usual := r.submit(Submission{Action: "noop"})
	if got := plain.take(10); len(got) != 1 || got[0].Execution != usual {
		t.Fatalf("the worker without the runtime got %+v", got)
	}
	w, err := r.e.Why(r.ctx, special)
	if err != nil || w.Queue != flow.DefaultQueue || w.Runtime != "boat" || w.Waiting != "worker" ||
		!strings.Contains(w.Summary, `no live worker of queue "default" has runtime "boat" (1 serves it without)`) {
		t.Errorf("why: %+v, %v", w, err)
	}
	able := r.workerWith("train", "boat")
	if w, err = r.e.Why(r.ctx, special); err != nil || w.Waiting != "queue" || !strings.Contains(w.Summary, `queue "default" for runtime "boat", which 1 worker`) {
		t.Errorf("why, with a worker: %+v, %v", w, err)
	}
	got := able.take(10)
	if len(got) != 1 || got[0].Execution != special {
		t.Fatalf("the worker with the runtime got %+v", got)
	}
	able.complete(got[0], "1")
	again, err := r.e.Retry(r.ctx, special, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := able.take(10); len(got) != 1 || got[0].Execution != again.Execution {
		t.Errorf("what was submitted once more went to %+v", got)
	}
	if _, err := r.e.Submit(r.ctx, []Submission{{Action: "noop", Queue: flow.RoutingKey(flow.DefaultQueue, "boat")}}); err == nil {
		if out, _ := r.e.Submit(r.ctx, []Submission{{Action: "noop", Queue: flow.RoutingKey(flow.DefaultQueue, "boat")}}); out[0].Err == nil {
			t.Error("a routing key was taken for a queue")
		}
	}
}

// A waiting worker gets the first execution that ever needs one of its runtimes, even if it is a workflow's task.
func TestFirstOfARoutingKey(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Needs = needs })
	r.define("name: sail\ntasks:\n  go: {action: noop, with: {runtime: ship}}\n")
	for _, s := range []Submission{
		{Action: "noop", Input: json.RawMessage(`{"runtime":"boat"}`)}, {Action: "sail"},
	} {
		taken := make(chan []handoff.Assignment, 1)
		able := r.workerWith("boat", "ship")
		go func() { taken <- able.take(1) }()
		awaitTakers(t, r.e, 1)
		id := r.submit(s)
		for _, a := range <-taken {
			able.complete(a, "1")
		}
		if x := r.ended(id); x.Stage != flow.Completed {
			t.Errorf("%+v", x)
		}
	}
}

// Routing keys come into use while transactions read the claimers. The race detector checks this.
func TestRoutingKeysBesideTransactions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.workerWith("boat")
	ctx, stop := context.WithCancel(r.ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if _, err := r.e.Take(ctx, h.session, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("take: %v", err)
		}
	}()
	awaitTakers(t, r.e, 1)
	used := make(chan struct{})
	go func() {
		defer close(used)
		for i := range 100 {
			r.e.rememberRoutingKey(flow.AddNeeds(flow.DefaultQueue, fmt.Sprintf("boat%d", i)))
		}
	}()
	for range 100 {
		if err := r.e.do(r.ctx, nil, func(context.Context, *transaction) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	<-used
	stop()
	<-gone
}

// Workers of one server find a routing key that another server has filled.
func TestRoutingKeyOfAnotherReplica(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Needs = needs })
	id := r.submit(Submission{Action: "noop", Input: json.RawMessage(`{"runtime":"boat"}`)})
	r.e.routingKeys.mu.Lock()
	clear(r.e.routingKeys.stored) // like another replica
	r.e.routingKeys.all = nil
	r.e.routingKeys.mu.Unlock()
	if got := r.workerWith("boat").take(1); len(got) != 1 || got[0].Execution != id {
		t.Errorf("got %+v", got)
	}
}
