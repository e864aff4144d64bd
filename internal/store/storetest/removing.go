package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// remove removes executions in one transaction, and their logs.
func (b *bench) remove(ids ...flow.ID) (gone []flow.ID) {
	b.Helper()
	must(b, b.s.RemoveLogs(b.ctx(), ids))
	return inTx(b, func(ctx context.Context, t store.Tx) ([]flow.ID, error) { return t.Remove(ctx, ids) })
}

// removable walks through all removable executions, in parts of n, and removes them if remove is set.
func (b *bench) removable(before time.Time, n int, remove bool) (all []flow.ID) {
	b.Helper()
	q := store.RemovableQuery{Before: before, Count: n, Bytes: 1 << 20}
	for {
		r, err := b.s.Removable(b.ctx(), q)
		must(b, err)
		if len(r.IDs) > n {
			b.Fatalf("%d executions are removable at once: %d were asked for", len(r.IDs), n)
		}
		all = append(all, r.IDs...)
		if remove {
			equal(b, "what is gone", b.remove(r.IDs...), r.IDs)
			b.clean()
		}
		if !r.More {
			return all
		}
		if !remove && len(r.IDs) == n {
			return all // the rest of a tree follows once these are removed
		}
		q.After = r.After
	}
}

// removing checks retention: old executions are removed with everything below them, and nothing else.
func removing(b *bench) {
	label := func(r *flow.Request) { r.Labels = map[string]string{"k": "v"} }
	old := b.finished(label)
	b.later(time.Minute)
	wf := b.workflow()
	nested := b.workflow(under(wf, "nested", 0))
	leaf := b.claimed(flow.ID{1}, under(nested, "leaf", 0), label)
	b.report(leaf, flow.EvRunning, flow.EvCompleted)
	b.delta(store.Delta{Workflows: store.WorkflowRows{Marks: []store.Mark{{Workflow: wf, Attempt: 1, Task: "x", State: "skipped"}}}})
	for _, id := range []flow.ID{nested, wf} {
		b.end(id, flow.Completed, flow.Outcome{})
	}
	running := b.workflow()
	doneChild := b.claimed(flow.ID{1}, under(running, "t", 0))
	b.report(doneChild, flow.EvRunning, flow.EvCompleted)
	limit := b.later(time.Minute)
	fresh := b.finished(label)
	slow := b.claimed(flow.ID{1}, createdAt(limit.Add(-time.Hour)))
	b.report(slow, flow.EvRunning, flow.EvCompleted)
	chunk := func(id flow.ID) flow.LogChunk {
		return flow.LogChunk{Execution: id, Attempt: 1, Seq: 1, Stream: "stdout", At: b.now, Data: []byte("x"), Size: 1}
	}
	must(b, b.s.AppendLogs(b.ctx(), []flow.LogChunk{chunk(old), chunk(leaf), chunk(fresh)}))

	equal(b, "the first", b.removable(limit, 1, false), []flow.ID{old})
	all := b.removable(limit, 10, false)
	equal(b, "what is old", asSet(all), asSet([]flow.ID{old, wf, nested, leaf}))
	if at := func(id flow.ID) int { return slices.Index(all, id) }; at(leaf) > at(nested) || at(nested) > at(wf) {
		b.Errorf("in the order %v: children come before their workflow", all)
	}
	err := b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
		_, err := t.Remove(ctx, []flow.ID{running})
		return err
	})
	wantErr(b, "remove what has not ended", err, store.ErrConflict)
	equal(b, "a workflow that keeps a child", len(b.remove(wf, leaf)), 1)
	equal(b, "the rest", len(b.removable(limit, 10, true)), 3)
	equal(b, "what is old after the removal", len(b.removable(limit, 10, false)), 0)
	equal(b, "removed again", len(b.remove(all...)), 0)
	for _, id := range all {
		_, err := b.s.Get(b.ctx(), id)
		wantErr(b, "get", err, store.ErrNotFound)
		equal(b, "events", len(b.events(id, 0, 10)), 0)
		chunks, err := b.s.ReadLogs(b.ctx(), store.LogQuery{Execution: id, Limit: 100})
		must(b, err)
		equal(b, "logs", len(chunks), 0)
	}
	equal(b, "rows", len(b.progress(store.WorkflowAttempt{ID: wf, Attempt: 1})), 0)
	listed, err := store.List(b.ctx(), b.s, store.Filter{Labels: map[string]string{"k": "v"}, Limit: 10})
	must(b, err)
	equal(b, "with the label", ids(listed), []flow.ID{fresh})
	chunks, err := b.s.ReadLogs(b.ctx(), store.LogQuery{Execution: fresh, Limit: 100})
	must(b, err)
	equal(b, "logs of what stays", len(chunks), 1)
	equal(b, "a child of what goes on", b.get(doneChild).Stage, flow.Completed)
	b.apply(b.submit()) // numbers and ids continue
}

// removingParts removes trees in small parts: none is larger than requested, in executions and in bytes, and the remaining rows satisfy
// every invariant after each.
func removingParts(b *bench) {
	var tops []flow.ID
	want := 0
	for range 3 {
		wf := b.workflow()
		for _, task := range []string{"a", "b"} {
			for i := range 7 {
				id := b.claimed(flow.ID{1}, under(wf, task, i))
				b.report(id, flow.EvRunning, flow.EvCompleted)
				want++
			}
		}
		nested := b.workflow(under(wf, "c", 0))
		for i := range 6 {
			id := b.claimed(flow.ID{1}, under(nested, "leaf", i))
			b.report(id, flow.EvRunning, flow.EvCompleted)
			want++
		}
		b.end(nested, flow.Completed, flow.Outcome{})
		b.end(wf, flow.Completed, flow.Outcome{})
		tops = append(tops, wf, b.finished())
		want += 3
	}
	limit := b.later(time.Hour)
	equal(b, "removed", len(b.removable(limit, 5, true)), want)
	for _, id := range tops {
		_, err := b.s.Get(b.ctx(), id)
		wantErr(b, "get", err, store.ErrNotFound)
	}

	var large []flow.ID
	for range 5 {
		id := b.claimed(flow.ID{1})
		large = append(large, id)
		d := b.load(id)
		d.Report(flow.ID{1}, flow.Report{Execution: id, Attempt: 1, Events: []flow.Event{{Seq: d.NextSeq, Attempt: 1, Type: flow.EvRunning, At: b.now},
			{Seq: d.NextSeq + 1, Attempt: 1, Type: flow.EvCompleted, At: b.now, Outcome: &flow.Outcome{Output: raw(`"%s"`, strings.Repeat("x", 400<<10))}}}}, nil, nil, b.now, 0)
		b.apply(d)
	}
	limit = b.later(time.Hour)
	q := store.RemovableQuery{Before: limit, Count: 100, Bytes: 1 << 20}
	r, err := b.s.Removable(b.ctx(), q)
	must(b, err)
	equal(b, "of 400 KB each within 1 MB", []any{r.IDs, r.More, r.After}, []any{large[:2], true, large[1]})
	q.Bytes = 1
	r, err = b.s.Removable(b.ctx(), q)
	must(b, err)
	equal(b, "of 400 KB each within 1 byte", r.IDs, large[:1])
	equal(b, "removed in parts of 1 MB", len(b.removable(limit, 100, true)), 5)
}

// removingLogs removes a large number of chunks.
func removingLogs(b *bench) {
	one, other := b.id(), b.id()
	var chunks []flow.LogChunk
	for i := range 1100 {
		chunks = append(chunks, flow.LogChunk{Execution: one, Attempt: 1 + i%2, Seq: int64(i + 1), Stream: "stdout", Offset: int64(i), At: b.now, Data: []byte("x"), Size: 1})
	}
	chunks = append(chunks, flow.LogChunk{Execution: other, Attempt: 1, Seq: 1, Stream: "stdout", At: b.now, Data: []byte("x"), Size: 1})
	must(b, b.s.AppendLogs(b.ctx(), chunks))
	must(b, b.s.RemoveLogs(b.ctx(), []flow.ID{b.id(), one, b.id()}))
	for id, want := range map[flow.ID]int{one: 0, other: 1} {
		left, err := b.s.ReadLogs(b.ctx(), store.LogQuery{Execution: id, Limit: 10_000})
		must(b, err)
		equal(b, "chunks left", len(left), want)
	}
}

// removingKeys locks a key in the transaction that removes the last execution with that key: the lock's row is removed only within the
// transaction, and inserting it again must not wait for that.
func removingKeys(b *bench) {
	for i := range 3 {
		old := b.finished(withKey("k", 5))
		next := b.submit(withKey("k", 5))
		b.update(func(ctx context.Context, t store.Tx) error {
			if _, err := t.Remove(ctx, []flow.ID{old}); err != nil {
				return err
			}
			use, err := t.LockKeys(ctx, []string{"k", fmt.Sprint("other", i)})
			if err != nil {
				return err
			}
			equal(b, "how full the key is", use["k"], store.KeyUse{})
			if err := errors.Join(next.Schedule(int64(i+1), b.now), next.Claim(flow.ID{9}, "worker", b.now)); err != nil {
				return err
			}
			return t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{next}})
		})
		b.report(next.ID, flow.EvRunning, flow.EvCompleted)
	}
}
