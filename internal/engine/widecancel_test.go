package engine

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// outcomesRead counts the outcomes of children that the steps of workflows read.
type outcomesRead struct {
	store.Store
	n atomic.Int64
}

func (o *outcomesRead) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	return o.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return decide(ctx, &outcomesReadTx{tx, o}) })
}

type outcomesReadTx struct {
	store.Tx
	o *outcomesRead
}

func (t *outcomesReadTx) Outcomes(ctx context.Context, workflowAttempt store.WorkflowAttempt, tasks []string,
	most int64) (map[string][]store.ChildOutcome, error) {
	all, err := t.Tx.Outcomes(ctx, workflowAttempt, tasks, most)
	for _, children := range all {
		t.o.n.Add(int64(len(children)))
	}
	return all, err
}

// A cancel of a workflow writes a short text to each child, and its last step does not read their outcomes: with a reason of 4,096 bytes
// the end of 2,000 children wrote 16 MB in one transaction, and the end of a workflow of 100,000 read 400 MB.
func TestCancelOfAWideWorkflowIsCheap(t *testing.T) {
	t.Parallel()
	read := &outcomesRead{}
	onEachStore(t, func(r *rig) {
		r.define(`
name: w
input: {type: object, properties: {items: {type: array}}}
tasks:
  each: {foreach: "${{ input.items }}", action: noop, with: {i: "${{ item }}"}}
`)
		id := r.submit(Submission{Action: "w", Input: ints(300)})
		reason := "because " + strings.Repeat("r", fault.ReasonLimit-8)
		read.n.Store(0)
		if _, err := r.e.Cancel(r.ctx, id, reason); err != nil {
			r.Fatal(err)
		}
		r.within(patience, "the workflow does not end", func() bool { return r.get(id).Stage.Terminal() })
		if x := r.get(id); x.Stage != flow.Cancelled || x.Outcome.Error.Message != reason {
			r.Errorf("the workflow is %s: %+v", x.Stage, x.Outcome.Error)
		}
		children := r.children(id, 1)
		if len(children) == 0 {
			r.Error("there are no children")
		}
		for _, c := range children {
			if why := r.get(c.Execution).Outcome.Error.Message; !strings.HasPrefix(why, "because ") || len(why) > handedDownLimit+len("…") {
				r.Fatalf("child %d was cancelled with %d bytes of reason, %.20q…", c.Index, len(why), why)
			}
		}
		if n := read.n.Load(); n != 0 {
			r.Errorf("the cancelled workflow has read %d outcomes of its children", n)
		}
	}, func(o *Options) { o.Rows = 100; read.Store, o.Store = o.Store, read })
}

// childSearches counts the executions that searches find.
type childSearches struct {
	store.Store
	n atomic.Int64
}

func (s *childSearches) Search(ctx context.Context, f store.Filter) (store.Found, error) {
	found, err := s.Store.Search(ctx, f)
	s.n.Add(int64(len(found.Executions)))
	return found, err
}

// A kill of a workflow searches for running children, and does not read the waiting ones: it used to read 10,000 on PostgreSQL in a second.
func TestKillOfAWideWorkflowReadsWhatRuns(t *testing.T) {
	t.Parallel()
	counted := &childSearches{}
	onEachStore(t, func(r *rig) {
		r.define("name: w\ninput: {type: object, properties: {items: {type: array}}}\ntasks:\n  each: {foreach: '${{ input.items }}', action: noop}\n")
		h := r.worker()
		id := r.submit(Submission{Action: "w", Input: ints(300)})
		for n := 0; n < 3; {
			n += len(h.take(3 - n))
		}
		counted.n.Store(0)
		if err := r.e.hurryChildren(r.ctx, r.get(id)); err != nil {
			r.Fatal(err)
		}
		if n := counted.n.Load(); n != 3 {
			r.Errorf("it read %d children, of which 3 run", n)
		}
	}, func(o *Options) { counted.Store, o.Store = o.Store, counted })
}
