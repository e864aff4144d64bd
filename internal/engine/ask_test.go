package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/inquiries"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// asked waits until an execution, or a task of it, asks a question, and returns the inquiry.
func (r *rig) asked(id flow.ID, task string) *flow.Inquiry {
	r.Helper()
	var i *flow.Inquiry
	r.until(func() bool {
		x := r.get(id)
		of := id
		if task != "" {
			of = flow.ID{}
			children, err := r.store.Children(r.ctx, store.WorkflowAttempt{ID: id, Attempt: x.Attempt}, "", -1, 100)
			if err != nil {
				r.Fatal(err)
			}
			for _, c := range children {
				if c.Task == task {
					of = c.Execution
				}
			}
		}
		found, err := r.store.InquiryOf(r.ctx, of)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			r.Fatal(err)
		}
		i = found
		return i != nil && i.State == flow.InquiryOpen
	})
	return i
}

func (r *rig) reply(i *flow.Inquiry, by, value string) error {
	_, err := r.e.inquiries.Answer(r.ctx, i.ID, inquiries.Reply{By: by, Value: json.RawMessage(value), Via: "api"})
	return err
}

const release = `
name: release
input: {type: object}
tasks:
  approve:
    action: ask
    with:
      purpose: "release ${{ input.version }}"
      title: "Release ${{ input.version }}?"
      form: {type: object, required: [approved], properties: {approved: {type: boolean}, window: {enum: [now, tonight], default: now}}}
      assignees: [group:release, "user:ada", bob]
      exclude: ["${{ input.by }}"]
      accept: answer.approved
  ship: {needs: [approve], action: noop, with: {window: "${{ tasks.approve.output.answer.window }}", by: "${{ tasks.approve.output.by }}"}}
outputs: {shipped: "${{ tasks.ship.output }}"}
`

func TestAsk(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(release)
		id := r.submit(Submission{Action: "release", Input: json.RawMessage(`{"version":"1.2","by":"bob"}`)})
		i := r.asked(id, "approve")
		if i.Title != "Release 1.2?" || i.Asker != id || i.Purpose != "release 1.2" || !i.Due.IsZero() {
			r.Errorf("asked %+v", i)
		}
		w, err := r.e.Why(r.ctx, i.Execution)
		if err != nil || w.Waiting != "answer" || !strings.Contains(w.Summary, i.ID.Text(flow.InquiryPrefix)+" is unanswered, for group:release, ada, bob") {
			r.Errorf("why: %+v, %v", w, err)
		}
		if err := r.reply(i, "bob", `{"approved":true}`); !errors.Is(err, flow.ErrExcluded) {
			r.Errorf("an excluded one's answer: %v", err)
		}
		if err := r.reply(i, "eve", `{"approved":true}`); !errors.Is(err, flow.ErrNotAsked) {
			r.Errorf("another person's answer: %v", err)
		}
		var ps definition.Problems
		if err := r.reply(i, "ada", `{"approved":"yes","window":"never"}`); !errors.As(err, &ps) || len(ps) != 2 || ps[0].Path != "answer.approved" || ps[1].Path != "answer.window" {
			r.Errorf("an answer that does not fit: %v", err)
		}
		if now, err := r.store.Inquiry(r.ctx, i.ID); err != nil || now.State != flow.InquiryOpen || now.Revision != i.Revision {
			r.Errorf("after refused answers: %+v, %v", now, err)
		}
		if err := r.reply(i, "ada", `{"approved":true}`); err != nil {
			r.Fatalf("answer: %v", err)
		}
		for range 2 {
			if err := r.reply(i, "ada", `{"window":"now", "approved":true}`); err != nil {
				r.Errorf("the same answer again: %v", err)
			}
		}
		if err := r.reply(i, "ada", `{"approved":false}`); !errors.Is(err, flow.ErrAnswered) || !strings.Contains(err.Error(), "by ada at ") {
			r.Errorf("another answer: %v", err)
		}
		if err := r.reply(i, "bob", `{"approved":true}`); !errors.Is(err, flow.ErrExcluded) {
			r.Errorf("an excluded one's late answer: %v", err)
		}
		x := r.get(i.Execution)
		var out struct {
			Answer    map[string]any
			By, Note  string
			At        time.Time
			Defaulted bool
		}
		if err := json.Unmarshal(x.Outcome.Output, &out); err != nil || out.Answer["window"] != "now" || out.By != "ada" || out.Defaulted || out.At.IsZero() {
			r.Errorf("output %s, %v", x.Outcome.Output, err)
		}
	})
}

func TestAskDeclined(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(release)
	id := r.submit(Submission{Action: "release", Input: json.RawMessage(`{"version":"1","by":"x"}`)})
	i := r.asked(id, "approve")
	if _, err := r.e.inquiries.Answer(r.ctx, i.ID, inquiries.Reply{By: "carl", Groups: []string{"group:release"}, Value: json.RawMessage(`{"approved":false}`), Note: "not on Friday"}); err != nil {
		t.Fatal(err)
	}
	if x := r.ended(i.Execution); x.Stage != flow.Failed || x.Outcome.Error.Code != flow.CodeDeclined || x.Outcome.Error.Message != "declined by carl: not on Friday" || x.Outcome.Output == nil {
		t.Errorf("%s %+v", x.Stage, x.Outcome)
	}
	if x := r.ended(id); x.Stage != flow.Failed {
		t.Errorf("the workflow is %s", x.Stage)
	}
}

func TestAskExpires(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	late := r.submit(Submission{Action: "ask", Input: json.RawMessage(`{"title":"?","expires":"2h"}`)})
	byDefault := r.submit(Submission{Action: "ask", Input: json.RawMessage(`{"title":"?","expires":"2h","on_expiry":"default","default":{},"form":{"properties":{"n":{"default":7}}}}`)})
	refused := r.submit(Submission{Action: "ask", Input: json.RawMessage(`{"title":"?","expires":"2h","on_expiry":"default","default":false,"accept":"answer"}`)})
	again := r.submit(Submission{Action: "ask", Input: json.RawMessage(`{"title":"?","expires":"2h"}`), Retry: &flow.Retry{MaxAttempts: 2, Delay: time.Minute}})
	first := r.asked(again, "")
	r.pass(2*time.Hour - time.Minute)
	i := r.asked(late, "")
	r.pass(2 * time.Minute)
	if x := r.ended(late); x.Stage != flow.TimedOut || x.Outcome.Error.Code != flow.CodeInquiryExpired {
		t.Errorf("%s %+v", x.Stage, x.Outcome)
	}
	if x := r.ended(byDefault); x.Stage != flow.Completed || !strings.HasPrefix(string(x.Outcome.Output), `{"answer":{"n":7},"by":"","at":"`) || !strings.HasSuffix(string(x.Outcome.Output), `"note":"","defaulted":true}`) {
		t.Errorf("%s %s", x.Stage, x.Outcome.Output)
	}
	if x := r.ended(refused); x.Stage != flow.Failed || x.Outcome.Error.Code != flow.CodeDeclined {
		t.Errorf("%s %+v", x.Stage, x.Outcome)
	}
	if err := r.reply(i, "ada", `1`); !errors.Is(err, flow.ErrClosed) || !strings.Contains(err.Error(), "it was expired at") {
		t.Errorf("an answer after expiry: %v", err)
	}
	if err := r.reply(first, "ada", `1`); !errors.Is(err, flow.ErrClosed) {
		t.Errorf("an answer between attempts: %v", err)
	}
	r.pass(2 * time.Minute)
	second := r.asked(again, "")
	if second.ID != first.ID || !second.Due.After(first.Due) {
		t.Errorf("asked again as %+v, first %+v", second, first)
	}
	if err := r.reply(second, "ada", `1`); err != nil {
		t.Error(err)
	}
	r.ended(again)
}

func TestAskEndsOtherwise(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		id := r.submit(Submission{Action: "ask", Input: json.RawMessage(`{"title":"?"}`)})
		i := r.asked(id, "")
		if _, err := r.e.Cancel(r.ctx, id, "enough"); err != nil {
			r.Fatal(err)
		}
		if now, err := r.store.Inquiry(r.ctx, i.ID); err != nil || now.State != flow.InquiryWithdrawn {
			r.Errorf("%+v, %v", now, err)
		}
		if err := r.reply(i, "ada", `1`); !errors.Is(err, flow.ErrClosed) {
			r.Errorf("an answer to what was withdrawn: %v", err)
		}
		timeout := r.submit(Submission{Action: "ask", Input: json.RawMessage(`{"title":"?"}`), Settings: flow.Settings{Timeout: 10 * time.Millisecond}})
		r.ended(timeout)
	})
}

// A question is asked once for all attempts of its workflow.
func TestAskAgain(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(`
name: twice
retry: {max_attempts: 3, delay: 1ms, backoff: constant}
tasks:
  approve: {action: ask, with: {title: Go?}}
  more: {action: ask, with: {title: More?}}
  fail: {needs: [approve], action: sleep, with: {for: "${{ string(tasks.approve.output.answer) }}"}}
`)
		id := r.submit(Submission{Action: "twice"})
		i, more := r.asked(id, "approve"), r.asked(id, "more")
		if i.Purpose != "approve[0]" {
			r.Errorf("purpose %q", i.Purpose)
		}
		if err := errors.Join(r.reply(i, "ada", `"no span"`), r.reply(more, "bob", `2`)); err != nil {
			r.Fatal(err)
		}
		x := r.ended(id)
		if x.Attempt != 3 {
			r.Errorf("%d attempts", x.Attempt)
		}
		if now, err := r.store.Inquiry(r.ctx, more.ID); err != nil || now.State != flow.InquiryAnswered || now.Execution == more.Execution {
			r.Errorf("the other question: %+v, %v", now, err)
		}
		all, err := r.store.Inquiries(r.ctx, store.InquiryFilter{Limit: 10})
		if err != nil || len(all) != 2 {
			r.Errorf("%d inquiries, %v", len(all), err)
		}
	})
}

// An expired question is asked again to other people under the same purpose: one transaction withdraws the first inquiry and opens the
// second.
func TestAskOthers(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(`
name: escalate
tasks:
  first: {action: ask, timeout: 10ms, continue_on_error: true, with: {title: Go?, purpose: p, assignees: [ada]}}
  second: {needs: [first], action: ask, with: {title: Go?, purpose: p, assignees: [bob]}}
`)
		id := r.submit(Submission{Action: "escalate"})
		var second *flow.Execution
		r.until(func() bool {
			children, err := r.store.Children(r.ctx, store.WorkflowAttempt{ID: id, Attempt: 1}, "first", 0, 10)
			if err != nil {
				r.Fatal(err)
			}
			if len(children) == 1 {
				second = r.get(children[0].Execution)
			}
			return second != nil && second.Stage != flow.Requested
		})
		if second.Stage.Terminal() {
			r.Fatalf("the second question: %s %+v", second.Stage, second.Outcome.Error)
		}
		for who, n := range map[string]int{"ada": 0, "bob": 1} {
			if all, err := r.store.Inquiries(r.ctx, store.InquiryFilter{Assignee: who, Limit: 10}); err != nil || len(all) != n {
				r.Errorf("%d questions are put to %s, want %d: %v", len(all), who, n, err)
			}
		}
		if err := r.reply(r.asked(id, "second"), "bob", `1`); err != nil {
			r.Fatal(err)
		}
		if x := r.ended(id); x.Stage != flow.Completed {
			r.Errorf("%s %+v", x.Stage, x.Outcome)
		}
	})
}

func TestAskUnderOnePurpose(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(`
name: clash
tasks:
  one: {action: ask, with: {title: Go?, purpose: p}}
  two: {action: ask, with: {title: "${{ input.title }}", purpose: p}, continue_on_error: true}
`)
	for _, title := range []string{"Go?", "Stop?"} {
		id := r.submit(Submission{Action: "clash", Input: json.RawMessage(fmt.Sprintf(`{"title":%q}`, title))})
		i := r.asked(id, "one")
		if err := r.reply(i, "ada", `1`); err != nil {
			t.Fatal(err)
		}
		x := r.ended(id)
		children, err := r.store.Children(r.ctx, store.WorkflowAttempt{ID: id, Attempt: 1}, "one", 0, 10)
		if err != nil || len(children) != 1 {
			t.Fatalf("%d children, %v", len(children), err)
		}
		two := r.get(children[0].Execution)
		if x.Stage != flow.Completed || two.Stage != flow.Failed || two.Outcome.Error.Code != flow.CodeInvalidInput || !strings.Contains(two.Outcome.Error.Message, "a purpose of its own") {
			t.Errorf("%s, %s %+v", x.Stage, two.Stage, two.Outcome)
		}
	}
}

func TestAskOfItems(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(`
name: each
tasks:
  ask: {foreach: "${{ input }}", action: ask, with: {title: "${{ item }}"}}
outputs: {all: "${{ tasks.ask.output.map(o, o.answer) }}"}
`)
	id := r.submit(Submission{Action: "each", Input: json.RawMessage(`["a","b","c"]`)})
	r.asked(id, "ask")
	all, err := r.store.Inquiries(r.ctx, store.InquiryFilter{Limit: 10})
	if err != nil || len(all) != 3 {
		t.Fatalf("%d inquiries, %v", len(all), err)
	}
	var wg sync.WaitGroup
	for _, i := range all {
		wg.Go(func() {
			if err := r.reply(i, "ada", fmt.Sprintf("%q", strings.ToUpper(i.Title))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if x := r.ended(id); string(x.Outcome.Output) != `{"all":["A","B","C"]}` {
		t.Errorf("%s %s", x.Stage, x.Outcome.Output)
	}
}

// Of many simultaneous answers and a cancel, one ends the question.
func TestAnswersAtOnce(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		for range 5 {
			id := r.submit(Submission{Action: "ask", Input: json.RawMessage(`{"title":"?"}`)})
			i := r.asked(id, "")
			var wg sync.WaitGroup
			won := make(chan string, 10)
			for n := range 8 {
				wg.Go(func() {
					switch err := r.reply(i, fmt.Sprint("p", n), `1`); {
					case err == nil:
						won <- "completed"
					case !errors.Is(err, flow.ErrAnswered) && !errors.Is(err, flow.ErrClosed):
						r.Errorf("answer %d: %v", n, err)
					}
				})
			}
			wg.Go(func() {
				if _, err := r.e.Cancel(r.ctx, id, "x"); err == nil {
					won <- "cancelled"
				} else if !errors.Is(err, flow.ErrFinished) {
					r.Errorf("cancel: %v", err)
				}
			})
			wg.Wait()
			close(won)
			var all []string
			for w := range won {
				all = append(all, w)
			}
			if len(all) != 1 || r.get(id).Stage.String() != all[0] {
				r.Errorf("won: %v, and it is %s", all, r.get(id).Stage)
			}
		}
	})
}

func TestBadQuestions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for input, path := range map[string]string{
		`{}`:                                     "input.title",
		`{"title":"?","form":{"type":"objekt"}}`: "input.form.type",
		`{"title":"?","accept":"answer +"}`:      "input.accept",
		`{"title":"?","accept":"size(answer)"}`:  "input.accept",
		`{"title":"?","assignees":["a b"]}`:      "input.assignees[0]",
		`{"title":"?","on_expiry":"default","expires":"1h","default":1,"form":{"type":"string"}}`: "input.default",
		`{"title":"?","default":1}`:        "input.default",
		`{"title":"?","on_expiry":"fail"}`: "input.on_expiry",
		`{"title":"?","tilte":"?"}`:        "input.tilte",
		`{"title":"?","expires":"soon"}`:   "input.expires",
	} {
		out, err := r.e.Submit(r.ctx, []Submission{{Action: "ask", Input: json.RawMessage(input)}})
		var refused *fault.Invalid
		if err != nil || !errors.As(out[0].Err, &refused) || refused.Problems[0].Path != path {
			t.Errorf("%s: %v %v, want a problem at %s", input, err, out[0].Err, path)
		}
	}
	r.define("name: bad\ntasks:\n  a: {action: ask, with: {title: '${{ input.t }}', form: '${{ input.f }}'}}\n")
	id := r.submit(Submission{Action: "bad", Input: json.RawMessage(`{"t":"?","f":{"type":7}}`)})
	if x := r.ended(id); x.Stage != flow.Failed || !strings.Contains(x.Outcome.Error.Message, "form") {
		t.Errorf("%s %+v", x.Stage, x.Outcome)
	}
}

// until waits for a condition.
func (r *rig) until(holds func() bool) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			r.Fatal("it did not come true")
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Rules on the signals about inquiries notify people, and remind them.
func TestInquirySignals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(`
kind: rule
name: tell
on: [inquiry.opened, inquiry.waiting, inquiry.answered, inquiry.expired]
run: {action: noop, input: {what: "${{ signal.trigger }}", about: "${{ signal.data.title }}", times: "${{ signal.data.reminder }}"}}
`)
	told := func(trigger string) (all []string) {
		t.Helper()
		signals, err := r.store.Signals(r.ctx, store.SignalFilter{Trigger: trigger, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range signals {
			var data struct {
				Title    string
				Reminder int
				Answer   *struct {
					Answer int
					By     string
				}
			}
			if err := json.Unmarshal(s.Data, &data); err != nil {
				t.Fatal(err)
			}
			say := fmt.Sprintf("%s %d", data.Title, data.Reminder)
			if data.Answer != nil {
				say += fmt.Sprintf(" %d %s", data.Answer.Answer, data.Answer.By)
			}
			all = append(all, say)
		}
		return all
	}
	want := func(trigger string, want ...string) {
		t.Helper()
		if got := told(trigger); strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("%s: %q, want %q", trigger, got, want)
		}
	}
	a := r.submit(Submission{Action: "ask", Input: json.RawMessage(`{"title":"A","remind":["1h","2h"],"expires":"4h"}`)})
	b := r.submit(Submission{Action: "ask", Input: json.RawMessage(`{"title":"B"}`)})
	want("inquiry.opened", "B 0", "A 0")
	want("inquiry.waiting")
	r.pass(61 * time.Minute)
	want("inquiry.waiting", "A 1")
	r.pass(10 * time.Minute)
	want("inquiry.waiting", "A 1")
	r.pass(time.Hour)
	want("inquiry.waiting", "A 2", "A 1")
	if err := r.reply(r.asked(b, ""), "ada", `5`); err != nil {
		t.Fatal(err)
	}
	want("inquiry.answered", "B 0 5 ada")
	r.pass(3 * time.Hour)
	r.ended(a)
	want("inquiry.expired", "A 2")
	r.until(func() bool {
		all, err := store.List(r.ctx, r.store, store.Filter{Action: "noop", Limit: 100})
		return err == nil && len(all) == 6
	})
}

// A rule that asks a question on every question stops at its own.
func TestInquirySignalsInALoop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(`
name: again
tasks: {ask: {action: ask, with: {title: "?"}}}
---
kind: rule
name: loop
on: [inquiry.opened]
run: {action: again}
`)
	r.submit(Submission{Action: "ask", Input: json.RawMessage(`{"title":"first"}`)})
	r.until(func() bool {
		all, err := r.store.Enforcements(r.ctx, store.EnforcementFilter{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return len(all) == 2 && all[0].State == flow.EnforcementRefused && all[0].Reason.Code == flow.ReasonLoop
	})
}

// Verify finds an answer that does not fit its question.
func TestVerifyAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.submit(Submission{Action: "ask", Input: json.RawMessage(`{"title":"?","form":{"type":"integer","minimum":3},"accept":"answer > 4"}`)})
	i := r.asked(id, "")
	if err := r.reply(i, "ada", `5`); err != nil {
		t.Fatal(err)
	}
	put := func(change func(*flow.Inquiry)) {
		t.Helper()
		i, err := r.store.Inquiry(r.ctx, i.ID)
		if err != nil {
			t.Fatal(err)
		}
		change(i)
		if err := r.store.Update(r.ctx, func(ctx context.Context, tx store.Tx) error {
			return tx.Apply(ctx, store.Delta{Inquiries: []*flow.Inquiry{i}})
		}); err != nil {
			t.Fatal(err)
		}
	}
	for value, want := range map[string]string{`2`: "does not fit the form", `4`: "is declined: false, and accepted: false"} {
		put(func(i *flow.Inquiry) { i.Answer.Value = json.RawMessage(value) })
		broken, err := r.e.Verify(r.ctx)
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, v := range broken {
			if v.Invariant == 44 {
				said += v.Say + "\n"
			}
		}
		if !strings.Contains(said, want) {
			t.Errorf("%s: Verify found %v, want %q", value, broken, want)
		}
	}
	put(func(i *flow.Inquiry) { i.Answer.Value = json.RawMessage(`5`) })
}
