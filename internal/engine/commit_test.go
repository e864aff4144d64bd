package engine

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/store"
)

// gatherer is an engine whose batches the test gathers.
type gatherer struct {
	testing.TB
	e *Engine
}

// unusedStore is the store of an engine that does not run. It answers what Stats asks for.
type unusedStore struct{ store.Store }

func (unusedStore) Unreadable() int { return 0 }

func newGatherer(t *testing.T) gatherer {
	e, err := New(Options{Store: unusedStore{}})
	if err != nil {
		t.Fatal(err)
	}
	return gatherer{t, e}
}

// request enqueues n requests of one caller.
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
	b := g.e.gather(g.Context(), time.NewTimer(0))
	if b == nil || len(b.ops) != want {
		g.Fatalf("gathered %+v, not %d requests", b, want)
	}
	return b
}

func (b *batch) age(d time.Duration) { b.began = b.began.Add(-d) }
