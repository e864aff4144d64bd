package engine

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Each execution in the line of a key goes by its own limit: when the head is admitted, the one behind it may be, too.
func TestLineOfMixedLimits(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		h := r.worker()
		sub := func(limit int) flow.ID { return r.submit(Submission{Action: "noop", Key: "tenant", KeyLimit: limit}) }
		a, b, c, d, e := sub(1), sub(1), sub(3), sub(2), sub(3)
		held := h.take(10)
		if len(held) != 1 || held[0].Execution != a {
			r.Fatal(held)
		}
		h.complete(held[0], "1")
		// On a busy machine the key counts as contended, and its line goes on in a transaction of its own.
		r.within(patience, "the line does not go on", func() bool { return r.get(b).Place == flow.Ready && r.get(c).Place == flow.Ready })
		for id, want := range map[flow.ID]flow.Place{d: flow.Waiting, e: flow.Waiting} {
			if got := r.get(id).Place; got != want { // d waits for one of two slots, and e behind it
				r.Errorf("an execution with limit %d is %s: want %s", r.get(id).KeyLimit, got, want)
			}
		}
	})
}

// A newcomer that becomes the head of a line by its priority goes at once when its limit allows it.
func TestNewHeadOfALine(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		sub := func(limit, priority int) flow.ID {
			return r.submit(Submission{Action: "noop", Key: "tenant", KeyLimit: limit, Priority: &priority})
		}
		sub(1, 0)
		waits := sub(1, 0)
		urgent := sub(2, 5)
		if p := r.get(urgent).Place; p != flow.Ready {
			r.Errorf("the newcomer is %s", p)
		}
		if p := r.get(waits).Place; p != flow.Waiting {
			r.Errorf("the one before it is %s", p)
		}
	})
}

// A line that one transaction cannot admit as a whole goes on in the next ones.
func TestLongLine(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		ids := []flow.ID{r.submit(Submission{Action: "noop", Key: "k", KeyLimit: 1}), r.submit(Submission{Action: "noop", Key: "k", KeyLimit: 1})}
		for range 25 {
			ids = append(ids, r.submit(Submission{Action: "noop", Key: "k", KeyLimit: 1000}))
		}
		h := r.worker()
		held := h.take(100)
		if len(held) != 1 {
			r.Fatalf("%d of one are held", len(held))
		}
		h.complete(held[0], "1")
		h.complete(h.take(100)[0], "1") // the head, with the others behind it or alone
		r.within(time.Minute, "the line does not go on", func() bool {
			for _, id := range ids {
				if r.get(id).Place == flow.Waiting {
					return false
				}
			}
			return true
		})
	}, func(o *Options) { o.Rows = 3 })
}

// cancel_oldest ends the oldest holder when its slot is the newcomer's, and otherwise nothing.
func TestCancelOldest(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		sub := func(limit int, when flow.WhenFull) flow.ID {
			return r.submit(Submission{Action: "noop", Key: "k", KeyLimit: limit, WhenFull: when})
		}
		ordered := func(id flow.ID) bool { x := r.get(id); return x.State.Cancel != nil || x.Stage == flow.Cancelled }
		h := r.worker()
		one := sub(1, flow.WhenFullQueue)
		if held := h.take(10); len(held) != 1 {
			r.Fatal(held)
		}
		waits := sub(1, flow.WhenFullQueue)
		pushes := sub(1, flow.WhenFullCancelOldest)
		if ordered(one) {
			r.Error("the holder was ended, and its slot would have been that of the one that waits")
		}
		if p := r.get(pushes).Place; p != flow.Waiting {
			r.Errorf("the newcomer is %s", p)
		}
		if _, err := r.e.Cancel(r.ctx, waits, ""); err != nil {
			r.Fatal(err)
		}
		if _, err := r.e.Cancel(r.ctx, pushes, ""); err != nil {
			r.Fatal(err)
		}
		second := sub(1, flow.WhenFullCancelOldest)
		if !ordered(one) {
			r.Error("without a line the holder was not ended")
		}
		third := sub(1, flow.WhenFullCancelOldest)
		if ordered(second) {
			r.Error("what waits for its slot was ended: it is not a holder")
		}
		if p := r.get(third).Place; p != flow.Waiting {
			r.Errorf("the second newcomer is %s", p)
		}

		sub2 := func(when flow.WhenFull) flow.ID {
			return r.submit(Submission{Action: "noop", Key: "two", KeyLimit: 2, WhenFull: when})
		}
		a, b := sub2(flow.WhenFullQueue), sub2(flow.WhenFullQueue)
		if held := h.take(10); len(held) != 2 {
			r.Fatal(held)
		}
		sub2(flow.WhenFullCancelOldest)
		if !ordered(a) || ordered(b) {
			r.Errorf("after one newcomer: %t, %t are ended", ordered(a), ordered(b))
		}
		sub2(flow.WhenFullCancelOldest)
		if !ordered(b) {
			r.Error("after two newcomers the second holder goes on")
		}
		sub2(flow.WhenFullCancelOldest) // there is nothing left to end
	})
}
