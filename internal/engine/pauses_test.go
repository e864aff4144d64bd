package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

func (r *rig) pause(kind store.PauseKind, name string, o PauseOrder) store.Pause {
	r.Helper()
	p, err := r.e.PauseWork(r.ctx, kind, name, o)
	if err != nil {
		r.Fatal(err)
	}
	return p
}

func (r *rig) resume(kind store.PauseKind, name string) store.Pause {
	r.Helper()
	p, err := r.e.ResumeWork(r.ctx, kind, name, PauseOrder{By: "ann"})
	if err != nil {
		r.Fatal(err)
	}
	return p
}

// begin calls Take, and returns a channel with its answer.
func (h *hand) begin(n int) <-chan []handoff.Assignment {
	got := make(chan []handoff.Assignment, 1)
	go func() {
		work, err := h.e.Take(h.ctx, h.session, n)
		if err != nil && h.ctx.Err() == nil {
			h.Errorf("take: %v", err)
		}
		got <- work
	}()
	h.until(func() bool {
		h.e.mu.Lock()
		defer h.e.mu.Unlock()
		return len(h.e.claimers.waiting) > 0 || len(got) > 0
	})
	return got
}

// Nothing is claimed from a paused queue: no waiting execution, and no new one for which a worker waits. Other queues and running attempts
// continue, and waiting workers get the work when the queue is resumed.
func TestPausedQueue(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		h := r.worker(flow.DefaultQueue, "other")
		running := r.submit(Submission{Action: "noop"})
		a := h.take(1)[0]
		before := r.submit(Submission{Action: "noop"})
		p := r.pause(store.PausedQueue, flow.DefaultQueue, PauseOrder{By: "ann", Reason: "the disks are full"})
		if p.Generation != 1 || !p.Paused || !p.Until.IsZero() {
			t.Errorf("%+v", p)
		}
		h.complete(a, `1`)
		r.ended(running)
		got := h.begin(5)
		fresh := r.submit(Submission{Action: "noop"})
		r.settled()
		if len(got) > 0 {
			t.Fatalf("claimed from a paused queue: %+v", <-got)
		}
		for _, id := range []flow.ID{before, fresh} {
			if x := r.get(id); x.Place != flow.Ready {
				t.Errorf("%s is %s", id, x.Place)
			}
			r.why(id, `queue "default" is paused since`, "by ann", "(the disks are full)", "in line", "pawl resume queue default")
		}
		other := r.submit(Submission{Action: "noop", Queue: "other"})
		if work := <-got; len(work) != 1 || work[0].Execution != other {
			t.Fatalf("of the other queue: %+v", work)
		}
		got = h.begin(5)
		r.settled()
		r.resume(store.PausedQueue, flow.DefaultQueue)
		work := <-got
		if len(work) != 2 || work[0].Execution != before || work[1].Execution != fresh {
			t.Errorf("after it was resumed: %+v", work)
		}
		history, err := r.store.PauseHistory(r.ctx, store.PausedQueue, flow.DefaultQueue, 0, 10)
		if err != nil || len(history) != 2 || history[0].By != "ann" || history[0].Paused {
			t.Errorf("%+v, %v", history, err)
		}
		if again := r.resume(store.PausedQueue, flow.DefaultQueue); again.Generation != 2 {
			t.Errorf("resumed twice: %+v", again)
		}
	})
}

// A pause with a duration ends by itself: no claim comes before its end, and a waiting one comes at it.
func TestPauseForAWhile(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		h := r.worker()
		p := r.pause(store.PausedQueue, flow.DefaultQueue, PauseOrder{For: 3 * time.Second}) // it is queried before its end, some commits later
		got := h.begin(1)
		id := r.submit(Submission{Action: "noop"})
		r.settled()
		w := r.why(id, "until "+p.Until.Format(time.RFC3339)[:10])
		if !w.Until.Equal(p.Until) || w.Waiting != "paused" {
			t.Errorf("%+v", w)
		}
		work := <-got
		late := r.get(work[0].Execution).ClaimedAt.Sub(p.Until)
		if late < 0 || late > 5*time.Second {
			t.Errorf("claimed %s after the pause", late)
		}
		if all, err := r.e.Paused(r.ctx); err != nil || len(all) > 0 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// A paused worker gets nothing new, and another worker of its queue gets everything.
func TestPausedWorker(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		h := r.worker()
		running := r.submit(Submission{Action: "noop"})
		a := h.take(1)[0]
		r.pause(store.PausedWorker, "hand", PauseOrder{Reason: "its machine is being replaced"})
		got := h.begin(5)
		id := r.submit(Submission{Action: "noop"})
		r.settled()
		r.why(id, `worker "hand" is paused since`, "no other worker serves", "pawl resume worker hand")
		h.complete(a, `1`)
		r.ended(running)

		session, err := r.e.Open(r.ctx, handoff.Session{Name: "foot", Queues: []string{flow.DefaultQueue}, Slots: 1})
		if err != nil {
			t.Fatal(err)
		}
		if work, err := r.e.Take(r.ctx, session, 5); err != nil || len(work) != 1 || work[0].Execution != id {
			t.Errorf("%+v, %v", work, err)
		}
		next := r.submit(Submission{Action: "noop"})
		r.settled()
		r.why(next, "1st in queue", `worker "hand" is paused`, "its machine is being replaced")
		if len(got) > 0 {
			t.Errorf("a paused worker got %+v", <-got)
		}
		r.resume(store.PausedWorker, "hand")
		if work := <-got; len(work) != 1 || work[0].Execution != next {
			t.Errorf("after it was resumed: %+v", work)
		}
	})
}

// A pause of something that cannot be paused is refused with the reason.
func TestPauseOfNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.worker("gpus")
	for _, c := range []struct {
		of   store.PauseKind
		name string
		o    PauseOrder
		say  string
	}{
		{store.PausedQueue, "gpu", PauseOrder{}, `did you mean "gpus"?`},
		{store.PausedWorker, "hend", PauseOrder{}, `did you mean "hand"?`},
		{store.PausedWorker, "nobody", PauseOrder{}, "pawl get workers"},
		{store.PausedQueue, "gpus", PauseOrder{For: -time.Second}, "until it is resumed"},
		{store.PausedQueue, "gpus", PauseOrder{Reason: "a\x00"}, "reason"},
		{store.PausedQueue, "gpus", PauseOrder{By: strings.Repeat("b", 300)}, "by"},
	} {
		_, err := r.e.PauseWork(r.ctx, c.of, c.name, c.o)
		var bad *fault.Invalid
		if !errors.As(err, &bad) && !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s %q: %v does not say %q", c.of, c.name, err, c.say)
		}
	}
	if _, err := r.e.ResumeWork(r.ctx, store.PausedQueue, "gpu", PauseOrder{}); err == nil {
		t.Error("a queue that there is not was resumed")
	}
}

// pair is two engines on one store, each with two hands that complete everything.
type pair struct {
	engines []*Engine
	done    atomic.Int64 // executions that were completed
	stop    func()
}

func (r *rig) pair() *pair {
	r.Helper()
	other := r.replica(func(o *Options) {
		o.Uptime, o.Committers = nil, 2
		if r.again != nil {
			o.Store = r.again()
		}
	})
	two := &pair{engines: []*Engine{r.e, other}}
	ctx, cancel := context.WithCancel(r.ctx)
	var hands sync.WaitGroup
	two.stop = func() { cancel(); hands.Wait() }
	r.Cleanup(two.stop)
	for i := range 4 {
		e := two.engines[i%2]
		session, err := e.Open(ctx, handoff.Session{Name: fmt.Sprint("hand", i), Queues: []string{flow.DefaultQueue}, Slots: 4})
		if err != nil {
			r.Fatal(err)
		}
		hands.Go(func() {
			for {
				work, err := e.Take(ctx, session, 4)
				if err != nil {
					return
				}
				var reports []flow.Report
				for j := range work {
					a := &work[j]
					reports = append(reports, flow.Report{Execution: a.Execution, Attempt: a.Attempt, Events: []flow.Event{
						ev(a, 0, flow.EvRunning, nil), ev(a, 1, flow.EvCompleted, &flow.Outcome{})}})
				}
				if _, err := e.Report(ctx, session, reports); err != nil && ctx.Err() == nil {
					r.Errorf("report: %v", err)
					return
				}
				two.done.Add(int64(len(work)))
			}
		})
	}
	return two
}

// Two servers claim from a queue that either of them pauses and resumes. Between the start and the end of a pause, by the database's clock,
// nothing is claimed, and after it everything completes.
func TestPausedAmongReplicas(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		two := r.pair()
		const rounds = 20
		var ids [2][]flow.ID
		var submitting sync.WaitGroup
		for i, e := range two.engines {
			submitting.Go(func() {
				for range 10 * rounds {
					out, err := e.Submit(r.ctx, []Submission{{Action: "noop"}})
					if err != nil || out[0].Err != nil {
						t.Errorf("%+v, %v", out, err)
						return
					}
					ids[i] = append(ids[i], out[0].Execution)
				}
			})
		}
		var spans []struct{ from, to time.Time }
		for i := range rounds {
			e := two.engines[i%2]
			p, err := e.PauseWork(r.ctx, store.PausedQueue, flow.DefaultQueue, PauseOrder{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.opts.Store.LiveSessions(r.ctx); err != nil { // some time passes
				t.Fatal(err)
			}
			q, err := two.engines[(i+1)%2].ResumeWork(r.ctx, store.PausedQueue, flow.DefaultQueue, PauseOrder{})
			if err != nil {
				t.Fatal(err)
			}
			spans = append(spans, struct{ from, to time.Time }{p.At, q.At})
		}
		submitting.Wait()
		r.until(func() bool { return int(two.done.Load()) == len(ids[0])+len(ids[1]) })
		two.stop()
		for _, id := range append(ids[0], ids[1]...) {
			at := r.get(id).ClaimedAt
			for _, s := range spans {
				if at.After(s.from) && at.Before(s.to) {
					t.Errorf("%s was claimed at %s, while the queue was paused from %s to %s", id, at, s.from, s.to)
				}
			}
		}
	}, func(o *Options) { o.Exclusive, o.Poll = false, 50*time.Millisecond })
}

// A server that gets only notifications wakes its workers at once when another one resumes a queue, and obeys a pause of which it was not
// notified.
func TestPausedElsewhere(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, func(o *Options) { o.Poll = time.Hour })
	other := r.replica(func(o *Options) { o.Uptime, o.Poll, o.Store = nil, time.Hour, r.again() })
	session, err := other.Open(r.ctx, handoff.Session{Name: "there", Queues: []string{flow.DefaultQueue}, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	there := (&hand{&rig{TB: t, ctx: r.ctx, e: other, store: r.store}, session}).begin(1)
	r.pause(store.PausedQueue, flow.DefaultQueue, PauseOrder{})
	out, err := other.Submit(r.ctx, []Submission{{Action: "noop"}})
	if err != nil || out[0].Err != nil {
		t.Fatal(out, err)
	}
	r.until(func() bool { return other.pauses.latest.Load().generation == 1 })
	if x := r.get(out[0].Execution); x.Place != flow.Ready || len(there) > 0 {
		t.Errorf("it is %s", x.Place)
	}
	r.resume(store.PausedQueue, flow.DefaultQueue)
	if work := <-there; len(work) != 1 || work[0].Execution != out[0].Execution {
		t.Errorf("%+v", work)
	}
}
