package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// torn is a store that cannot read logs for a while.
type torn struct {
	store.Store
	on atomic.Bool
}

func (s *torn) ReadLogs(ctx context.Context, q store.LogQuery) ([]flow.LogChunk, error) {
	if s.on.Load() {
		return nil, store.ErrUnavailable
	}
	return s.Store.ReadLogs(ctx, q)
}

// If a worker cannot be told what it has inherited, it does not keep it: the next attempt opens at once and without a loss, and a worker
// that asks again gets a session.
func TestResumeBreaksOff(t *testing.T) {
	t.Parallel()
	s := &torn{}
	r := newRig(t, func(o *Options) {
		s.Store = o.Store
		o.Store = s
	})
	h := r.worker()
	kept, rest := r.submit(Submission{Action: "noop", Retry: &flow.Retry{MaxAttempts: 1}}), r.submit(Submission{Action: "noop"})
	work := h.take(2)
	for _, a := range work {
		h.report(a, ev(&a, 0, flow.EvRunning, nil))
	}
	s.on.Store(true)
	again := handoff.Session{Name: "again", Queues: []string{flow.DefaultQueue}, Slots: 1}
	keep := []flow.AttemptID{{Execution: kept, Attempt: 1}}
	if _, _, err := r.e.Resume(r.ctx, again, h.session, keep); !errors.Is(err, handoff.ErrUnavailable) {
		t.Fatalf("%v", err)
	}
	for id, spent := range map[flow.ID]int{kept: 1, rest: 2} {
		if x := r.get(id); x.Attempt != 2 || x.Spent() != spent || !x.Owner.IsZero() {
			t.Errorf("attempt %d, %d spent, held by %s", x.Attempt, x.Spent(), x.Owner)
		}
	}
	s.on.Store(false)
	id, work, err := r.e.Resume(r.ctx, again, h.session, keep)
	if err != nil || len(work) != 0 {
		t.Fatalf("%+v, %v", work, err)
	}
	next := &hand{r, id}
	r.pass(0)
	for n := 0; n < 2; {
		for _, a := range next.take(2 - n) {
			next.complete(a, `1`)
			n++
		}
	}
	live, err := r.store.LiveSessions(r.ctx)
	if err != nil || len(live) != 1 {
		t.Errorf("%d sessions, %v", len(live), err)
	}
}

// unheard is a store whose commits that open a session get no answer for a while.
type unheard struct {
	store.Store
	on atomic.Bool
}

func (u *unheard) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	opens := false
	err := u.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		opens = false
		return decide(ctx, opening{tx, &opens})
	})
	if err == nil && opens && u.on.Load() {
		return fmt.Errorf("commit: %w", store.ErrUnknown)
	}
	return err
}

type opening struct {
	store.Tx
	seen *bool
}

func (o opening) OpenSession(ctx context.Context, s store.Session, lease time.Duration) error {
	*o.seen = true
	return o.Tx.OpenSession(ctx, s, lease)
}

// A commit without an answer may have opened a session that no worker knows: it is recovered with its lease, and meanwhile a worker that
// asks again works.
func TestResumeWithoutAnswer(t *testing.T) {
	t.Parallel()
	u := &unheard{}
	r := newRig(t, func(o *Options) {
		u.Store = o.Store
		o.Store = u
	})
	h := r.worker()
	id := r.submit(Submission{Action: "noop"})
	a := h.take(1)[0]
	h.report(a, ev(&a, 0, flow.EvRunning, nil))
	again := handoff.Session{Name: "again", Queues: []string{flow.DefaultQueue}, Slots: 1}
	keep := []flow.AttemptID{{Execution: id, Attempt: 1}}
	u.on.Store(true)
	if _, work, err := r.e.Resume(r.ctx, again, h.session, keep); !errors.Is(err, handoff.ErrUnavailable) || r.get(id).Owner == h.session {
		t.Fatalf("%+v, %v", work, err)
	}
	u.on.Store(false)
	if _, work, err := r.e.Resume(r.ctx, again, h.session, keep); err != nil || len(work) != 0 {
		t.Fatalf("%+v, %v", work, err)
	}
	if rc := h.complete(a, `1`); rc.Verdict == flow.Applied {
		t.Errorf("the dead process was heard: %+v", rc)
	}
	r.lapse(handoff.Lease)
	if err := r.e.recoverExpired(r.ctx); err != nil {
		t.Fatal(err)
	}
	if x := r.get(id); x.Attempt != 2 || !x.Owner.IsZero() {
		t.Errorf("attempt %d, held by %s", x.Attempt, x.Owner)
	}
}

// abandoned is a store in whose next transaction the caller of a session gives up, before or after the decision.
type abandoned struct {
	store.Store
	mu            sync.Mutex
	before, after func()
}

func (s *abandoned) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	s.mu.Lock()
	before, after := s.before, s.after
	s.before, s.after = nil, nil
	s.mu.Unlock()
	if before != nil {
		before()
	}
	return s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		err := decide(ctx, tx)
		if after != nil {
			after()
		}
		return err
	})
}

// No session stays open after its caller has given up: neither if the caller gave up before the session was written, nor after.
func TestOpenIsAbandoned(t *testing.T) {
	t.Parallel()
	s := &abandoned{}
	r := newRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
	r.worker() // from here on the queue is known, so opening a session is one transaction
	for what, set := range map[string]func(func()){
		"before it is written": func(giveUp func()) { s.before = giveUp }, "after it is written": func(giveUp func()) { s.after = giveUp },
	} {
		ctx, giveUp := context.WithCancel(r.ctx)
		s.mu.Lock()
		set(giveUp)
		s.mu.Unlock()
		if _, err := r.e.Open(ctx, handoff.Session{Name: "abandoned", Queues: []string{flow.DefaultQueue}, Slots: 1}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := r.e.now(r.ctx); err != nil { // after the transaction that decided about it
			t.Fatal(err)
		}
		r.within(patience, what+": a session stays", func() bool {
			live, err := r.store.LiveSessions(r.ctx)
			if err != nil {
				t.Fatal(err)
			}
			return !slices.ContainsFunc(live, func(x store.Session) bool { return x.Name == "abandoned" })
		})
	}
}
