package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// asking returns an execution that waits for an answer, and its inquiry; neither is stored.
func (b *bench) asking(purpose string, q flow.Question, change ...func(*flow.Request)) (*flow.Draft, *flow.Inquiry) {
	b.Helper()
	d := b.submit(append(change, func(r *flow.Request) { r.Action, r.Kind = "ask", flow.KindAsk })...)
	must(b, d.Schedule(1, b.now))
	asker := d.Parent
	if asker.IsZero() {
		asker = d.ID
	}
	i, err := flow.Ask(nil, b.id(), d.ID, flow.InquiryKey{Asker: asker, Purpose: purpose}, q, b.now)
	must(b, err)
	d.WakeAgainAt(i.Due)
	return d, i
}

// ask stores an execution that waits for answers, with its inquiries.
func (b *bench) ask(d *flow.Draft, all ...*flow.Inquiry) {
	b.Helper()
	must(b, b.putInquiries(d, all...))
}

// putInquiries stores inquiries, and a draft if there is one.
func (b *bench) putInquiries(d *flow.Draft, all ...*flow.Inquiry) error {
	return b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
		if d != nil {
			if err := t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}}); err != nil {
				return err
			}
		}
		return t.Apply(ctx, store.Delta{Inquiries: all})
	})
}

func (b *bench) inquiry(id flow.ID) *flow.Inquiry {
	b.Helper()
	i, err := b.s.Inquiry(b.ctx(), id)
	must(b, err)
	return i
}

// answer ends an execution by an answer to its question.
func (b *bench) answer(i *flow.Inquiry, by, value string) error {
	b.Helper()
	if _, err := i.Reply(flow.Answer{AnswerOutput: flow.AnswerOutput{Value: json.RawMessage(value), By: by, At: b.now}, Via: "api"}, flow.Person{Name: by}, false); err != nil {
		return err
	}
	as, outcome, err := i.Answer.Outcome()
	must(b, err)
	d := b.load(i.Execution)
	if err := d.Finish(as, outcome, b.now, 0); err != nil {
		return fmt.Errorf("%w: %w", store.ErrConflict, err)
	}
	return b.putInquiries(d, i)
}

// inquiries checks that inquiries are stored, found by id, key and execution, and written only with the right revision.
func inquiries(b *bench) {
	q := flow.Question{Title: "Release é?", Text: "All of it", Form: json.RawMessage(`{"type":"object","z":"\u0000<é","a":1}`), Assignees: []string{"ada", "group:release"},
		Exclude: []string{"bob"}, Accept: "answer.ok", Expires: time.Hour, Default: json.RawMessage(`{"ok":false}`), DefaultDeclined: true}
	d, i := b.asking("release", q)
	b.ask(d, i)
	i.Revision = 1
	equal(b, "by id", b.inquiry(i.ID), i)
	of, err := b.s.InquiryOf(b.ctx(), d.ID)
	must(b, err)
	equal(b, "by execution", of, i)
	_, err = b.s.Inquiry(b.ctx(), b.id())
	wantErr(b, "an inquiry that is not there", err, store.ErrNotFound)
	_, err = b.s.InquiryOf(b.ctx(), b.id())
	wantErr(b, "an execution that never asked", err, store.ErrNotFound)
	_, other := b.asking("other", q)
	keyed := inTx(b, func(ctx context.Context, t store.Tx) ([]*flow.Inquiry, error) {
		return t.InquiriesOf(ctx, []flow.InquiryKey{other.InquiryKey, i.InquiryKey, {Asker: i.Asker, Purpose: "Release"}})
	})
	equal(b, "by key", keyed, []*flow.Inquiry{i})
	open := inTx(b, func(ctx context.Context, t store.Tx) ([]*flow.Inquiry, error) {
		return t.OpenInquiries(ctx, []flow.ID{other.Execution, d.ID})
	})
	equal(b, "open", open, []*flow.Inquiry{i})
	asking := func(of ...flow.ID) map[flow.ID]flow.ID {
		b.Helper()
		found, err := b.s.Asking(b.ctx(), of)
		must(b, err)
		return found
	}
	equal(b, "asking", asking(other.Execution, d.ID), map[flow.ID]flow.ID{d.ID: i.ID})
	w := b.submit(func(r *flow.Request) { r.Action, r.Kind = "w", flow.KindWorkflow })
	b.apply(w)
	task, second := b.asking("second", q, func(r *flow.Request) { r.Parent, r.ParentAttempt, r.Task = w.ID, 1, "second" })
	b.ask(task, second)
	task, first := b.asking("first", q, func(r *flow.Request) { r.Parent, r.ParentAttempt, r.Task = w.ID, 1, "first" })
	b.ask(task, first)
	equal(b, "asking, of a workflow and of a task", asking(w.ID, second.Execution, d.ID), map[flow.ID]flow.ID{w.ID: first.ID, second.Execution: second.ID, d.ID: i.ID})
	askers := func(n int) map[flow.ID]flow.ID {
		b.Helper()
		found, err := b.s.Askers(b.ctx(), n)
		must(b, err)
		return found
	}
	equal(b, "what asks", askers(10), map[flow.ID]flow.ID{w.ID: first.ID, d.ID: i.ID})
	equal(b, "one of what asks", len(askers(1)), 1)
	first.Revision = 1
	must(b, b.answer(first, "ada", `{"ok":true}`))
	equal(b, "asking, one of two being answered", asking(w.ID, first.Execution), map[flow.ID]flow.ID{w.ID: second.ID})
	equal(b, "what asks, one of two being answered", askers(10), map[flow.ID]flow.ID{w.ID: second.ID, d.ID: i.ID})

	again := *i
	again.ID, again.Revision, again.Execution = b.id(), 0, b.id()
	wantErr(b, "another inquiry for the key", b.putInquiries(nil, &again), store.ErrConflict)
	b.later(time.Minute)
	stale := *i
	must(b, b.answer(i, "ada", `{"ok":true}`))
	i.Revision = 2
	equal(b, "answered", b.inquiry(i.ID), i)
	stale.Withdraw(b.now)
	wantErr(b, "a change of what has changed", b.putInquiries(nil, &stale), store.ErrConflict)
	open = inTx(b, func(ctx context.Context, t store.Tx) ([]*flow.Inquiry, error) {
		return t.OpenInquiries(ctx, []flow.ID{d.ID})
	})
	equal(b, "open", len(open), 0)

	removed := inTx(b, func(ctx context.Context, t store.Tx) ([]flow.ID, error) { return t.Remove(ctx, []flow.ID{d.ID}) })
	equal(b, "removed", removed, []flow.ID{d.ID})
	_, err = b.s.Inquiry(b.ctx(), i.ID)
	wantErr(b, "the inquiry of what was removed", err, store.ErrNotFound)
}

// inquiryPages checks lists of inquiries by state and by person, and their number.
func inquiryPages(b *bench) {
	var all []*flow.Inquiry
	for n := range 6 {
		q := flow.Question{Title: "t", Assignees: [][]string{{"ada"}, {"ada", "group:ops"}, nil}[n%3]}
		d, i := b.asking("p", q)
		b.ask(d, i)
		i.Revision = 1
		all = append(all, i)
	}
	must(b, b.answer(all[3], "ada", `1`))
	all[3].Revision = 2
	list := func(f store.InquiryFilter) (at []int) {
		b.Helper()
		if f.Limit == 0 {
			f.Limit = 100
		}
		found, err := b.s.Inquiries(b.ctx(), f)
		must(b, err)
		for _, i := range found {
			at = append(at, slices.IndexFunc(all, func(k *flow.Inquiry) bool { return k.ID == i.ID }))
			equal(b, "an inquiry of a list", i, all[at[len(at)-1]])
		}
		return at
	}
	equal(b, "all", list(store.InquiryFilter{}), []int{5, 4, 3, 2, 1, 0})
	equal(b, "open", list(store.InquiryFilter{State: flow.InquiryOpen}), []int{5, 4, 2, 1, 0})
	equal(b, "a page", list(store.InquiryFilter{State: flow.InquiryOpen, Before: all[4].ID, Limit: 2}), []int{2, 1})
	equal(b, "answered", list(store.InquiryFilter{State: flow.InquiryAnswered}), []int{3})
	equal(b, "ada's", list(store.InquiryFilter{Assignee: "ada"}), []int{4, 1, 0})
	equal(b, "ada's, a page", list(store.InquiryFilter{Assignee: "ada", Before: all[4].ID, Limit: 1}), []int{1})
	equal(b, "a group's", list(store.InquiryFilter{Assignee: "group:ops"}), []int{4, 1})
	equal(b, "nobody's", len(list(store.InquiryFilter{Assignee: "eve"})), 0)
	sums, err := b.s.Survey(b.ctx())
	must(b, err)
	equal(b, "open ones", sums.Inquiries, 5)
	var large []flow.ID
	for range 6 {
		d, i := b.asking("large", flow.Question{Title: "t", Form: json.RawMessage(`{"title":"` + strings.Repeat("x", 1<<20) + `"}`), Assignees: []string{"eve"}})
		b.ask(d, i)
		large = append(large, i.ID)
	}
	for _, f := range []store.InquiryFilter{{}, {State: flow.InquiryOpen}, {Assignee: "eve"}} {
		f.Limit = 10
		found, err := b.s.Inquiries(b.ctx(), f)
		must(b, err)
		if len(found) != 4 || found[0].ID != large[5] || found[3].ID != large[2] {
			b.Errorf("a page of %d inquiries of a megabyte, want the latest 4", len(found))
		}
	}
}

// racingInquiries lets eight writers ask under one key concurrently: one of them succeeds.
func racingInquiries(b *bench) {
	for round := range 5 {
		raceInquiry(b, fmt.Sprintf("round %d", round), func(int) store.Store { return b.s })
	}
}

// doubleInquiry is racingInquiries with two stores.
func doubleInquiry(s *shared) {
	for round := range 5 {
		raceInquiry(s.bench, fmt.Sprintf("round %d", round), func(i int) store.Store { return s.both[i%2] })
	}
}

func raceInquiry(b *bench, purpose string, on func(int) store.Store) {
	wf := b.workflow()
	const writers = 8
	drafts, asked := make([]*flow.Draft, writers), make([]*flow.Inquiry, writers)
	for n := range writers {
		drafts[n], asked[n] = b.asking(purpose, flow.Question{Title: "t"}, under(wf, fmt.Sprintf("t%d", n), 0))
	}
	won := b.winners(writers, func(n int) error {
		return on(n).Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
			d, i := *drafts[n], *asked[n]
			if err := t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{&d}}); err != nil {
				return err
			}
			return t.Apply(ctx, store.Delta{Inquiries: []*flow.Inquiry{&i}})
		})
	})
	equal(b, "writers that asked", won, 1)
}

// racingAnswers lets answers and an expiry race for one inquiry: one of them ends it.
func racingAnswers(b *bench) {
	for range 5 {
		d, i := b.asking("p", flow.Question{Title: "t", Expires: time.Minute})
		b.ask(d, i)
		i.Revision = 1
		b.later(time.Second)
		draft := b.load(d.ID)
		won := b.winners(8, func(n int) error {
			mine, of := *i, *draft
			x := *draft.Execution
			of.Execution = &x
			as, outcome := flow.TimedOut, flow.Outcome{Error: &flow.Error{Code: flow.CodeInquiryExpired}}
			if n == 0 {
				mine.Expire(i.Due)
			} else {
				_, err := mine.Reply(flow.Answer{AnswerOutput: flow.AnswerOutput{Value: json.RawMessage(`1`), By: fmt.Sprint(n), At: b.now}}, flow.Person{Name: fmt.Sprint(n)}, false)
				if err == nil {
					as, outcome, err = mine.Answer.Outcome()
				}
				if err != nil {
					return err
				}
			}
			if err := of.Finish(as, outcome, mine.ClosedAt, 0); err != nil {
				return err
			}
			return b.putInquiries(&of, &mine)
		})
		equal(b, "ends", won, 1)
		equal(b, "revision", b.inquiry(i.ID).Revision, 2)
	}
}

// inquiryViolations plants rows that no engine writes.
func inquiryViolations(b *bench) {
	put := func(i *flow.Inquiry) {
		b.Helper()
		must(b, b.putInquiries(nil, i))
		i.Revision++
	}
	b.clean()
	d, i := b.asking("p", flow.Question{Title: "t", Expires: time.Hour})
	b.apply(d)
	b.broken(44, "waiting without an inquiry", d.ID)
	put(i)
	b.clean()
	i.Withdraw(b.now)
	put(i)
	b.broken(44, "waiting for what was withdrawn", d.ID)
	i.State, i.ClosedAt = flow.InquiryOpen, time.Time{}
	put(i)
	d = b.load(d.ID)
	must(b, d.Cancel(flow.Cancelled, flow.CodeCancelled, "x", b.now))
	b.apply(d)
	b.broken(44, "open though its execution has ended", d.ID)
	i.Expire(b.now)
	put(i)
	b.broken(46, "expired before its time", d.ID)
	i.State, i.ClosedAt, i.Answer = flow.InquiryAnswered, i.Due, &flow.Answer{AnswerOutput: flow.AnswerOutput{Value: json.RawMessage(`1`), By: "ada", At: i.Due}}
	put(i)
	b.broken(46, "answered after its time", d.ID)
	i.ClosedAt = b.now
	put(i)
	b.broken(44, "answered, and cancelled", d.ID)
	i.State, i.Answer, i.Execution = flow.InquiryOpen, nil, b.id()
	i.ClosedAt = time.Time{}
	put(i)
	b.broken(44, "asked by an execution that is not there", i.Execution)
	i.Withdraw(b.now)
	put(i)
	b.clean()

	e := b.submit(func(r *flow.Request) { r.Action, r.Kind = "ask", flow.KindAsk })
	must(b, e.Schedule(1, b.now))
	e.Place, e.Ticket, e.Owner = flow.Held, 0, flow.ID{7}
	b.apply(e)
	b.broken(47, "owned by a worker", e.ID)
}
