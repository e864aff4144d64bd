package storetest

import (
	"context"
	"errors"
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// archived reads a tree of executions with everything about it, removes it, and inserts it as an archive does: then the same is read again,
// and no queue or wait list contains it.
func archived(b *bench) {
	label := func(r *flow.Request) { r.Labels = map[string]string{"k": "v"} }
	wf := b.workflow(label)
	key := b.claimed(flow.ID{9}, under(wf, "each", 0), withKey("k", 1), func(r *flow.Request) { r.IdempotencyKey = "once" })
	b.report(key, flow.EvRunning, flow.EvProgress, flow.EvCompleted)
	failed := b.claimed(flow.ID{9}, under(wf, "each", 1))
	b.endWith(failed, "oom", nil)
	nested := b.workflow(under(wf, "nested", 0))
	leaf := b.completed(nested, "leaf", 0, `{"n":1}`)
	b.feed(b.ready(3, under(wf, "typed", 0)), "", false)
	typed := b.claimed(flow.ID{9}, under(wf, "typed", 1))
	b.feed(typed, "ab", false)
	b.feed(typed, "c", true)
	b.report(typed, flow.EvRunning, flow.EvCompleted)
	rest, err := b.s.Children(b.ctx(), store.WorkflowAttempt{ID: wf, Attempt: 1}, "nested", 0, 10)
	must(b, err)
	open := rest[0].Execution
	b.end(open, flow.Cancelled, flow.Outcome{Error: &flow.Error{Code: flow.CodeCancelled, Message: "no more"}})
	b.delta(store.Delta{Workflows: store.WorkflowRows{Marks: []store.Mark{{Workflow: wf, Attempt: 1, Task: "left", State: "skipped"}}}})
	b.end(nested, flow.Completed, flow.Outcome{})
	b.end(wf, flow.Failed, flow.Outcome{Error: &flow.Error{Code: flow.CodeTaskFailed, Message: "each"}})

	parentsFirst := []flow.ID{wf, nested, key, failed, leaf, open, typed}
	var drafts []*flow.Draft
	was := map[flow.ID]*flow.Execution{}
	histories := map[flow.ID][]flow.Event{}
	for _, id := range parentsFirst {
		x := b.get(id)
		was[id], histories[id] = x, b.events(id, 0, 100)
		drafts = append(drafts, store.Archived(x, histories[id]))
	}
	slices.Reverse(parentsFirst)
	equal(b, "what is gone", len(b.remove(parentsFirst...)), len(parentsFirst))

	insert := func(drafts ...*flow.Draft) error {
		return b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
			err := t.Apply(ctx, store.Delta{Drafts: drafts[:1]})
			if err != nil {
				return err
			}
			return t.Apply(ctx, store.Delta{Drafts: drafts[1:], Workflows: store.WorkflowRows{Marks: []store.Mark{{Workflow: wf, Attempt: 1, Task: "left", State: "skipped"}}},
				Input: []store.InputPiece{{Execution: typed, Number: 1, Data: []byte("abc"), Last: true}}})
		})
	}
	// If one exists already, none of the others is inserted.
	other := b.finished()
	twice := b.get(other)
	wantErr(b, "an execution that is there", insert(append(slices.Clone(drafts), store.Archived(twice, b.events(other, 0, 100)))...), store.ErrConflict)
	if _, err := b.s.Get(b.ctx(), wf); !errors.Is(err, store.ErrNotFound) {
		b.Errorf("a part of what was refused is kept: %v", err)
	}
	must(b, insert(drafts...))

	for id, x := range was {
		equal(b, "an execution of the archive", b.get(id), x)
		equal(b, "its history", b.events(id, 0, 100), histories[id])
	}
	equal(b, "tasks", len(b.progress(store.WorkflowAttempt{ID: wf, Attempt: 1})[wf]), 4)
	b.input(typed, 0, 10, "abc", true)
	listed, err := store.List(b.ctx(), b.s, store.Filter{Labels: map[string]string{"k": "v"}, Limit: 10})
	must(b, err)
	equal(b, "with the label", ids(listed), []flow.ID{wf})
	sums, err := b.s.Survey(b.ctx())
	must(b, err)
	equal(b, "what has not ended", len(sums.Unfinished), 0)
	queues, err := b.s.Queues(b.ctx())
	must(b, err)
	equal(b, "queues with work", len(queues), 0)
	b.update(func(ctx context.Context, t store.Tx) error {
		use, err := t.LockKeys(ctx, []string{"k"})
		equal(b, "how full the key is", use["k"], store.KeyUse{})
		if err == nil {
			var known map[string]store.IdempotencyKey
			known, err = t.Submitted(ctx, []string{"once"})
			equal(b, "submissions with the key", len(known), 0)
		}
		return err
	})
	b.clean()

	b.remove(parentsFirst...)
	must(b, insert(drafts...)) // nothing was inserted by the first one
}
