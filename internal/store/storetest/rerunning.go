package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// completed commits a completed item of a workflow with an output.
func (b *bench) completed(wf flow.ID, task string, index int, output string) flow.ID {
	b.Helper()
	id := b.claimed(flow.ID{9}, under(wf, task, index), func(r *flow.Request) { r.Input = raw(`{"n":%d}`, index) })
	d := b.load(id)
	d.Report(d.Owner, flow.Report{Execution: id, Attempt: 1, Events: []flow.Event{{Seq: d.NextSeq, Attempt: 1, Type: flow.EvRunning, At: b.now},
		{Seq: d.NextSeq + 1, Attempt: 1, Type: flow.EvCompleted, At: b.now, Outcome: &flow.Outcome{Output: raw("%s", output)}}}}, nil, nil, b.now, 0)
	b.apply(d)
	return id
}

// reruns checks the outcomes stored for reruns: they are copied with the rerun's first write, all or none; the rerun does not depend on the
// original afterwards; and they are removed when the rerun ends.
func reruns(b *bench) {
	wf := b.workflow()
	of := store.WorkflowAttempt{ID: wf, Attempt: 1}
	items := []flow.ID{b.completed(wf, "each", 0, `"a"`), b.completed(wf, "each", 1, `"b"`), b.completed(wf, "each", 2, `"`+strings.Repeat("c", 100)+`"`)}
	last := b.completed(wf, "last", 0, `null`)
	bad := b.claimed(flow.ID{9}, under(wf, "zoo", 0))
	d := b.load(bad)
	d.Report(d.Owner, flow.Report{Execution: bad, Attempt: 1, Events: []flow.Event{{Seq: d.NextSeq, Attempt: 1, Type: flow.EvFailed, At: b.now,
		Outcome: &flow.Outcome{Error: &flow.Error{Code: "oom", Message: "out of memory"}}}}}, nil, nil, b.now, 0)
	b.apply(d)
	b.end(wf, flow.Failed, flow.Outcome{Error: &flow.Error{Code: "task_failed", Message: "zoo"}})

	// The executions from which it is planned, in pages.
	recorded := func(task string, index, n int) []*flow.Execution {
		b.Helper()
		all, err := b.s.Recorded(b.ctx(), of, task, index, n)
		must(b, err)
		return all
	}
	var want []*flow.Execution
	for _, id := range append(slices.Clone(items), last, bad) {
		want = append(want, b.get(id))
	}
	equal(b, "recorded", recorded("", -1, 10), want)
	equal(b, "a page of what was recorded", recorded("each", 0, 3), want[1:4])
	equal(b, "nothing beyond the last", len(recorded("zoo", 0, 3)), 0)
	equal(b, "nothing of another attempt", func() int {
		all, err := b.s.Recorded(b.ctx(), store.WorkflowAttempt{ID: wf, Attempt: 2}, "", -1, 3)
		must(b, err)
		return len(all)
	}(), 0)

	again := b.submit(asWorkflow, func(r *flow.Request) { r.RerunOf = wf })
	must(b, again.Schedule(9, b.now))
	reuse := func(task string, index int, from, of flow.ID) store.Reuse {
		return store.Reuse{Workflow: again.ID, Task: task, Index: index, From: from, Of: of, Hash: [32]byte{byte(index + 1)}}
	}
	// An outcome that was removed, or of an execution that failed, is not reused; then nothing of the rerun is stored.
	for what, from := range map[string]flow.ID{"removed": b.id(), "failed": bad} {
		if err := b.try(store.Delta{Drafts: []*flow.Draft{again}, Workflows: store.WorkflowRows{Reuses: []store.Reuse{reuse("each", 0, items[0], items[0]), reuse("each", 1, from, from)}}}); !errors.Is(err, store.ErrNotFound) {
			b.Errorf("the outcome of one that is %s was reused: %v", what, err)
		}
	}
	if _, err := b.s.Get(b.ctx(), again.ID); !errors.Is(err, store.ErrNotFound) {
		b.Errorf("a rerun was kept without what it reuses: %v", err)
	}
	ran := b.id() // the execution whose outcome last had reused
	reuses := []store.Reuse{reuse("each", 0, items[0], items[0]), reuse("each", 2, items[2], items[2]), reuse("each", 1, items[1], items[1]), reuse("last", 0, last, ran)}
	beneath := []string{"each[0]/a", "each[0]/b[1]/c", "each[10]/a", "each[1]/a", "eachone", "each0[0]/a", "zoo[0]/a"}
	for _, task := range beneath {
		reuses = append(reuses, reuse(task, 0, items[0], items[0]))
	}
	b.delta(store.Delta{Drafts: []*flow.Draft{again}, Workflows: store.WorkflowRows{Reuses: reuses}})

	listed, err := store.List(b.ctx(), b.s, store.Filter{RerunOf: wf, Limit: 10})
	must(b, err)
	equal(b, "reruns of it", listed, []*flow.Execution{bare(again.Execution)})
	listed, err = store.List(b.ctx(), b.s, store.Filter{RerunOf: again.ID, Limit: 10})
	must(b, err)
	equal(b, "reruns of the rerun", len(listed), 0)

	// The original is removed; the rerun keeps what it needs.
	b.update(func(ctx context.Context, t store.Tx) error {
		_, err := t.Remove(ctx, append(slices.Clone(items), last, bad, wf))
		return err
	})
	reusable := func(task string, from, n int, most int64) []store.Reusable {
		b.Helper()
		return inTx(b, func(ctx context.Context, t store.Tx) ([]store.Reusable, error) {
			return t.Reusable(ctx, again.ID, task, from, n, most)
		})
	}
	all := []store.Reusable{{Index: 0, Of: items[0], Hash: [32]byte{1}, Output: raw(`"a"`)}, {Index: 1, Of: items[1], Hash: [32]byte{2}, Output: raw(`"b"`)},
		{Index: 2, Of: items[2], Hash: [32]byte{3}, Output: raw(`"%s"`, strings.Repeat("c", 100))}}
	equal(b, "what is reusable", reusable("each", 0, 10, 1<<20), all)
	equal(b, "from an index on", reusable("each", 1, 1, 1<<20), all[1:2])
	equal(b, "as long as the bytes last", reusable("each", 0, 10, 4), all[:2])
	equal(b, "one at least", reusable("each", 2, 10, 1), all[2:])
	equal(b, "whose outcome it is", reusable("last", 0, 1, 1), []store.Reusable{{Of: ran, Hash: [32]byte{1}, Output: raw(`null`)}})
	equal(b, "of a task that reuses nothing", len(reusable("zoo", 0, 1, 1)), 0)

	b.update(func(ctx context.Context, t store.Tx) error {
		return t.DropReusable(ctx, again.ID, []string{"last", "none"})
	})
	equal(b, "what was dropped", len(reusable("last", 0, 1, 1)), 0)
	equal(b, "what was not", len(reusable("each", 0, 10, 1<<20)), 3)
	left := func() (names []string) {
		for _, task := range beneath {
			if len(reusable(task, 0, 1, 1)) > 0 {
				names = append(names, task)
			}
		}
		return names
	}
	equal(b, "beneath it", left(), beneath)
	for _, c := range []struct {
		drop []string
		left []string
	}{
		{[]string{"each[0]/b"}, []string{"each[0]/a", "each[10]/a", "each[1]/a", "eachone", "each0[0]/a", "zoo[0]/a"}},
		{[]string{"each[1]", "other"}, []string{"each[0]/a", "each[10]/a", "eachone", "each0[0]/a", "zoo[0]/a"}},
		{[]string{"zoo", "each0"}, []string{"each[0]/a", "each[10]/a", "eachone"}},
	} {
		b.update(func(ctx context.Context, t store.Tx) error { return t.DropReusable(ctx, again.ID, c.drop) })
		equal(b, fmt.Sprint("left beneath it without ", c.drop), left(), c.left)
	}

	// An item that reuses an outcome is written when it ends.
	kid := b.submit(under(again.ID, "each", 0), func(r *flow.Request) { r.ReusedOf = items[0] })
	must(b, kid.Reuse(raw(`"a"`), b.now))
	b.apply(kid)
	equal(b, "an item that reuses", b.get(kid.ID), kid.Execution)
	events, err := b.s.Events(b.ctx(), kid.ID, 0, 10)
	must(b, err)
	equal(b, "its history", []flow.EventType{events[0].Type, events[1].Type}, []flow.EventType{flow.EvRequested, flow.EvReused})

	b.end(again.ID, flow.Completed, flow.Outcome{})
	equal(b, "what is kept for a rerun that has ended", len(reusable("each", 0, 10, 1<<20)), 0)
	b.update(func(ctx context.Context, t store.Tx) error {
		_, err := t.Remove(ctx, []flow.ID{kid.ID, again.ID})
		return err
	})
	listed, err = store.List(b.ctx(), b.s, store.Filter{RerunOf: wf, Limit: 10})
	must(b, err)
	equal(b, "a rerun that was removed", len(listed), 0)
}

// retries checks that the retries of an execution are found as long as they exist, even after that execution was removed.
func retries(b *bench) {
	wf := b.workflow()
	b.end(wf, flow.Failed, flow.Outcome{Error: &flow.Error{Code: "oom", Message: "out of memory"}})
	retry := func(of flow.ID) *flow.Draft {
		d := b.submit(asWorkflow, func(r *flow.Request) { r.Rerun = &flow.Rerun{RetryOf: of} })
		must(b, d.Schedule(9, b.now))
		b.delta(store.Delta{Drafts: []*flow.Draft{d}})
		return d
	}
	first := retry(wf)
	second := retry(wf)
	beyond := retry(first.ID)
	listed := func(f store.Filter) []*flow.Execution {
		b.Helper()
		f.Limit = 10
		all, err := store.List(b.ctx(), b.s, f)
		must(b, err)
		return all
	}
	equal(b, "what a retry is of", b.get(first.ID).RetryOf(), wf)
	equal(b, "retries of it, the newest first", listed(store.Filter{RetryOf: wf}), []*flow.Execution{bare(second.Execution), bare(first.Execution)})
	equal(b, "retries of the first", listed(store.Filter{RetryOf: first.ID}), []*flow.Execution{bare(beyond.Execution)})
	equal(b, "retries of what has none", len(listed(store.Filter{RetryOf: beyond.ID})), 0)
	equal(b, "a retry is not a rerun", len(listed(store.Filter{RerunOf: wf})), 0)

	remove := func(id flow.ID) {
		b.update(func(ctx context.Context, t store.Tx) error {
			_, err := t.Remove(ctx, []flow.ID{id})
			return err
		})
	}
	remove(wf)
	equal(b, "retries of what was removed", len(listed(store.Filter{RetryOf: wf})), 2)
	b.end(first.ID, flow.Completed, flow.Outcome{})
	equal(b, "retries of it, one of which has ended", len(listed(store.Filter{RetryOf: wf})), 2)
	remove(first.ID)
	equal(b, "retries of it, one of which was removed", len(listed(store.Filter{RetryOf: wf})), 1)
	b.clean()
}

// rerunViolations plants damage to reused outcomes, and checks that Check finds it.
func rerunViolations(b *bench) {
	wf := b.workflow()
	of := b.completed(wf, "t", 0, `1`)
	b.clean()
	reused := func(index int, of flow.ID, output string) *flow.Draft {
		d := b.submit(under(wf, "u", index), func(r *flow.Request) { r.ReusedOf = of })
		must(b, d.Reuse(raw("%s", output), b.now))
		b.apply(d)
		return d
	}
	first := reused(0, of, `1`)
	reused(1, b.id(), `2`) // the other execution was removed
	b.clean()
	b.broken(59, "another output", reused(2, of, `2`).ID)
	b.broken(59, "the outcome of one that did not run", reused(3, first.ID, `1`).ID)
	ran := b.claimed(flow.ID{9}, under(wf, "u", 4), func(r *flow.Request) { r.ReusedOf = of })
	b.broken(59, "what reuses an outcome ran", ran)
	gave := b.claimed(flow.ID{9}, under(wf, "u", 5), func(r *flow.Request) { r.Rerun = &flow.Rerun{OverriddenBy: "ada"} })
	b.broken(59, "what was given an output ran", gave)
	kept := b.submit(under(wf, "u", 6), func(r *flow.Request) { r.Rerun = &flow.Rerun{OverriddenBy: "ada"} })
	must(b, kept.Override(raw(`{"v":1}`), b.now))
	b.delta(store.Delta{Drafts: []*flow.Draft{kept}})
	equal(b, "what was given an output", b.get(kept.ID), kept.Execution)

	over := b.workflow(func(r *flow.Request) { r.RerunOf = wf })
	b.end(over, flow.Completed, flow.Outcome{})
	b.delta(store.Delta{Workflows: store.WorkflowRows{Reuses: []store.Reuse{{Workflow: over, Task: "t", From: of, Of: of}}}})
	b.broken(60, "outcomes kept for what has ended", over)
}
