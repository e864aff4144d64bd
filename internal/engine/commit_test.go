package engine

import (
	"testing"
	"time"
)

// gatherer is an engine whose batches a test gathers.
type gatherer struct {
	*testing.T
	e *Engine
}

func newGatherer(t *testing.T) gatherer {
	e, err := New(Options{Store: &mute{}})
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
		ops[i] = &foldOp{}
	}
	if err := g.e.enqueue(ops...); err != nil {
		g.Fatal(err)
	}
}

// nothing is gathered yet.
func (g gatherer) nothing() {
	g.Helper()
	if b, again := g.e.gather(g.Context()); b != nil || again == nil {
		g.Fatalf("gathered %+v; to be tried again: %t", b, again != nil)
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

// A few requests wait for the transaction under way, but not for one that has shown to be slow, also when another has been
// under way beside it since.
func TestFewWaitForNobodySlow(t *testing.T) {
	g := newGatherer(t)
	g.request(1)
	slow := g.some(1)
	g.request(1)
	g.nothing()
	slow.age(besideAfter)
	quick := g.some(1)
	g.request(1)
	g.nothing()
	g.e.over(quick)
	quick = g.some(1)
	g.e.over(slow)
	g.request(1)
	g.nothing()
	g.e.over(quick)
	g.some(1)
}

// Many go beside the transaction under way.
func TestManyGoBeside(t *testing.T) {
	g := newGatherer(t)
	g.request(1)
	g.some(1)
	g.request(besideFrom)
	g.some(besideFrom)
}

// After a transaction that answered many callers the next one waits for half of as many requests, for a part of the time
// that the last one took; after one that answered a single caller it does not, however many requests that was.
func TestWaitForCompany(t *testing.T) {
	g := newGatherer(t)
	many := func() {
		for range 2 * companyFrom {
			g.request(1)
		}
		b := g.some(2 * companyFrom)
		b.age(time.Hour)
		g.e.over(b)
		g.request(1)
		g.nothing()
	}
	many()
	g.request(companyFrom - 1)
	g.e.over(g.some(companyFrom))
	many()
	g.e.last.at = g.e.last.at.Add(-companyMost)
	g.e.over(g.some(1))

	g.request(2 * companyFrom)
	b := g.some(2 * companyFrom)
	b.age(time.Hour)
	g.e.over(b)
	g.request(1)
	g.some(1)
}
