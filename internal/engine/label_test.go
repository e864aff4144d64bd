package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

func executions(work []handoff.Assignment) []flow.ID {
	var ids []flow.ID
	for _, a := range work {
		ids = append(ids, a.Execution)
	}
	return ids
}

// expect claims exactly the given executions, in this order.
func (h *hand) expect(want ...flow.ID) []handoff.Assignment {
	h.Helper()
	work := h.take(len(want) + 10)
	if got := executions(work); !slices.Equal(got, want) {
		h.Fatalf("took %v, want %v", got, want)
	}
	return work
}

// An execution with labels goes to a worker that has all of them; a worker with labels also serves executions without.
func TestLabelsChooseWorker(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	plain, t4 := r.worker(), r.workerLabelled("gpu=t4,zone=eu")
	special := r.submit(Submission{Action: "noop", WorkerLabels: map[string]string{"zone": "eu", "gpu": "a100"}})
	usual := r.submit(Submission{Action: "noop"})
	plain.expect(usual)
	other := r.submit(Submission{Action: "noop"})
	t4.expect(other)

	w, err := r.e.Why(r.ctx, special)
	if err != nil || w.Waiting != "worker" || w.Queue != flow.DefaultQueue || flow.LabelText(w.WorkerLabels) != "gpu=a100,zone=eu" {
		t.Errorf("why: %+v, %v", w, err)
	}
	for _, want := range []struct{ in, is string }{
		{w.Summary, `no live worker of queue "default" has label gpu=a100 and label zone=eu (2 serve it without); it is 1st in line`},
		{strings.Join(w.Facts, "; "), `the nearest is worker able: it lacks label gpu=a100 and has the labels gpu=t4,zone=eu`},
		{w.Unblock[0].Command, `pawl worker --queues default --labels gpu=a100,zone=eu`},
	} {
		if !strings.Contains(want.in, want.is) {
			t.Errorf("%q does not say %q", want.in, want.is)
		}
	}

	a100 := r.workerLabelled("gpu=a100,zone=eu,disk=ssd")
	if w, err = r.e.Why(r.ctx, special); err != nil || w.Waiting != "queue" || !strings.Contains(w.Summary, "which 1 worker with 100 slots serve") {
		t.Errorf("why, with a worker: %+v, %v", w, err)
	}
	a := a100.expect(special)[0]
	a100.fail(a, "broken")
	again, err := r.e.Retry(r.ctx, special, "")
	if err != nil {
		t.Fatal(err)
	}
	plain.expect(r.submit(Submission{Action: "noop"}))
	a100.expect(again.Execution)
}

// Labels of an action, of a task and of a submission, a runtime and a language make one routing key in any order. Of two labels with the
// same key, the one nearer to the run wins.
func TestLabelsCompose(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Needs = needs })
	r.define("name: train\naction: noop\nworker_labels: {gpu: a100, zone: eu}\n")
	r.define("name: whole\ntasks:\n  one: {action: train, with: {runtime: boat, language: 'code:f#'}, worker_labels: {zone: us, ssd: true}}\n  two: {action: noop}\n")
	all := r.workerOf(append(flow.OfferLabels(map[string]string{"gpu": "a100", "zone": "us", "ssd": "true"}), flow.OfferRuntime("boat"), flow.OfferLanguage("f#"))...)
	whole := r.submit(Submission{Action: "whole"})

	plain := r.worker()
	two := plain.take(10) // it has no label of its action, nor of the task beside it
	if len(two) != 1 || two[0].Task != "two" {
		t.Fatalf("the plain worker got %+v", two)
	}
	plain.complete(two[0], "2")
	one := all.take(10)
	if len(one) != 1 || one[0].Task != "one" {
		t.Fatalf("the able worker got %+v", one)
	}
	if q := r.get(one[0].Execution).Queue; q != "default@boat,code:f#,gpu=a100,ssd=true,zone=us" {
		t.Errorf("routing key %q", q)
	}
	all.complete(one[0], "1")
	if x := r.ended(whole); x.Stage != flow.Completed {
		t.Errorf("%+v", x)
	}

	id := r.submit(Submission{Action: "train", WorkerLabels: map[string]string{"zone": "us"}})
	if q := r.get(id).Queue; q != "default@gpu=a100,zone=us" {
		t.Errorf("routing key %q", q)
	}
	all.expect(id)
}

// Labels are not inherited: a workflow's tasks do not get the labels of the task that runs the workflow, nor the workflow's own.
func TestLabelsAreNotInherited(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: inner\ntasks:\n  step: {action: noop}\n")
	r.define("name: outer\ntasks:\n  sub: {action: inner, worker_labels: {gpu: a100}}\n")
	r.submit(Submission{Action: "outer"})
	if got := r.worker().take(10); len(got) != 1 || got[0].Task != "step" {
		t.Errorf("took %+v", got)
	}
}

// Over all queues and routing keys of a worker, the highest priority goes first, then the oldest.
func TestOrderAcrossRoutingKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gpu, zone := map[string]string{"gpu": "a100"}, map[string]string{"zone": "eu"}
	high := 5
	var want []flow.ID
	for i := range 12 {
		s := Submission{Action: "noop", WorkerLabels: []map[string]string{nil, gpu, zone}[i%3]}
		want = append(want, r.submit(s))
	}
	first := r.submit(Submission{Action: "noop", WorkerLabels: zone, Priority: &high})
	r.workerLabelled("gpu=a100,zone=eu").expect(append([]flow.ID{first}, want...)...)
}

// A concurrency key is one key under all routing keys: a slot freed in one admits an execution under another.
func TestKeyAcrossRoutingKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one, two := r.workerLabelled("gpu=a100"), r.workerLabelled("gpu=t4")
	submit := func(gpu string) flow.ID {
		return r.submit(Submission{Action: "noop", Key: "k", KeyLimit: 1, WorkerLabels: map[string]string{"gpu": gpu}})
	}
	ids := []flow.ID{submit("a100"), submit("t4"), submit("a100")}
	for i, h := range []*hand{one, two, one} {
		for _, later := range ids[i+1:] {
			if x := r.get(later); x.Place != flow.Waiting {
				t.Fatalf("%d: %s is at place %v", i, later, x.Place)
			}
		}
		h.complete(h.expect(ids[i])[0], "1")
	}
}

// A waiting worker gets the first execution that ever needs some of its labels; it ignores routing keys that it does not serve.
func TestFirstOfALabel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	able := r.workerLabelled("gpu=a100,zone=eu,disk=ssd")
	for i := range 200 {
		r.submit(Submission{Action: "noop", WorkerLabels: map[string]string{"host": fmt.Sprint("h", i)}})
	}
	taken := make(chan []handoff.Assignment, 1)
	go func() { taken <- able.take(1) }()
	awaitTakers(t, r.e, 1)
	id := r.submit(Submission{Action: "noop", WorkerLabels: map[string]string{"disk": "ssd", "zone": "eu"}})
	if got := <-taken; len(got) != 1 || got[0].Execution != id {
		t.Fatalf("took %+v", got)
	}
	if got := r.e.routingKeys.of(r.e.sessions.get(able.session)); !slices.Equal(got, []string{flow.DefaultQueue, "default@disk=ssd,zone=eu"}) {
		t.Errorf("it looks into %q", got)
	}
}

// The routing keys of other replicas are found among all other names of the store.
func TestRoutingKeysAreFoundInTheStore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const routingKeys = 600 // more than two pages
	for i := range routingKeys {
		r.submit(Submission{Action: "noop", WorkerLabels: map[string]string{"host": fmt.Sprint("h", i)}})
	}
	r.define("name: lane\naction: noop\n")
	r.define("name: zebra\naction: noop\n")
	for _, add := range []string{"", "other"} { // the last name of all, and another one
		if add != "" {
			if err := r.e.catalog.DeclareQueues(r.ctx, []string{add}); err != nil {
				t.Fatal(err)
			}
		}
		b := r.replica()
		if err := b.readRoutingKeys(r.ctx); err != nil {
			t.Fatal(err)
		}
		b.routingKeys.mu.Lock() // the replica also reads them when it watches pauses
		if n := len(b.routingKeys.all); n != routingKeys || len(b.routingKeys.stored) != routingKeys ||
			!b.routingKeys.stored["default@host=h599"] {
			t.Errorf("found %d routing keys", n)
		}
		b.routingKeys.mu.Unlock()
	}
}

func TestLabelsAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Needs = needs })
	r.define("name: flow\ntasks:\n  a: {action: noop}\n")
	long := map[string]string{}
	for i := range 8 {
		long[strings.Repeat("k", 62)+fmt.Sprint(i)] = "v"
	}
	many := map[string]string{}
	for i := range flow.SelectorLimit + 1 {
		many[fmt.Sprint("k", i)] = "v"
	}
	for _, c := range []struct {
		s    Submission
		want string
	}{
		{Submission{Action: "noop", WorkerLabels: map[string]string{"-x": "1"}}, `worker_labels: "-x" is not the key of a worker's label (write 1 to 63 letters`},
		{Submission{Action: "noop", WorkerLabels: map[string]string{"x": "a,b=c"}}, `worker_labels.x: "a,b=c" is not the value of a worker's label (write at most 63 letters`},
		{Submission{Action: "noop", WorkerLabels: many}, "worker_labels: are more than the 16 allowed"},
		{Submission{Action: "noop", WorkerLabels: long}, "worker_labels: queue, handler, runtime and labels have 535 bytes together, more than the 512 allowed"},
		{Submission{Action: "flow", WorkerLabels: map[string]string{"x": "1"}}, "worker_labels: no worker runs a workflow"},
		{Submission{Action: "sleep", Input: json.RawMessage(`{"for":"1s"}`), WorkerLabels: map[string]string{"x": "1"}}, "worker_labels: no worker runs a sleep"},
		{Submission{Action: "noop", Queue: "default@x=1"}, `queue: no worker has ever served queue "default@x=1"`},
		{Submission{Action: "noop", Input: json.RawMessage(`{"runtime":"boat,x=1"}`)}, `runtime: "boat,x=1" is not the name of a runtime`},
	} {
		out, err := r.e.Submit(r.ctx, []Submission{c.s})
		if err != nil || out[0].Err == nil || !strings.Contains(out[0].Err.Error(), c.want) {
			t.Errorf("%+v: %v, %v, want %q", c.s, out, err, c.want)
		}
	}
	if _, err := r.e.Open(r.ctx, handoff.Session{Name: "bad", Queues: []string{flow.DefaultQueue}, Kinds: []string{"label:a=b,c"}, Slots: 1}); err == nil {
		t.Error("a worker was let in with a label that is none")
	}

	// A task that needs too much together with its action fails with the reason, also when it is retried.
	r.define("name: half\naction: noop\nworker_labels: {" + strings.Repeat("a", 62) + ": 1, " + strings.Repeat("b", 62) + ": 1, " + strings.Repeat("c", 62) + ": 1, " + strings.Repeat("d", 62) + ": 1}\n")
	r.define("name: much\ntasks:\n  t: {action: half, worker_labels: {" + strings.Repeat("e", 62) + ": 1, " + strings.Repeat("f", 62) + ": 1, " + strings.Repeat("g", 62) + ": 1, " + strings.Repeat("h", 62) + ": 1}}\n")
	id := r.submit(Submission{Action: "much"})
	if x := r.ended(id); x.Stage != flow.Failed {
		t.Errorf("%+v", x)
	}
	children, err := r.store.Children(r.ctx, store.WorkflowAttempt{ID: id, Attempt: 1}, "", -1, 10)
	if err != nil || len(children) != 1 {
		t.Fatalf("%v, %v", children, err)
	}
	if x := r.get(children[0].Execution); x.Outcome.Error.Code != flow.CodeInvalidInput || !strings.Contains(x.Outcome.Error.Message, "more than the 512 allowed") {
		t.Errorf("%+v", x.Outcome.Error)
	}
	if _, err := r.e.Retry(r.ctx, children[0].Execution, ""); err == nil {
		t.Error("it was accepted once more")
	}
}

// A check does not store a routing key: routing keys are bounded in number and never forgotten, so checks alone could use them up.
func TestCheckStoresNoRoutingKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	x, err := r.e.CheckSubmission(r.ctx, Submission{Action: "noop", WorkerLabels: map[string]string{"gpu": "a100"}})
	if err != nil || !flow.Narrow(x.Queue) {
		t.Fatalf("%+v, %v", x, err)
	}
	if routingKeys, err := r.store.Names(r.ctx, store.RoutingKeyNames, "", 10); err != nil || len(routingKeys) > 0 {
		t.Errorf("the store has the routing keys %q, %v", routingKeys, err)
	}
	r.submit(Submission{Action: "noop", WorkerLabels: map[string]string{"gpu": "a100"}})
	if routingKeys, err := r.store.Names(r.ctx, store.RoutingKeyNames, "", 10); err != nil || len(routingKeys) != 1 ||
		routingKeys[0] != x.Queue {
		t.Errorf("the store has the routing keys %q, %v: want %q", routingKeys, err, x.Queue)
	}
}

// Routing keys are bounded in number, because they are never forgotten.
func TestRoutingKeysAreFew(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.submit(Submission{Action: "noop", WorkerLabels: map[string]string{"gpu": "a100"}})
	for i := range routingKeysLimit - 1 {
		r.e.rememberRoutingKey(flow.RoutingKey(flow.DefaultQueue, fmt.Sprint("host=h", i)))
	}
	out, err := r.e.Submit(r.ctx, []Submission{{Action: "noop", WorkerLabels: map[string]string{"host": "one-more"}}, {Action: "noop", WorkerLabels: map[string]string{"gpu": "a100"}}, {Action: "noop"}})
	if err != nil || out[0].Err == nil || !strings.Contains(out[0].Err.Error(), "4096 different sets of handlers, labels") || out[1].Err != nil || out[2].Err != nil {
		t.Errorf("%+v, %v", out, err)
	}
}
