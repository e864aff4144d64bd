package engine

import (
	"context"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
)

// What ends and what arrives in one batch count against a key together: an arrival takes no slot that is not free, and
// does not overtake those who wait.
func TestArrivalsBesideEnds(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]int{"end first": {0, 1, 2}, "arrivals around": {1, 0, 2}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			h := r.worker()
			tenant := Submission{Action: "noop", Key: "tenant", KeyLimit: 2}
			var ids []flow.ID
			for range 4 {
				ids = append(ids, r.submit(tenant))
			}
			held := h.take(10)
			if len(held) != 2 {
				t.Fatalf("%d of 2 slots were handed out", len(held))
			}
			g := newGroup(3)
			ops := []op{&reportOp{session: h.session, group: g, report: flow.Report{Execution: held[0].Execution, Attempt: 1,
				Events: []flow.Event{ev(&held[0], 0, flow.EvRunning, nil), ev(&held[0], 1, flow.EvCompleted, &flow.Outcome{})}}}}
			for range 2 {
				o := &submitOp{group: g}
				if err := r.e.prepare(r.ctx, &tenant, o); err != nil {
					t.Fatal(err)
				}
				ops = append(ops, o)
			}
			if err := r.e.enqueue(ops[order[0]], ops[order[1]], ops[order[2]]); err != nil {
				t.Fatal(err)
			}
			if err := g.wait(r.ctx); err != nil {
				t.Fatal(err)
			}
			for _, next := range []flow.ID{ids[2], ids[3]} {
				got := h.take(10)
				if len(got) != 1 || got[0].Execution != next {
					t.Fatalf("took %+v, not the next in line %s", got, next)
				}
				h.complete(got[0], "1")
			}
		})
	}
}

// Executions that wait go by their own limit, whatever limit others name beside them.
func TestLineGoesByItsOwnLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	wide := Submission{Action: "noop", Key: "tenant", KeyLimit: 2}
	var ids []flow.ID
	for range 3 {
		ids = append(ids, r.submit(wide))
	}
	held := h.take(10)
	g := newGroup(2)
	narrow := &submitOp{group: g}
	if err := r.e.prepare(r.ctx, &Submission{Action: "noop", Key: "tenant", KeyLimit: 1, WhenFull: flow.WhenFullCancelNew}, narrow); err != nil {
		t.Fatal(err)
	}
	end := &reportOp{session: h.session, group: g, report: flow.Report{Execution: held[0].Execution, Attempt: 1,
		Events: []flow.Event{ev(&held[0], 0, flow.EvRunning, nil), ev(&held[0], 1, flow.EvCompleted, &flow.Outcome{})}}}
	if err := r.e.enqueue(end, narrow); err != nil {
		t.Fatal(err)
	}
	if err := g.wait(r.ctx); err != nil {
		t.Fatal(err)
	}
	if x := r.get(ids[2]); x.Place != flow.Ready {
		t.Errorf("a slot is free and the head of the line is in place %s", x.Place)
	}
}

// Who leaves the head of a line without having been admitted lets the one behind it go, where its limit allows.
func TestHeadThatLeavesItsLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.submit(Submission{Action: "noop", Key: "tenant", KeyLimit: 1})
	narrow := r.submit(Submission{Action: "noop", Key: "tenant", KeyLimit: 1})
	wide := r.submit(Submission{Action: "noop", Key: "tenant", KeyLimit: 2})
	if _, err := r.e.Cancel(r.ctx, narrow, ""); err != nil {
		t.Fatal(err)
	}
	if a, b := r.get(first), r.get(wide); a.Place != flow.Ready || b.Place != flow.Ready {
		t.Errorf("the holder is %s, and what allows two is %s", a.Place, b.Place)
	}
}

// What is admitted together goes by its own limits, too.
func TestOneLineManyLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	sub := func(limit int) Submission { return Submission{Action: "noop", Key: "tenant", KeyLimit: limit} }
	r.submit(sub(1))
	wide, narrow := r.submit(sub(3)), r.submit(sub(3))
	if a, b := r.get(wide), r.get(narrow); a.Place != flow.Ready || b.Place != flow.Ready {
		t.Fatalf("%s %s", a.Place, b.Place)
	}
	held := h.take(10)
	three, one := r.submit(sub(3)), r.submit(sub(1))
	var reports []flow.Report
	for i := range held {
		a := &held[i]
		reports = append(reports, flow.Report{Execution: a.Execution, Attempt: 1,
			Events: []flow.Event{ev(a, 0, flow.EvRunning, nil), ev(a, 1, flow.EvCompleted, &flow.Outcome{})}})
	}
	if _, err := r.e.Report(r.ctx, h.session, reports); err != nil {
		t.Fatal(err)
	}
	if a, b := r.get(three), r.get(one); a.Place != flow.Ready || b.Place != flow.Waiting {
		t.Errorf("what allows three is %s, and what allows one %s", a.Place, b.Place)
	}
}

// A slot that is taken and given back within one batch goes to the execution that waits.
func TestSlotTakenAndGivenBackInOneBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := newGroup(2)
	tenant := Submission{Action: "noop", Key: "tenant", KeyLimit: 1}
	var subs [2]*submitOp
	for i := range subs {
		subs[i] = &submitOp{group: g}
		if err := r.e.prepare(r.ctx, &tenant, subs[i]); err != nil {
			t.Fatal(err)
		}
	}
	cancel := newRequest(nil, classCall, func(_ context.Context, t *transaction) (none struct{}, err error) {
		d := t.Draft(subs[0].id)
		if err := d.Cancel(flow.Cancelled, flow.CodeCancelled, "no more", t.now); err != nil {
			return none, err
		}
		t.cancelled(d)
		return none, nil
	})
	if err := r.e.enqueue(subs[0], subs[1], cancel); err != nil {
		t.Fatal(err)
	}
	if err := (<-cancel.answer).err; err != nil {
		t.Fatal(err)
	}
	if first, second := r.get(subs[0].id), r.get(subs[1].id); first.Stage != flow.Cancelled || second.Place != flow.Ready {
		t.Errorf("the first is %s, the second in place %s", first.Stage, second.Place)
	}
}
