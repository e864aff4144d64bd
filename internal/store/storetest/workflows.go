package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// end ends an execution that no worker holds, or that the engine runs.
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

// progress returns the progress of workflows by their rows; workflows without rows are absent.
func (b *bench) progress(of ...store.WorkflowAttempt) map[flow.ID][]store.TaskProgress {
	b.Helper()
	progress := make(map[flow.ID][]store.TaskProgress)
	for _, w := range of { // one by one, because one workflow may be given with two attempts
		for _, l := range b.locked(store.KnownWorkflow{WorkflowAttempt: w, Change: store.NothingKnown}) {
			if len(l.Tasks) > 0 {
				progress[l.ID] = append(progress[l.ID], l.Tasks...)
			}
		}
	}
	return progress
}

func (b *bench) locked(of ...store.KnownWorkflow) []store.LockedWorkflow {
	b.Helper()
	return inTx(b, func(ctx context.Context, t store.Tx) ([]store.LockedWorkflow, error) { return t.LockWorkflows(ctx, of) })
}

func byTask(all []store.TaskProgress) map[string]store.TaskProgress {
	m := make(map[string]store.TaskProgress, len(all))
	for _, p := range all {
		m[p.Task] = p
	}
	return m
}

// children checks the rows of a workflow from the start to the end of its children.
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
		return t.Outcomes(ctx, of, []string{"solo", "each", "none", "each"}, 1<<20)
	})
	equal(b, "outcomes", outcomes, map[string][]store.ChildOutcome{
		"each": {{Index: 2, Execution: items[2], Stage: flow.Completed},
			{Index: 3, Execution: items[3], Stage: flow.Failed, Outcome: *d.Outcome}},
		"solo": {{Index: 0, Execution: solo, Stage: flow.Cancelled, Outcome: flow.Outcome{Error: &flow.Error{Code: "cancelled", Message: "no more"}}}},
	})
	one := func(task string, index int) *store.ChildOutcome {
		return inTx(b, func(ctx context.Context, t store.Tx) (*store.ChildOutcome, error) {
			return t.Outcome(ctx, of, task, index, 1<<20)
		})
	}
	equal(b, "outcome of a child", *one("each", 3), outcomes["each"][1])
	for _, none := range []*store.ChildOutcome{one("each", 0), one("each", 4), one("none", 0), one("solo", 1)} {
		equal(b, "no outcome", none == nil, true)
	}
	open := func(task string, n int) []flow.ID {
		return inTx(b, func(ctx context.Context, t store.Tx) ([]flow.ID, error) { return t.Open(ctx, of, task, false, n) })
	}
	equal(b, "open", asSet(open("", 9)), asSet(items[:2]))
	equal(b, "open of a task", open("each", 9), items[:2])
	equal(b, "the first open of a task", open("each", 1), items[:1])
	equal(b, "open of a task that is over", len(open("solo", 9)), 0)
	equal(b, "open of an unknown task", len(open("none", 9)), 0)
}

// openChildren checks which children must still be ended: those that are unfinished and have no order to end.
func openChildren(b *bench) {
	wf := b.workflow()
	of := store.WorkflowAttempt{ID: wf, Attempt: 1}
	held, ordered, over := b.claimed(flow.ID{1}, under(wf, "t", 0)), b.claimed(flow.ID{1}, under(wf, "t", 1)), b.claimed(flow.ID{1}, under(wf, "t", 2))
	ready, delayed, other := b.ready(7, under(wf, "t", 3)), b.submit(under(wf, "t", 4)), b.ready(8, under(wf, "u", 0))
	b.apply(delayed)
	d := b.load(ordered)
	must(b, d.Cancel(flow.Cancelled, flow.CodeCancelled, "enough", b.now))
	b.apply(d)
	b.report(over, flow.EvRunning, flow.EvCompleted)
	for _, c := range []struct {
		task   string
		unheld bool
		n      int
		want   []flow.ID
	}{
		{"", false, 9, []flow.ID{held, ready, delayed.ID, other}}, {"t", false, 9, []flow.ID{held, ready, delayed.ID}},
		{"", true, 9, []flow.ID{ready, delayed.ID, other}}, {"t", true, 9, []flow.ID{ready, delayed.ID}},
		{"t", true, 1, []flow.ID{ready}}, {"", false, 2, []flow.ID{held, ready}}, {"none", false, 9, nil},
	} {
		got := inTx(b, func(ctx context.Context, t store.Tx) ([]flow.ID, error) {
			return t.Open(ctx, of, c.task, c.unheld, c.n)
		})
		equal(b, fmt.Sprintf("%d open of task %q, unheld %t", c.n, c.task, c.unheld), got, c.want)
	}
}

// largeOutcomes checks that no more is read than the caller accepts.
func largeOutcomes(b *bench) {
	wf := b.workflow()
	of := store.WorkflowAttempt{ID: wf, Attempt: 1}
	end := func(task string, i int) {
		id := b.claimed(flow.ID{1}, under(wf, task, i))
		d := b.load(id)
		d.Report(flow.ID{1}, flow.Report{Execution: id, Attempt: 1, Events: []flow.Event{{Seq: d.NextSeq, Attempt: 1, Type: flow.EvRunning, At: b.now},
			{Seq: d.NextSeq + 1, Attempt: 1, Type: flow.EvCompleted, At: b.now, Outcome: &flow.Outcome{Output: raw(`"%s"`, strings.Repeat("x", 998))}}}}, nil, nil, b.now, 0)
		b.apply(d)
	}
	for i := range 5 {
		end("large", i)
	}
	end("small", 0)
	outcomes := func(most int64, tasks ...string) (n int, err error) {
		err = b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
			all, err := t.Outcomes(ctx, of, tasks, most)
			n = len(all["large"]) + len(all["small"])
			return err
		})
		return n, err
	}
	for most, want := range map[int64]error{1000: nil, 999: store.ErrTooLarge} {
		err := b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
			_, err := t.Outcome(ctx, of, "large", 2, most)
			return err
		})
		if !errors.Is(err, want) {
			b.Errorf("an outcome within %d bytes: %v, want %v", most, err, want)
		}
	}
	for _, c := range []struct {
		most  int64
		tasks []string
		want  int
		err   error
	}{
		{5000, []string{"large"}, 5, nil}, {4999, []string{"large"}, 0, store.ErrTooLarge}, {1000, []string{"small"}, 1, nil},
		{6000, []string{"large", "small"}, 6, nil}, {5999, []string{"large", "small"}, 0, store.ErrTooLarge}, {0, []string{"none"}, 0, nil},
	} {
		n, err := outcomes(c.most, c.tasks...)
		if !errors.Is(err, c.err) || err == nil && n != c.want {
			b.Errorf("outcomes of %v within %d bytes: %d, %v; want %d, %v", c.tasks, c.most, n, err, c.want, c.err)
		}
	}
}

// workflowChanges checks the changes that a caller gets who knows a part of a workflow's progress.
func workflowChanges(b *bench) {
	wf, other := b.workflow(), b.workflow()
	first, second := store.WorkflowAttempt{ID: wf, Attempt: 1}, store.WorkflowAttempt{ID: wf, Attempt: 2}
	add := func(of store.WorkflowAttempt, number int64) error {
		return b.try(store.Delta{Workflows: store.WorkflowRows{Changes: []store.WorkflowChange{{WorkflowAttempt: of, Number: number, Change: fmt.Appendf(nil, "%d/%d", of.Attempt, number)}}}})
	}
	for number := int64(1); number <= 3; number++ {
		must(b, add(first, number))
	}
	must(b, add(second, 1))
	must(b, add(store.WorkflowAttempt{ID: other, Attempt: 1}, 1))
	wantErr(b, "a second change with a number", add(first, 3), store.ErrConflict)
	b.ready(3, under(wf, "t", 0))
	known := func(of store.WorkflowAttempt, change int64) store.LockedWorkflow {
		b.Helper()
		l := b.locked(store.KnownWorkflow{WorkflowAttempt: of, Change: change})
		if len(l) != 1 || l[0].ID != of.ID {
			b.Fatalf("locked %+v", l)
		}
		return l[0]
	}
	texts := func(of store.WorkflowAttempt, change int64) (all []string) {
		for _, text := range known(of, change).Changes {
			all = append(all, string(text))
		}
		return all
	}
	equal(b, "all changes", texts(first, 0), []string{"1/1", "1/2", "1/3"})
	equal(b, "the latest change", texts(first, 2), []string{"1/3"})
	equal(b, "nothing new", texts(first, 3), []string(nil))
	equal(b, "of another attempt", texts(second, 0), []string{"2/1"})
	for change, last := range map[int64]int64{store.NothingKnown: 3, 0: 3, 3: 3} {
		l := known(first, change)
		equal(b, "the number of the last change", l.Last, last)
		equal(b, "rows are counted", len(l.Tasks) == 1, change == store.NothingKnown)
	}
	equal(b, "no change", known(store.WorkflowAttempt{ID: wf, Attempt: 3}, store.NothingKnown).Last, int64(0))
	both := b.locked(store.KnownWorkflow{WorkflowAttempt: first, Change: 2}, store.KnownWorkflow{WorkflowAttempt: store.WorkflowAttempt{ID: other, Attempt: 1}, Change: store.NothingKnown},
		store.KnownWorkflow{WorkflowAttempt: store.WorkflowAttempt{ID: b.id(), Attempt: 1}})
	equal(b, "of two and an unknown one", len(both), 2)

	solo := b.claimed(flow.ID{1})
	b.report(solo, flow.EvRunning, flow.EvCompleted)
	b.end(other, flow.Completed, flow.Outcome{})
	b.remove(other)
	equal(b, "of what has been removed", len(b.locked(store.KnownWorkflow{WorkflowAttempt: store.WorkflowAttempt{ID: other, Attempt: 1}})), 0)
}

// workflowPayloads checks which payloads come with the lock of a workflow.
func workflowPayloads(b *bench) {
	small := b.workflow(func(r *flow.Request) { r.Input, r.With = raw(`{"a":1}`), raw(`{"b":2}`) })
	apart := b.workflow(func(r *flow.Request) { r.Input = raw(`"%s"`, strings.Repeat("x", store.SmallPayload-2)) })
	large := b.workflow(func(r *flow.Request) { r.Input = raw(`"%s"`, strings.Repeat("x", store.SmallPayload)) })
	none, over := b.workflow(func(r *flow.Request) { r.Input, r.With = nil, nil }), b.workflow(func(r *flow.Request) { r.Input = raw(`1`) })
	b.end(over, flow.Completed, flow.Outcome{Output: raw(`2`)})
	for id, want := range map[flow.ID]bool{small: false, apart: false, large: true, none: false, over: true} {
		l := b.locked(store.KnownWorkflow{WorkflowAttempt: store.WorkflowAttempt{ID: id, Attempt: 1}, Change: store.NothingKnown})[0]
		x := b.get(id)
		if want {
			x.Input, x.With, x.Outcome = nil, nil, nil
		}
		equal(b, "payload left out", l.PayloadLeftOut, want)
		equal(b, "input", string(l.Input), string(x.Input))
		equal(b, "with", string(l.With), string(x.With))
		equal(b, "outcome", l.Outcome == nil, true)
	}
}

// childConflict checks that an item of a task is inserted once, even if it is delivered twice.
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
	b.apply(b.submit(func(r *flow.Request) { again(r); r.ParentAttempt = 2 })) // the next attempt has its own rows
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
	b.delta(store.Delta{Workflows: store.WorkflowRows{Marks: append([]store.Mark{{Workflow: wf, Attempt: 1, Task: "c", State: "to be replaced", Total: 3}, {Workflow: wf, Attempt: 2, Task: "a", State: "other"}}, all...)}})
	got, err := b.s.Marks(b.ctx(), of)
	must(b, err)
	equal(b, "marks", got, all)
	equal(b, "progress", byTask(b.progress(of)[wf]), map[string]store.TaskProgress{
		"a": {Task: "a", Mark: &all[0]}, "b": {Task: "b", Mark: &all[1], Created: 1, Open: 1}, "c": {Task: "c", Mark: &all[2]}})
	none, err := b.s.Marks(b.ctx(), store.WorkflowAttempt{ID: b.id(), Attempt: 1})
	must(b, err)
	equal(b, "marks of nothing", len(none), 0)
}

// childPages checks the pages of rows for readers.
func childPages(b *bench) {
	wf := b.workflow()
	var want []store.Child
	for _, task := range []string{"B", "a", "é"} {
		for i := range 12 {
			id := b.claimed(flow.ID{1}, under(wf, task, i), attempts(2), ofKind(i))
			b.later(time.Second)
			switch i {
			case 1:
				b.report(id, flow.EvRunning, flow.EvCompleted)
			case 2:
				d := b.load(id)
				must(b, d.Lose("gone", b.now, 0))
				b.apply(d)
			case 3:
				b.report(id, flow.EvRunning)
			}
			x := b.get(id)
			want = append(want, store.Child{Task: task, Index: i, Execution: id, Stage: x.Stage, Attempt: x.Attempt, Kind: x.Kind,
				CreatedAt: x.CreatedAt, ClaimedAt: x.ClaimedAt, StartedAt: x.StartedAt, FinishedAt: x.FinishedAt, WakeAt: x.WakeAt})
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

// ofKind gives some of the executions a kind that differs from their action's name, and large details.
func ofKind(i int) func(*flow.Request) {
	return func(r *flow.Request) {
		if i%2 == 0 {
			r.Action, r.Version, r.Kind = "resize", 3, flow.KindContainer
		}
		r.Labels = map[string]string{"long": strings.Repeat("x", 100*i)}
	}
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
			equal(b, "document of "+d.Name+" in a list", len(d.Document), 0)
			names = append(names, fmt.Sprint(d.Name, d.Version, d.Kind, d.CreatedAt.Equal(b.now)))
			after = d.Name
		}
	}
	equal(b, "names", names, []string{"Zoo1workflowtrue", "build1workflowtrue", "grade3workflowtrue"})
	latest, err := b.s.Latest(b.ctx(), []string{"grade", "none", "Zoo"})
	must(b, err)
	zoo, err := b.s.Definition(b.ctx(), "Zoo", 0)
	must(b, err)
	equal(b, "latest of some", latest, []store.Definition{zoo, got})
	latest, err = b.s.Latest(b.ctx(), nil)
	must(b, err)
	equal(b, "latest of none", len(latest), 0)

	old := doc("grade", `{"v":7}`, 7)
	old.Version = 7
	v, created := define(old)
	equal(b, "a document with a version", []any{v, created}, []any{7, true})
	err = b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
		_, _, err := t.Define(ctx, old)
		return err
	})
	wantErr(b, "a version that is there", err, store.ErrConflict)
	old.Version = 5
	define(old)
	v, created = define(doc("grade", `{"v":8}`, 8))
	equal(b, "the next one", []any{v, created}, []any{8, true})
}
