package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
)

// Retry submits the request of a finished execution once more, as a new execution, which names the old one in RetryOf; the old one never
// changes. With an idempotency key the same call again returns the same new execution; a key of another call is ErrIdempotencyMismatch.
func (e *Engine) Retry(ctx context.Context, id flow.ID, key string) (Submitted, error) {
	x, err := e.opts.Store.Get(ctx, id)
	if err != nil {
		return Submitted{}, err
	}
	if err := checkEnded(x); err != nil {
		return Submitted{}, err
	}
	if err := fault.CheckText("idempotency_key", key, fault.KeyLimit, "give another one"); err != nil {
		return Submitted{}, err
	}
	if x.Version > 0 {
		if err := e.catalog.RefuseRetired(ctx, x.Action); err != nil {
			return Submitted{}, err
		}
	}
	if x.Kind == flow.KindWorkflow {
		if _, _, err := e.catalog.Get(ctx, x.Action, x.Version); err != nil {
			return Submitted{}, fmt.Errorf("load its definition: %w", err)
		}
	}
	r := x.Request
	if err := e.allRounds(ctx, x, &r); err != nil {
		return Submitted{}, err
	}
	r.LeaveWorkflow()
	r.IdempotencyKey, r.NotBefore = key, time.Time{}
	r.RerunOf, r.Rerun, r.ReusedOf = flow.ID{}, &flow.Rerun{RetryOf: id}, flow.ID{}
	r.Signal = flow.ID{} // a signal has one execution; the chain of rules stays
	if err := e.place(ctx, &r); err != nil {
		return Submitted{}, err
	}
	o := &submitOp{id: e.opts.NewID(), request: r, key: key, hash: retryHash(id), sums: uploads.SumsIn(r.Input, r.With), submitted: &e.counters.submitted}
	if err := e.submit(ctx, o); err != nil {
		return Submitted{}, err
	}
	return o.verdict, o.verdict.Err
}

// checkEnded refuses to repeat an execution that has not ended.
func checkEnded(x *flow.Execution) error {
	if !x.Stage.Terminal() {
		return fault.New("id", x.ID.String(), fmt.Sprintf("the execution is still %s", x.Stage), "wait for it, or cancel it first")
	}
	return nil
}

// retryHash distinguishes the retries of an execution from those of others, and from submissions, under one idempotency key.
func retryHash(original flow.ID) [32]byte {
	return sha256.Sum256(append([]byte("retry "), original[:]...))
}
