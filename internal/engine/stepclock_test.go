package engine

import (
	"context"
	"sync/atomic"
	"time"

	"testing"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// earlyClock gives transactions a time read before others committed, until they read a workflow. PostgreSQL does the same: it reads its
// clock when a transaction begins, and each later statement sees newer commits.
type earlyClock struct {
	store.Store
	early atomic.Pointer[time.Time] // nil: the store's own clock
}

func (s *earlyClock) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	return s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		return decide(ctx, &earlyTx{tx, s.early.Load()})
	})
}

type earlyTx struct {
	store.Tx
	early *time.Time
}

func (t *earlyTx) Now(ctx context.Context) (time.Time, error) {
	if t.early != nil {
		return *t.early, nil
	}
	return t.Tx.Now(ctx)
}

func (t *earlyTx) LockWorkflows(ctx context.Context, knownWorkflows []store.KnownWorkflow) ([]store.LockedWorkflow, error) {
	t.early = nil
	return t.Tx.LockWorkflows(ctx, knownWorkflows)
}

// If two tasks end in two transactions at once, the one that commits last may have read its clock first. Its step ends the workflow, and
// that end must not be earlier than the other task's. Otherwise the replay at the end of each rig finds that a task had not ended.
func TestWorkflowEndsAfterItsTasks(t *testing.T) {
	t.Parallel()
	s := &earlyClock{}
	onEachStore(t, func(r *rig) {
		s.early.Store(nil)
		r.define(`
name: w
tasks:
  a: {action: noop}
  b: {action: noop}
`)
		h := r.worker()
		id := r.submit(Submission{Action: "w"})
		tasks := h.take(2)
		before, err := r.e.now(r.ctx)
		if err != nil {
			r.Fatal(err)
		}
		h.complete(tasks[0], `{}`)
		s.early.Store(&before)
		h.complete(tasks[1], `{}`)
		s.early.Store(nil)
		w := r.ended(id)
		for _, task := range tasks {
			if x := r.get(task.Execution); x.Stage != flow.Completed || x.FinishedAt.After(w.FinishedAt) {
				r.Errorf("the workflow has ended %v before its task %s", x.FinishedAt.Sub(w.FinishedAt), x.Task)
			}
		}
	}, func(o *Options) { s.Store, o.Store = o.Store, s })
}
