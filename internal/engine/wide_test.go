package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// beside is another replica on the rig's store.
func (r *rig) beside(change ...func(*Options)) *rig {
	r.Helper()
	o := Options{Store: r.store}
	other := &rig{TB: r.TB, clock: r.clock, store: &shared{r.store}}
	return other.run(o, change)
}

// shared is a store that more than one engine uses: the last one closes it.
type shared struct{ store.Store }

func (s *shared) Close() error { return nil }

func (s *shared) Notifications(ctx context.Context) (<-chan store.Notification, error) {
	if n, ok := s.Store.(store.Notifier); ok {
		return n.Notifications(ctx)
	}
	return nil, errors.New("no notifications")
}

// Two replicas take turns with one workflow: each follows it by the changes of the other, and neither counts its children.
func TestWorkflowOfTwoReplicas(t *testing.T) {
	t.Parallel()
	// Its workers do not renew their sessions, for as long as a busy machine takes.
	wide := func(o *Options) { o.Wide, o.Exclusive, o.Lease = 3, false, 10*time.Minute }
	onEachStore(t, func(r *rig) {
		counted := &counting{}
		other := r.beside(wide, func(o *Options) { counted.Store, o.Store = o.Store, counted })
		r.define(`
name: w
input: {type: object, properties: {items: {type: array}}}
tasks:
  each: {foreach: "${{ input.items }}", concurrency: 4, action: noop, with: {v: "${{ item }}"}}
  side: {action: noop, with: {v: 1}}
  next: {needs: [side], action: noop, with: {v: "${{ tasks.side.output.v }}"}}
  never: {needs: [side], if: "${{ tasks.side.output.v == 2 }}", action: noop}
  all: {needs: [each, next], action: noop, with: {n: "${{ size(tasks.each.output) }}"}}
outputs: {n: "${{ tasks.all.output.n }}"}
`)
		id := r.submit(Submission{Action: "w", Input: ints(40)})
		here, there := r.worker(), other.worker()
		for n := 0; n < 43; n++ {
			h := []*hand{here, there}[n%2]
			work := h.take(1)
			h.complete(work[0], string(work[0].Payload))
			h.verify()
			if n == 10 {
				counted.counts.Store(0)
			}
		}
		if x := r.ended(id); x.Stage != flow.Completed || string(x.Outcome.Output) != `{"n":40}` {
			r.Errorf("%s %s %+v", x.Stage, x.Outcome.Output, x.Outcome.Error)
		}
		// The check of each step counts as well.
		if n := counted.counts.Load() - counted.checks.Load(); n > 3 {
			r.Errorf("one replica counted the children %d times", n)
		}
	}, wide)
}

// counting counts how often the children of workflows are counted.
type counting struct {
	store.Store
	counts, checks atomic.Int64
}

func (c *counting) Check(ctx context.Context) ([]store.Violation, error) {
	c.checks.Add(1)
	return c.Store.Check(ctx)
}

func (c *counting) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	return c.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return decide(ctx, &countingTx{tx, c}) })
}

type countingTx struct {
	store.Tx
	c *counting
}

func (t *countingTx) LockWorkflows(ctx context.Context, knownWorkflows []store.KnownWorkflow) ([]store.LockedWorkflow, error) {
	for _, k := range knownWorkflows {
		if k.Change < 0 {
			t.c.counts.Add(1)
		}
	}
	return t.Tx.LockWorkflows(ctx, knownWorkflows)
}

func ints(n int) json.RawMessage {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	b, err := json.Marshal(map[string]any{"items": all})
	if err != nil {
		panic(err)
	}
	return b
}

// uncommitted is a store that runs transactions and then fails to commit them.
type uncommitted struct {
	store.Store
	on atomic.Bool
}

func (u *uncommitted) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	return u.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := decide(ctx, tx); err != nil || !u.on.Load() {
			return err
		}
		return fmt.Errorf("commit: %w", store.ErrUnavailable)
	})
}

// A list of items that an uncommitted transaction evaluated is not used later: the next attempt of its source task has another one.
func TestItemsOfAnUncommittedTransaction(t *testing.T) {
	t.Parallel()
	u := &uncommitted{}
	onEachStore(t, func(r *rig) {
		r.define(`
name: w
tasks:
  list: {action: noop, retry: {max_attempts: 5, delay: 1ms}}
  each: {needs: [list], foreach: "${{ tasks.list.output }}", action: noop, with: {v: "${{ item }}"}}
outputs: {r: "${{ tasks.each.output }}"}
`)
		h := r.worker()
		id := r.submit(Submission{Action: "w"})
		first := h.take(1)[0]
		u.on.Store(true)
		_, err := r.e.Report(r.ctx, h.session, []flow.Report{{Execution: first.Execution, Attempt: 1, Events: []flow.Event{
			ev(&first, 0, flow.EvRunning, nil), ev(&first, 1, flow.EvCompleted, &flow.Outcome{Output: json.RawMessage(`[1,2,3]`)})}}})
		if !errors.Is(err, handoff.ErrUnavailable) {
			r.Fatalf("the report: %v", err)
		}
		u.on.Store(false)
		if err := r.e.Close(r.ctx, h.session); err != nil { // its worker is gone as well
			r.Fatal(err)
		}
		h = r.worker()
		r.within(patience, "the task is not tried again", func() bool { return r.get(first.Execution).Place == flow.Ready })
		second := h.take(1)[0]
		h.complete(second, `[4,5]`)
		h.serve(echo)
		if x := r.ended(id); string(x.Outcome.Output) != `{"r":[{"v":4},{"v":5}]}` {
			r.Errorf("the list is [4,5] and the workflow put out %s", x.Outcome.Output)
		}
	}, func(o *Options) { u.Store, o.Store = o.Store, u })
}

// A failing workflow of many children ends those that wait for a worker page by page, and searches for them once.
func TestWideFailure(t *testing.T) {
	t.Parallel()
	c := &counting{}
	onEachStore(t, func(r *rig) {
		r.define(`
name: w
input: {type: object, properties: {items: {type: array}}}
tasks:
  each: {foreach: "${{ input.items }}", action: noop, with: {i: "${{ item }}"}}
  after: {needs: [each], if: "${{ always() }}", action: noop}
`)
		const n, held = 300, 10
		h := r.worker()
		id := r.submit(Submission{Action: "w", Input: ints(n)})
		var work []handoff.Assignment
		for len(work) < held {
			work = append(work, h.take(held-len(work))...)
		}
		h.fail(work[0], "boom")
		r.within(patience, "what waited for a worker is not cancelled", func() bool {
			remaining := 0
			for _, k := range r.children(id, 1) {
				if !k.Stage.Terminal() {
					remaining++
				}
			}
			return remaining == held-1
		})
		for _, a := range work[1:] {
			h.complete(a, "1")
		}
		h.serve(echo)
		if x := r.ended(id); x.Stage != flow.Failed || !strings.Contains(x.Outcome.Error.Message, "boom") {
			r.Errorf("%s %+v", x.Stage, x.Outcome.Error)
		}
	}, func(o *Options) { o.Rows = 40; c.Store, o.Store = o.Store, c })
}

// Cancelling a workflow of many children ends them page by page, in separate transactions.
func TestWideCancel(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(`
name: inner
input: {type: object, properties: {items: {type: array}}}
tasks:
  each: {foreach: "${{ input.items }}", action: noop, with: {i: "${{ item }}"}}
---
name: outer
input: {type: object, properties: {items: {type: array}}}
tasks:
  sub: {foreach: "${{ [1, 2, 3] }}", action: inner, with: {items: "${{ input.items }}"}}
`)
		h := r.worker()
		id := r.submit(Submission{Action: "outer", Input: ints(100)})
		var work []handoff.Assignment
		for len(work) < 20 {
			work = append(work, h.take(20-len(work))...)
		}
		if _, err := r.e.Cancel(r.ctx, id, "enough"); err != nil {
			r.Fatal(err)
		}
		told := map[flow.ID]bool{}
		for len(told) < len(work) {
			orders, err := r.e.Orders(r.ctx, h.session)
			if err != nil {
				r.Fatal(err)
			}
			for _, o := range orders {
				told[o.Execution] = true
			}
		}
		for _, a := range work {
			h.report(a, ev(&a, 0, flow.EvRunning, nil), ev(&a, 1, flow.EvCancelled, nil))
		}
		if x := r.ended(id); x.Stage != flow.Cancelled {
			r.Errorf("%s %+v", x.Stage, x.Outcome.Error)
		}
	}, func(o *Options) { o.Rows = 25 })
}

// The creations of one transaction are bounded in bytes: the children of a wide fan-out with large inputs come in many transactions.
func TestFanOutIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	const size, children, most = 2000, 200, 20_000
	m := &measuring{}
	onEachStore(t, func(r *rig) {
		r.define(`
name: w
input: {type: object, properties: {items: {type: array}}}
tasks:
  a: {action: noop}
  each: {needs: [a], foreach: "${{ input.items }}", action: noop, with: {data: "${{ tasks.a.output }}", i: "${{ item }}"}}
outputs: {n: "${{ size(tasks.each.output) }}"}
`)
		m.largest.Store(0)
		h := r.worker()
		h.serve(func(a handoff.Assignment) (string, *flow.Error) {
			if a.Task == "a" {
				return `"` + strings.Repeat("x", size) + `"`, nil
			}
			return "1", nil
		})
		x := r.ended(r.submit(Submission{Action: "w", Input: ints(children)}))
		if x.Stage != flow.Completed || string(x.Outcome.Output) != fmt.Sprintf(`{"n":%d}`, children) {
			r.Errorf("%s %s %+v", x.Stage, x.Outcome.Output, x.Outcome.Error)
		}
		if got := m.largest.Load(); got > most+2*size || got < most/2 {
			r.Errorf("one transaction created children of %d bytes: at most %d", got, most)
		}
	}, func(o *Options) { o.Bytes = most; m.Store, o.Store = o.Store, m })
}

// measuring measures the bytes of payload that one transaction creates.
type measuring struct {
	store.Store
	largest atomic.Int64
}

func (m *measuring) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	t := &measuringTx{}
	err := m.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		t.Tx, t.size = tx, 0
		return decide(ctx, t)
	})
	m.largest.Store(max(m.largest.Load(), t.size))
	return err
}

type measuringTx struct {
	store.Tx
	size int64
}

func (t *measuringTx) Apply(ctx context.Context, d store.Delta) error {
	for _, x := range d.Drafts {
		if x.New {
			t.size += int64(x.PayloadSize())
		}
	}
	return t.Tx.Apply(ctx, d)
}
