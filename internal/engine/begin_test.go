package engine

import (
	"context"
	"errors"
	"testing"

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

// Of replicas that start together on an empty store each declares what the others declare, and one is faster. A store that
// is not there yet is waited for.
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

// An engine that cannot begin at all says so to everybody, instead of letting them wait.
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
