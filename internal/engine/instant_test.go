package engine

import (
	"context"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// instantWorker is a worker that runs no-ops without occupying a slot.
func (r *rig) instantWorker() *hand {
	r.Helper()
	id, err := r.e.Open(r.ctx, handoff.Session{Name: "instant", Embedded: true, Queues: []string{flow.DefaultQueue}, Slots: 2, Instant: []flow.Kind{flow.KindNoop}})
	if err != nil {
		r.Fatalf("open session: %v", err)
	}
	return &hand{r, id}
}

// A call of Take returns executions of instant kinds beyond the requested slots, whether they waited or come while it waits. Of other kinds
// it returns as many as requested, in order.
func TestInstantKindsNeedNoSlots(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB, ...func(*Options)) *rig{"sqlite": newRig, "postgres": newPostgresRig} {
		t.Run(name, func(t *testing.T) {
			r := open(t)
			count := func(work []handoff.Assignment) (instant, others int) {
				for _, a := range work {
					if a.Kind == flow.KindNoop {
						instant++
					} else {
						others++
					}
				}
				return instant, others
			}
			check := func(what string, work []handoff.Assignment, instant, others int) {
				t.Helper()
				if i, o := count(work); i != instant || o != others {
					t.Errorf("%s: %d instant and %d other executions, not %d and %d", what, i, o, instant, others)
				}
			}
			many := func(action string, n int) (all []Submission) {
				for range n {
					all = append(all, Submission{Action: action, Input: []byte(`{"url": "http://127.0.0.1:1"}`)})
				}
				return all
			}
			submit := func(all ...[]Submission) {
				t.Helper()
				for _, subs := range all {
					out, err := r.e.Submit(r.ctx, subs)
					for _, o := range out {
						if err == nil {
							err = o.Err
						}
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			submit(many("noop", 50), many("http", 5), many("noop", 10), many("http", 5), many("noop", handoff.MostInstant+30))
			h, plain := r.instantWorker(), r.worker()
			first := h.take(2)
			if i, o := count(first); i < 50 || i > 60 || o > 2 {
				t.Errorf("the first call brought %d instant and %d other executions, not about 50 and 2", i, o)
			}
			instant, others := count(first)
			for range 20 {
				work := h.take(2)
				i, o := count(work)
				if o > 2 || len(work) > handoff.MostInstant {
					t.Errorf("a call for 2 slots brought %d instant and %d other executions", i, o)
				}
				if instant, others = instant+i, others+o; instant+others == 100+handoff.MostInstant {
					break
				}
			}
			if instant != 90+handoff.MostInstant || others != 10 {
				t.Errorf("%d instant and %d other executions were brought, not %d and 10", instant, others, 90+handoff.MostInstant)
			}
			taken := make(chan []handoff.Assignment, 1)
			go func() { taken <- h.take(1) }()
			awaitTakers(t, r.e, 1)
			r.settled()
			submit(append(many("noop", 20), many("http", 3)...))
			check("handed over as they came", <-taken, 20, 1)
			check("the rest", plain.take(9), 0, 2)
			submit(many("noop", 5))
			check("without instant kinds", plain.take(2), 2, 0)
		})
	}
}

// A claimer with room has read what is behind executions that occupy no slot: otherwise it would get new executions before waiting ones.
func TestRoomMeansThatNothingWaits(t *testing.T) {
	t.Parallel()
	lasting := Submission{Action: "http", Input: []byte(`{"url": "http://127.0.0.1:1"}`)}
	for _, waiting := range [][]Submission{
		{{Action: "noop"}, lasting}, {lasting, {Action: "noop"}}, {{Action: "noop"}, {Action: "noop"}, lasting, {Action: "noop"}},
		{lasting, {Action: "noop"}, lasting, {Action: "noop"}}, {lasting, lasting, {Action: "noop"}},
	} {
		for _, slots := range []int{1, 2, 3} {
			r := newRig(t)
			h := r.instantWorker()
			if out, err := r.e.Submit(r.ctx, waiting); err != nil || out[0].Err != nil {
				t.Fatal(err, out)
			}
			err := r.e.do(r.ctx, nil, func(ctx context.Context, tr *transaction) error {
				k := &claimer{session: h.session, state: r.e.sessions.get(h.session), queues: []string{flow.DefaultQueue}, n: slots}
				all, err := tr.take(ctx, k)
				if room := tr.dispatch.allowed[k].room; room > 0 && !all {
					t.Errorf("%d of %d slots are left, and there is more in the queue", room, slots)
				}
				clear(tr.dispatch.claimed)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
