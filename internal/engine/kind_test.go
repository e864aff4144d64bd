package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// workerOn is a worker of some kinds that serves some queues.
func (r *rig) workerOn(queues []string, kinds ...string) *hand {
	r.Helper()
	id, err := r.e.Open(r.ctx, handoff.Session{Name: "able", Queues: queues, Kinds: kinds, Slots: 100})
	if err != nil {
		r.Fatalf("open session: %v", err)
	}
	return &hand{r, id}
}

// none checks that a worker gets nothing although it has looked.
func (h *hand) none(what string) {
	h.Helper()
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	before := h.e.Stats().Takers
	got := make(chan []handoff.Assignment, 1)
	go func() {
		work, _ := h.e.Take(ctx, h.session, 100) // the error is that of cancel
		got <- work
	}()
	awaitTakers(h, h.e, before+1)
	h.settled()
	cancel()
	if work := <-got; len(work) > 0 {
		h.Errorf("%s got %+v", what, work)
	}
}

const handled = `
name: thumb
handler: resize
---
name: thumbnail
handler: resize
queue: default
worker_labels: {gpu: a100}
---
name: both
tasks:
  small: {action: thumb}
  plain: {action: noop}
`

// A worker gets executions for which it has a handler, in any of its queues, and nothing else.
func TestKindChoosesWorker(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Queues = []string{"resize"} })
	r.define(handled)
	queues := []string{flow.DefaultQueue, "resize"}
	plain, able := r.workerOn(queues), r.workerOn(queues, append(flow.OfferLabels(map[string]string{"gpu": "a100"}), "resize")...)
	other := r.workerOn(queues, "crop")
	thumb, labelled, noop := r.submit(Submission{Action: "thumb"}), r.submit(Submission{Action: "thumbnail"}), r.submit(Submission{Action: "noop", Queue: "resize"})
	other.none("the worker with another handler")
	if got := plain.take(100); len(got) != 1 || got[0].Execution != noop {
		t.Errorf("the worker of built-in kinds got %+v", got)
	}
	got := able.take(100)
	if len(got) != 2 || got[0].Kind != "resize" || got[1].Kind != "resize" || got[0].Execution != thumb || got[1].Execution != labelled {
		t.Fatalf("the worker with the handler got %+v", got)
	}
	able.complete(got[0], "1")
	r.submit(Submission{Action: "noop"})
	able.none("the worker with the handler")
	again, err := r.e.Retry(r.ctx, thumb, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := able.take(100); len(got) != 1 || got[0].Execution != again.Execution {
		t.Errorf("what was submitted once more went to %+v", got)
	}
	plain.serve(echo)
	able.serve(echo)
	if x := r.ended(r.submit(Submission{Action: "both"})); x.Stage != flow.Completed {
		t.Errorf("%s: %+v", x.Stage, x.Outcome)
	}
}

// Why names the missing handler and the remedy.
func TestWhyNoHandler(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Queues = []string{"resize"} })
	r.define(handled)
	id := r.submit(Submission{Action: "thumb"})
	why := func(waiting string, says ...string) {
		t.Helper()
		w, err := r.e.Why(r.ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if w.Waiting != waiting || w.Queue != "resize" || w.Handler != "resize" {
			t.Errorf("%+v", w)
		}
		all := w.Summary + "; " + fmt.Sprint(w.Unblock) + "; " + strings.Join(w.Facts, "; ")
		for _, say := range says {
			if !strings.Contains(all, say) {
				t.Errorf("%q is not in %q", say, all)
			}
		}
	}
	why("worker", "no live worker has a handler for kind resize; it is 1st in line", `start a program that serves handler "resize" on queue "resize" (package handler)`)
	r.workerOn([]string{"resize"})
	r.workerOn([]string{"resize"}, "crop")
	why("worker", "no live worker has a handler for kind resize")
	r.workerOn([]string{flow.DefaultQueue}, "resize")
	why("worker", `no live worker of queue "resize" has a handler for kind resize`, "worker able has it, and serves queue default")
	r.workerOn([]string{"resize"}, "resize")
	why("queue", `1st in queue "resize" for a handler for kind resize, which 1 worker`)
	id = r.submit(Submission{Action: "noop", Queue: "resize"})
	if w, err := r.e.Why(r.ctx, id); err != nil || !strings.Contains(w.Summary, `1st in queue "resize", which 1 worker`) {
		t.Errorf("%+v, %v", w, err)
	}
}

// A queue that is served only by programs with handlers runs no built-in kinds, and why says so.
func TestWhyNoBuiltInKinds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.workerOn([]string{"sums"}, "add")
	id := r.submit(Submission{Action: "noop", Queue: "sums"})
	w, err := r.e.Why(r.ctx, id)
	if err != nil || w.Waiting != "worker" || !strings.Contains(w.Summary, `no live worker of queue "sums" has the built-in kinds`) {
		t.Errorf("%+v, %v", w, err)
	}
}

// A worker that runs only some of the built-in kinds is refused: it could get one of the others.
func TestHalfAWorkerIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, kinds := range [][]string{{"noop"}, {"noop", "resize"}, {"container"}, {"workflow"}} {
		if _, err := r.e.Open(r.ctx, handoff.Session{Name: "half", Queues: []string{flow.DefaultQueue}, Kinds: kinds, Slots: 1}); err == nil {
			t.Errorf("a worker of %q was accepted", kinds)
		}
	}
}

// The name of a runtime cannot be one that would route an execution to the workers of a handler.
func TestRuntimeIsNoKind(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Needs = needs })
	out, err := r.e.Submit(r.ctx, []Submission{{Action: "noop", Input: json.RawMessage(`{"runtime":"kind:resize"}`)}})
	if err != nil || out[0].Err == nil || !strings.Contains(out[0].Err.Error(), "is not the name of a runtime") {
		t.Errorf("%+v, %v", out, err)
	}
}

// A declined execution is tried again by any worker after a growing pause, and the attempt does not count.
func TestDecline(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	id := r.submit(Submission{Action: "noop", Retry: &flow.Retry{MaxAttempts: 1}})
	for n, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		a := h.take(1)[0]
		if err := r.e.Decline(r.ctx, h.session, []flow.AttemptID{{Execution: id, Attempt: a.Attempt}}); err != nil {
			t.Fatal(err)
		}
		x := r.get(id)
		if x.Attempt != n+2 || x.Spent() != 1 || x.Place != flow.Delayed || x.WakeAt.Sub(x.EventAt) != pause {
			t.Errorf("attempt %d, %d spent, %s, waits for %s", x.Attempt, x.Spent(), x.Place, x.WakeAt.Sub(x.EventAt))
		}
		r.pass(pause)
	}
	if s := r.e.Stats(); s.HandedBack != 3 || s.Lost != 0 {
		t.Errorf("%d handed back, %d lost", s.HandedBack, s.Lost)
	}
	if err := r.e.Decline(r.ctx, flow.ID{9}, nil); !errors.Is(err, handoff.ErrSessionLost) {
		t.Errorf("an unknown session: %v", err)
	}
	if got := h.take(1); len(got) != 1 || got[0].Attempt != 4 {
		t.Errorf("got %+v", got)
	}
}

// A webhook has the policy of its kind however it is submitted, unless another policy is given.
func TestWebhookHasAPolicy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	input := json.RawMessage(`{"url":"https://hooks.example.com","event":"e","secret_env":"S"}`)
	r.define(`
name: tell
action: webhook
with: {url: "https://hooks.example.com", event: e, secret_env: S}
---
name: once
action: webhook
retry: 1
with: {url: "https://hooks.example.com", event: e, secret_env: S}
---
name: flow
tasks:
  builtin: {action: webhook, with: {url: "https://hooks.example.com", event: e, secret_env: S}}
  named: {action: tell}
  less: {action: tell, retry: 2}
`)
	for _, c := range []struct {
		id   flow.ID
		want int
	}{
		{r.submit(Submission{Action: "webhook", Input: input}), 10},
		{r.submit(Submission{Action: "webhook", Input: input, Retry: &flow.Retry{MaxAttempts: 3}}), 3},
		{r.submit(Submission{Action: "tell"}), 10},
		{r.submit(Submission{Action: "once"}), 1},
		{r.submit(Submission{Action: "noop"}), 0},
	} {
		if x := r.get(c.id); x.Retry.MaxAttempts != c.want {
			t.Errorf("%s: %d attempts, want %d", x.Action, x.Retry.MaxAttempts, c.want)
		}
	}
	w := r.submit(Submission{Action: "flow"})
	for task, want := range map[string]int{"builtin": 10, "named": 10, "less": 2} {
		if x := r.get(r.child(w, task, 0)); x.Retry.MaxAttempts != want {
			t.Errorf("task %s: %d attempts, want %d", task, x.Retry.MaxAttempts, want)
		}
	}
}
