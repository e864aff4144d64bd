package storetest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

func labels(pairs ...string) func(*flow.Request) {
	return func(r *flow.Request) {
		r.Labels = map[string]string{}
		for p := range slices.Chunk(pairs, 2) {
			r.Labels[p[0]] = p[1]
		}
	}
}

// ended commits an ended execution: completed with an output, or failed with a code.
func (b *bench) ended(code string, output json.RawMessage, change ...func(*flow.Request)) flow.ID {
	b.Helper()
	id := b.claimed(flow.ID{9}, change...)
	b.endWith(id, code, output)
	return id
}

func (b *bench) endWith(id flow.ID, code string, output json.RawMessage) {
	b.Helper()
	d := b.load(id)
	last := flow.Event{Seq: d.NextSeq + 1, Attempt: 1, Type: flow.EvCompleted, At: b.now, Outcome: &flow.Outcome{Output: output}}
	if code != "" {
		last.Type = flow.EvFailed
		last.Outcome.Error = &flow.Error{Code: code, Message: "because of " + code, Details: raw(`{"exit_code":3}`)}
	}
	r := flow.Report{Execution: id, Attempt: 1, Events: []flow.Event{{Seq: d.NextSeq, Attempt: 1, Type: flow.EvRunning, At: b.now}, last}}
	if rc := d.Report(d.Owner, r, nil, nil, b.now, 0); rc.Verdict != flow.Applied {
		b.Fatalf("report the end of %s: %+v", id, rc)
	}
	b.apply(d)
}

// verdicts checks that lists contain the errors, and that executions are selected and counted by them.
func verdicts(b *bench) {
	long := strings.Repeat("c", 90) + "_" + strings.Repeat("d", 60) // its length takes two bytes
	run := labels("run", "x")
	good := b.ended("", raw(`{"verdict":"ok"}`), run)
	bad := b.ended("oom", raw(`{"verdict":"oom"}`), run)
	alike := b.ended("oom_score", nil, run)
	far := b.ended(long, nil, run)
	gone := b.ready(90, run)
	b.finishSubmitted(gone)
	open := b.ready(91, run)
	b.ended("oom", nil)
	b.ended("oom", nil, labels("run", "y"))
	b.ended("", nil, run, named("other"))

	for _, c := range []struct {
		say  string
		f    store.Filter
		want []flow.ID
	}{
		{"ok", store.Filter{Verdicts: []string{store.VerdictOK}, Action: "noop"}, []flow.ID{good}},
		{"one code", store.Filter{Verdicts: []string{"oom"}, Labels: map[string]string{"run": "x"}}, []flow.ID{bad}},
		{"a long code", store.Filter{Verdicts: []string{long}}, []flow.ID{far}},
		{"several", store.Filter{Verdicts: []string{"oom", store.VerdictOK, flow.CodeCancelled}, Labels: map[string]string{"run": "x"}, Action: "noop"}, []flow.ID{gone, bad, good}},
		{"with a stage", store.Filter{Verdicts: []string{"oom", flow.CodeCancelled}, Stages: []flow.Stage{flow.Cancelled, flow.Running}}, []flow.ID{gone}},
		{"with a stage that has none", store.Filter{Verdicts: []string{"oom"}, Stages: []flow.Stage{flow.Scheduled}}, nil},
		{"unknown", store.Filter{Verdicts: []string{"oo", "because"}}, nil},
		{"everything", store.Filter{Labels: map[string]string{"run": "x"}, Action: "noop"}, []flow.ID{open, gone, far, alike, bad, good}},
	} {
		c.f.Limit = 100
		got, err := store.List(b.ctx(), b.s, c.f)
		must(b, err)
		equal(b, c.say, ids(got), c.want)
		for _, x := range got {
			switch {
			case x.ID == open && x.Outcome != nil, x.ID != open && (x.Outcome == nil || x.Outcome.Output != nil):
				b.Errorf("%s: %s is listed with the outcome %+v", c.say, x.ID, x.Outcome)
			case x.ID == bad:
				equal(b, c.say+": error", x.Outcome.Error, &flow.Error{Code: "oom", Message: "because of oom", Details: raw(`{"exit_code":3}`)})
			}
		}
	}
	tally := func(f store.Filter) []store.Tally {
		all, more, err := b.s.Tally(b.ctx(), f)
		must(b, err)
		equal(b, "more than were counted", more, f.Reach > 0 && f.Reach < 7)
		slices.SortFunc(all, func(x, y store.Tally) int {
			return cmp.Or(cmp.Compare(x.Stage, y.Stage), cmp.Compare(x.Code, y.Code))
		})
		return all
	}
	equal(b, "counts", tally(store.Filter{Labels: map[string]string{"run": "x"}, Limit: 1, Before: good}), []store.Tally{
		{Stage: flow.Scheduled, Count: 1}, {Stage: flow.Completed, Count: 2}, {Stage: flow.Failed, Code: long, Count: 1},
		{Stage: flow.Failed, Code: "oom", Count: 1}, {Stage: flow.Failed, Code: "oom_score", Count: 1}, {Stage: flow.Cancelled, Code: flow.CodeCancelled, Count: 1}})
	equal(b, "counts of one verdict", tally(store.Filter{Verdicts: []string{"oom"}}), []store.Tally{{Stage: flow.Failed, Code: "oom", Count: 3}})
	equal(b, "counts of open ones", tally(store.Filter{Stages: []flow.Stage{flow.Scheduled}}), []store.Tally{{Stage: flow.Scheduled, Count: 1}})
	byLabel := map[string]string{"run": "x"}
	equal(b, "counts within the reach", tally(store.Filter{Labels: byLabel, Reach: 8}), tally(store.Filter{Labels: byLabel}))
	equal(b, "counts of the newest three, and of all that are open", tally(store.Filter{Labels: byLabel, Reach: 3}), []store.Tally{
		{Stage: flow.Scheduled, Count: 1}, {Stage: flow.Completed, Count: 1}, {Stage: flow.Cancelled, Code: flow.CodeCancelled, Count: 1}})
	equal(b, "counts of the newest one", tally(store.Filter{Labels: byLabel, Reach: 1}), []store.Tally{{Stage: flow.Scheduled, Count: 1}, {Stage: flow.Completed, Count: 1}})
	equal(b, "counts of another condition", tally(store.Filter{Labels: byLabel, Action: "noop", Verdicts: []string{flow.CodeCancelled}, Reach: 3}), []store.Tally{
		{Stage: flow.Cancelled, Code: flow.CodeCancelled, Count: 1}})
	equal(b, "counts of nothing", len(tally(store.Filter{Labels: map[string]string{"run": "z"}})), 0)
}

// endData checks that the data of last events come in the requested order, and as many as fit into a page.
func endData(b *bench) {
	said := func(data json.RawMessage) flow.ID {
		id := b.claimed(flow.ID{9})
		d := b.load(id)
		d.Report(d.Owner, flow.Report{Execution: id, Attempt: 1, Events: []flow.Event{{Seq: d.NextSeq, Attempt: 1, Type: flow.EvRunning, At: b.now},
			{Seq: d.NextSeq + 1, Attempt: 1, Type: flow.EvProgress, At: b.now, Data: raw(`{"done":1}`)},
			{Seq: d.NextSeq + 2, Attempt: 1, Type: flow.EvCompleted, At: b.now, Data: data, Outcome: &flow.Outcome{Output: raw(`1`)}}}}, nil, nil, b.now, 0)
		b.apply(d)
		return id
	}
	cells, silent := said(raw(`{"cases":{"cells":"PPW"}}`)), said(nil)
	open := b.ready(9)
	got, err := b.s.Documents(b.ctx(), store.EndDataOf, []flow.ID{silent, cells, open, b.id(), cells})
	must(b, err)
	equal(b, "data of the last events", got, []json.RawMessage{nil, raw(`{"cases":{"cells":"PPW"}}`), nil, nil, raw(`{"cases":{"cells":"PPW"}}`)})
	var large []flow.ID
	for i := range 80 {
		large = append(large, said(raw(`{"n":%d,"x":%q}`, i, strings.Repeat("x", flow.MostData-100))))
	}
	got, err = b.s.Documents(b.ctx(), store.EndDataOf, large)
	must(b, err)
	if len(got) < 50 || len(got) > 70 {
		b.Errorf("data of %d last events of 64 KB, where a page has room for 64", len(got))
	}
	for i, o := range got {
		if !strings.HasPrefix(string(o), fmt.Sprintf(`{"n":%d,`, i)) {
			b.Errorf("the data of event %d begin with %.20s", i, o)
		}
	}
	if got, err = b.s.Documents(b.ctx(), store.EndDataOf, nil); err != nil || len(got) != 0 {
		b.Errorf("of nothing: %v, %v", got, err)
	}
}

// outputs checks that outputs come in the requested order, and as many as fit into a page.
func outputs(b *bench) {
	small := b.ended("", raw(`{"n":1}`))
	none := b.ended("oom", nil)
	open := b.ready(9)
	got, err := b.s.Documents(b.ctx(), store.OutputOf, []flow.ID{none, open, small, b.id(), small})
	must(b, err)
	equal(b, "outputs", got, []json.RawMessage{nil, nil, raw(`{"n":1}`), nil, raw(`{"n":1}`)})
	var large []flow.ID
	for i := range 7 {
		large = append(large, b.ended("", raw(`{"n":%d,"x":%q}`, i, strings.Repeat("x", 1<<20))))
	}
	got, err = b.s.Documents(b.ctx(), store.OutputOf, large)
	must(b, err)
	if len(got) != 4 {
		b.Errorf("%d outputs of 1 MB, where a page has room for 4", len(got))
	}
	for i, o := range got {
		if !strings.HasPrefix(string(o), fmt.Sprintf(`{"n":%d,`, i)) {
			b.Errorf("output %d begins with %.20s", i, o)
		}
	}
	if got, err = b.s.Documents(b.ctx(), store.OutputOf, nil); err != nil || len(got) != 0 {
		b.Errorf("of nothing: %v, %v", got, err)
	}
}

// submitted checks that inputs come in the requested order, and as many as fit into a page, whether they are small or stored separately and
// whether the execution has ended or not.
func submitted(b *bench) {
	given := func(input json.RawMessage) func(*flow.Request) {
		return func(r *flow.Request) { r.Input = input }
	}
	over, open, none := b.ended("", nil, given(raw(`{"n":1}`))), b.ready(9, given(raw(`{"n":2}`))), b.ready(10, given(nil))
	got, err := b.s.Documents(b.ctx(), store.InputOf, []flow.ID{open, none, over, b.id(), open})
	must(b, err)
	equal(b, "inputs", got, []json.RawMessage{raw(`{"n":2}`), nil, raw(`{"n":1}`), nil, raw(`{"n":2}`)})
	var large []flow.ID
	for i := range 7 {
		big := given(raw(`{"n":%d,"x":%q}`, i, strings.Repeat("x", 1<<20)))
		if i%2 == 0 {
			large = append(large, b.ended("", nil, big))
		} else {
			large = append(large, b.ready(int64(20+i), big))
		}
	}
	got, err = b.s.Documents(b.ctx(), store.InputOf, large)
	must(b, err)
	if len(got) != 4 {
		b.Errorf("%d inputs of 1 MB, where a page has room for 4", len(got))
	}
	for i, o := range got {
		if !strings.HasPrefix(string(o), fmt.Sprintf(`{"n":%d,`, i)) {
			b.Errorf("input %d begins with %.20s", i, o)
		}
	}
}

// number numbers the unnumbered ends of a label.
func (b *bench) number(l store.Label, n int) {
	b.Helper()
	ended, _, err := b.s.Unnumbered(b.ctx(), l, n)
	must(b, err)
	b.update(func(ctx context.Context, t store.Tx) error {
		did, err := t.Number(ctx, l, ended)
		if err == nil && !did {
			err = fmt.Errorf("the label %+v is locked", l)
		}
		return err
	})
}

func (b *bench) endsAfter(l store.Label, after int64, n int) (all []flow.ID, last int64) {
	b.Helper()
	got, err := b.s.Ended(b.ctx(), l, after, n)
	must(b, err)
	for _, x := range got {
		if x.Number <= after || x.Outcome == nil || x.Outcome.Output != nil {
			b.Errorf("%s has number %d behind %d and the outcome %+v", x.ID, x.Number, after, x.Outcome)
		}
		all, after = append(all, x.ID), x.Number
	}
	return all, after
}

// ends checks that every execution with a label is read once, in the order in which the ends were numbered.
func ends(b *bench) {
	l := store.Label{Name: "run", Value: "x"}
	run := labels("run", "x", "team", "red")
	late := b.claimed(flow.ID{9}, run)
	first := b.ended("", raw(`1`), run)
	failed := b.ended("oom", raw(`2`), run)
	wf := b.workflow()
	b.ended("", nil, under(wf, "t", 0), run)
	b.ended("", nil, labels("run", "y"))
	other := b.ended("", nil, run, named("other"))

	ended, open, err := b.s.Unnumbered(b.ctx(), l, 10)
	must(b, err)
	equal(b, "unnumbered", ended, []flow.ID{first, failed, other})
	equal(b, "open", open, true)
	if got, _ := b.endsAfter(l, 0, 10); len(got) > 0 {
		b.Errorf("%v have numbers", got)
	}
	b.number(l, 2)
	got, cursor := b.endsAfter(l, 0, 10)
	equal(b, "first part", got, []flow.ID{first, failed})
	b.number(l, 10)
	b.number(l, 10) // this changes nothing
	b.endWith(late, "", raw(`3`))
	ended, open, err = b.s.Unnumbered(b.ctx(), l, 10)
	must(b, err)
	equal(b, "unnumbered at last", ended, []flow.ID{late})
	equal(b, "open at last", open, false)
	b.number(l, 10)
	got, _ = b.endsAfter(l, cursor, 10)
	equal(b, "second part", got, []flow.ID{other, late})
	got, cursor = b.endsAfter(l, 0, 3)
	equal(b, "again, a page", got, []flow.ID{first, failed, other})
	got, _ = b.endsAfter(l, cursor, 3)
	equal(b, "again, the rest", got, []flow.ID{late})

	of := store.Label{Name: "run", Value: "x", Action: "other"}
	got, _ = b.endsAfter(of, 0, 10)
	equal(b, "of an action", got, []flow.ID{other})
	ended, open, err = b.s.Unnumbered(b.ctx(), of, 10)
	must(b, err)
	equal(b, "unnumbered of an action", len(ended), 0)
	equal(b, "open of an action", open, false)

	// Each label has its own order; retention does not change the numbers of others, and new numbers are greater than old ones.
	team := store.Label{Name: "team", Value: "red"}
	b.number(team, 10)
	got, _ = b.endsAfter(team, 0, 10)
	equal(b, "of another label", asSet(got), asSet([]flow.ID{late, first, failed, other}))
	_, cursor = b.endsAfter(l, 0, 10)
	b.update(func(ctx context.Context, t store.Tx) error {
		_, err := t.Remove(ctx, []flow.ID{late, first, failed, other})
		return err
	})
	again := b.ended("", nil, run)
	b.number(l, 10)
	got, _ = b.endsAfter(l, cursor, 10)
	equal(b, "after the others were removed", got, []flow.ID{again})
	// Unfinished executions, and those without the label, get no number.
	open2, unlabelled := b.ready(99, run), b.ended("", nil)
	b.update(func(ctx context.Context, t store.Tx) error {
		_, err := t.Number(ctx, l, []flow.ID{open2, unlabelled, b.id()})
		return err
	})
	if got, _ = b.endsAfter(l, 0, 10); len(got) != 1 {
		b.Errorf("%v have numbers", got)
	}
}

// racingNumbers checks that concurrent readers that number the same label each see every end once.
func racingNumbers(b *bench) {
	const readers, each = 4, 60
	l := store.Label{Name: "run", Value: "x"}
	var wg sync.WaitGroup
	seen := make([][]flow.ID, readers)
	var open []flow.ID
	for range each {
		open = append(open, b.claimed(flow.ID{9}, labels("run", "x")))
	}
	failed := make(chan error, readers)
	for r := range readers {
		wg.Go(func() {
			cursor := int64(0)
			for {
				ended, more, err := b.s.Unnumbered(b.ctx(), l, 7)
				if err == nil && len(ended) > 0 {
					err = b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
						_, err := t.Number(ctx, l, ended)
						return err
					})
				}
				var got []store.Ended
				if err == nil {
					got, err = b.s.Ended(b.ctx(), l, cursor, 1000)
				}
				if err != nil {
					failed <- err
					return
				}
				for _, x := range got {
					seen[r], cursor = append(seen[r], x.ID), x.Number
				}
				if !more && len(ended) == 0 {
					return
				}
			}
		})
	}
	for _, id := range open {
		b.endWith(id, "", nil)
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		b.Fatal(err)
	}
	for r := range readers {
		equal(b, fmt.Sprintf("what reader %d saw, in its order", r), seen[r], seen[0])
	}
	equal(b, "what was seen", asSet(seen[0]), asSet(open))
}
