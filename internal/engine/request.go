package engine

import (
	"context"
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
)

// request is an op made of one function, for rare requests. The function's result belongs to the committer until the commit and reaches the
// caller through a channel: a decision whose caller has given up, or that runs again after a conflict, never writes to what the caller
// reads.
type request[T any] struct {
	ids     []flow.ID // executions to load
	run     func(context.Context, *transaction) (T, error)
	opClass class
	needs   func(*transaction) // the rows that it needs beside executions; nil: none
	bytes   int                // its bytes, if they are many
	result  T                  // of the committed run
	answer  chan answer[T]     // capacity 1
}

// answer is the result after the commit, or the error.
type answer[T any] struct {
	result T
	err    error
}

func (r *request[T]) want(t *transaction) {
	t.wants.executions = append(t.wants.executions, r.ids...)
	if r.needs != nil {
		r.needs(t)
	}
}

func (r *request[T]) decide(ctx context.Context, t *transaction) (err error) {
	r.result, err = r.run(ctx, t)
	return err
}

func (r *request[T]) done(err error) {
	a := answer[T]{err: err}
	if err == nil {
		a.result = r.result
	}
	r.answer <- a
}

func (r *request[T]) size() int { return r.bytes }

// namesNoExecution reports whether the request names no execution, like most requests of the engine's loops and of sessions.
func (r *request[T]) namesNoExecution() bool { return len(r.ids) == 0 }

func namesNoExecution(o op) bool {
	r, ok := o.(interface{ namesNoExecution() bool })
	return ok && r.namesNoExecution()
}

// fromCaller reports whether a request is a caller's: of class classCall, and about an execution. A request of a loop
// that names an execution, such as those of decideDueEach, counts as a caller's.
func fromCaller(o op) bool { return o.class() == classCall && !namesNoExecution(o) }

// allFromSessions reports whether requests are of sessions alone, which go before calls.
func allFromSessions(ops []op) bool {
	return !slices.ContainsFunc(ops, func(o op) bool { return o.class() != classSession })
}

func (r *request[T]) class() class { return r.opClass }

func (r *request[T]) executions() []flow.ID { return r.ids }

func newRequest[T any](ids []flow.ID, opClass class, run func(context.Context, *transaction) (T, error)) *request[T] {
	return &request[T]{ids: ids, opClass: opClass, run: run, answer: make(chan answer[T], 1)}
}

// inBatch runs a decision in one of the next batches, with the executions loaded, and returns its result after the commit. With an error
// the result is zero, and the decision may still run or be committed later.
func inBatch[T any](ctx context.Context, e *Engine, ids []flow.ID, decide func(context.Context, *transaction) (T, error)) (T, error) {
	return awaitAnswer(ctx, e, newRequest(ids, classCall, decide))
}

// inBatchFromSession is inBatch for a decision that creates no work for workers: its transaction does not lock the session of a waiting
// worker.
func inBatchFromSession[T any](ctx context.Context, e *Engine, decide func(context.Context, *transaction) (T, error)) (T, error) {
	return awaitAnswer(ctx, e, newRequest(nil, classSession, decide))
}

// do is inBatch for a decision without a result.
func (e *Engine) do(ctx context.Context, ids []flow.ID, decide func(context.Context, *transaction) error) error {
	_, err := inBatch(ctx, e, ids, func(ctx context.Context, t *transaction) (struct{}, error) { return struct{}{}, decide(ctx, t) })
	return err
}

func awaitAnswer[T any](ctx context.Context, e *Engine, r *request[T]) (none T, err error) {
	if err := e.enqueue(r); err != nil {
		return none, err
	}
	select {
	case a := <-r.answer:
		return a.result, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
