package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// expectedWorkflows checks that an announced workflow is returned as if it were read when LockWorkflows is called, regardless of what the
// transaction has written meanwhile: in its state after the commit.
func expectedWorkflows(b *bench) {
	session := flow.ID{1}
	for _, c := range []struct {
		name  string
		write func(of store.WorkflowAttempt, ended *flow.Draft) store.Delta
	}{
		{"nothing", func(store.WorkflowAttempt, *flow.Draft) store.Delta { return store.Delta{} }},
		{"an end", func(_ store.WorkflowAttempt, ended *flow.Draft) store.Delta {
			return store.Delta{Drafts: []*flow.Draft{ended}}
		}},
		{"an end and a new task", func(of store.WorkflowAttempt, ended *flow.Draft) store.Delta {
			return store.Delta{Drafts: []*flow.Draft{ended, b.submit(under(of.ID, "next", 0))}}
		}},
		{"a mark", func(of store.WorkflowAttempt, _ *flow.Draft) store.Delta {
			return store.Delta{Workflows: store.WorkflowRows{Marks: []store.Mark{{Workflow: of.ID, Attempt: 1, Task: "each", State: "expanded", Total: 3}}}}
		}},
		{"a change", func(of store.WorkflowAttempt, ended *flow.Draft) store.Delta {
			second := store.WorkflowChange{WorkflowAttempt: of, Number: 2, Change: []byte("second")}
			return store.Delta{Drafts: []*flow.Draft{ended}, Workflows: store.WorkflowRows{Changes: []store.WorkflowChange{second}}}
		}},
		{"the workflow", func(of store.WorkflowAttempt, ended *flow.Draft) store.Delta {
			w := b.load(of.ID)
			must(b, w.Cancel(flow.Cancelled, flow.CodeCancelled, "enough", b.now))
			return store.Delta{Drafts: []*flow.Draft{ended, w}}
		}},
	} {
		for _, change := range []int64{store.NothingKnown, 0, 1} {
			wf := b.workflow()
			of := store.KnownWorkflow{WorkflowAttempt: store.WorkflowAttempt{ID: wf, Attempt: 1}, Change: change}
			item := b.claimed(session, under(wf, "each", 0))
			b.claimed(session, under(wf, "each", 1))
			b.report(b.claimed(session, under(wf, "each", 2)), flow.EvRunning, flow.EvCompleted)
			b.delta(store.Delta{Workflows: store.WorkflowRows{Marks: []store.Mark{{Workflow: wf, Attempt: 1, Task: "first", State: "skipped"}},
				Changes: []store.WorkflowChange{{WorkflowAttempt: of.WorkflowAttempt, Number: 1, Change: []byte("first")}}}})
			d := b.load(item)
			d.Report(session, flow.Report{Execution: item, Attempt: 1, Events: []flow.Event{
				{Seq: d.NextSeq, Attempt: 1, Type: flow.EvRunning, At: b.now},
				{Seq: d.NextSeq + 1, Attempt: 1, Type: flow.EvFailed, At: b.now, Outcome: &flow.Outcome{Error: &flow.Error{Code: "oom"}}},
			}}, nil, nil, b.now, 0)
			written := c.write(of.WorkflowAttempt, d)
			var told []store.LockedWorkflow
			b.update(func(ctx context.Context, t store.Tx) error {
				told = nil
				expectWorkflows(t, of)
				read := []flow.ID{item}
				if x, ok := t.(store.Expecter); ok && change == 0 {
					x.LockKnown(read)
					read = nil
				}
				xs, err := t.Lock(ctx, read, store.WithoutPayload)
				must(b, err)
				equal(b, "executions that are locked beside an expected workflow", len(xs), len(read))
				began, err := t.Now(ctx)
				must(b, err)
				must(b, t.Apply(ctx, written))
				for range 2 { // the second time it is read, or returned as before
					all, err := t.LockWorkflows(ctx, []store.KnownWorkflow{of})
					must(b, err)
					told = append(told, all...)
				}
				now, err := t.Now(ctx)
				must(b, err)
				equal(b, "the clock goes on", now.Before(began), false)
				return nil
			})
			equal(b, c.name+": times that the workflow was told", len(told), 2)
			want := b.locked(of)[0]
			for _, l := range told {
				equal(b, c.name+": tasks", byTask(l.Tasks), byTask(want.Tasks))
				equal(b, c.name+": changes", l.Changes, want.Changes)
				equal(b, c.name+": the last change", l.Last, want.Last)
				equal(b, c.name+": state", l.State, want.State)
				equal(b, c.name+": input", string(l.Input), string(want.Input))
			}
		}
	}
	b.falseExpectations()
}

// falseExpectations checks that LockWorkflows returns the right result after a wrong announcement.
func (b *bench) falseExpectations() {
	b.Helper()
	session := flow.ID{1}
	wf := b.workflow()
	item := b.claimed(session, under(wf, "t", 0))
	over := b.workflow()
	b.end(over, flow.Completed, flow.Outcome{})
	for _, task := range []string{"t", "u"} {
		b.apply(b.submit(func(r *flow.Request) { under(wf, task, 0)(r); r.ParentAttempt = 2 }))
	}
	attempt := func(id flow.ID, n int) store.KnownWorkflow {
		return store.KnownWorkflow{WorkflowAttempt: store.WorkflowAttempt{ID: id, Attempt: n}, Change: store.NothingKnown}
	}
	other := attempt(wf, 1)
	other.Change = 0
	for _, of := range []store.KnownWorkflow{attempt(wf, 1), attempt(wf, 2), other, attempt(over, 1)} {
		var told []store.LockedWorkflow
		b.update(func(ctx context.Context, t store.Tx) (err error) {
			expectWorkflows(t, attempt(wf, 1), attempt(over, 1), attempt(b.id(), 1))
			_, err = t.Lock(ctx, []flow.ID{item}, store.WithoutPayload)
			must(b, err)
			told, err = t.LockWorkflows(ctx, []store.KnownWorkflow{of})
			return err
		})
		want := b.locked(of)
		equal(b, "workflows", len(told), len(want))
		equal(b, "tasks", byTask(told[0].Tasks), byTask(want[0].Tasks))
		equal(b, "state", told[0].State, want[0].State)
	}
}

// expectWorkflows announces to an Expecter that workflows will be locked.
func expectWorkflows(t store.Tx, of ...store.KnownWorkflow) {
	if x, ok := t.(store.Expecter); ok {
		x.ExpectWorkflows(of)
	}
}

// knownExecutions checks the write of an execution that was locked and not read: it succeeds if the row has the state that the caller
// knows, and is a conflict if any part of the state differs.
func knownExecutions(b *bench) {
	session := flow.ID{1}
	for _, c := range []struct {
		name   string
		change func(*flow.Draft)
		want   error
	}{
		{"as it was", nil, nil},
		{"ordered to end", func(d *flow.Draft) { must(b, d.Cancel(flow.Cancelled, flow.CodeCancelled, "enough", b.now)) }, store.ErrConflict},
		{"put aside", func(d *flow.Draft) { d.Aside = &flow.Aside{Until: b.now.Add(time.Hour), Times: 1, Reason: "refused"} }, store.ErrConflict},
		{"of another owner", func(d *flow.Draft) { d.Owner = flow.ID{2} }, store.ErrConflict},
	} {
		id := b.claimed(session)
		d := b.load(id)
		d.Report(session, flow.Report{Execution: id, Attempt: 1, Events: []flow.Event{
			{Seq: d.NextSeq, Attempt: 1, Type: flow.EvRunning, At: b.now},
			{Seq: d.NextSeq + 1, Attempt: 1, Type: flow.EvCompleted, At: b.now, Outcome: &flow.Outcome{}},
		}}, nil, nil, b.now, 0)
		if c.change != nil {
			other := b.load(id)
			c.change(other)
			b.apply(other)
		}
		expects := true
		err := b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
			x, ok := t.(store.Expecter)
			if expects = ok; !ok {
				return nil
			}
			x.LockKnown([]flow.ID{id})
			return t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}})
		})
		if !expects {
			return
		}
		if !errors.Is(err, c.want) {
			b.Errorf("the end of an execution that stands %s: %v, not %v", c.name, err, c.want)
		}
		equal(b, "it has ended", b.get(id).Stage == flow.Completed, c.want == nil)
	}
	b.recentNow()
}

// recentNow checks that RecentNow is never ahead of the database's clock.
func (b *bench) recentNow() {
	b.update(func(ctx context.Context, t store.Tx) error {
		_, err := t.Now(ctx)
		return err
	})
	b.update(func(ctx context.Context, t store.Tx) error {
		recent, ok := t.(store.Expecter).RecentNow()
		now, err := t.Now(ctx)
		must(b, err)
		if ok && recent.After(now) {
			b.Errorf("the recent time is %s, ahead of the clock, %s", recent, now)
		}
		return nil
	})
}
