package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// workflow commits a running workflow.
func (b *bench) workflow(change ...func(*flow.Request)) flow.ID {
	b.Helper()
	d := b.submit(append([]func(*flow.Request){asWorkflow}, change...)...)
	must(b, d.Schedule(1, b.now))
	b.apply(d)
	return d.ID
}

// end ends an execution that nobody holds, or that the engine runs.
func (b *bench) end(id flow.ID, as flow.Stage, o flow.Outcome) {
	b.Helper()
	d := b.load(id)
	if as == flow.Cancelled {
		must(b, d.Cancel(as, o.Error.Code, o.Error.Message, b.now))
	} else {
		must(b, d.Finish(as, o, b.now, 0))
	}
	b.apply(d)
}

func (b *bench) progress(of ...store.WorkflowAttempt) map[flow.ID][]store.TaskProgress {
	b.Helper()
	return inTx(b, func(ctx context.Context, t store.Tx) (map[flow.ID][]store.TaskProgress, error) {
		_, progress, err := t.LockWorkflows(ctx, of)
		return progress, err
	})
}

func byTask(all []store.TaskProgress) map[string]store.TaskProgress {
	m := make(map[string]store.TaskProgress, len(all))
	for _, p := range all {
		m[p.Task] = p
	}
	return m
}

// children checks the rows of a workflow through the life of its children.
func children(b *bench) {
	wf, other := b.workflow(), b.workflow()
	of := store.WorkflowAttempt{ID: wf, Attempt: 1}
	items := make([]flow.ID, 4)
	for i := range items {
		items[i] = b.claimed(flow.ID{1}, under(wf, "each", i))
	}
	solo := b.ready(9, under(wf, "solo", 0))
	b.ready(10, under(other, "each", 0))
	b.report(items[2], flow.EvRunning, flow.EvCompleted)
	b.report(items[0], flow.EvRunning)
	d := b.load(items[3])
	d.Report(flow.ID{1}, flow.Report{Execution: d.ID, Attempt: 1, Events: []flow.Event{{Seq: d.NextSeq, Attempt: 1, Type: flow.EvFailed, At: b.now,
		Outcome: &flow.Outcome{Output: raw(`{"partial":true}`), Error: &flow.Error{Code: "oom", Message: "out of memory"}}}}}, nil, nil, b.now, 0)
	b.apply(d)
	b.end(solo, flow.Cancelled, flow.Outcome{Error: &flow.Error{Code: "cancelled", Message: "no more"}})

	got := b.progress(of, store.WorkflowAttempt{ID: other, Attempt: 1}, store.WorkflowAttempt{ID: wf, Attempt: 2}, store.WorkflowAttempt{ID: b.id(), Attempt: 1})
	equal(b, "progress", byTask(got[wf]), map[string]store.TaskProgress{
		"each": {Task: "each", Created: 4, Open: 2, Ended: map[flow.Stage]int{flow.Completed: 1, flow.Failed: 1}},
		"solo": {Task: "solo", Created: 1, Ended: map[flow.Stage]int{flow.Cancelled: 1}},
	})
	equal(b, "progress of the other", byTask(got[other]), map[string]store.TaskProgress{"each": {Task: "each", Created: 1, Open: 1}})
	equal(b, "workflows asked for", len(got), 2)

	outcomes := inTx(b, func(ctx context.Context, t store.Tx) (map[string][]store.ChildOutcome, error) {
		return t.Outcomes(ctx, of, []string{"solo", "each", "none", "each"})
	})
	equal(b, "outcomes", outcomes, map[string][]store.ChildOutcome{
		"each": {{Index: 2, Execution: items[2], Stage: flow.Completed},
			{Index: 3, Execution: items[3], Stage: flow.Failed, Outcome: *d.Outcome}},
		"solo": {{Index: 0, Execution: solo, Stage: flow.Cancelled, Outcome: flow.Outcome{Error: &flow.Error{Code: "cancelled", Message: "no more"}}}},
	})
	open := func(task string, n int) []flow.ID {
		return inTx(b, func(ctx context.Context, t store.Tx) ([]flow.ID, error) { return t.Open(ctx, of, task, n) })
	}
	equal(b, "open", asSet(open("", 9)), asSet(items[:2]))
	equal(b, "open of a task", open("each", 9), items[:2])
	equal(b, "the first open of a task", open("each", 1), items[:1])
	equal(b, "open of a task that is over", len(open("solo", 9)), 0)
	equal(b, "open of an unknown task", len(open("none", 9)), 0)
}

// childConflict checks that an item of a task is made once, whatever is delivered twice.
func childConflict(b *bench) {
	wf := b.workflow()
	first := b.submit(under(wf, "t", 0))
	b.apply(first)
	second := b.submit(under(wf, "t", 0))
	wantErr(b, "a second execution of an item", b.try(store.Delta{Drafts: []*flow.Draft{second}}), store.ErrConflict)
	_, err := b.s.Get(b.ctx(), second.ID)
	wantErr(b, "get the second", err, store.ErrNotFound)
	again := under(wf, "t", 0)
	b.apply(b.submit(under(wf, "t", 1)), b.submit(under(wf, "u", 0)))
	b.apply(b.submit(func(r *flow.Request) { again(r); r.ParentAttempt = 2 })) // the next attempt has rows of its own
	equal(b, "rows of the first attempt", len(b.progress(store.WorkflowAttempt{ID: wf, Attempt: 1})[wf]), 2)
	equal(b, "rows of the second attempt", len(b.progress(store.WorkflowAttempt{ID: wf, Attempt: 2})[wf]), 1)

	nested := b.submit(asWorkflow)
	must(b, nested.Schedule(1, b.now))
	child := b.submit(under(nested.ID, "t", 0))
	b.apply(nested, child) // workflow and child in one decision
	equal(b, "parent", b.get(child.ID).Parent, nested.ID)
}

func marks(b *bench) {
	wf := b.workflow()
	of := store.WorkflowAttempt{ID: wf, Attempt: 1}
	b.ready(1, under(wf, "b", 0))
	broken := &flow.Error{Code: flow.CodeExpressionError, Message: "no such field", Details: raw(`{"at":3}`)}
	all := []store.Mark{
		{Workflow: wf, Attempt: 1, Task: "a", State: "skipped"},
		{Workflow: wf, Attempt: 1, Task: "b", State: "expanded", Total: 12},
		{Workflow: wf, Attempt: 1, Task: "c", State: "failed", Error: broken},
	}
	b.delta(store.Delta{Marks: append([]store.Mark{{Workflow: wf, Attempt: 1, Task: "c", State: "to be replaced", Total: 3}, {Workflow: wf, Attempt: 2, Task: "a", State: "other"}}, all...)})
	got, err := b.s.Marks(b.ctx(), of)
	must(b, err)
	equal(b, "marks", got, all)
	equal(b, "progress", byTask(b.progress(of)[wf]), map[string]store.TaskProgress{
		"a": {Task: "a", Mark: &all[0]}, "b": {Task: "b", Mark: &all[1], Created: 1, Open: 1}, "c": {Task: "c", Mark: &all[2]}})
	none, err := b.s.Marks(b.ctx(), store.WorkflowAttempt{ID: b.id(), Attempt: 1})
	must(b, err)
	equal(b, "marks of nothing", len(none), 0)
}

// childPages checks the rows as readers page through them.
func childPages(b *bench) {
	wf := b.workflow()
	var want []store.Child
	for _, task := range []string{"B", "a", "é"} {
		for i := range 12 {
			id := b.claimed(flow.ID{1}, under(wf, task, i), attempts(2))
			c := store.Child{Task: task, Index: i, Execution: id, Stage: flow.Provisioning, Attempt: 1}
			switch i {
			case 1:
				b.report(id, flow.EvRunning, flow.EvCompleted)
				c.Stage = flow.Completed
			case 2:
				d := b.load(id)
				must(b, d.Lose("gone", b.now, 0))
				b.apply(d)
				c.Stage, c.Attempt = flow.Requested, 2
			}
			want = append(want, c)
		}
	}
	var got []store.Child
	task, index := "", -1
	for {
		page, err := b.s.Children(b.ctx(), store.WorkflowAttempt{ID: wf, Attempt: 1}, task, index, 5)
		must(b, err)
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
		task, index = page[len(page)-1].Task, page[len(page)-1].Index
	}
	equal(b, "children", got, want)
}

func (b *bench) session(id flow.ID, change ...func(*store.Session)) store.Session {
	b.Helper()
	s := store.Session{ID: id, Name: "worker-1", Queues: []string{"default", "gpu"}, Kinds: []string{"code"}, Slots: 8,
		StartedAt: b.now, ExpiresAt: b.now.Add(30 * time.Second)}
	for _, c := range change {
		c(&s)
	}
	b.update(func(ctx context.Context, t store.Tx) error { return t.OpenSession(ctx, s) })
	return s
}

func sessions(b *bench) {
	one := b.session(flow.ID{1})
	two := b.session(flow.ID{2}, func(s *store.Session) { s.Embedded, s.Kinds, s.ExpiresAt = true, nil, b.now.Add(time.Hour) })
	wantErr(b, "a session twice", b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error { return t.OpenSession(ctx, one) }), store.ErrConflict)
	get := func(id flow.ID) store.Session {
		return inTx(b, func(ctx context.Context, t store.Tx) (store.Session, error) { return t.LockSession(ctx, id) })
	}
	equal(b, "session", get(one.ID), one)
	equal(b, "embedded session", get(two.ID), two)
	wantErr(b, "an unknown session", b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
		_, err := t.LockSession(ctx, flow.ID{3})
		return err
	}), store.ErrNotFound)
	renew := func(now, expires time.Time, ids ...flow.ID) []flow.ID {
		return asSet(inTx(b, func(ctx context.Context, t store.Tx) ([]flow.ID, error) {
			return t.RenewSessions(ctx, ids, now, expires)
		}))
	}
	live := func(now time.Time) int {
		all, err := b.s.LiveSessions(b.ctx(), now)
		must(b, err)
		return len(all)
	}
	expired := func(now time.Time, n int) []store.Session {
		return inTx(b, func(ctx context.Context, t store.Tx) ([]store.Session, error) { return t.Expired(ctx, now, n) })
	}
	end := one.ExpiresAt
	equal(b, "renewal in time", renew(end.Add(-time.Microsecond), end.Add(time.Second), one.ID), []flow.ID{one.ID})
	end = end.Add(time.Second)
	equal(b, "expired a moment before the end", len(expired(end.Add(-time.Microsecond), 9)), 0)
	equal(b, "live a moment before the end", live(end.Add(-time.Microsecond)), 2)
	one.ExpiresAt = end
	equal(b, "expired at the end", expired(end, 9), []store.Session{one})
	equal(b, "live at the end", live(end), 1)
	equal(b, "renewal at the end, and of the unknown", len(renew(end, end.Add(time.Hour), one.ID, flow.ID{3})), 0)
	two.ExpiresAt = two.ExpiresAt.Add(time.Second)
	equal(b, "renewal of several", renew(end, two.ExpiresAt, flow.ID{3}, two.ID, one.ID), []flow.ID{two.ID})
	equal(b, "what was renewed beside others", get(two.ID), two)
	equal(b, "what was not", get(one.ID), one)
	b.update(func(ctx context.Context, t store.Tx) error { return t.ExpireEmbedded(ctx, end) })
	equal(b, "live after the embedded ones were expired", live(end), 0)
	equal(b, "expired, one at a time", len(expired(end, 1)), 1)
	equal(b, "expired", len(expired(end, 9)), 2)
	for range 2 {
		b.update(func(ctx context.Context, t store.Tx) error { return t.DropSession(ctx, one.ID) })
	}
	equal(b, "after the drop", len(expired(end, 9)), 1)
}

// ownership checks what is found by its owner.
func ownership(b *bench) {
	mine, others := flow.ID{1}, flow.ID{2}
	var want, theirs []flow.ID
	for range 7 {
		want = append(want, b.claimed(mine))
		theirs = append(theirs, b.claimed(others))
		b.ready(int64(b.made))
	}
	wf := b.workflow() // the engine's own
	owned := func(after flow.ID, n int) []flow.ID {
		return ids(inTx(b, func(ctx context.Context, t store.Tx) ([]*flow.Execution, error) {
			return t.OwnedBy(ctx, mine, after, n)
		}))
	}
	equal(b, "owned", owned(flow.ID{}, 100), want)
	equal(b, "a page of what is owned", owned(want[1], 3), want[2:5])
	equal(b, "beyond the last", len(owned(want[6], 3)), 0)

	unstarted := func(owner, id flow.ID, n int) []flow.ID {
		xs, err := b.s.Provisioning(b.ctx(), owner, id, n)
		must(b, err)
		return ids(xs)
	}
	all := append(slices.Clone(want), theirs...)
	equal(b, "what has not begun", unstarted(flow.ID{}, flow.ID{}, 100), all)
	equal(b, "a page of what has not begun", unstarted(mine, all[4], 4), all[5:9])
	equal(b, "another owner's page of what has not begun", unstarted(others, all[8], 3), all[9:12])
	b.report(all[0], flow.EvRunning)
	equal(b, "what has not begun without what has", unstarted(flow.ID{}, flow.ID{}, 2), all[1:3])

	ordered := func(sessions ...flow.ID) []flow.ID {
		return asSet(ids(inTx(b, func(ctx context.Context, t store.Tx) ([]*flow.Execution, error) { return t.Ordered(ctx, sessions) })))
	}
	equal(b, "no orders", len(ordered(mine, others)), 0)
	for _, id := range []flow.ID{want[3], want[5], theirs[2], wf} {
		d := b.load(id)
		must(b, d.Cancel(flow.Cancelled, flow.CodeCancelled, "stop", b.now))
		b.apply(d)
	}
	equal(b, "orders", ordered(mine), []flow.ID{want[3], want[5]})
	equal(b, "orders to both", ordered(others, flow.ID{3}, mine), asSet([]flow.ID{want[3], want[5], theirs[2]}))
	b.report(want[3], flow.EvCancelled)
	equal(b, "orders after one was carried out", ordered(mine), want[5:6])
	equal(b, "owned after one has ended", len(owned(flow.ID{}, 100)), 6)
}

func definitions(b *bench) {
	define := func(d store.Definition) (int, bool) {
		created := false
		v := inTx(b, func(ctx context.Context, t store.Tx) (v int, err error) {
			v, created, err = t.Define(ctx, d)
			return v, err
		})
		return v, created
	}
	doc := func(name, text string, hash byte) store.Definition {
		return store.Definition{Name: name, Kind: "workflow", Hash: [32]byte{hash}, Document: []byte(text), CreatedAt: b.now}
	}
	steps := []struct {
		d       store.Definition
		version int
		created bool
	}{
		{doc("grade", `{"v":1}`, 1), 1, true}, {doc("grade", `{"v":1}`, 1), 1, false}, {doc("grade", `{"v":2}`, 2), 2, true},
		{doc("grade", `{"v":1}`, 1), 3, true}, {doc("build", `{}`, 1), 1, true}, {doc("Zoo", `{}`, 1), 1, true},
	}
	for i, s := range steps {
		v, created := define(s.d)
		equal(b, fmt.Sprintf("step %d", i), []any{v, created}, []any{s.version, s.created})
	}
	want := steps[2].d
	want.Version = 2
	got, err := b.s.Definition(b.ctx(), "grade", 2)
	must(b, err)
	equal(b, "version 2", got, want)
	got, err = b.s.Definition(b.ctx(), "grade", 0)
	must(b, err)
	equal(b, "latest", got.Version, 3)
	for name, version := range map[string]int{"grade": 4, "none": 0} {
		_, err = b.s.Definition(b.ctx(), name, version)
		wantErr(b, "an unknown definition", err, store.ErrNotFound)
	}
	var names []string
	for after := ""; ; {
		page, err := b.s.Definitions(b.ctx(), after, 2)
		must(b, err)
		if len(page) == 0 {
			break
		}
		for _, d := range page {
			names = append(names, fmt.Sprint(d.Name, d.Version))
			after = d.Name
		}
	}
	equal(b, "names", names, []string{"Zoo1", "build1", "grade3"})
}
