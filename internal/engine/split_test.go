package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// crowded is a store in which another transaction has the row of one execution whenever it is written together with others.
type crowded struct {
	store.Store
	row  atomic.Pointer[flow.ID]
	gave atomic.Int64 // how many times
}

func (c *crowded) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	return c.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return decide(ctx, &crowdedTx{tx, c}) })
}

type crowdedTx struct {
	store.Tx
	c *crowded
}

func (t *crowdedTx) Apply(ctx context.Context, d store.Delta) error {
	if row := t.c.row.Load(); row != nil && len(d.Drafts) > 1 {
		for _, x := range d.Drafts {
			if x.ID == *row {
				t.c.gave.Add(1)
				return store.ErrConflict
			}
		}
	}
	return t.Tx.Apply(ctx, d)
}

// A request that meets a conflict is committed without the requests that came with it and need no row of others: these are not decided
// again.
func TestConflictLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	var c *crowded
	r := newRig(t, func(o *Options) {
		c = &crowded{Store: o.Store}
		o.Store = c
	})
	hot := r.submit(Submission{Action: "noop", NotBefore: time.Now().Add(time.Hour)})
	c.row.Store(&hot)
	g := newGroup(2)
	var plain [2]*submitOp
	for i := range plain {
		plain[i] = &submitOp{id: r.e.opts.NewID(), request: requests.BuiltIn(flow.KindNoop, nil), group: g, submitted: &r.e.counters.submitted}
	}
	cancel := newRequest([]flow.ID{hot}, classCall, func(_ context.Context, t *transaction) (struct{}, error) {
		d := t.Draft(hot)
		err := d.Cancel(flow.Cancelled, flow.CodeCancelled, "no longer wanted", t.now)
		t.cancelled(d)
		return struct{}{}, err
	})
	if err := r.e.enqueue(plain[0], cancel, plain[1]); err != nil {
		t.Fatal(err)
	}
	if err := (<-cancel.answer).err; err != nil {
		t.Error(err)
	}
	if err := g.wait(r.ctx); err != nil {
		t.Fatal(err)
	}
	for _, o := range plain {
		if o.verdict.Err != nil {
			t.Errorf("a request beside it: %v", o.verdict.Err)
		}
	}
	if n := c.gave.Load(); n != 1 {
		t.Errorf("the batch was decided %d times before it was committed in parts, not once", n)
	}
	if x := r.ended(hot); x.Stage != flow.Cancelled {
		t.Errorf("it is %s", x.Stage)
	}
}
