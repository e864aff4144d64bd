package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// contested is a store in which another writer is always faster.
type contested struct {
	store.Store
	on atomic.Bool
}

func (c *contested) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	if c.on.Load() {
		return store.ErrConflict
	}
	return c.Store.Update(ctx, decide)
}

// blind is a store that cannot read definitions for a while.
type blind struct {
	store.Store
	on    atomic.Bool
	asked atomic.Int64
}

func (b *blind) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	return b.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return decide(ctx, &blindTx{tx, b}) })
}

type blindTx struct {
	store.Tx
	b *blind
}

func (t *blindTx) Definition(ctx context.Context, name string, version int) (store.Definition, error) {
	if t.b.on.Load() {
		t.b.asked.Add(1)
		return store.Definition{}, store.ErrUnavailable
	}
	return t.Tx.Definition(ctx, name, version)
}

// A workflow whose next step cannot be decided because the store does not answer takes it later; it does not fail.
func TestStepWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	var b *blind
	r := newRig(t, func(o *Options) {
		b = &blind{Store: o.Store}
		o.Store = b
	})
	r.define("name: leaf\naction: noop\n---\nname: two\ntasks:\n  a: {action: noop}\n  b: {needs: [a], action: leaf}\n")
	h := r.worker()
	id := r.submit(Submission{Action: "two"})
	a := h.take(1)[0]
	r.e.catalog.Forget()
	b.on.Store(true)
	end := []flow.Report{{Execution: a.Execution, Attempt: 1, Events: []flow.Event{
		ev(&a, 0, flow.EvRunning, nil), ev(&a, 1, flow.EvCompleted, &flow.Outcome{})}}}
	if receipts, err := r.e.Report(r.ctx, h.session, end); !errors.Is(err, handoff.ErrUnavailable) {
		t.Errorf("%+v, %v", receipts, err)
	}
	if b.asked.Load() == 0 {
		t.Error("the definition was not asked for: the test has tested nothing")
	}
	b.on.Store(false)
	if _, err := r.e.Report(r.ctx, h.session, end); err != nil {
		t.Fatal(err)
	}
	h.complete(h.take(1)[0], `1`)
	if x := r.ended(id); x.Stage != flow.Completed {
		t.Errorf("%s: %+v", x.Stage, x.Outcome)
	}
}

// A report that could not be committed because of other replicas is not refused: its worker would give up, and the attempt would never end.
func TestReportInConflict(t *testing.T) {
	t.Parallel()
	var c *contested
	r := newRig(t, func(o *Options) {
		c = &contested{Store: o.Store}
		o.Store = c
	})
	h := r.worker()
	id := r.submit(Submission{Action: "noop"})
	a := h.take(1)[0]
	end := []flow.Report{{Execution: a.Execution, Attempt: 1, Events: []flow.Event{
		ev(&a, 0, flow.EvRunning, nil), ev(&a, 1, flow.EvCompleted, &flow.Outcome{})}}}
	c.on.Store(true)
	if receipts, err := r.e.Report(r.ctx, h.session, end); !errors.Is(err, handoff.ErrUnavailable) {
		t.Errorf("%+v, %v", receipts, err)
	}
	c.on.Store(false)
	if receipts, err := r.e.Report(r.ctx, h.session, end); err != nil || receipts[0].Verdict != flow.Applied {
		t.Errorf("%+v, %v", receipts, err)
	}
	r.ended(id)
}

// Once the recovery of a session has begun, the session claims nothing more: such a claim would never be recovered.
func TestNoClaimAfterRecoveryBegan(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	r.submit(Submission{Action: "noop"})
	err := r.store.Update(r.ctx, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.EndLeases(ctx, []flow.ID{h.session})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if work, err := r.e.Take(r.ctx, h.session, 1); !errors.Is(err, handoff.ErrSessionLost) {
		t.Errorf("claimed %v, %v", work, err)
	}
}

// replica is another engine on a rig's store.
func (r *rig) replica(change ...func(*Options)) *Engine {
	r.Helper()
	o := Options{Store: r.store, Uptime: r.clock.uptime, Poll: 50 * time.Millisecond, Log: slog.New(slog.NewTextHandler(r.Output(), nil))}
	for _, c := range change {
		c(&o)
	}
	e, err := New(o)
	if err != nil {
		r.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	r.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			r.Errorf("engine: %v", err)
		}
	})
	return e
}

// A worker of one replica gets the work that another one accepts, even while its replica is busy with requests that find nothing.
func TestWorkOfAnotherReplica(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Exclusive, o.Poll = false, 50*time.Millisecond })
	other := r.replica()
	busy := r.worker("idle") // of another queue: its calls are more frequent than the poll
	session, err := other.Open(r.ctx, handoff.Session{Name: "there", Queues: []string{flow.DefaultQueue}, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(r.ctx)
	defer stop()
	go func() {
		for ctx.Err() == nil {
			short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			_, _ = other.Take(short, busy.session, 1) // there is nothing to take
			cancel()
		}
	}()
	got := make(chan error, 1)
	go func() {
		work, err := other.Take(r.ctx, session, 1)
		if err == nil && len(work) != 1 {
			err = errors.New("nothing")
		}
		got <- err
	}()
	r.submit(Submission{Action: "noop"})
	select {
	case err := <-got:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("nothing was handed out within 30 s")
	}
}

// A replica drops sessions that others have ended.
func TestForgetsSessionsThatOthersEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Exclusive = false })
	other := r.replica(func(o *Options) { o.Lease = time.Second })
	h := r.worker()
	if _, err := other.sessionOf(r.ctx, h.session); err != nil {
		t.Fatal(err)
	}
	if err := r.e.Close(r.ctx, h.session); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(30 * time.Second); other.sessions.get(h.session) != nil; {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it is still remembered")
		}
	}
}

// telling is a store with notifications from the test.
type telling struct {
	store.Store
	notes chan store.Notification
}

func (s *telling) Notifications(context.Context) (<-chan store.Notification, error) {
	return s.notes, nil
}

// A replica with notifications does not wait for the poll.
func TestHearsOtherReplicas(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Exclusive = false })
	notes := make(chan store.Notification)
	there := r.replica(func(o *Options) { o.Store, o.Poll = &telling{o.Store, notes}, time.Hour })
	session, err := there.Open(r.ctx, handoff.Session{Name: "there", Queues: []string{flow.DefaultQueue}, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan []handoff.Assignment, 1)
	go func() {
		work, _ := there.Take(r.ctx, session, 1) // an error leaves it empty
		got <- work
	}()
	for tick := time.NewTicker(time.Millisecond); ; <-tick.C { // until it has looked and found nothing
		there.mu.Lock()
		waits := len(there.claimers.waiting) == 1 && !there.claimers.queues.any([]string{flow.DefaultQueue})
		there.mu.Unlock()
		if waits {
			tick.Stop()
			break
		}
	}
	id := r.submit(Submission{Action: "noop"})
	changed, stop := there.Watch(id)
	defer stop()
	notes <- store.Notification{Queues: []string{flow.DefaultQueue}}
	if work := <-got; len(work) != 1 {
		t.Fatalf("got %v", work)
	}
	<-changed // of its own claim
	ordered := make(chan []handoff.Order, 1)
	go func() {
		orders, _ := there.Orders(r.ctx, session) // an error leaves it empty
		ordered <- orders
	}()
	if _, err := r.e.Cancel(r.ctx, id, ""); err != nil {
		t.Fatal(err)
	}
	notes <- store.Notification{Executions: []flow.ID{id}, Sessions: []flow.ID{session}}
	<-changed
	if orders := <-ordered; len(orders) != 1 {
		t.Errorf("got %v", orders)
	}
	notes <- store.Notification{All: true}
	<-changed
}
