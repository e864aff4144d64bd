package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// pausing checks pauses: added, replaced, ended, and read as the current ones and as the history.
func pausing(b *bench) {
	standing := func() []store.Pause {
		all, last, err := b.s.Pauses(b.ctx())
		must(b, err)
		b.update(func(ctx context.Context, t store.Tx) error {
			own, n, err := t.Pauses(ctx)
			equal(b, "as a transaction sees them", own, all)
			equal(b, "generation of a transaction", n, last)
			return err
		})
		return all
	}
	change := func(of store.PauseKind, name string, decide func(time.Time, store.Pause) *store.Pause) store.Pause {
		p, err := b.s.ChangePause(b.ctx(), of, name, decide)
		must(b, err)
		return p
	}
	session := store.Session{ID: b.id(), Name: "w", Queues: []string{"default"}, Slots: 1}
	generation := func() (n int64) {
		b.update(func(ctx context.Context, t store.Tx) error {
			s, _, err := t.LockSession(ctx, session.ID)
			n = s.Pauses
			return err
		})
		return n
	}
	b.update(func(ctx context.Context, t store.Tx) error { return t.OpenSession(ctx, session, time.Hour) })
	equal(b, "without any", len(standing()), 0)
	equal(b, "generation without any", generation(), int64(0))

	first := change(store.PausedQueue, "gpu", func(now time.Time, last store.Pause) *store.Pause {
		equal(b, "the first finds", last, store.Pause{})
		return &store.Pause{Paused: true, At: now, By: "ann", Reason: "drivers: é"}
	})
	if first.Generation != 1 || first.Of != store.PausedQueue || first.Name != "gpu" || first.At.IsZero() {
		b.Errorf("the first: %+v", first)
	}
	equal(b, "one", standing(), []store.Pause{first})
	equal(b, "generation", generation(), int64(1))
	same := change(store.PausedQueue, "gpu", func(_ time.Time, last store.Pause) *store.Pause {
		equal(b, "the second finds", last, first)
		return nil
	})
	equal(b, "not changed", same, first)

	worker := change(store.PausedWorker, "gpu", func(now time.Time, last store.Pause) *store.Pause {
		equal(b, "a worker of that name", last, store.Pause{})
		return &store.Pause{Paused: true, At: now, Until: now.Add(time.Microsecond), By: "bob"}
	})
	longer := change(store.PausedQueue, "gpu", func(now time.Time, last store.Pause) *store.Pause {
		return &store.Pause{Paused: true, At: now, Until: now.Add(time.Hour), By: "cy", Reason: last.Reason}
	})
	equal(b, "replaced, and one that is over", standing(), []store.Pause{longer, worker})
	over := change(store.PausedQueue, "gpu", func(now time.Time, _ store.Pause) *store.Pause { return &store.Pause{At: now, By: "ann"} })
	equal(b, "resumed", standing(), []store.Pause{worker})
	equal(b, "the last generation", generation(), int64(4))
	if _, err := b.s.ChangePause(b.ctx(), store.PausedQueue, "bad", func(now time.Time, _ store.Pause) *store.Pause {
		return &store.Pause{Paused: true, At: now, Until: now}
	}); err == nil {
		b.Error("a pause that is over when it begins was stored")
	}

	for _, c := range []struct {
		of    store.PauseKind
		name  string
		below int64
		n     int
		want  []store.Pause
	}{
		{0, "", 0, 10, []store.Pause{over, longer, worker, first}},
		{0, "", 4, 2, []store.Pause{longer, worker}},
		{store.PausedQueue, "", 0, 10, []store.Pause{over, longer, first}},
		{store.PausedQueue, "gpu", 3, 10, []store.Pause{first}},
		{store.PausedWorker, "other", 0, 10, nil},
		{store.PausedAction, "", 0, 10, nil},
	} {
		got, err := b.s.PauseHistory(b.ctx(), c.of, c.name, c.below, c.n)
		must(b, err)
		equal(b, "history", got, c.want)
	}
	action := change(store.PausedAction, "gpu", func(now time.Time, last store.Pause) *store.Pause {
		equal(b, "an action of that name", last, store.Pause{})
		return &store.Pause{Paused: true, At: now, By: "di"}
	})
	equal(b, "with an action", standing(), []store.Pause{worker, action})
	b.update(func(ctx context.Context, t store.Tx) error {
		last, err := t.LastPause(ctx)
		equal(b, "the latest, before a session is locked", last, action.Generation)
		return err
	})
	b.update(func(ctx context.Context, t store.Tx) error {
		if x, ok := t.(store.Expecter); ok {
			x.ExpectLastPause()
		}
		if _, _, err := t.LockSession(ctx, session.ID); err != nil {
			return err
		}
		last, err := t.LastPause(ctx)
		equal(b, "the latest, behind a session", last, action.Generation)
		return err
	})
}

// racingPauses checks that changes of pauses are exclusive: after the answer to one, no running transaction has locked a session without
// knowing about it, and none has an earlier clock.
func racingPauses(b *bench) {
	ids := []flow.ID{b.id(), b.id()}
	b.update(func(ctx context.Context, t store.Tx) error {
		for _, id := range ids {
			if err := t.OpenSession(ctx, store.Session{ID: id, Name: "w", Queues: []string{"default"}, Slots: 1}, time.Hour); err != nil {
				return err
			}
		}
		return nil
	})
	var answered, at atomic.Int64 // the latest generation, and its time
	ctx, stop := context.WithCancel(b.ctx())
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				err := b.s.Update(ctx, func(ctx context.Context, t store.Tx) error {
					after := at.Load()
					now, err := t.Now(ctx)
					if err != nil {
						return err
					}
					s, _, err := t.LockSession(ctx, ids[i%2])
					if err != nil {
						return err
					}
					if _, err = t.Tickets(ctx, 1); err != nil { // another reason to wait
						return err
					}
					if known := answered.Load(); known > s.Pauses {
						b.Errorf("generation %d has been answered while a transaction goes by %d", known, s.Pauses)
					}
					if now.UnixMicro() < after {
						b.Errorf("a transaction that began after a pause has the time %s, before it", now)
					}
					return nil
				})
				if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrConflict) {
					b.Error(err)
				}
			}
		})
	}
	var changing sync.WaitGroup
	for i := range 2 {
		changing.Go(func() {
			for range 20 {
				p, err := b.s.ChangePause(ctx, store.PausedQueue, []string{"a", "b"}[i], func(now time.Time, last store.Pause) *store.Pause {
					return &store.Pause{Paused: !last.Paused, At: now}
				})
				if err != nil {
					b.Error(err)
					return
				}
				for known := answered.Load(); known < p.Generation && !answered.CompareAndSwap(known, p.Generation); known = answered.Load() {
				}
				for t := at.Load(); t < p.At.UnixMicro() && !at.CompareAndSwap(t, p.At.UnixMicro()); t = at.Load() {
				}
			}
		})
	}
	changing.Wait()
	stop()
	wg.Wait()
	equal(b, "generations", answered.Load(), int64(40))
}

// actionPauseViolations plants attempts of a paused action, by a worker and by the engine, together with attempts before and after the
// pause, of other actions, and rejected ones.
func actionPauseViolations(b *bench) {
	begun := func(at time.Time, action string, kind flow.Kind) flow.ID {
		d := b.submit(func(r *flow.Request) { r.Action, r.Kind, r.CreatedAt = action, kind, at })
		must(b, d.Schedule(int64(b.made), at))
		if !kind.ByEngine() {
			must(b, d.Claim(flow.ID{1}, "w", at))
		}
		b.apply(d)
		return d.ID
	}
	change := func(paused bool, at time.Time) {
		_, err := b.s.ChangePause(b.ctx(), store.PausedAction, "deploy", func(time.Time, store.Pause) *store.Pause { return &store.Pause{Paused: paused, At: at} })
		must(b, err)
	}
	from := b.now
	change(true, from)
	change(false, from.Add(time.Hour))
	during := from.Add(time.Second)
	begun(from, "deploy", flow.KindNoop)
	begun(from.Add(time.Hour), "deploy", flow.KindWorkflow)
	begun(during, "default", flow.KindNoop)
	bad := b.submit(func(r *flow.Request) { r.Action, r.Kind, r.CreatedAt = "deploy", flow.KindWorkflow, from })
	must(b, bad.Reject(&flow.Error{Code: "invalid_input"}, during))
	b.apply(bad)
	held := b.submit(func(r *flow.Request) {
		r.Action, r.Kind, r.CreatedAt, r.Queue = "deploy", flow.KindWorkflow, from, flow.SuspendedKey("default", "deploy")
	})
	must(b, held.EnqueueSuspended(int64(b.made), during))
	b.apply(held)
	b.clean()
	want := map[flow.ID]bool{begun(during, "deploy", flow.KindNoop): true, begun(during, "deploy", flow.KindWorkflow): true}
	b.begunInPause(want)
}

// begunInPause checks that the store reports exactly these executions as begun in a pause.
func (b *bench) begunInPause(want map[flow.ID]bool) {
	b.Helper()
	found, err := b.s.Check(b.ctx())
	must(b, err)
	for _, v := range found {
		if v.Invariant != 58 || !want[v.Execution] {
			b.Errorf("found %+v", v)
		}
		delete(want, v.Execution)
	}
	equal(b, "not found", len(want), 0)
}

// pauseViolations plants a claim from a paused queue, between claims before and after the pause.
func pauseViolations(b *bench) {
	claimed := func(at time.Time, queue string) flow.ID {
		d := b.submit(func(r *flow.Request) { r.Queue, r.CreatedAt = queue, at })
		must(b, d.Schedule(int64(b.made), at))
		must(b, d.Claim(flow.ID{1}, "w", at))
		b.apply(d)
		return d.ID
	}
	change := func(paused bool, span time.Duration) time.Time {
		p, err := b.s.ChangePause(b.ctx(), store.PausedQueue, "gpu", func(_ time.Time, last store.Pause) *store.Pause {
			now := last.At.Add(time.Hour)
			if last.At.IsZero() {
				now = b.now
			}
			next := &store.Pause{Paused: paused, At: now}
			if span > 0 {
				next.Until = now.Add(span)
			}
			return next
		})
		must(b, err)
		return p.At
	}
	begun := change(true, 0)
	change(false, 0)
	short := change(true, time.Minute)
	claimed(begun, "gpu")
	claimed(begun.Add(time.Minute), "default")
	claimed(begun.Add(time.Hour), "gpu")
	claimed(short.Add(time.Minute), "gpu")
	own := b.submit(func(r *flow.Request) { r.Queue, r.CreatedAt = "gpu", begun })
	must(b, own.Reject(&flow.Error{Code: "invalid_input"}, begun.Add(time.Second)))
	b.apply(own)
	b.clean()
	want := map[flow.ID]bool{claimed(begun.Add(time.Second), "gpu@docker"): true, claimed(short.Add(time.Second), "gpu"): true}
	b.begunInPause(want)
}
