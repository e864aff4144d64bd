package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

// inquiries are those that a transaction decides about. They are written once, at its end: until then it is here that the
// requests of a batch see what those before them have decided.
type inquiries struct {
	known   map[flow.InquiryKey]*flow.Inquiry // that were looked for; nil: there is none
	of      map[flow.ID]*flow.Inquiry         // those of them that an execution waits for, or did so in this transaction
	changed map[flow.InquiryKey]bool
	left    []*flow.Draft // that asked, and do not wait for the answer any more
}

// remember takes in an inquiry as it was read, or as it is decided.
func (q *inquiries) remember(i *flow.Inquiry) {
	if q.known == nil {
		q.known, q.of, q.changed = map[flow.InquiryKey]*flow.Inquiry{}, map[flow.ID]*flow.Inquiry{}, map[flow.InquiryKey]bool{}
	}
	q.known[i.InquiryKey], q.of[i.Execution] = i, i
}

// decided takes in an inquiry that is to be written.
func (q *inquiries) decided(i *flow.Inquiry) {
	q.remember(i)
	q.changed[i.InquiryKey] = true
}

// inquiryKeyOf is the key under which an execution asks. Without a purpose of its own that is its task and its place in it.
func inquiryKeyOf(x *flow.Execution, purpose string) flow.InquiryKey {
	if x.Parent.IsZero() {
		return flow.InquiryKey{Asker: x.ID, Purpose: cmp.Or(purpose, x.Action)}
	}
	return flow.InquiryKey{Asker: x.Parent, Purpose: cmp.Or(purpose, fmt.Sprintf("%s[%d]", x.Task, x.Index))}
}

// loadInquiries brings the inquiries that there are under keys into the transaction.
func (t *transaction) loadInquiries(ctx context.Context, keys []flow.InquiryKey) error {
	var missing []flow.InquiryKey
	for _, k := range keys {
		if _, known := t.inquiries.known[k]; !known {
			missing = append(missing, k)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	found, err := t.tx.InquiriesOf(ctx, missing)
	if err != nil {
		return fmt.Errorf("look for inquiries: %w", err)
	}
	for _, i := range found {
		t.inquiries.remember(i)
	}
	return nil
}

// loadQuestions brings in, together, the inquiries that drafts which are about to ask may find.
func (t *transaction) loadQuestions(ctx context.Context, ds []*flow.Draft) error {
	var keys []flow.InquiryKey
	for _, d := range ds {
		if _, purpose, err := t.e.questions.Read(d.Payload()); err == nil {
			keys = append(keys, inquiryKeyOf(d.Execution, purpose))
		}
	}
	return t.loadInquiries(ctx, keys)
}

// ask puts the question of an execution to people. It ends at once when they have answered it before, in an earlier attempt of
// its workflow.
func (t *transaction) ask(ctx context.Context, d *flow.Draft) error {
	q, purpose, err := t.e.questions.Read(d.Payload())
	if err != nil {
		return t.failInvalid(d, err)
	}
	key := inquiryKeyOf(d.Execution, purpose)
	if err := t.loadInquiries(ctx, []flow.InquiryKey{key}); err != nil {
		return err
	}
	known := t.inquiries.known[key]
	if known != nil && known.State == flow.InquiryOpen {
		if before := t.draft(known.Execution); before != nil && before.Place != flow.Held {
			known.Withdraw(t.now) // what asked before has ended in this transaction, which withdraws its question only when it is written
		}
	}
	i, err := flow.Ask(known, t.e.opts.NewID(), d.ID, key, q, t.now)
	if err != nil {
		return t.failInvalid(d, err)
	}
	t.inquiries.decided(i)
	if i.Answer != nil {
		return t.answered(d, i)
	}
	d.WakeAgainAt(i.Wake(t.now))
	return t.recordInquiry(ctx, flow.TriggerInquiryOpened, d, i)
}

// checkQuestion says what is wrong with a question before it is stored; paths in it begin with root.
func (e *Engine) checkQuestion(_ context.Context, payload json.RawMessage, root string) error {
	_, _, err := e.questions.Read(payload)
	return problemsBeneath(root, err)
}

// problemsBeneath puts the paths of a payload's problems beneath the field that has the payload. Other errors stay as they are.
func problemsBeneath(root string, err error) error {
	var ps definition.Problems
	if !errors.As(err, &ps) {
		return err
	}
	v := &fault.Invalid{}
	for _, p := range ps {
		path := root
		if p.Path != "" {
			path += "." + p.Path
		}
		v.Problems = append(v.Problems, problem.Problem{Path: path, Value: p.Value, Message: p.Message, Fix: p.Fix})
	}
	return v
}

// answered ends an execution with the answer to its question.
func (t *transaction) answered(d *flow.Draft, i *flow.Inquiry) error {
	as, outcome, err := i.Answer.Outcome()
	if err != nil {
		return err
	}
	return d.Finish(as, outcome, t.now, t.e.opts.Random())
}

// remind reminds of a question, or ends the execution when it was not answered in time.
func (t *transaction) remind(ctx context.Context, d *flow.Draft) error {
	i, err := t.openInquiry(ctx, d.ID)
	if err != nil {
		return err
	}
	if i.Due.IsZero() || i.Due.After(t.now) {
		d.WakeAgainAt(i.Wake(t.now))
		return t.recordInquiry(ctx, flow.TriggerInquiryWaiting, d, i)
	}
	i.Expire(t.now)
	t.inquiries.decided(i)
	if err := t.recordInquiry(ctx, flow.TriggerInquiryExpired, d, i); err != nil {
		return err
	}
	if i.Answer != nil {
		return t.answered(d, i)
	}
	return d.Finish(flow.TimedOut, flow.Outcome{Error: &flow.Error{Code: flow.CodeInquiryExpired,
		Message: fmt.Sprintf("nobody answered %s (%s) within %s", i.ID.Text(flow.InquiryPrefix), i.Title, i.Expires)}}, t.now, t.e.opts.Random())
}

// openInquiry is the inquiry that an execution waits for.
func (t *transaction) openInquiry(ctx context.Context, id flow.ID) (*flow.Inquiry, error) {
	i := t.inquiries.of[id]
	if i == nil {
		found, err := t.tx.OpenInquiries(ctx, []flow.ID{id})
		if err != nil {
			return nil, fmt.Errorf("look for the inquiry: %w", err)
		}
		for _, f := range found {
			t.inquiries.remember(f)
			i = f
		}
	}
	if i == nil || i.State != flow.InquiryOpen {
		return nil, fmt.Errorf("%s waits for an answer, and has no open inquiry", id)
	}
	return i, nil
}

// wroteAsk notes an execution that asked before, or in this transaction, and now does not wait.
func (t *transaction) wroteAsk(d *flow.Draft) {
	if q := &t.inquiries; d.Place != flow.Held && (d.Before.Place == flow.Held || q.of[d.ID] != nil) {
		q.left = append(q.left, d)
	}
}

// writeInquiries withdraws the questions of executions that have ended without an answer, and writes all that was decided.
func (t *transaction) writeInquiries(ctx context.Context) error {
	q := &t.inquiries
	var unknown []flow.ID
	for _, d := range q.left {
		if q.of[d.ID] == nil {
			unknown = append(unknown, d.ID)
		}
	}
	if len(unknown) > 0 {
		found, err := t.tx.OpenInquiries(ctx, unknown)
		if err != nil {
			return fmt.Errorf("look for inquiries: %w", err)
		}
		for _, i := range found {
			q.remember(i)
		}
	}
	for _, d := range q.left {
		if i := q.of[d.ID]; i != nil && i.State == flow.InquiryOpen {
			i.Withdraw(t.now)
			q.decided(i)
		}
	}
	if len(q.changed) == 0 {
		return nil
	}
	rows := t.changes.add()
	rows.Inquiries = make([]*flow.Inquiry, 0, len(q.changed))
	for key := range q.changed {
		rows.Inquiries = append(rows.Inquiries, q.known[key])
	}
	return nil
}

// Reply is an answer to an inquiry, and by whom.
type Reply struct {
	By     string
	Groups []string // to which By belongs, each "group:NAME"
	Value  json.RawMessage
	Note   string
	Via    string // "api" or "link"
}

// noteLimit bounds the note of an answer, in bytes.
const noteLimit = 4096

// answerLimit bounds the value of an answer, in bytes.
const answerLimit = 256 << 10

// person reads who answers.
func (r *Reply) person() (p flow.Person, err error) {
	var f fault.List
	read := func(path, text string, group bool) string {
		who, err := flow.ReadWho(text)
		switch {
		case err != nil:
			f.Add(path, fault.Short(text), "it is not the name of "+what(group), "write it without spaces and colons")
		case (who[:min(6, len(who))] == "group:") != group:
			f.Add(path, fault.Short(text), "it is not the name of "+what(group), "groups are written group:NAME, people without a prefix")
		}
		return who
	}
	if r.By == "" {
		f.Add("by", "", "is missing", "say who answers")
	} else {
		p.Name = read("by", r.By, false)
	}
	if len(r.Groups) > groupsLimit {
		f.Add("groups", fmt.Sprint(len(r.Groups)), fmt.Sprintf("are more than the %d allowed", groupsLimit), "leave some out")
		return p, &fault.Invalid{Problems: f}
	}
	for i, g := range r.Groups {
		p.Groups = append(p.Groups, read(fmt.Sprintf("groups[%d]", i), g, true))
	}
	f.Text("note", r.Note, noteLimit)
	if len(r.Value) > answerLimit {
		f.Add("answer", "", fmt.Sprintf("has %d bytes, more than the %d allowed", len(r.Value), answerLimit), "shorten it")
	}
	if len(f) > 0 {
		return p, &fault.Invalid{Problems: f}
	}
	return p, nil
}

const groupsLimit = 100

func what(group bool) string {
	if group {
		return "a group"
	}
	return "a person"
}

// answersAtMost is how often an answer is decided about anew because the question has changed hands since it was read.
const answersAtMost = 10

var errAskedAnew = errors.New("the question has been asked anew")

// Answer answers an inquiry, on behalf of whom the reply names: every way to answer comes here. The same answer by the same
// person again changes nothing. What is wrong with an answer is a *Invalid or definition.Problems, and the inquiry stays open;
// other errors are those of flow.Inquiry.Reply, and store.ErrNotFound.
func (e *Engine) Answer(ctx context.Context, id flow.ID, r Reply) (*flow.Inquiry, error) {
	p, err := r.person()
	if err != nil {
		return nil, err
	}
	for range answersAtMost {
		i, err := e.opts.Store.Inquiry(ctx, id)
		if err != nil {
			return nil, err
		}
		a := flow.Answer{AnswerOutput: flow.AnswerOutput{By: p.Name, Note: r.Note}, Via: r.Via}
		var misfit error
		if a.Value, misfit = e.questions.Answer(&i.Question, r.Value, "answer"); misfit == nil {
			var accepted bool
			accepted, misfit = e.questions.Accepts(&i.Question, a.Value)
			a.Declined = !accepted
		}
		before := *i
		changed, err := before.Reply(a, p, misfit == nil && sameAnswer(i, a.Value))
		switch {
		case err != nil:
			return i, err
		case misfit != nil:
			return i, misfits(misfit)
		case !changed:
			return i, nil
		}
		i, err = e.answer(ctx, i, a, p)
		if !errors.Is(err, errAskedAnew) {
			return i, err
		}
	}
	return nil, fmt.Errorf("answer %s: %w", id.Text(flow.InquiryPrefix), store.ErrUnavailable)
}

// misfits says why an answer does not fit its question.
func misfits(err error) error {
	var e *definition.EvalError
	if errors.As(err, &e) {
		return fault.New("answer", "", "the question cannot be decided with it: "+e.Error(), "give the values that accept looks at")
	}
	return err
}

func sameAnswer(i *flow.Inquiry, value json.RawMessage) bool {
	return i.Answer != nil && jsonvalue.Same(i.Answer.Value, value)
}

// answer decides about an answer that fits the question as it was read.
func (e *Engine) answer(ctx context.Context, read *flow.Inquiry, a flow.Answer, p flow.Person) (*flow.Inquiry, error) {
	type verdict struct {
		inquiry flow.Inquiry
		err     error
	}
	v, err := inBatch(ctx, e, []flow.ID{read.Execution}, func(ctx context.Context, t *transaction) (v verdict, err error) {
		if err := t.loadInquiries(ctx, []flow.InquiryKey{read.InquiryKey}); err != nil {
			return v, err
		}
		i := t.inquiries.known[read.InquiryKey]
		switch {
		case i == nil:
			return verdict{err: fmt.Errorf("inquiry %s: %w", read.ID.Text(flow.InquiryPrefix), store.ErrNotFound)}, nil
		case i.Execution != read.Execution, !i.Same(&read.Question):
			return verdict{err: errAskedAnew}, nil
		}
		d := t.draft(i.Execution)
		if i.State == flow.InquiryOpen && (d == nil || d.Place != flow.Held) {
			return verdict{*i, fmt.Errorf("%w: its execution has ended", flow.ErrClosed)}, nil
		}
		a.At = t.now
		changed, refusal := i.Reply(a, p, sameAnswer(i, a.Value))
		if refusal != nil || !changed {
			return verdict{*i, refusal}, nil
		}
		t.inquiries.decided(i)
		t.effects.addFailpoint(failpoint.AnswerKept)
		if err := t.recordInquiry(ctx, flow.TriggerInquiryAnswered, d, i); err != nil {
			return v, err
		}
		if err := t.answered(d, i); err != nil {
			return v, err
		}
		t.changed(d)
		return verdict{inquiry: *i}, nil
	})
	if err != nil {
		return nil, err
	}
	return &v.inquiry, v.err
}
