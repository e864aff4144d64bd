package engine

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// gatherer is an engine whose batches a test gathers.
type gatherer struct {
	testing.TB
	e *Engine
}

// unusedStore is the store of an engine that is not run. It answers what Stats asks for.
type unusedStore struct{ store.Store }

func (unusedStore) Unreadable() int { return 0 }

func newGatherer(t *testing.T) gatherer {
	e, err := New(Options{Store: unusedStore{}})
	if err != nil {
		t.Fatal(err)
	}
	return gatherer{t, e}
}

// request hands in n requests of one caller.
func (g gatherer) request(n int) {
	g.Helper()
	ops := make([]op, n)
	for i := range ops {
		ops[i] = &advanceOp{}
	}
	if err := g.e.enqueue(ops...); err != nil {
		g.Fatal(err)
	}
}

// some gathers requests.
func (g gatherer) some(want int) *batch {
	g.Helper()
	b, _ := g.e.gather(g.Context())
	if b == nil || len(b.ops) != want {
		g.Fatalf("gathered %+v, not %d requests", b, want)
	}
	return b
}

func (b *batch) age(d time.Duration) { b.began = b.began.Add(-d) }

// Callers are counted with the requests that they have handed in.
func TestCallersOfAFlood(t *testing.T) {
	t.Parallel()
	g := newGatherer(t)
	for range batchLimit + 10 {
		g.request(1)
	}
	if b := g.some(batchLimit); b.callers != batchLimit {
		t.Errorf("%d callers handed in %d requests", b.callers, batchLimit)
	}
	if n := len(g.e.batcher.plain.calls); n != 10 {
		t.Errorf("%d callers are left, not 10", n)
	}
}

// Requests share a transaction up to batchBytes, to which labels count: callers with small requests wait for all of it.
func TestBytesOfABatch(t *testing.T) {
	t.Parallel()
	large := map[string]*submitOp{"payload": {}, "labels": {}}
	large["payload"].request.Input = make([]byte, batchBytes/8)
	large["labels"].request.Labels = map[string]string{"a": strings.Repeat("v", batchBytes/16/labelWeight-1), "b": strings.Repeat("v", batchBytes/16/labelWeight-1)}
	for name, o := range large {
		g := newGatherer(t)
		if err := g.e.enqueue(slices.Repeat([]op{o}, 20)...); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{8, 8, 4} {
			b, _ := g.e.gather(t.Context())
			if b == nil || len(b.ops) != want {
				t.Fatalf("%s: a batch is %+v, not of %d requests", name, b, want)
			}
			g.e.endBatch(b)
		}
	}
}

// A request whose decision panics fails alone: the process and the requests beside it go on.
func TestPanicFailsOneRequest(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		g := newGroup(3)
		var good [2]*submitOp
		for i := range good {
			good[i] = &submitOp{id: r.e.opts.NewID(), request: requests.BuiltIn(flow.KindNoop, nil), group: g, submitted: &r.e.counters.submitted}
		}
		broken := newRequest(nil, classCall, func(context.Context, *transaction) (struct{}, error) { panic("a defect") })
		if err := r.e.enqueue(good[0], broken, good[1]); err != nil {
			r.Fatal(err)
		}
		if err := (<-broken.answer).err; err == nil || !strings.Contains(err.Error(), "a defect") {
			r.Errorf("the broken request: %v", err)
		}
		g.done()
		if err := g.wait(r.ctx); err != nil {
			r.Fatal(err)
		}
		for _, o := range good {
			s := o.verdict
			if s.Err != nil {
				r.Errorf("a request beside it: %v", s.Err)
			}
			r.get(s.Execution)
		}
	})
}

// Requests of callers do not wait for the follow-ups before them, however many there are: their batches alternate. A step of a workflow
// waits once.
func TestFollowUpsAlternateWithCallers(t *testing.T) {
	t.Parallel()
	g := newGatherer(t)
	next := func(want int) *batch {
		b := g.some(want)
		g.e.endBatch(b)
		return b
	}
	for i := range 10 * followUpLimit {
		for range 2 {
			g.e.followUp(&advanceOp{id: flow.ID{byte(i >> 8), byte(i)}})
		}
	}
	next(followUpLimit)
	g.request(1)
	next(1)
	g.request(2)
	next(followUpLimit)
	next(2)
	for range 8 {
		next(followUpLimit)
	}
	g.request(1)
	next(1)
	g.e.followUp(&advanceOp{id: flow.ID{1}})
	g.request(3)
	next(1)
	next(3)
}
