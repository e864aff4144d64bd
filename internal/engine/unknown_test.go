package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// mute is a store whose next commit that changes an execution is not answered.
type mute struct {
	store.Store
	on atomic.Bool
}

func (m *mute) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	var tx *changing
	err := m.Store.Update(ctx, func(ctx context.Context, t store.Tx) error {
		tx = &changing{Tx: t}
		return decide(ctx, tx)
	})
	if err == nil && tx.drafts && m.on.Swap(false) {
		return fmt.Errorf("commit: %w", store.ErrUnknown)
	}
	return err
}

// changing notes whether a transaction changes executions: sweeps that find nothing do not.
type changing struct {
	store.Tx
	drafts bool
}

func (c *changing) Apply(ctx context.Context, d store.Delta) error {
	c.drafts = c.drafts || len(d.Drafts) > 0
	return c.Tx.Apply(ctx, d)
}

// What a commit has written whose answer never came is found by those who wait for it, also when no other replica looks.
func TestCommitWithoutAnswer(t *testing.T) {
	t.Parallel()
	m := &mute{}
	r := newRig(t, func(o *Options) {
		m.Store = o.Store
		o.Store = m
	})
	h := r.worker()
	dry := func() bool {
		r.e.mu.Lock()
		defer r.e.mu.Unlock()
		return r.e.claimers.queues.empty[flow.DefaultQueue]
	}
	// A worker looks in vain, and stops waiting.
	ctx, stop := context.WithCancel(r.ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if _, err := r.e.Take(ctx, h.session, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("take: %v", err)
		}
	}()
	for deadline := time.Now().Add(10 * time.Second); !dry(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("nobody has looked into the queue")
		}
	}
	stop()
	<-gone

	m.on.Store(true)
	out, err := r.e.Submit(r.ctx, []Submission{{Action: "noop"}})
	if err != nil || !errors.Is(out[0].Err, store.ErrUnknown) {
		t.Fatalf("submit: %+v, %v", out, err)
	}
	within, cancel := context.WithTimeout(r.ctx, 10*time.Second)
	defer cancel()
	work, err := r.e.Take(within, h.session, 1)
	if err != nil {
		t.Fatalf("what was submitted is not found: %v", err)
	}

	// A caller waits for its end.
	end := r.e.WaitForEnd(work[0].Execution)
	defer end.Close()
	m.on.Store(true)
	for err = errors.New("not reported"); err != nil; {
		_, err = r.e.Report(r.ctx, h.session, []flow.Report{{Execution: work[0].Execution, Attempt: work[0].Attempt, Events: []flow.Event{
			ev(&work[0], 0, flow.EvRunning, nil), ev(&work[0], 1, flow.EvCompleted, &flow.Outcome{Output: []byte("1")})}}})
		if err != nil && !errors.Is(err, store.ErrUnknown) && !errors.Is(err, handoff.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	select {
	case <-end.w.changed:
	case <-within.Done():
		t.Error("who waits for the end is not told")
	}
}
