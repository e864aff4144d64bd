package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/store"
)

// difficult is a store whose first transactions fail.
type difficult struct {
	store.Store
	fail []error
}

func (d *difficult) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	if len(d.fail) > 0 {
		err := d.fail[0]
		d.fail = d.fail[1:]
		return err
	}
	return d.Store.Update(ctx, decide)
}

// Replicas that start together on an empty store each declare the same, and one is faster. A replica waits for a store that does not answer
// yet.
func TestBegin(t *testing.T) {
	for name, fail := range map[string][]error{
		"another replica was faster": {store.ErrConflict, store.ErrConflict},
		"the store is away":          {store.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(o *Options) {
				o.Store = &difficult{Store: o.Store, fail: fail}
				o.Queues = []string{"default", "gpu"}
			})
			h := r.worker()
			r.submit(Submission{Action: "noop"})
			h.take(1)
		})
	}
}

// An engine that cannot start returns the error to every caller, instead of letting them wait.
func TestCannotBegin(t *testing.T) {
	t.Parallel()
	bad := errors.New("nothing goes")
	var o Options
	newRig(t, func(of *Options) { o = *of })
	o.Store, o.Queues = &difficult{Store: o.Store, fail: []error{bad}}, []string{"default"}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	early := make(chan error, 1)
	go func() {
		_, err := e.Submit(t.Context(), []Submission{{Action: "noop"}})
		early <- err
	}()
	if err := e.Run(t.Context()); !errors.Is(err, bad) {
		t.Errorf("run: %v, want %v", err, bad)
	}
	if err := e.Closed(); !errors.Is(err, ErrClosed) || !errors.Is(err, bad) {
		t.Errorf("closed: %v", err)
	}
	if err := <-early; !errors.Is(err, ErrClosed) {
		t.Errorf("a submission before: %v, want %v", err, ErrClosed)
	}
	if _, err := e.Submit(t.Context(), []Submission{{Action: "noop"}}); !errors.Is(err, ErrClosed) {
		t.Errorf("a submission after: %v, want %v", err, ErrClosed)
	}
}

// A failed write makes the replica not ready until a write succeeds; a request that fails by itself does not.
func TestReady(t *testing.T) {
	t.Parallel()
	var d *difficult
	r := newRig(t, func(o *Options) {
		d = &difficult{Store: o.Store}
		o.Store = d
	})
	r.submit(Submission{Action: "noop"})
	if err := r.e.Ready(r.ctx); err != nil {
		t.Fatalf("at first: %v", err)
	}
	full := fmt.Errorf("%w: the disk is full", store.ErrUnavailable)
	r.e.health.failed(full)
	if err := r.e.Ready(r.ctx); !errors.Is(err, full) {
		t.Errorf("after a commit that failed: %v, want %v", err, full)
	}
	r.submit(Submission{Action: "noop"})
	if err := r.e.Ready(r.ctx); err != nil {
		t.Errorf("after one that did not: %v", err)
	}
	r.e.health.failed(errors.New("a bad value"))
	if err := r.e.Ready(r.ctx); err != nil {
		t.Errorf("after a request that spoiled its own: %v", err)
	}
	r.e.health.lastFailure.Store(&storeFailure{full, time.Now().Add(-failsFor)})
	if err := r.e.Ready(r.ctx); err != nil {
		t.Errorf("long after a commit that failed: %v", err)
	}
}

// probed is a store whose probe fails with an error.
type probed struct {
	store.Store
	err error
}

func (p *probed) Probe(context.Context) error { return p.err }

// While the store takes no writes, why says that executions wait for it. A store that takes writes again makes the replica ready at once,
// even without a submission since the failed commit.
func TestReadyByProbe(t *testing.T) {
	t.Parallel()
	full := fmt.Errorf("%w: the disk is full", store.ErrUnavailable)
	p := &probed{err: full}
	r := newRig(t, func(o *Options) {
		p.Store = o.Store
		o.Store = p
	})
	id := r.submit(Submission{Action: "noop"})
	waits := r.why(id, "no live worker").Summary
	r.e.health.failed(full)
	if err := r.e.Ready(r.ctx); !errors.Is(err, full) {
		t.Errorf("while the disk is full: %v, want %v", err, full)
	}
	r.why(id, "nothing goes on just now", "the disk is full", waits, "the store takes writes again")
	p.err = nil
	if err := r.e.Ready(r.ctx); err != nil {
		t.Errorf("when it has space again: %v", err)
	}
	if w := r.why(id); w.Summary != waits {
		t.Errorf("when it has space again it waits for %q, want %q", w.Summary, waits)
	}
}
