package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// wide is a ledger whose worker should have two calls of Take and of Report under way.
type wide struct {
	*ledger
	t *testing.T

	mu      sync.Mutex
	asking  []int // requested slots of running calls of Take
	sending map[flow.ID]bool
	calls   int // of Report, under way
	most    int // of those
	next    map[flow.ID]int64
}

func (w *wide) Calls() int { return 2 }

func (w *wide) Take(ctx context.Context, session flow.ID, n int) ([]handoff.Assignment, error) {
	w.mu.Lock()
	w.asking = append(w.asking, n)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		i := slices.Index(w.asking, n)
		w.asking = slices.Delete(w.asking, i, i+1)
	}()
	return w.ledger.Take(ctx, session, n)
}

// Report fails the test if two reports of one attempt are under way, or an event is reported twice.
func (w *wide) Report(ctx context.Context, session flow.ID, reports []flow.Report) ([]flow.Receipt, error) {
	w.mu.Lock()
	w.calls++
	w.most = max(w.most, w.calls)
	for _, r := range reports {
		if w.sending[r.Execution] {
			w.t.Errorf("two reports of %s are under way", r.Execution)
		}
		w.sending[r.Execution] = true
		first, last := r.Events[0].Seq, r.Events[len(r.Events)-1].Seq
		if next := w.next[r.Execution]; next != 0 && first != next {
			w.t.Errorf("%s says event %d after %d", r.Execution, first, next-1)
		}
		w.next[r.Execution] = last + 1
	}
	w.mu.Unlock()
	receipts, err := w.ledger.Report(ctx, session, reports)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls--
	for _, r := range reports {
		delete(w.sending, r.Execution)
	}
	return receipts, err
}

// wider runs f in a bubble with a ledger and its wide wrapper.
func wider(t *testing.T, f func(t *testing.T, g *ledger, w *wide)) {
	bubble(t, func(t *testing.T, g *ledger) {
		f(t, g, &wide{ledger: g, t: t, sending: map[flow.ID]bool{}, next: map[flow.ID]int64{}})
	})
}

// Two calls share the slots; together they never run more attempts than there are slots.
func TestCallsShareTheSlots(t *testing.T) {
	wider(t, func(t *testing.T, g *ledger, w *wide) {
		var now, most atomic.Int32
		defer serve(t, g, worker.Options{Handoff: w, Slots: 5, Handlers: task.Handlers{"x": task.Func(func(ctx context.Context, t *task.Task) (json.RawMessage, error) {
			n := now.Add(1)
			defer now.Add(-1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			return waitFor(time.Second, nil)(ctx, t)
		})}})()
		synctest.Wait()
		w.mu.Lock()
		slices.Sort(w.asking)
		if !slices.Equal(w.asking, []int{2, 3}) {
			t.Errorf("an idle worker with 5 slots asks for %d", w.asking)
		}
		w.mu.Unlock()
		began := time.Now()
		var ids []flow.ID
		for range 20 {
			ids = append(ids, g.submit(flow.Request{Kind: "x"}))
		}
		for _, id := range ids {
			g.ended(t, id)
		}
		if most.Load() != 5 || time.Since(began) != 4*time.Second {
			t.Errorf("%d at once, %s in all", most.Load(), time.Since(began))
		}
	})
}

// Reports of different attempts go in parallel, those of one attempt one after another.
func TestReportsOfOneAttemptInTurn(t *testing.T) {
	wider(t, func(t *testing.T, g *ledger, w *wide) {
		g.slow = 10 * time.Millisecond
		defer serve(t, g, worker.Options{Handoff: w, Slots: 4, Handlers: task.Handlers{"x": task.Func(func(ctx context.Context, t *task.Task) (json.RawMessage, error) {
			for i := range 100 {
				if err := t.Progress(ctx, json.RawMessage(fmt.Sprint(i))); err != nil {
					return nil, err
				}
				time.Sleep(3 * time.Millisecond) // of the bubble's clock
			}
			return nil, nil
		})}})()
		ids := []flow.ID{g.submit(flow.Request{Kind: "x"})}
		time.Sleep(5 * time.Millisecond) // while the first is being reported
		ids = append(ids, g.submit(flow.Request{Kind: "x"}))
		for _, id := range ids {
			if d := g.ended(t, id); len(d.Events) != 105 {
				t.Errorf("%d events", len(d.Events))
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.most != 2 {
			t.Errorf("at most %d reports were under way", w.most)
		}
	})
}
