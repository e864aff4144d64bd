package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// asking counts the reads and transactions of an engine's loops. It can fail the read that finds pending work.
type asking struct {
	store.Store
	fails bool

	mu      sync.Mutex
	pending int
	others  map[string]int // since pending was reset
}

func (s *asking) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.others[what]++
}

func (s *asking) Pending(ctx context.Context, now time.Time) (store.Pending, error) {
	s.mu.Lock()
	s.pending++
	s.mu.Unlock()
	if s.fails {
		return store.Pending{}, store.ErrUnavailable
	}
	return s.Store.Pending(ctx, now)
}

func (s *asking) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	s.count("Update")
	return s.Store.Update(ctx, decide)
}

func (s *asking) NewSignals(ctx context.Context, now time.Time, after store.SignalPlace, n int) ([]flow.Signal, error) {
	s.count("NewSignals")
	return s.Store.NewSignals(ctx, now, after, n)
}

func (s *asking) UnscannedWaits(ctx context.Context, now time.Time, after flow.ID, n int) ([]flow.Wait, error) {
	s.count("UnlookedWaits")
	return s.Store.UnscannedWaits(ctx, now, after, n)
}

func (s *asking) UncorrelatedSignals(ctx context.Context, now time.Time, after int64, n int) ([]flow.Signal, error) {
	s.count("UnmetSignals")
	return s.Store.UncorrelatedSignals(ctx, now, after, n)
}

func (s *asking) DueWindows(ctx context.Context, now time.Time, n int) ([]store.Window, time.Time, error) {
	s.count("DueWindows")
	return s.Store.DueWindows(ctx, now, n)
}

func (s *asking) DueSchedules(ctx context.Context, now time.Time, n int) ([]store.Schedule, time.Time, error) {
	s.count("DueSchedules")
	return s.Store.DueSchedules(ctx, now, n)
}

func (s *asking) Generation(ctx context.Context) (int64, error) {
	s.count("Generation")
	return s.Store.Generation(ctx)
}

// looks waits for n reads of pending work from now on.
func (s *asking) looks(r *rig, n int) map[string]int {
	r.Helper()
	s.mu.Lock()
	s.pending, s.others = 0, map[string]int{}
	s.mu.Unlock()
	r.within(time.Minute, "there was no look", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.pending >= n
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.others
}

// An idle engine makes one query to the store: whether there is work. Schedules and windows of later times, and open
// questions and waits, do not change that.
func TestIdleLoopsRest(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		s := &asking{others: map[string]int{}}
		r := newRig(t, func(o *Options) {
			s.Store, o.Store, o.Lease, o.Exclusive, o.Poll = o.Store, s, time.Second, alone, time.Hour
		})
		r.apply("kind: schedule\nname: s\nevery: 24h\nrun: {action: noop}\n---\n" + fmt.Sprintf(debounced, "10h", "12h", "last"))
		r.emit(Emission{Trigger: "t", Subject: "x"})
		r.submit(Submission{Action: "noop", NotBefore: r.clock.now().Add(time.Hour)})
		r.apply("kind: trigger\nname: paid\nwaits: true\n")
		r.submit(Submission{Action: "wait", Input: json.RawMessage(`{"signal":"paid","subject":"x","timeout":"1d"}`)})
		r.submit(Submission{Action: "ask", Input: json.RawMessage(`{"title":"Release?","form":{"type":"boolean"},"remind":["1h"],"expires":"1d"}`)})
		s.looks(r, 3) // work begun meanwhile is done
		if others := s.looks(r, 6); len(others) > 0 {
			t.Errorf("alone %t: beside six looks: %v", alone, others)
		}
	}
}

// The work of a process that died is found, even by a replica whose reads of pending work fail.
func TestWhatOthersLeaveIsFound(t *testing.T) {
	for say, fails := range map[string]bool{"told": false, "by each loop": true} {
		t.Run(say, func(t *testing.T) {
			t.Parallel()
			s := &asking{others: map[string]int{}, fails: fails}
			r := newRig(t, func(o *Options) { s.Store, o.Store, o.Lease = o.Store, s, time.Second })
			r.apply("kind: rule\nname: a\non: t\nrun: {action: noop}\n---\nkind: schedule\nname: s\nevery: 24h\nrun: {action: noop}\n")
			h := r.worker()
			lost := r.submit(Submission{Action: "noop", Retry: &flow.Retry{MaxAttempts: 2}})
			h.take(1)
			s.looks(r, 2) // the loops are idle
			kept := flow.Signal{ID: r.e.opts.NewID(), Number: 1 << 40, Trigger: "t", Source: flow.SourceAPI, At: r.clock.now(), State: flow.SignalNew, Data: json.RawMessage(`{}`), Hash: [32]byte{1},
				SignalDetail: flow.SignalDetail{Generation: r.e.rules.current.Load().Generation}}
			var fired time.Time
			late := flow.Submit(r.e.opts.NewID(), flow.Request{Action: "late", Kind: flow.KindSleep, Queue: flow.DefaultQueue, CreatedAt: r.clock.now(), NotBefore: r.clock.now(), Input: json.RawMessage(`{"duration":"1ms"}`)})
			err := r.store.Update(r.ctx, func(ctx context.Context, tx store.Tx) error { // as by another replica: no loop is woken
				all, err := tx.LockSchedules(ctx, []string{"s"}, false)
				if err != nil {
					return err
				}
				fired = all[0].Next
				all[0].Due, all[0].Next = r.clock.now(), all[0].Next.Add(-24*time.Hour)
				if err := tx.Apply(ctx, store.Delta{Schedules: store.ScheduleRows{Written: all}}); err != nil {
					return err
				}
				return tx.Apply(ctx, store.Delta{Signals: store.SignalRows{New: []flow.Signal{kept}}, Drafts: []*flow.Draft{late}})
			})
			if err != nil {
				t.Fatal(err)
			}
			r.within(patience, "the signal was not matched", func() bool { return r.signal(kept.ID).State == flow.SignalMatched })
			r.within(patience, "the schedule was not fired", func() bool {
				k, err := r.store.Schedule(r.ctx, "s")
				return err == nil && !k.Next.Before(fired)
			})
			r.within(patience, "what is due was not begun", func() bool { return r.get(late.ID).Stage != flow.Requested })
			r.within(patience, "the lost worker was not noticed", func() bool { return r.get(lost).Owner != h.session })
		})
	}
}

// The pauses of the loops that remove old rows grow while there are none, and are short again afterwards.
func TestTidyingRests(t *testing.T) {
	t.Parallel()
	p := newTidying(time.Minute, 5*time.Minute)
	for i, c := range []struct {
		removed bool
		want    time.Duration
	}{{false, 2 * time.Minute}, {false, 4 * time.Minute}, {false, 5 * time.Minute}, {false, 5 * time.Minute}, {true, time.Minute}, {false, 2 * time.Minute}} {
		if got := p.next(c.removed); got != c.want {
			t.Errorf("pause %d: %s, want %s", i, got, c.want)
		}
	}
	if got := newTidying(time.Second, 0).next(false); got != time.Second {
		t.Errorf("one that must not grow: %s", got)
	}
}

// away is a store that takes no writes for a while. The test plays its watchPending.
type away struct {
	store.Store
	on      atomic.Bool
	updates atomic.Int64
	over    chan struct{}
}

func (s *away) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	defer s.updates.Add(1)
	if s.on.Load() {
		return store.ErrUnavailable
	}
	return s.Store.Update(ctx, decide)
}

func (s *away) Pending(context.Context, time.Time) (store.Pending, error) {
	<-s.over
	return store.Pending{}, store.ErrUnavailable
}

// round does what a read of the store does that has found expired sessions.
func (s *away) round(r *rig) {
	r.Helper()
	at, err := inBatch(r.ctx, r.e, nil, func(ctx context.Context, t *transaction) (clockReading, error) { return t.readClock(ctx) })
	if err != nil {
		r.Fatal(err)
	}
	before := s.updates.Load()
	r.e.found <- found{Pending: store.Pending{Now: at.database, Expired: true}, at: at}
	r.within(patience, "there was no round", func() bool { return len(r.e.found) == 0 && s.updates.Load() > before })
}

// However many sessions are lost at once, one read recovers their executions.
func TestManySessionsLost(t *testing.T) {
	t.Parallel()
	s := &away{over: make(chan struct{})}
	r := newRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
	t.Cleanup(func() { close(s.over) })
	var ids []flow.ID
	for range 2*expiredPage + 1 {
		h := r.worker()
		ids = append(ids, r.submit(Submission{Action: "noop", Retry: &flow.Retry{MaxAttempts: 2}}))
		a := h.take(1)[0]
		h.report(a, ev(&a, 0, flow.EvRunning, nil)) // else it would be taken back as never begun
	}
	r.lapse(handoff.Lease + time.Second)
	s.round(r)
	for _, id := range ids {
		r.within(time.Minute, "it was not recovered", func() bool { return r.get(id).Attempt == 2 })
	}
}

// After failed commits, the first round of the recovery takes no attempt back: reports of attempts finished meanwhile
// may be under way.
func TestRecoveryAfterFailedCommits(t *testing.T) {
	t.Parallel()
	s := &away{over: make(chan struct{})}
	r := newRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
	t.Cleanup(func() { close(s.over) })
	h := r.worker()
	id := r.submit(Submission{Action: "noop", Retry: &flow.Retry{MaxAttempts: 2}})
	a := h.take(1)[0]
	h.report(a, ev(&a, 0, flow.EvRunning, nil))
	r.lapse(handoff.Lease + time.Second)
	s.on.Store(true)
	if _, err := r.e.now(r.ctx); err == nil {
		t.Fatal("the store takes writes")
	}
	s.on.Store(false)
	round := func() { s.round(r) }
	round()
	if x := r.get(id); x.Attempt != 1 || x.Owner != h.session {
		t.Errorf("recovered at once: attempt %d, held by %s", x.Attempt, x.Owner)
	}
	round()
	r.within(patience, "it was not recovered", func() bool { return r.get(id).Attempt == 2 })
}
