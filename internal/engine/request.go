package engine

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
)

// request is an op made of functions, for what is asked for rarely.
type request struct {
	ids   []flow.ID // executions to load
	run   func(context.Context, *turn) error
	aside bool // it gives nobody work
	over  chan error
}

func (r *request) want(t *turn)                              { t.wantIDs = append(t.wantIDs, r.ids...) }
func (r *request) decide(ctx context.Context, t *turn) error { return r.run(ctx, t) }
func (r *request) done(err error)                            { r.over <- err }
func (r *request) size() int                                 { return 0 }

// ask runs a decision in one of the next batches and waits for its commit. When it returns an error the decision may
// still be running, or run again: what it writes to must not be read then.
func (e *Engine) ask(ctx context.Context, ids []flow.ID, run func(context.Context, *turn) error) error {
	return e.await(ctx, &request{ids: ids, run: run, over: make(chan error, 1)})
}

// askAside is ask for what gives nobody work: whoever waits for some is not looked at over it.
func (e *Engine) askAside(ctx context.Context, run func(context.Context, *turn) error) error {
	return e.await(ctx, &request{run: run, aside: true, over: make(chan error, 1)})
}

func (e *Engine) await(ctx context.Context, r *request) error {
	if err := e.enqueue(r); err != nil {
		return err
	}
	select {
	case err := <-r.over:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
