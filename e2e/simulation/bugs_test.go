package simulation

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// bug is a planted bug. It changes behaviour where the simulation joins the product's parts, as the product itself would if it had the bug.
type bug struct {
	name      string
	invariant []int // any of which may catch it
	tune      func(*plan)
	tx        func(*world, store.Tx) store.Tx               // between an engine and its transaction
	store     func(*world, store.Store) store.Store         // between an engine, or a reader, and the database
	link      func(*world, handoff.Handoff) handoff.Handoff // as a worker has it
	server    func(*world, handoff.Handoff) handoff.Handoff // as an engine gives it
	post      postBug
	rerun     func(of *row, o *engine.RerunOptions) // what is asked of an engine
}

// memory is what planted bugs remember in one world.
type memory struct {
	taken    map[flow.ID]flow.Execution // as they were before their claim
	leaked   map[string]int             // slots, by key
	retried  map[flow.ID]string         // keys of executions that wait for their retry
	seen     map[try]int                // events that have arrived
	late     map[flow.ID]flow.Stage     // the stage that a late event gave an execution
	hidden   map[store.WorkflowAttempt]bool
	answers  map[flow.ID][]handoff.Assignment
	answered map[flow.ID]time.Time
	kept     []store.Kept
	ended    map[place]*flow.Outcome // of children, when a transaction first tried to commit them
}

func newMemory() *memory {
	return &memory{
		taken: map[flow.ID]flow.Execution{}, leaked: map[string]int{}, retried: map[flow.ID]string{}, seen: map[try]int{},
		late: map[flow.ID]flow.Stage{}, hidden: map[store.WorkflowAttempt]bool{}, answers: map[flow.ID][]handoff.Assignment{}, answered: map[flow.ID]time.Time{}, ended: map[place]*flow.Outcome{},
	}
}

// twist is a transaction that lies or forgets: each field that a bug sets replaces the real behaviour.
type twist struct {
	store.Tx
	w *world

	apply     func(*twist, context.Context, store.Delta) error
	take      func(*twist, context.Context, []string, int) ([]*flow.Execution, error)
	lock      func([]*flow.Execution)
	keys      func(*twist, map[string]store.KeyUse)
	line      func(*twist, context.Context, string, int) ([]*flow.Execution, error)
	tickets   func(first, n int64) int64
	due       func(*twist, context.Context, time.Time, int) ([]*flow.Execution, time.Time, error)
	inbox     func([]flow.Event)
	submitted bool // idempotency keys are not looked up
	progress  func(*twist, store.WorkflowAttempt, []store.TaskProgress) []store.TaskProgress
	outcomes  func(*twist, store.WorkflowAttempt, map[string][]store.ChildOutcome)
	outcome   func(*store.ChildOutcome)
	kept      func(*twist, [][32]byte, map[[32]byte]store.Kept)
	workflows func(*twist, *flow.Execution)
	expired   bool // lost sessions are not found
	owned     func(*twist, []*flow.Execution) []*flow.Execution
	ordered   bool // orders are not found
	session   bool // every session exists
	locked    func(*store.Session)
	pauses    func([]store.Pause) []store.Pause
	paused    func(int64) int64 // the latest generation of pauses, where no session is locked
	reusable  func(*twist, string, []store.Reusable) []store.Reusable
}

// twisted returns a function that makes a bug's transaction from a pattern.
func twisted(pattern twist) func(*world, store.Tx) store.Tx {
	return func(w *world, tx store.Tx) store.Tx {
		t := pattern
		t.Tx, t.w = tx, w
		return &t
	}
}

func (t *twist) Apply(ctx context.Context, d store.Delta) error {
	if t.apply != nil {
		return t.apply(t, ctx, d)
	}
	return t.Tx.Apply(ctx, d)
}

func (t *twist) Take(ctx context.Context, queues []string, n int) ([]*flow.Execution, error) {
	if t.take != nil {
		return t.take(t, ctx, queues, n)
	}
	return t.Tx.Take(ctx, queues, n)
}

func (t *twist) Lock(ctx context.Context, ids []flow.ID, p store.Payload) ([]*flow.Execution, error) {
	xs, err := t.Tx.Lock(ctx, ids, p)
	if err == nil && t.lock != nil {
		t.lock(xs)
	}
	return xs, err
}

func (t *twist) LockKeys(ctx context.Context, keys []string) (map[string]store.KeyUse, error) {
	uses, err := t.Tx.LockKeys(ctx, keys)
	if err == nil && t.keys != nil {
		t.keys(t, uses)
	}
	return uses, err
}

func (t *twist) WaitList(ctx context.Context, key string, n int) ([]*flow.Execution, error) {
	if t.line != nil {
		return t.line(t, ctx, key, n)
	}
	return t.Tx.WaitList(ctx, key, n)
}

func (t *twist) Tickets(ctx context.Context, n int) (int64, error) {
	first, err := t.Tx.Tickets(ctx, n)
	if err == nil && t.tickets != nil {
		first = t.tickets(first, int64(n))
	}
	return first, err
}

func (t *twist) Due(ctx context.Context, now time.Time, n int) ([]*flow.Execution, time.Time, error) {
	if t.due != nil {
		return t.due(t, ctx, now, n)
	}
	return t.Tx.Due(ctx, now, n)
}

func (t *twist) Inbox(ctx context.Context, id flow.ID) ([]flow.Event, error) {
	es, err := t.Tx.Inbox(ctx, id)
	if err == nil && t.inbox != nil {
		t.inbox(es)
	}
	return es, err
}

func (t *twist) Submitted(ctx context.Context, keys []string) (map[string]store.IdempotencyKey, error) {
	if t.submitted {
		return map[string]store.IdempotencyKey{}, nil
	}
	return t.Tx.Submitted(ctx, keys)
}

func (t *twist) LockWorkflows(ctx context.Context, of []store.KnownWorkflow) ([]store.LockedWorkflow, error) {
	if t.progress != nil { // wrong rows become visible when they are counted
		of = slices.Clone(of)
		for i := range of {
			of[i].Change = store.NothingKnown
		}
	}
	all, err := t.Tx.LockWorkflows(ctx, of)
	if err == nil && t.workflows != nil {
		for i := range all {
			t.workflows(t, all[i].Execution)
		}
	}
	if err == nil && t.progress != nil {
		for i := range all {
			at := slices.IndexFunc(of, func(k store.KnownWorkflow) bool { return k.ID == all[i].ID })
			all[i].Tasks = t.progress(t, of[at].WorkflowAttempt, all[i].Tasks)
		}
	}
	return all, err
}

func (t *twist) Outcomes(ctx context.Context, of store.WorkflowAttempt, tasks []string, most int64) (map[string][]store.ChildOutcome, error) {
	all, err := t.Tx.Outcomes(ctx, of, tasks, most)
	if err == nil && t.outcomes != nil {
		t.outcomes(t, of, all)
	}
	return all, err
}

func (t *twist) Outcome(ctx context.Context, of store.WorkflowAttempt, task string, index int, most int64) (*store.ChildOutcome, error) {
	c, err := t.Tx.Outcome(ctx, of, task, index, most)
	if c != nil && t.outcome != nil {
		t.outcome(c)
	}
	return c, err
}

func (t *twist) Kept(ctx context.Context, hashes [][32]byte, at time.Time, most int64) (map[[32]byte]store.Kept, error) {
	if t.kept != nil {
		at = time.Time{}
	}
	all, err := t.Tx.Kept(ctx, hashes, at, most)
	if err == nil && t.kept != nil {
		t.kept(t, hashes, all)
	}
	return all, err
}

func (t *twist) Expired(ctx context.Context, n int) ([]store.Session, error) {
	if t.expired {
		return nil, nil
	}
	return t.Tx.Expired(ctx, n)
}

func (t *twist) OwnedBy(ctx context.Context, session, after flow.ID, n int) ([]*flow.Execution, error) {
	xs, err := t.Tx.OwnedBy(ctx, session, after, n)
	if err == nil && t.owned != nil {
		xs = t.owned(t, xs)
	}
	return xs, err
}

func (t *twist) CancelRequested(ctx context.Context, sessions []flow.ID) ([]*flow.Execution, error) {
	if t.ordered {
		return nil, nil
	}
	return t.Tx.CancelRequested(ctx, sessions)
}

func (t *twist) LockSession(ctx context.Context, id flow.ID) (store.Session, time.Duration, error) {
	s, left, err := t.Tx.LockSession(ctx, id)
	if t.session {
		return store.Session{ID: id, Queues: []string{"default", "gpu"}}, time.Hour, nil
	}
	if err == nil && t.locked != nil {
		t.locked(&s)
	}
	return s, left, err
}

func (t *twist) Pauses(ctx context.Context) ([]store.Pause, int64, error) {
	all, last, err := t.Tx.Pauses(ctx)
	if err == nil && t.pauses != nil {
		all = t.pauses(all)
	}
	return all, last, err
}

func (t *twist) LastPause(ctx context.Context) (int64, error) {
	n, err := t.Tx.LastPause(ctx)
	if err == nil && t.paused != nil {
		n = t.paused(n)
	}
	return n, err
}

func (t *twist) Reusable(ctx context.Context, workflow flow.ID, task string, from, n int, most int64) ([]store.Reusable, error) {
	all, err := t.Tx.Reusable(ctx, workflow, task, from, n, most)
	if err == nil && t.reusable != nil {
		all = t.reusable(t, task, all)
	}
	return all, err
}

// unfenced applies drafts without checking that their rows are unchanged, like an UPDATE without its condition.
func unfenced(t *twist, ctx context.Context, d store.Delta) error {
	var ids []flow.ID
	for _, x := range d.Drafts {
		if !x.New {
			ids = append(ids, x.ID)
		}
	}
	rows, err := t.Tx.Lock(ctx, ids, store.WithoutPayload)
	if err != nil {
		return err
	}
	now := map[flow.ID]*flow.Execution{}
	for _, x := range rows {
		now[x.ID] = x
	}
	forced := d
	forced.Drafts = nil
	for _, x := range d.Drafts {
		row := now[x.ID]
		switch {
		case x.New || row != nil && same(row.State, x.Before):
			forced.Drafts = append(forced.Drafts, x)
		case row == nil || row.Place == flow.Finished:
			// Without a row there is nothing to overwrite.
		default:
			copied, body := *x, *x.Execution
			copied.Execution, copied.Before = &body, row.State
			copied.Events = slices.DeleteFunc(slices.Clone(x.Events), func(e flow.Event) bool { return e.Seq < row.NextSeq })
			body.NextSeq = max(body.NextSeq, row.NextSeq)
			forced.Drafts = append(forced.Drafts, &copied)
		}
	}
	return t.Tx.Apply(ctx, forced)
}

func same(a, b flow.State) bool {
	return a.Stage == b.Stage && a.Attempt == b.Attempt && a.NextSeq == b.NextSeq && a.Place == b.Place && a.Owner == b.Owner
}
