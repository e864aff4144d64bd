package engine

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// splitBatch is a batch of plain calls that met a conflict, split by what its requests need.
//
// A transaction may need rows that another one has locked, and may not wait for them because of the order of locks.
// Then it drops all its decisions and decides again, several times if both work on one workflow. A no-op in one batch
// with the cancellation of a workflow of 400 tasks was accepted after 1.8 s, because the batch was decided 24 times. So
// the requests that need no such rows are committed without the others, and the others join the contended calls, which
// are committed one batch at a time.
type splitBatch struct {
	independent []op // need at most the row of one execution, which is not part of a workflow and holds no key
	loops       []op // name no execution: requests of the engine's loops and of sessions
	others      []op
}

func (*splitBatch) Error() string { return "the batch is committed in parts" }

// split returns a *splitBatch of a batch of plain calls that met a conflict. It returns the conflict if the batch must be decided again as
// it is: any other batch, and the second try of a single request.
func (t *transaction) split(ops []op, batchSource source, conflict error) error {
	if !errors.Is(conflict, store.ErrConflict) || batchSource != sourcePlain || t.postpones {
		return conflict
	}
	s := &splitBatch{}
	for _, o := range ops {
		switch {
		case t.independent(o):
			s.independent = append(s.independent, o)
		case namesNoExecution(o):
			s.loops = append(s.loops, o)
		default:
			s.others = append(s.others, o)
		}
	}
	if max(len(s.independent), len(s.loops)) == len(ops) {
		return conflict
	}
	return s
}

func (t *transaction) independent(o op) bool {
	switch o := o.(type) {
	case *submitOp:
		return len(o.locks()) == 0 && o.request.Kind != flow.KindWorkflow
	case *reportOp:
		d := t.Draft(o.report.Execution)
		return d != nil && d.Parent.IsZero() && d.Key == ""
	default:
		return false
	}
}

// commitSplit commits the independent requests and the loops' requests, each as one batch, and requeues the others as
// contended calls. A stopping engine commits the others too, as sourceContended, so that they are not split again. The
// claimers go with the first batch that is committed here, or alone if there is none.
func (e *Engine) commitSplit(ctx context.Context, s *splitBatch, claimers *roster) {
	e.counters.conflicts.Add(1)
	requeued := e.requeueContended(s.others)
	for _, ops := range [][]op{s.independent, s.loops} {
		if len(ops) > 0 {
			e.commit(ctx, ops, claimers, sourcePlain)
			claimers = &roster{}
		}
	}
	switch {
	case !requeued:
		e.commit(ctx, s.others, claimers, sourceContended)
	case len(claimers.all) > 0:
		e.commit(ctx, nil, claimers, sourcePlain)
	}
}

// requeueContended enqueues requests again as contended ones, and reports whether it did: a stopping engine commits them at once.
func (e *Engine) requeueContended(ops []op) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed != nil {
		return len(ops) == 0
	}
	if len(ops) == 0 {
		return true
	}
	c := call{ops: ops, at: time.Now()}
	for _, o := range ops {
		c.bytes += o.size()
	}
	e.batcher.contended.add(c)
	e.wakeCommitter()
	return true
}
