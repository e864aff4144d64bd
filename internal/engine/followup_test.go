package engine

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// Steps of workflows with many children go into separate transactions, one at a time: callers and other follow-ups find committers, and the
// rows of other workflows are free.
func TestWideStepsGoAloneAndOneAtATime(t *testing.T) {
	t.Parallel()
	g := newGatherer(t)
	for i := range 3 {
		g.e.followUp(&advanceOp{id: flow.ID{1, byte(i)}, wide: true})
		g.e.followUp(&advanceOp{id: flow.ID{1, byte(i)}, wide: true}) // waits already
	}
	wide := g.some(1)
	wide.age(time.Hour)
	g.idle()
	g.e.followUp(&advanceOp{id: flow.ID{2}})
	g.e.followUp(&advanceOp{id: flow.ID{3}})
	small := g.some(2)
	small.age(time.Hour)
	g.request(1)
	caller := g.some(1)
	g.e.endBatch(caller)
	g.e.endBatch(small)
	g.idle()
	g.e.endBatch(wide)
	wide = g.some(1)
	g.e.followUp(&advanceOp{id: flow.ID{4}})
	g.e.endBatch(wide)
	g.e.endBatch(g.some(1)) // the other follow-up: they alternate
	wide = g.some(1)
	if o := wide.ops[0].(*advanceOp); !o.wide || o.id != (flow.ID{1, 2}) {
		t.Errorf("the third wide step is not the last batch: %+v", o)
	}
	g.e.endBatch(wide)
	g.idle()
}

// One batch of follow-ups runs at a time: the other committers are free for callers.
func TestFollowUpsLeaveCommittersToCallers(t *testing.T) {
	t.Parallel()
	g := newGatherer(t)
	for i := range followUpLimit + 1 {
		g.e.followUp(&advanceOp{id: flow.ID{1, byte(i)}})
	}
	first := g.some(followUpLimit)
	first.age(time.Hour)
	g.idle()
	g.request(besideFrom)
	g.e.endBatch(g.some(besideFrom))
	g.idle()
	g.e.endBatch(first)
	g.e.endBatch(g.some(1))
	g.idle()
}

// idle checks that there is nothing to gather until a request is enqueued or a batch ends.
func (g gatherer) idle() {
	g.Helper()
	if b := g.e.gather(g.Context(), time.NewTimer(0)); b != nil {
		g.Fatalf("gathered %+v", b)
	}
}

// writes records how many executions each transaction creates.
type writes struct {
	store.Store
	mu      sync.Mutex
	created []map[flow.ID]bool
}

func (w *writes) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	var t *writesTx
	err := w.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		t = &writesTx{tx, map[flow.ID]bool{}}
		return decide(ctx, t)
	})
	if err == nil && len(t.created) > 0 {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.created = append(w.created, t.created)
	}
	return err
}

type writesTx struct {
	store.Tx
	created map[flow.ID]bool
}

func (t *writesTx) Apply(ctx context.Context, d store.Delta) error {
	for _, x := range d.Drafts {
		if x.New {
			t.created[x.ID] = true
		}
	}
	return t.Tx.Apply(ctx, d)
}

// A value of a document may take a second to compute. A transaction that computes one creates that child and ends, so that other callers
// wait for one value and not for all of a workflow.
func TestTransactionsComputeLittle(t *testing.T) {
	t.Parallel()
	w := &writes{}
	onEachStore(t, func(r *rig) {
		w.created = nil
		costly := "${{ input.items.map(a, input.items.map(b, a + b)).size() }}" // 0.9 million operations, of 0.2 million for a transaction
		source := "name: w\ninput: {type: object, properties: {items: {type: array}}}\ntasks:\n"
		for i := range 5 {
			source += fmt.Sprintf("  t%d: {action: noop, with: {n: %q}}\n", i, costly)
		}
		source += fmt.Sprintf("  each: {foreach: [1, 2, 3], action: noop, with: {n: %q}}\n", costly)
		source += "  called: {foreach: [1, 2, 3], action: heavy, with: {items: '${{ input.items }}'}}\n" // the action computes, not the task
		r.define(fmt.Sprintf("name: heavy\nkind: action\naction: noop\nwith: {n: %q}\n---\n", costly) + source)
		id := r.submit(Submission{Action: "w", Input: ints(230)})
		all := func() (n int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, c := range w.created {
				n += len(c)
			}
			return n
		}
		r.within(time.Minute, "the children are not created", func() bool { return all() == 1+5+3+3 })
		for i, c := range w.created {
			if delete(c, id); len(c) > 1 {
				r.Errorf("transaction %d created %d children whose inputs take 0.1 s each", i, len(c))
			}
		}
	}, func(o *Options) { w.Store, o.Store = o.Store, w })
}

// A transaction with a caller's request creates few children of a workflow, because other callers wait for it; follow-ups create the
// others, up to the whole budget each time.
func TestCallersWaitForFewChildren(t *testing.T) {
	t.Parallel()
	const n = 3000
	w := &writes{}
	onEachStore(t, func(r *rig) {
		w.created = nil
		r.define(`
name: w
input: {type: object, properties: {items: {type: array}}}
tasks:
  each: {foreach: "${{ input.items }}", action: noop, with: {i: "${{ item }}"}}
`)
		id := r.submit(Submission{Action: "w", Input: ints(n)})
		all := func() (n int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, c := range w.created {
				n += len(c)
			}
			return n
		}
		r.within(time.Minute, "the children are not created", func() bool { return all() == n+1 })
		for i, c := range w.created {
			switch most := budgetRows; {
			case c[id] && len(c) > 1+callersRows+1:
				r.Errorf("the caller's transaction created %d executions", len(c))
			case len(c) > most:
				r.Errorf("transaction %d created %d executions, more than the %d of its budget", i, len(c), most)
			}
		}
	}, func(o *Options) { w.Store, o.Store = o.Store, w })
}
