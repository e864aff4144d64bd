package worker_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// lasts is a handler that takes a while and counts its runs, and how many ran at once.
type lasts struct {
	d               time.Duration
	runs, now, most atomic.Int32
}

func (l *lasts) Run(ctx context.Context, _ *task.Task) (json.RawMessage, error) {
	l.runs.Add(1)
	l.most.Store(max(l.most.Load(), l.now.Add(1)))
	defer l.now.Add(-1)
	select {
	case <-time.After(l.d):
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Work whose hand-off is lost begins within two seconds, in the claimed attempt.
func TestLostAnswerIsMissed(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		g.dropTakes = 1
		id := g.submit(flow.Request{Kind: flow.KindNoop})
		defer serve(t, g, worker.Options{})()
		d := g.ended(t, id)
		if d.Stage != flow.Completed || d.Attempt != 1 {
			t.Errorf("%s in attempt %d", d.Stage, d.Attempt)
		}
		if took := d.FinishedAt.Sub(d.ClaimedAt); took > 2*time.Second {
			t.Errorf("missed for %s", took)
		}
	})
}

// Work that comes late, when all slots are taken, is given back and does not count; no slot ever runs two.
func TestLateWorkWithoutASlot(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		g.dropTakes = 1
		h := &lasts{d: 10 * time.Second}
		ids := []flow.ID{g.submit(flow.Request{Kind: "x", Retry: flow.Retry{MaxAttempts: 1}}), g.submit(flow.Request{Kind: "x"})}
		defer serve(t, g, worker.Options{Slots: 1, Handlers: task.Handlers{"x": h}})()
		for _, id := range ids {
			if d := g.ended(t, id); d.Stage != flow.Completed || d.Spent() != 1 {
				t.Errorf("%s, %d attempts count", d.Stage, d.Spent())
			}
		}
		if d := g.drafts[ids[0]]; d.Attempt != 2 {
			t.Errorf("what came late ended in attempt %d", d.Attempt)
		}
		if h.runs.Load() != 2 || h.most.Load() != 1 {
			t.Errorf("%d runs, %d at once", h.runs.Load(), h.most.Load())
		}
	})
}

// repeating is a hand-off that repeats every answer after a while, also long after the attempt has ended.
type repeating struct {
	*ledger
	after time.Duration
	old   []handoff.Assignment
	came  time.Time
	again int
}

func (r *repeating) Take(ctx context.Context, session flow.ID, n int) ([]handoff.Assignment, error) {
	if r.old != nil {
		time.Sleep(time.Until(r.came.Add(r.after))) // of the bubble
		work := r.old
		r.old = nil
		r.again++
		return work, nil
	}
	work, err := r.ledger.Take(ctx, session, n)
	r.old, r.came = work, time.Now()
	return work, err
}

// An attempt that arrives a second time, while it runs or after its end, begins once.
func TestHandedOverTwice(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, handoff.Lease - time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, g *ledger) {
				h := &lasts{d: 500 * time.Millisecond}
				r := &repeating{ledger: g, after: after}
				id := g.submit(flow.Request{Kind: "x"})
				stop := serve(t, g, worker.Options{Slots: 2, Handoff: r, Handlers: task.Handlers{"x": h}})
				g.ended(t, id)
				time.Sleep(2 * handoff.Lease) // of the bubble
				stop()
				if r.again == 0 || h.runs.Load() != 1 {
					t.Errorf("handed over %d times more, run %d times", r.again, h.runs.Load())
				}
			})
		})
	}
}

// deafened is a hand-off whose server does not notice that a call of Take was given up, and still claims for it.
type deafened struct {
	*ledger
	declined []flow.AttemptID
}

func (d *deafened) Take(ctx context.Context, session flow.ID, n int) ([]handoff.Assignment, error) {
	work, err := d.ledger.Take(ctx, session, n)
	if ctx.Err() != nil && len(work) == 0 {
		go func() {
			holding, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			_, _ = d.ledger.Take(holding, session, n) // its answer reaches nobody
		}()
	}
	return work, err
}

func (d *deafened) Decline(ctx context.Context, session flow.ID, attempts []flow.AttemptID) error {
	err := d.ledger.Decline(ctx, session, attempts)
	d.update(func() { d.declined = append(d.declined, attempts...) })
	return err
}

// A worker that shuts down during an attempt gives back work that a server claims for it meanwhile.
func TestMissedWhileDraining(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		d := &deafened{ledger: g}
		h := &lasts{d: time.Minute}
		id := g.submit(flow.Request{Kind: "x"})
		stop := serve(t, g, worker.Options{Slots: 2, Grace: 2 * time.Minute, Handoff: d, Handlers: task.Handlers{"x": h}})
		g.until(t, "running", func() bool { return g.drafts[id].Stage == flow.Running })
		over := make(chan struct{})
		go func() {
			defer close(over)
			stop()
		}()
		<-time.After(2 * time.Second)
		late := g.submit(flow.Request{Kind: "x", Retry: flow.Retry{MaxAttempts: 1}})
		began := time.Now()
		g.until(t, "given back", func() bool { return len(d.declined) > 0 })
		if d.declined[0].Execution != late || time.Since(began) > 20*time.Second {
			t.Errorf("after %s %v was given back, not %s", time.Since(began), d.declined, late)
		}
		if f := g.ended(t, id); f.Stage != flow.Completed {
			t.Errorf("what ran ended as %s", f.Stage)
		}
		<-over
		if d := g.drafts[late]; h.runs.Load() != 1 || d.HandedBack != 1 {
			t.Errorf("%d runs, what came late was given back %d times", h.runs.Load(), d.HandedBack)
		}
	})
}
