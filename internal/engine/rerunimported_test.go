package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// imported stores a copy of an execution that has ended, as the import of an archive does, and returns its id.
func (r *rig) imported(id flow.ID, change func(*flow.Execution, []flow.Event)) flow.ID {
	r.Helper()
	events, err := r.store.Events(r.ctx, id, 0, 1000)
	if err != nil {
		r.Fatal(err)
	}
	x := *r.get(id)
	x.ID, x.Imported = r.e.opts.NewID(), &flow.Import{From: "there", At: x.FinishedAt}
	change(&x, events)
	err = r.store.Update(r.ctx, func(ctx context.Context, tx store.Tx) error {
		return tx.Apply(ctx, store.Delta{Drafts: []*flow.Draft{store.Imported(&x, events)}})
	})
	if err != nil {
		r.Fatal(err)
	}
	return x.ID
}

// carried is how an execution of kind rerun ends that is asked to run another one again.
func (r *rig) carried(id flow.ID) *flow.Execution {
	r.Helper()
	return r.ended(r.submit(Submission{Action: "rerun", Input: json.RawMessage(fmt.Sprintf(`{"execution": %q}`, id))}))
}

// An imported workflow whose name and version stand for an action on this server cannot be run again: retry, rerun and
// the plan of a rerun refuse it.
func TestRerunOfAWorkflowThatIsAnActionHere(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define("name: deploy\naction: noop\n---\nname: w\nkind: workflow\ntasks:\n  a: {action: noop}")
		r.worker().serve(echo)
		id := r.submit(Submission{Action: "w"})
		r.ended(id)
		id = r.imported(id, func(x *flow.Execution, _ []flow.Event) { x.Action, x.Version = "deploy", 1 })
		const say = "deploy@1 here is none"
		var refused *fault.Invalid
		if _, err := r.e.PlanRerun(r.ctx, id, RerunOptions{}); !errors.As(err, &refused) || !strings.Contains(err.Error(), say) {
			t.Errorf("a plan: %v", err)
		}
		if _, err := r.e.Retry(r.ctx, id, ""); !errors.As(err, &refused) || !strings.Contains(err.Error(), say) {
			t.Errorf("a retry: %v", err)
		}
		if x := r.carried(id); x.Stage != flow.Failed || x.Outcome.Error.Code != flow.CodeRerunRefused || !strings.Contains(x.Outcome.Error.Message, say) {
			t.Errorf("a task that runs it again: %s, %+v", x.Stage, x.Outcome)
		}
	})
}

// A round of an imported workflow whose name and version stand for an action on this server runs again with what was left to it of the
// total_timeout of its task: what the task says is not known here.
func TestRoundOfAWorkflowThatIsAnActionHere(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define("name: deploy\naction: noop\n---\nname: w\nkind: workflow\ntasks:\n  poll: {action: noop, repeat: {until: \"false\", max: 2}, total_timeout: 1h, continue_on_error: true}")
		r.worker().serve(echo)
		of := r.submit(Submission{Action: "w"})
		r.ended(of)
		id := r.imported(of, func(x *flow.Execution, _ []flow.Event) { x.Action, x.Version = "deploy", 1 })
		var last flow.ID
		for i := range 2 {
			last = r.imported(r.child(of, "poll", i), func(x *flow.Execution, _ []flow.Event) { x.Parent = id })
		}
		left := r.get(last).TotalTimeout
		if left <= 0 || left >= time.Hour {
			t.Fatalf("%s were left to the second round", left)
		}
		s, err := r.e.Retry(r.ctx, last, "")
		if err != nil {
			t.Fatal(err)
		}
		again, _ := r.rerun(last, RerunOptions{})
		for _, id := range []flow.ID{s.Execution, again} {
			if x := r.ended(id); x.Stage != flow.Completed || x.TotalTimeout != left {
				t.Errorf("run again, it is %s and had %s, want %s", x.Stage, x.TotalTimeout, left)
			}
		}
	})
}

// An import says that it was created years ahead; what runs it again begins at once.
func TestAgainAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.worker().serve(echo)
	id := r.submit(Submission{Action: "noop"})
	r.ended(id)
	id = r.imported(id, func(x *flow.Execution, events []flow.Event) {
		for _, at := range []*time.Time{&x.CreatedAt, &x.QueuedAt, &x.ClaimedAt, &x.StartedAt, &x.FinishedAt} {
			*at = at.AddDate(1000, 0, 0)
		}
		for i := range events {
			events[i].At = events[i].At.AddDate(1000, 0, 0)
		}
	})
	again, _ := r.rerun(id, RerunOptions{})
	s, err := r.e.Retry(r.ctx, id, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []flow.ID{again, s.Execution} {
		if x := r.ended(id); x.Stage != flow.Completed || !x.NotBefore.IsZero() {
			t.Errorf("%s, not before %s", x.Stage, x.NotBefore)
		}
	}
}

// panicking is a store that panics when what was recorded of a workflow is read: its marks, or its tasks.
type panicking struct {
	store.Store
	marks, recorded atomic.Bool
}

func (p *panicking) Marks(ctx context.Context, of store.WorkflowAttempt) ([]store.Mark, error) {
	if p.marks.Load() {
		panic("no marks")
	}
	return p.Store.Marks(ctx, of)
}

func (p *panicking) Recorded(ctx context.Context, of store.WorkflowAttempt, task string, index, n int) ([]*flow.Execution, error) {
	if p.recorded.Load() {
		panic("no tasks")
	}
	return p.Store.Recorded(ctx, of, task, index, n)
}

// A rerun whose plan panics fails. It is planned in goroutines of its own, where a panic that nothing recovers ends the process.
func TestRerunWhosePlanPanics(t *testing.T) {
	t.Parallel()
	p := &panicking{}
	r := newRig(t, func(o *Options) { p.Store, o.Store = o.Store, p })
	r.define("name: w\nkind: workflow\ntasks:\n  a: {action: noop}")
	r.worker().serve(echo)
	id := r.submit(Submission{Action: "w"})
	r.ended(id)
	for say, on := range map[string]*atomic.Bool{"no marks": &p.marks, "no tasks": &p.recorded} {
		on.Store(true)
		x := r.carried(id)
		on.Store(false)
		if x.Stage != flow.Failed || x.Outcome.Error.Code != flow.CodeRerunRefused || !strings.HasSuffix(x.Outcome.Error.Message, "a defect of Pawl: "+say) {
			t.Errorf("%s: %s, %+v", say, x.Stage, x.Outcome.Error)
		}
	}
	if x := r.carried(id); x.Stage != flow.Completed {
		t.Errorf("afterwards: %s, %+v", x.Stage, x.Outcome.Error)
	}
}
